"""Documents that are none: each role's answer is asked about once, the call is made once more, and then the table says.

One run goes from fault to fault: each role fails until the run halts, is mended, and the run goes on from there.
"""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import DispatchOutcome, OutcomeStatus
from fairwitness.contracts.common.decisions import Decision, ErrorCause, Halt, HaltOutcome, Retry
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.events import Degradation, DispatchStatus
from fairwitness.contracts.feature.facts import Step
from fairwitness.demo.sessions import RecordedSession
from feature.grounds import MARK, PLAN, TASK, Grounds, Run, Turn, as_turns, call, of
from support import demo_feature as demo
from support.ladder import SWEEP

EMPTY = Turn()
PROSE = Turn(f"All is well with the {MARK}: there is nothing to report.\n\nGood bye.")
WRONG = Turn("Here it is.", submitted={MARK: [1, 2, 3], "agent_output": MARK})
HUGE = Turn(f"{MARK} " * (3 * 1024 * 1024 // (len(MARK) + 1)))
"""More than is looked at; what is larger still is in the tests of misbehaviour."""
SENTINEL = "security-sentinel"


def truncated(session: RecordedSession) -> Turn:
    """The good document, and its end is missing."""
    whole = json.dumps({**session.answer, "note": MARK})
    return Turn(f"```json\n{whole[: -len(MARK) - 20]}")


def untrue(session: RecordedSession) -> Turn:
    """A document of the right form that contradicts itself."""
    answer = copy.deepcopy(session.answer)
    _SPOIL[session.role](answer)
    return Turn(f"As asked, with {MARK}.", submitted=answer)


def _payload(answer: demo.Document) -> demo.Document:
    payload: demo.Document = answer["agent_output"]["payload"]
    return payload


def _infeasible(answer: demo.Document) -> None:
    answer |= {"infeasible": True, "understanding": MARK}


def _without_evidence(answer: demo.Document) -> None:
    _payload(answer)["findings"][0] |= {"evidence": [], "detail": MARK}


def _without_criteria(answer: demo.Document) -> None:
    _payload(answer).update(acceptance_criteria=[], feature_name=MARK)


def _twice_decided(answer: demo.Document) -> None:
    _payload(answer)["decisions"][1] |= {"id": "D-1", "title": MARK}


def _clean_and_not(answer: demo.Document) -> None:
    """Says that security is clean, and finds something critical in it."""
    found = {"id": "SEC-1", "category": "security", "severity": "Critical", "title": MARK, "description": "Open."}
    answer["findings"] = [found | {"artifacts": ["D-1"], "recommendation": "Close it.", "evidence": ["D-1"]}]


def _in_no_wave(answer: demo.Document) -> None:
    _payload(answer)["waves"] = [{"id": "wave-1", "tasks": ["task-07"], "max_concurrent": 4}]
    _payload(answer)["key_assumptions"] = [MARK]


def _more_passed_than_run(answer: demo.Document) -> None:
    _payload(answer)["self_check"]["test_summary"] = {"total": 3, "passed": 5, "failed": 0}
    _payload(answer)["changes"][0]["description"] = MARK


def _gate_of_its_own(answer: demo.Document) -> None:
    _payload(answer)["evidence_gate"]["passed"] = 99
    answer["completion"]["summary"] = MARK


def _numbered_otherwise(answer: demo.Document) -> None:
    _payload(answer)["decision_log_entries"][0] |= {"id": "X", "title": MARK}


_SPOIL: dict[Role, Callable[[demo.Document], None]] = {
    Role.INTAKE: _infeasible,
    Role.RESEARCHER: _without_evidence,
    Role.SPEC: _without_criteria,
    Role.DESIGNER: _twice_decided,
    Role.REVIEWER: _clean_and_not,
    Role.PLANNER: _in_no_wave,
    Role.IMPLEMENTER: _more_passed_than_run,
    Role.VERIFIER: _gate_of_its_own,
    Role.KNOWLEDGE: _numbered_otherwise,
}


def few(session: RecordedSession) -> tuple[tuple[Turn, ...], ...]:
    """Two sessions that are no good, of two answers each."""
    return (EMPTY, truncated(session)), (WRONG, untrue(session))


def many(session: RecordedSession) -> tuple[tuple[Turn, ...], ...]:
    """Two others."""
    return (PROSE, HUGE), (untrue(session), EMPTY)


@dataclass(frozen=True, slots=True)
class Life:
    """A run from its begin, or from where it went on, to where it ended."""

    decisions: Sequence[Decision]
    outcomes: dict[str, DispatchOutcome]
    marked: Sequence[str]
    documents: frozenset[str]
    statuses: dict[str, DispatchStatus | None]

    @property
    def last(self) -> Decision:
        """How it ended."""
        return self.decisions[-1]


def lives_of(run: Run) -> Iterator[Life]:
    """Carries a run again and again, until it ends in a commit."""
    decided, ended = 0, set[str]()
    for _ in range(20):
        end = run.carry()
        decisions, outcomes, state = run.decisions(), run.outcomes(), run.state()
        yield Life(
            decisions[decided:],
            {id_: outcome for id_, outcome in outcomes.items() if id_ not in ended},
            run.grounds.marked(),
            frozenset(run.grounds.feature_files()),
            {id_: dispatch.status for id_, dispatch in state.dispatches.items()},
        )
        decided, ended = len(decisions), set(outcomes)
        if end is WatchEnd.COMPLETED:
            return


FAILING = {
    "intake": of(Role.INTAKE),
    "architecture": of(Role.RESEARCHER, "researcher-architecture"),
    "spec": of(Role.SPEC),
    "designer": of(Role.DESIGNER),
    "design reviewer": of(Role.REVIEWER, SENTINEL, 1),
    "planner": of(Role.PLANNER),
    "implementer": of(Role.IMPLEMENTER),
    "verifier": of(Role.VERIFIER),
    "code reviewer": replace(of(Role.REVIEWER, SENTINEL, 2), number=4),
}
"""Who fails for good, in the order in which the run comes to them."""
REASONS = {
    "intake": "the step failed and no retry is left: intake (schema_violation)",
    "architecture": "too few researchers are done: 1 of 4",
    "spec": "the step failed and no retry is left: spec (schema_violation)",
    "designer": "the step failed and no retry is left: designer (schema_violation)",
    "design reviewer": f"fewer than three reviewers judged the design: {SENTINEL}",
    "planner": "the step failed and no retry is left: planner (schema_violation)",
    "implementer": f"the step failed and no retry is left: {TASK} (schema_violation)",
    "verifier": f"the step failed and no retry is left: {TASK} (schema_violation)",
    "code reviewer": f"fewer than three reviewers judged the code: {SENTINEL}",
}
FILES = {
    "architecture": demo.LAYOUT.research("architecture"),
    "spec": demo.LAYOUT.spec,
    "designer": demo.LAYOUT.design,
    "design reviewer": demo.LAYOUT.review_verdict("design", SENTINEL),
    "planner": demo.LAYOUT.plan,
    "implementer": demo.LAYOUT.implementation_report(TASK),
    "code reviewer": demo.LAYOUT.review_verdict("code", SENTINEL),
}
KINDS = [few, *([many] if SWEEP else [])]


@dataclass(frozen=True, slots=True)
class Chain:
    """A run that failed at every role, one after the other, and was mended each time."""

    run: Run
    lives: dict[str, Life]
    last: Life
    before: dict[str, str]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: str(kind.__name__))
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """The good recordings are there from the beginning, behind the faulty ones."""
    kind: Callable[[RecordedSession], tuple[tuple[Turn, ...], ...]] = request.param
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("chain"))
    for session in (*FAILING.values(), of(Role.KNOWLEDGE)):
        grounds.fail_first(session, *kind(session))
    for focus in ("impact", "patterns"):
        session = of(Role.RESEARCHER, f"researcher-{focus}")
        # the second time two of four are enough: these two fail again
        grounds.fail_first(session, *kind(session), *kind(session))
    worker = of(Role.IMPLEMENTER)
    grounds.record(worker.role, worker.instance, 4, as_turns(worker))  # an attempt without a report is made anew
    before, run = grounds.refs(), grounds.begin()
    *halted, last = lives_of(run)
    return Chain(run, dict(zip(FAILING, halted, strict=True)), last, before)


@pytest.mark.req("P12")
@pytest.mark.parametrize("who", FAILING)
def test_a_malformed_answer_is_asked_about_once_and_its_call_made_once_more(chain: Chain, who: str) -> None:
    session, life = FAILING[who], chain.lives[who]
    bad = {id_: outcome for id_, outcome in life.outcomes.items() if _is_of(id_, session) and outcome.answer is None}
    assert len(bad) == 2
    for id_, outcome in bad.items():
        assert (outcome.status, outcome.cause) == (OutcomeStatus.INVALID_ANSWER, ErrorCause.SCHEMA_VIOLATION)
        assert outcome.asked == 2
        assert outcome.problems
        assert life.statuses[id_] is DispatchStatus.ERROR


def _is_of(dispatch_id: str, session: RecordedSession) -> bool:
    return f"-{session.instance}-" in dispatch_id


@pytest.mark.req("P12", "P16")
@pytest.mark.parametrize("who", FAILING)
def test_a_second_failure_is_the_tables_error_and_the_run_can_go_on(chain: Chain, who: str) -> None:
    halt = chain.lives[who].last
    assert isinstance(halt, Halt)
    assert (halt.outcome, halt.resumable, halt.reason) == (HaltOutcome.ERROR, True, REASONS[who])


@pytest.mark.parametrize("who", FAILING)
def test_nothing_of_a_refused_document_stands_in_the_feature_folder(chain: Chain, who: str) -> None:
    life = chain.lives[who]
    assert not life.marked
    if who in FILES:
        assert FILES[who].removeprefix(f"{demo.LAYOUT.folder}/") not in life.documents


@pytest.mark.req("P16")
def test_mended_at_every_role_the_run_ends_in_its_commit(chain: Chain) -> None:
    state = chain.run.state()
    assert state.commit is not None
    assert state.resumed == len(FAILING)
    after = chain.run.grounds.refs()
    assert {name: after.get(name) for name in chain.before if name != "HEAD"} == {
        name: value for name, value in chain.before.items() if name != "HEAD"
    }


def test_what_had_been_done_before_a_halt_is_not_asked_again(chain: Chain) -> None:
    done = [
        dispatch.instance
        for dispatch in chain.run.state().dispatches.values()
        if dispatch.status is DispatchStatus.DONE and dispatch.step == Step.RESEARCH.value
    ]
    assert sorted(done) == ["researcher-architecture", "researcher-dependencies"]
    reviews = [event.data["perspective"] for event in chain.run.events("review_submitted")]
    assert len(reviews) == 6
    assert all(reviews.count(one) == 2 for one in reviews)


@pytest.mark.req("P4", "P17")
def test_two_researchers_of_four_are_enough_and_that_is_told(chain: Chain) -> None:
    assert Degradation.FEWER_RESEARCHERS in {each.kind for each in chain.run.state().degradations}


@pytest.mark.req("P10", "P17")
def test_a_knowledge_agent_without_a_document_holds_nothing_up(chain: Chain) -> None:
    life = chain.last
    bad = [outcome for id_, outcome in life.outcomes.items() if "knowledge" in id_]
    assert [outcome.status for outcome in bad] == [OutcomeStatus.INVALID_ANSWER] * 2
    assert Degradation.KNOWLEDGE_FAILED in {each.kind for each in chain.run.state().degradations}
    assert "knowledge-output.yaml" not in life.documents
    assert "decisions.yaml" not in life.documents
    assert not life.marked
    assert any(name.startswith("post-mortems/") for name in life.documents)


@pytest.mark.req("P9")
def test_a_verifier_that_judges_no_criterion_ends_the_run_and_nothing_is_merged(grounds: Grounds) -> None:
    """And a report that speaks of another task is filed under the one that was asked for."""
    worker, verifier = of(Role.IMPLEMENTER), of(Role.VERIFIER)
    report, judged = copy.deepcopy(worker.answer), copy.deepcopy(verifier.answer)
    _payload(report)["task_id"] = "task-77"
    report["completion"]["output_paths"] = ["src/stolen.yaml"]
    grounds.record(worker.role, worker.instance, 1, (*as_turns(worker)[:-1], Turn("Done.", submitted=report)))
    _payload(judged)["criteria"] = [{"criterion": "Something else altogether.", "command": "python3 -m unittest"}]
    _payload(judged)["task_id"] = "task-77"
    stubborn = Turn("It all holds.", submitted=judged)
    for dispatch in (1, 2):
        grounds.record(verifier.role, verifier.instance, dispatch, (stubborn, stubborn))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert halt.resumable
    assert halt.reason == f"the step failed and no retry is left: {TASK} (schema_violation)"
    assert list(run.state().tasks) == [TASK]
    assert run.state().tasks[TASK].merged is None
    files = grounds.feature_files()
    assert [name for name in files if "77" in name or "stolen" in name] == []
    assert f"implementation-reports/{TASK}.yaml" in files


@pytest.mark.req("P8", "P12")
def test_a_plan_without_its_task_documents_or_beyond_the_limits_is_refused_whole(grounds: Grounds) -> None:
    document = _task_of_four_files()
    written = Turn("One task.", (call("create_file", path=demo.LAYOUT.task(TASK), content=document),))
    late = Turn("Later.", submitted=PLAN.answer)
    grounds.fail_first(PLAN, (late, late), (written, late, late))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert halt.outcome is HaltOutcome.ERROR
    assert halt.resumable
    assert [type(decision) for decision in run.decisions()[-2:]] == [Retry, Halt]
    first, second = (run.outcomes()[f"step-4-1-planner-{number}"] for number in (1, 2))
    assert (first.status, first.asked) == (OutcomeStatus.INVALID_ANSWER, 2), "it could have put it right"
    assert "expected a task document, found none" in first.problems[0]
    assert "at most 3 files besides tests" in second.problems[0]
    assert "expected a task document, found none" in run.transcript("step-4-1-planner-2")
    assert not any(name.startswith(("plan", "tasks/")) for name in grounds.feature_files())
    assert not grounds.marked()
    if SWEEP:
        assert run.carry() is WatchEnd.COMPLETED


def _task_of_four_files() -> str:
    written = next(args["content"] for turn in as_turns(PLAN) for _, args in turn.calls)
    extra = "".join(f"    - path: till/{name}.py\n      risk: 🟢\n" for name in ("one", "two", MARK))
    assert "files_to_modify:\n" in written
    return str(written).replace("    files_to_modify:\n", f"    files_to_modify:\n{extra}")


def _saying(session: RecordedSession, status: CompletionStatus) -> Turn:
    answer = copy.deepcopy(session.answer)
    answer["completion"] |= {"status": status.value, "summary": MARK}
    return Turn(MARK, submitted=answer)


@pytest.mark.req("P2", "P12")
def test_what_an_agent_hands_in_that_says_itself_it_failed_is_no_document(grounds: Grounds) -> None:
    """Two researchers who give up are passed over, and a first plan that wants a revision is none."""
    for focus in ("impact", "patterns"):
        session = of(Role.RESEARCHER, f"researcher-{focus}")
        grounds.fail_first(session, *[(_saying(session, CompletionStatus.ERROR),)] * 2)
    said = (*as_turns(PLAN)[:-1], _saying(PLAN, CompletionStatus.NEEDS_REVISION))
    grounds.fail_first(PLAN, said, said)
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert (halt.reason, halt.resumable) == (REASONS["planner"], True)
    assert not grounds.marked()
    assert MARK not in run.transcript("step-2-1-spec-1")
    assert not any(name.startswith(("plan", "tasks/")) for name in grounds.feature_files())
    if SWEEP:
        assert run.carry() is WatchEnd.COMPLETED


@pytest.fixture
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    """A repository with a team that does everything right so far."""
    return Grounds.lay_out(tmp_path_factory.mktemp("grounds"))
