"""What each call of a decision is told: the right agent, what people said, what was refused, and what was found."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.events import ApprovalAnswered, Degradation, Degraded, ReplanStarted
from fairwitness.contracts.feature.facts import GateChoice, HumanGate, Step
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.errors import InternalError
from fairwitness.kit import yaml_text
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_events import PlannedCall
from fairwitness.rules.feature_routes import CALLS_OF
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.call_briefs import brief_of, said_so_far, summary_of
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.decisions import answered
from fairwitness.runs.feature.findings import open_findings
from fairwitness.runs.shared.sections import CHANGE
from runs.feature.contexts import context as made
from runs.feature.contexts import shown
from runs.feature.run_events import ask, attempt, call, enter, played
from support import demo_feature as demo


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    for session in (*demo.GROUNDWORK, demo.SPEC, demo.FIRST_DESIGN, demo.PLANNED):
        played(made_, session)
    yield made_
    made_.ledger.close()


def _call(step: Step, instance: str, visit: int = 1, number: int = 1) -> PlannedCall:
    return PlannedCall(f"{step.value}-{visit}-{instance}-{number}", step, visit, instance, number)


def _brief(context: FeatureContext, call: PlannedCall) -> object:
    return brief_of(context, FeatureBriefs(context), call, context.order.base_commit)


def _titles(context: FeatureContext, call: PlannedCall) -> list[str]:
    return [box.title for box in brief_of(context, FeatureBriefs(context), call, context.order.base_commit).inputs]


def _inputs(context: FeatureContext, call: PlannedCall) -> tuple[PromptSection, ...]:
    return brief_of(context, FeatureBriefs(context), call, context.order.base_commit).inputs


ROLES = {
    Step.SETUP: Role.INTAKE,
    Step.RESEARCH: Role.RESEARCHER,
    Step.SPEC: Role.SPEC,
    Step.DESIGN: Role.DESIGNER,
    Step.DESIGN_REVIEW: Role.REVIEWER,
    Step.PLAN: Role.PLANNER,
    Step.CODE_REVIEW: Role.REVIEWER,
    Step.KNOWLEDGE: Role.KNOWLEDGE,
}


@pytest.mark.req("P14")
@pytest.mark.parametrize("step", [step for step in Step if CALLS_OF[step]])
def test_every_call_of_the_table_is_an_agents_or_our_own(context: FeatureContext, step: Step) -> None:
    for name in CALLS_OF[step]:
        if step in ROLES:
            brief = brief_of(context, FeatureBriefs(context), _call(step, name), context.order.base_commit)
            assert brief.role is ROLES[step]
            assert brief.dispatch_id == _call(step, name).dispatch_id
        else:
            with pytest.raises(InternalError, match="no agent is called"):
                _brief(context, _call(step, name))


def _answer(context: FeatureContext, gate: HumanGate, choice: GateChoice, said: str | None) -> None:
    event = ApprovalAnswered(gate_id=gate.value, selected_option=choice.value, auto_selected=False, actor="ada")
    ask(context, gate)

    def write(record: Record) -> None:
        write_events(record, (event,), context.now())
        record.approval(answered(context, event, context.now(), said=said))

    context.write(write)


@pytest.mark.req("P5")
def test_what_people_said_is_passed_on_in_its_order(context: FeatureContext) -> None:
    assert said_so_far(context) is None
    enter(context, Step.RESEARCH_GATE)
    _answer(context, HumanGate.RESEARCH, GateChoice.EXPAND, "Look at the tests, too.")
    _answer(context, HumanGate.PLAN, GateChoice.APPROVE, None)
    _answer(context, HumanGate.RESEARCH, GateChoice.OTHER, "And the docs.")
    said = said_so_far(context)
    assert said == (
        "At gate-post-research (expand): Look at the tests, too.\n\nAt gate-post-research (other): And the docs."
    )
    for step, name in (
        (Step.RESEARCH, "impact"),
        (Step.SPEC, "spec"),
        (Step.DESIGN, "designer"),
        (Step.PLAN, "planner"),
    ):
        texts = [
            box.text
            for box in brief_of(context, FeatureBriefs(context), _call(step, name), context.order.base_commit).inputs
        ]
        assert sum(said in text for text in texts) == 1


@pytest.mark.req("P7")
def test_a_designer_is_shown_the_findings_of_the_review(context: FeatureContext) -> None:
    call_ = _call(Step.DESIGN, "designer", visit=2)
    before = _titles(context, call_)
    for session in demo.DESIGN_REVIEWS:
        played(context, session)
    after = _titles(context, call_)
    assert [title for title in after if title not in before and "so far" not in title] == ["Findings"]
    assert open_findings(context, ReviewScope.CODE) == ()


@pytest.mark.req("P7")
def test_a_reviewer_is_shown_its_own_findings_of_the_round_before(context: FeatureContext) -> None:
    for session in demo.DESIGN_REVIEWS:
        played(context, session)
    first = brief_of(
        context,
        FeatureBriefs(context),
        _call(Step.DESIGN_REVIEW, Perspective.SECURITY.value),
        context.order.base_commit,
    )
    again = brief_of(
        context,
        FeatureBriefs(context),
        _call(Step.DESIGN_REVIEW, Perspective.SECURITY.value, visit=2),
        context.order.base_commit,
    )
    third = brief_of(
        context,
        FeatureBriefs(context),
        _call(Step.DESIGN_REVIEW, Perspective.SECURITY.value, visit=3),
        context.order.base_commit,
    )
    assert "SEC-1" not in "".join(box.text for box in first.inputs)
    assert "SEC-1" in "".join(box.text for box in again.inputs)
    assert [brief.known["round"] for brief in (first, again, third)] == [1, 2, 2]


@pytest.mark.req("P8")
def test_a_planner_whose_plan_was_refused_is_told_why(context: FeatureContext) -> None:
    enter(context, Step.PLAN)
    call(context, "step-4-1-planner-1", Step.PLAN, Role.PLANNER, "planner", answer=demo.PLANNED.answer)
    wrong = {**demo.PLANNED.answer}
    payload = {**wrong["agent_output"]["payload"], "total_tasks": 9}
    wrong["agent_output"] = {**wrong["agent_output"], "payload": payload}
    played(context, replace(demo.PLANNED, answer=wrong), "step-4-1-planner-1")
    texts = "".join(
        box.text
        for box in brief_of(
            context, FeatureBriefs(context), _call(Step.PLAN, "planner", number=2), context.order.base_commit
        ).inputs
    )
    assert "- plan-output.yaml: agent_output.payload.total_tasks" in texts
    fresh = brief_of(context, FeatureBriefs(context), _call(Step.PLAN, "planner"), context.order.base_commit)
    assert "was refused" not in "".join(box.text for box in fresh.inputs)
    assert fresh.parameters["mode"] == "initial"


@pytest.mark.req("P7", "P8")
def test_what_the_review_left_open_binds_the_planner_though_it_was_outvoted(context: FeatureContext) -> None:
    for session in demo.DESIGN_REVIEWS:
        played(context, session)
    planner = _call(Step.PLAN, "planner")
    (section,) = [box for box in _inputs(context, planner) if box.title.startswith("Open findings of the design")]
    (told,) = yaml_text.parse(section.text)
    said = demo.DESIGN_REVIEWS[0].answer["findings"][0]
    assert told == said | {"id": "security-sentinel/SEC-1"}, "the whole finding, as data"
    for session in demo.DESIGN_REVIEWS_AGAIN:
        played(context, session)
    assert "SEC-1" not in "".join(box.text for box in _inputs(context, planner)), "its reviewer says it is addressed"


@pytest.mark.req("P9")
def test_who_plans_anew_is_told_which_tasks_failed_and_why(context: FeatureContext) -> None:
    attempt(context, "task-01", 1, merged=False)
    context.write_event(ReplanStarted(iteration=2, failing=("task-01", "task-03")))
    brief = brief_of(context, FeatureBriefs(context), _call(Step.PLAN, "planner", visit=2), context.order.base_commit)
    assert brief.parameters["mode"] == "replan"
    told = {box.title: box.text for box in brief.inputs if ", which failed: " in box.title}
    assert list(told) == ["task-01, which failed: why", "task-03, which failed: why"]
    assert "something that it depends on failed" in told["task-03, which failed: why"]


def test_a_change_is_shown_as_people_read_one_and_cut_where_it_is_too_long(
    context: FeatureContext, tmp_path: Path
) -> None:
    base = context.order.base_commit
    assert _change(context, base) == "(nothing was changed)"
    git = context.shadow.into_store(context.repository).git
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"line\n" * 20_000).decode().strip()
    tree = git.run("mktree", stdin=f"100644 blob {blob}\tlong.txt\n".encode()).decode().strip()
    text = _change(context, tree)
    cut, told = text[:CHANGE], text[CHANGE:]
    assert cut.startswith("diff --git")
    assert told.startswith("\n(cut here: ")
    assert "what you have not seen you cannot vouch for" in told


@pytest.mark.req("P7")
def test_attributes_that_a_change_brings_hide_nothing_of_it_from_a_reviewer(context: FeatureContext) -> None:
    git = context.shadow.into_store(context.repository).git
    rows = []
    for name, content in ((".gitattributes", b"*.py -diff binary\n"), ("till.py", b"price = 'stolen'\n")):
        blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        rows.append(f"100644 blob {blob}\t{name}\n")
    tree = git.run("mktree", stdin="".join(rows).encode()).decode().strip()
    assert "+price = 'stolen'" in _change(context, tree)


def _change(context: FeatureContext, tip: str) -> str:
    """The change that a reviewer of the code is shown."""
    call = _call(Step.CODE_REVIEW, Perspective.PRAGMATIC.value)
    return shown(brief_of(context, FeatureBriefs(context), call, tip), "The change")


def test_a_run_is_summed_up_from_its_events(context: FeatureContext) -> None:
    enter(context, Step.IMPLEMENT)
    attempt(context, "task-01", 1, merged=True)
    attempt(context, "task-02", 1, merged=False)
    attempt(context, "task-03", 1, merged=None)
    for session in demo.DESIGN_REVIEWS[:1]:
        played(context, session)
    context.write_event(Degraded(kind=Degradation.SINGLE_MODEL, detail="one model for all"))
    lines = summary_of(context.state()).splitlines()
    assert lines == [
        f"Run {context.run_id}, feature {context.order.slug}, autonomous.",
        "step-5: under way, begun 1 times",
        "task-01: attempt 1 verified; merged",
        "task-02: attempt 1 failed: no reason was given; not merged",
        "task-03: attempt 1 under way; not merged",
        "design review, round 1, security-sentinel: architecture approve, correctness approve, security needs_revision",
        "continued with less: single_model: one model for all",
    ]
