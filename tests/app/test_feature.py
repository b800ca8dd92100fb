"""How a feature run is begun: settings read once, all written down; and refused in a sentence where it cannot be."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairwitness.app.assembly.engine import RunnerFactory
from fairwitness.app.assembly.parts import caps_of
from fairwitness.app.run_records.feature import feature_context, order_of, resume_feature
from fairwitness.app.runs.begin_feature import BegunFeature, RunRequest, begin_feature
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.decisions import Halt, HaltOutcome
from fairwitness.contracts.feature.events import FeatureRunOutcome, RunFinished
from fairwitness.contracts.feature.facts import Step
from fairwitness.errors import FairWitnessError, NotReady, UsageError
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.feature_events import events_of
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import take_decision
from fairwitness.sandbox.probe import probe
from runs.feature.run_events import enter
from support import demo_feature as demo

pytestmark = pytest.mark.skipif(not probe().tiers, reason="nothing here can keep a command in")

MOMENT = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)


@pytest.fixture
def till(tmp_path: Path) -> Path:
    return demo.DEMO.lay_out(tmp_path / "till")


def wanted(till: Path, **differs: object) -> RunRequest:
    """The demo's request for its recorded team."""
    recorded = till.parent / "cassettes"
    if not recorded.exists():
        demo.DEMO.write_cassettes(recorded)
    plain: dict[str, object] = {
        "request": demo.DEMO.request,
        "agents": "cassette",
        "cassettes": recorded,
        "is_autonomous": True,
    }
    return RunRequest(**(plain | differs))  # type: ignore[arg-type]  # each test says what it changes


def begin(till: Path, **differs: object) -> BegunFeature:
    return begin_feature(till, wanted(till, **differs), clock=lambda: MOMENT)


def ledger_of(till: Path) -> Ledger:
    return RunnerFactory(till).ledger


@pytest.mark.req("P16")
def test_a_run_is_written_down_before_anything_happens_and_read_back_as_it_was(till: Path) -> None:
    begun = begin(till)
    ledger = ledger_of(till)
    order, budget = order_of(ledger, begun.run_id)
    assert (order, budget) == (begun.order, BudgetTable())
    assert [event.type for event in ledger.events(begun.run_id)] == ["run_started"]
    assert (order.slug, order.mode, order.snapshot) == (demo.DEMO.slug, ApprovalMode.AUTONOMOUS, None)
    assert order.cassettes == str(till.parent / "cassettes")
    ledger.close()


@pytest.mark.req("P16")
def test_two_runs_that_begin_in_the_same_second_have_their_own_ids(till: Path) -> None:
    first, second = begin(till), begin(till)
    assert first.run_id != second.run_id
    assert first.order.target != second.order.target


@pytest.mark.req("P3")
def test_what_is_not_committed_is_kept_or_refused_as_the_person_wants(till: Path) -> None:
    (till / "README.md").write_text("changed\n")
    assert begin(till).order.snapshot is not None
    settings = (till / "fairwitness.toml").read_text()
    (till / "fairwitness.toml").write_text(f"{settings}\n[feature]\ndirty = 'refuse'\n")
    with pytest.raises(UsageError, match="uncommitted changes"):
        begin(till)


@pytest.mark.req("P12")
def test_what_was_set_when_a_run_began_holds_for_all_of_it(till: Path) -> None:
    settings = (till / "fairwitness.toml").read_text()
    more = "[policy]\nresearchers = 3\n[budget]\nminutes = 2\n[finish]\ncheckout = false\n"
    (till / "fairwitness.toml").write_text(f"{settings}\n{more}")
    begun = begin(till)
    (till / "fairwitness.toml").write_text(settings)
    ledger = ledger_of(till)
    order, budget = order_of(ledger, begun.run_id)
    assert (order.policy.researchers, order.finish.checkout, budget.minutes) == (3, False, 2)
    ledger.close()


REFUSED: list[tuple[dict[str, object], type[FairWitnessError], str]] = [
    ({"request": "  \n"}, UsageError, "the request is empty"),
    ({"cassettes": Path("/nowhere/at/all")}, NotReady, "lacks"),
]


@pytest.mark.parametrize(("differs", "kind", "said"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_cannot_begin_is_refused_and_leaves_no_run(
    till: Path, differs: dict[str, object], kind: type[FairWitnessError], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        begin(till, **differs)
    assert caught.value.next_step
    ledger = ledger_of(till)
    assert ledger.runs() == ()
    ledger.close()


@pytest.mark.parametrize("slug", ["Not A Slug", "../up"])
def test_a_name_that_can_be_no_folder_is_refused_in_a_sentence(till: Path, slug: str) -> None:
    with pytest.raises(UsageError, match="short name"):
        begin(till, slug=slug)


def test_a_misspelt_setting_begins_nothing(till: Path) -> None:
    settings = (till / "fairwitness.toml").read_text()
    (till / "fairwitness.toml").write_text(f"{settings}\n[budget]\nminute = 5\n")
    with pytest.raises(UsageError, match=r"fairwitness\.toml: budget\.minute: expected no such field"):
        begin(till)


def test_who_is_no_feature_run_has_no_order(till: Path) -> None:
    ledger = ledger_of(till)
    with pytest.raises(UsageError, match="not a feature run"):
        order_of(ledger, "run-2026-02-09-143052")
    ledger.close()


@pytest.mark.parametrize(
    ("budget", "caps"),
    [
        (BudgetTable(), (None, None, None)),
        (BudgetTable(tokens=5, dollars=0.1, minutes=2), (5, 100_000, 120_000)),
        (BudgetTable(dollars=0.000001), (None, 1, None)),
    ],
)
def test_a_budget_is_the_runs_own(budget: BudgetTable, caps: tuple[int | None, ...]) -> None:
    made = caps_of(budget)
    assert (made.run.tokens, made.run.money_micros, made.run.milliseconds) == caps
    assert (made.dispatch, made.phase) == (caps_of(BudgetTable()).run, caps_of(BudgetTable()).run)


def _halt(context: FeatureContext) -> None:
    halt = Halt(reason="no", outcome=HaltOutcome.ERROR, resumable=True)
    context.write_event(*events_of(context.state(), halt, 1, raised=None))


@pytest.mark.req("P16")
def test_a_run_that_ended_goes_on_in_the_step_that_it_ended_in(till: Path) -> None:
    begun = begin(till)
    factory = RunnerFactory(till)
    context = feature_context(factory.repository, factory.ledger, begun.run_id, begun.order)
    resume_feature(factory.repository, factory.ledger, begun.run_id)
    assert context.state().resumed == 0, "it has not ended"
    enter(context, Step.SETUP)
    enter(context, Step.RESEARCH)
    _halt(context)
    resume_feature(factory.repository, factory.ledger, begun.run_id)
    assert (context.state().resumed, context.state().current_step) == (1, Step.RESEARCH.value)
    assert take_decision(context, 0).decision.kind == "advance"
    factory.ledger.close()


@pytest.mark.req("P16")
def test_a_run_that_is_taken_up_says_once_that_git_refused_its_head(till: Path) -> None:
    begun = begin(till)
    remarks: list[str] = []
    factory = RunnerFactory(till, on_remark=remarks.append)
    (till / ".git/refs/fairwitness").write_text("no folder for refs\n")
    for _ in range(2):
        factory.feature_runner(begun.run_id)
    factory.ledger.close()
    (remark,) = remarks
    assert begun.run_id in remark
    assert "could not be anchored" in remark


@pytest.mark.req("P16")
def test_steps_of_the_same_moment_are_not_confused_when_a_run_goes_on(till: Path) -> None:
    begun = begin(till)
    factory = RunnerFactory(till)
    context = feature_context(
        factory.repository, factory.ledger, begun.run_id, begun.order, clock=lambda: MOMENT + timedelta(1)
    )
    for step in (Step.DESIGN, Step.DESIGN_REVIEW, Step.DESIGN):
        enter(context, step)
    enter(context, Step.DESIGN_REVIEW)
    enter(context, Step.PLAN)
    _halt(context)
    resume_feature(factory.repository, factory.ledger, begun.run_id)
    assert context.state().current_step == Step.PLAN.value
    factory.ledger.close()


def test_whoever_goes_on_with_a_run_that_ran_out_of_budget_may_have_raised_it(till: Path) -> None:
    (till / "fairwitness.toml").write_text("[budget]\ntokens = 10\n")
    begun = begin(till)
    factory = RunnerFactory(till)
    try:
        context = feature_context(factory.repository, factory.ledger, begun.run_id, begun.order)
        (till / "fairwitness.toml").write_text("[budget]\ntokens = 20\n")
        assert order_of(factory.ledger, begun.run_id)[1].tokens == 10  # it holds while the run goes on
        context.write_event(RunFinished(outcome=FeatureRunOutcome.OUT_OF_BUDGET, confidence=None, reason="the budget"))
        resume_feature(factory.repository, factory.ledger, begun.run_id)
        assert order_of(factory.ledger, begun.run_id)[1].tokens == 20
    finally:
        factory.ledger.close()
