"""The evidence about one attempt: measured once, shown as it is, and reported whether a verifier spoke or not."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Risk, Size
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.ledger.verify import verify
from fairwitness.rules.feature_plan import MAX_PRODUCTION_LINES
from fairwitness.rules.gates import is_verified
from fairwitness.runs.feature import reports
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.evidence import LINES, AttemptEvidence
from fairwitness.runs.feature.facts import attempt_facts
from fairwitness.runs.feature.tasks import RecordedAttempt, note_attempt, task_of, writes_of
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.verify.subject import VerifyDeps
from runs.feature.contexts import context as made
from runs.feature.ledger_rows import check
from runs.feature.run_events import played
from support import demo_feature as demo

TASK = "task-02"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    played(made_, demo.PLANNED)
    yield made_
    made_.ledger.close()


def _evidence(context: FeatureContext) -> AttemptEvidence:
    deps = VerifyDeps(
        repository=context.repository,
        runner=ScriptedRunner(()),
        shadow=context.shadow,
        ledger=context.ledger,
        state=context.kept.root,
        scratch=context.kept.root,
        settings=VerifySettings(),
        digest="0" * 64,
        clock=context.clock,
    )
    return AttemptEvidence(context, deps)


def _order(attempt: int = 1) -> AttemptOrder:
    return AttemptOrder.model_validate(
        {
            "run_id": "2026-02-26T14:30:00Z",
            "node": TASK,
            "attempt": attempt,
            "branch": f"fairwitness/{TASK}/attempt-{attempt}",
            "target": "fairwitness/target",
            "phase": str(attempt),
        }
    )


def _attempt(context: FeatureContext, files: Mapping[str, str], number: int = 1) -> RecordedAttempt:
    """A commit on top of the base with these files."""
    top, base = context.repository.top, context.order.base_commit
    assert top is not None
    for name, content in files.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(content)
        subprocess.run(["git", "add", "--", name], cwd=top, check=True)
    if files:
        person = ("-c", "user.name=A", "-c", "user.email=a@b")
        subprocess.run(["git", *person, "commit", "-q", "-m", "work"], cwd=top, check=True)
    head = context.repository.git.run("rev-parse", "HEAD").decode().strip()
    return note_attempt(context, TASK, number, base, head)


def _conclude(context: FeatureContext, attempt: RecordedAttempt, report: VerificationReport | None = None) -> None:
    _evidence(context).conclude(_order(), attempt, task_of(context, TASK), report, ())


def _rows(context: FeatureContext) -> list[tuple[str, bool, str | None]]:
    rows = context.ledger.tally(context.run_id, TASK, Phase.AFTER, 1).rows
    return [(row.check_name, row.passed, row.instance) for row in rows]


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("files", "holds", "lines"),
    [
        ({"till/money.py": "x = 1\n" * MAX_PRODUCTION_LINES}, True, MAX_PRODUCTION_LINES),
        ({"till/money.py": "x = 1\n" * (MAX_PRODUCTION_LINES + 1)}, False, MAX_PRODUCTION_LINES + 1),
        ({"tests/test_split.py": "x = 1\n" * 2000, "till/new.py": "x = 1\n"}, True, 1),
        ({}, False, 0),
    ],
    ids=["at the limit", "beyond it", "tests do not count", "nothing was changed"],
)
def test_an_attempt_is_measured_once(
    context: FeatureContext, files: Mapping[str, str], holds: bool, lines: int
) -> None:
    attempt = _attempt(context, files)
    for _ in range(2):
        _conclude(context, attempt)
    (seen,) = context.ledger.observations(context.run_id, LINES)
    assert (seen.holds, seen.detail["lines"]) == (holds, lines)
    assert _rows(context) == ([] if holds else [("scope", False, LINES)])
    assert verify(context.ledger.database, context.run_id) == []


@pytest.mark.req("P9")
def test_a_report_is_written_also_when_no_verifier_spoke(context: FeatureContext) -> None:
    attempt = _attempt(context, {"till/money.py": "x = 1\n"})
    _conclude(context, attempt)
    path = context.layout.verification_report(TASK)
    first = context.get(path)
    assert first is not None
    assert context.document(path, VerificationReport).agent_output.payload.task_id == TASK
    _conclude(context, attempt)
    assert context.get(path) == first


@pytest.mark.req("P9")
def test_what_an_implementer_said_is_held_against_what_was_seen(context: FeatureContext) -> None:
    (session,) = [each for each in demo.FIRST_ITERATION if (each.role, each.instance) == (Role.IMPLEMENTER, TASK)]
    attempt = _attempt(context, {"till/elsewhere.py": "x = 1\n"})
    _conclude(context, attempt)
    assert context.ledger.observations(context.run_id, reports.KIND) == (), "nobody has said anything yet"
    played(context, session)
    for _ in range(2):
        _conclude(context, attempt)
    (seen,) = context.ledger.observations(context.run_id, reports.KIND)
    assert not seen.holds
    assert "till/elsewhere.py was added, and the report does not name it" in seen.detail["found"]


def test_a_verifier_is_shown_what_was_run_and_by_whom(context: FeatureContext) -> None:
    evidence = _evidence(context)
    assert evidence.rendered(_order()) == ""
    check(context.ledger, TASK, "baseline-tests", baseline=True, round_=0)
    check(context.ledger, TASK, "tests", passed=False)
    check(context.ledger, TASK, "tests", round_=2)
    before, baseline, after, tests = evidence.rendered(_order()).split("\n\n")
    assert (before, after) == ("Before the change:", "After the change:")
    assert baseline == "baseline-tests (passed): `check baseline-tests`, exit code 0"
    assert tests.splitlines()[0] == "tests (regressed): `check tests`, exit code 1"


@pytest.mark.req("P9")
def test_facts_of_an_attempt_are_those_of_its_own_round(context: FeatureContext) -> None:
    document = task_of(context, TASK)
    nothing = attempt_facts(context, _order().node, _order().attempt, document)
    assert (nothing.tree, nothing.files, nothing.after.rows) == (None, (), ())
    assert not is_verified(nothing, context.order.policy)
    attempt = _attempt(context, {"till/money.py": "x = 1\n"})
    check(context.ledger, TASK, "baseline-tests", baseline=True, round_=0)
    check(context.ledger, TASK, "tests")
    check(context.ledger, TASK, "lint", round_=2)
    facts = attempt_facts(context, _order().node, _order().attempt, document)
    assert (facts.tree, [file.path for file in facts.files]) == (attempt.tree, ["till/money.py"])
    assert [row.check_name for row in (*facts.baseline.rows, *facts.after.rows)] == ["baseline-tests", "tests"]
    assert (facts.size, facts.risk) == (document.task.size, document.task.risk)
    assert {"ac-1", "ac-2"} <= set(facts.required)
    fix = attempt_facts(context, _order().node, _order().attempt, None)
    assert (fix.size, fix.risk, fix.required) == (Size.STANDARD, Risk.GREEN, ())


def test_a_task_may_touch_what_it_declares(context: FeatureContext) -> None:
    assert set(writes_of(task_of(context, TASK))) == {"till/money.py", "tests/test_split.py"}


@pytest.mark.req("P7")
def test_a_verifier_whose_command_cannot_be_run_is_told_which_can(context: FeatureContext) -> None:
    evidence, document = _evidence(context), task_of(context, TASK)
    attempt = _attempt(context, {"till/notes.py": "left = 1\n"})
    report = VerificationReport.model_validate(demo.DEMO.session(f"verifier-{TASK}").answer)
    assert evidence.objections(attempt, document, report) == ()
    plain = report.plain()
    plain["agent_output"]["payload"]["criteria"][0] |= {"command": 'python3 -c "assert True"', "location": None}
    found = evidence.objections(attempt, document, VerificationReport.model_validate(plain))
    assert len(found) == 2
    assert found[0].startswith("agent_output.payload.criteria: ac-1, ")
    assert "no check of this project begins with python3 -c" in found[0]
    assert found[1] == f"commands may begin with: {', '.join(f'`{one}`' for one in evidence.commands(attempt))}"
    assert "python3 -m unittest" in found[1]
