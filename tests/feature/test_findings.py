"""Nothing that a reviewer said is lost: findings reach whoever works next, are answered, and can be fixed."""

import copy
from typing import Any

import pytest

from fairwitness.app.views.ends import end_lines
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.demo.sessions import RecordedSession
from fairwitness.rules.review import UNREAD
from fairwitness.runs.feature.tasks import FIX_NODE
from feature.grounds import TASK, Grounds, Run, Turn, as_turns, call, git, of, reviewed
from support.trust import trust

pytestmark = pytest.mark.width("sweep")  # each is a whole run; those that CI always takes say so

SECURITY, ARCHITECTURE, PRAGMATIC = (perspective.value for perspective in Perspective)
README = "README.md"
OUTVOTED = "Voucher codes are compared letter by letter"
MISSING = "The README does not say how vouchers are redeemed"


@pytest.fixture
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    return Grounds.lay_out(tmp_path_factory.mktemp("grounds"))


def finding(id_: str, title: str, artifact: str, category: str = "correctness") -> dict[str, Any]:
    return {
        "id": id_,
        "category": category,
        "severity": "Major",
        "title": title,
        "description": f"{title}.",
        "artifacts": [artifact],
        "recommendation": "Say it.",
        "evidence": [f"{artifact}:1"],
    }


def objecting(session: RecordedSession, found: dict[str, Any]) -> tuple[Turn, ...]:
    answer = copy.deepcopy(session.answer)
    answer["findings"] = [found]
    answer["clean_categories"] = [each for each in answer["clean_categories"] if each != found["category"]]
    *looked, _ = as_turns(session)
    return (*looked, Turn("I object.", submitted=answer))


def fixing(*turns: Turn, answers: list[dict[str, str]] | None) -> tuple[Turn, ...]:
    answer = copy.deepcopy(of(Role.IMPLEMENTER).answer)
    answer["agent_output"]["payload"] |= {
        "task_id": FIX_NODE,
        "changes": [{"path": README, "action": "modified", "description": "vouchers"}],
    }
    if answers is not None:
        answer["agent_output"]["payload"]["finding_answers"] = answers
    return (*turns, Turn("Done.", submitted=answer))


ANSWERS = [
    {"id": f"{ARCHITECTURE}/DOC-1", "outcome": "fixed", "note": "The README names the command now."},
    {"id": f"{PRAGMATIC}/DOC-1", "outcome": "not_fixed", "note": "It is the same finding."},
]
WRITTEN = Turn("", (call("create_file", path=README, content="# Till\n\nVouchers: `till.vouchers.redeem`.\n"),))


def with_objections(grounds: Grounds, fix: tuple[Turn, ...]) -> Run:
    for name in (ARCHITECTURE, PRAGMATIC):
        session = of(Role.REVIEWER, name, 2)
        grounds.record(Role.REVIEWER, name, 2, objecting(session, finding("DOC-1", MISSING, f"{README}:3")))
    for perspective in Perspective:
        again = reviewed(perspective, ReviewScope.CODE, 3, round_=2)
        grounds.record(Role.REVIEWER, perspective.value, 3, as_turns(again))
    grounds.record(Role.IMPLEMENTER, FIX_NODE, 1, fix)
    return grounds.begin()


@pytest.mark.req("P7", "P8", "P9")
def test_an_outvoted_major_of_the_design_review_reaches_planner_implementer_and_code_reviewers(
    grounds: Grounds,
) -> None:
    session = of(Role.REVIEWER, ARCHITECTURE, 1)
    found = finding("ARC-7", OUTVOTED, "till/payment.py:3", category="architecture")
    grounds.record(Role.REVIEWER, ARCHITECTURE, 1, objecting(session, found))
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED
    for asked in ("step-4-1-planner-1", f"step-5-1-{TASK}-1", f"step-7-1-{SECURITY}-1", "step-8-1-knowledge-agent-1"):
        told = run.transcript(asked)
        assert f"{ARCHITECTURE}/ARC-7" in told, asked
        assert OUTVOTED in told, asked


@pytest.mark.width("full")
@pytest.mark.req("P7")
def test_a_fixer_writes_the_file_that_a_finding_names_and_its_answers_reach_the_next_round(grounds: Grounds) -> None:
    other = Turn("", (call("create_file", path="till/money.py", content="x = 1\n"),))
    run = with_objections(grounds, fixing(other, WRITTEN, answers=ANSWERS))
    assert run.carry() is WatchEnd.COMPLETED
    fix = f"step-5-2-{FIX_NODE}-1"
    assert run.outcomes()[fix].status is OutcomeStatus.OK
    refused = [event.data["target"] for event in run.events("call_refused") if event.data["dispatch_id"] == fix]
    assert refused == ["till/money.py"], "a file that neither the plan nor a finding names"
    assert "Vouchers:" in git(grounds.top, "show", f"feature/gift-vouchers:{README}")
    for perspective in Perspective:
        told = run.transcript(f"step-7-2-{perspective.value}-1")
        for answer in ANSWERS:
            assert answer["id"] in told
            assert answer["note"] in told


@pytest.mark.req("P7")
def test_a_fix_that_changes_nothing_is_not_verified_and_its_findings_stay_open(grounds: Grounds) -> None:
    run = with_objections(grounds, fixing(answers=ANSWERS))
    assert run.carry() is WatchEnd.FAILED
    (attempt,) = run.state().tasks[FIX_NODE].attempts
    assert (attempt.verified, run.state().tasks[FIX_NODE].merged) == (False, None)
    assert "scope" in str(attempt.reason)
    reasons = [decision.reason for decision in run.decisions()]
    assert any("the fix changed nothing, its findings stay open" in reason for reason in reasons)
    assert run.state().commit is None
    assert not [id_ for id_ in run.outcomes() if id_.startswith("step-7-2-")], "there is nothing new to review"


@pytest.mark.req("P7")
def test_a_fixer_that_answers_only_some_findings_is_asked_for_the_others(grounds: Grounds) -> None:
    whole = fixing(answers=ANSWERS)
    run = with_objections(grounds, (*fixing(WRITTEN, answers=ANSWERS[:1]), *whole))
    assert run.carry() is WatchEnd.COMPLETED
    fix = f"step-5-2-{FIX_NODE}-1"
    assert run.outcomes()[fix].asked == 2
    assert f"missing: {PRAGMATIC}/DOC-1" in run.transcript(fix)


@pytest.mark.req("P7")
def test_three_approvals_without_a_look_commit_nothing(grounds: Grounds) -> None:
    for perspective in Perspective:
        session = of(Role.REVIEWER, perspective.value, 2)
        blind = as_turns(session)[-1]
        for number in (2, 3):
            grounds.record(Role.REVIEWER, perspective.value, number, (blind, blind))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    assert run.outcomes()[f"step-7-1-{SECURITY}-1"].problems == (UNREAD,)
    assert run.decisions()[-1].reason.startswith("fewer than three reviewers judged the code")
    assert run.state().commit is None


@pytest.mark.req("P7", "P9")
def test_where_nothing_is_merged_nobody_reviews_and_nothing_is_learnt(grounds: Grounds) -> None:
    settings = grounds.top / "fairwitness.toml"
    settings.write_text(
        settings.read_text().replace("self_fixes = 0", "self_fixes = 0\niterations = 1\nrevert_from = 1")
    )
    git(grounds.top, "commit", "-qam", "one iteration")
    trust(grounds.top)
    grounds.record(Role.IMPLEMENTER, TASK, 1, (as_turns(of(Role.IMPLEMENTER))[-1],))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    state = run.state()
    assert not {"step-7", "step-8"}.intersection(state.steps)
    assert "step-8b" in state.steps
    assert state.commit is None
    assert "at most Low: the code was not reviewed" in run.decisions()[-1].reason
    assert any(name.startswith("agent-metrics/") for name in grounds.feature_files()), "the run log is written"
    with follow_run(grounds.top, run.run_id) as followed:
        lines = end_lines(followed)
    assert any(line.endswith("the code was not reviewed") for line in lines)
    assert not any("approve" in line for line in lines)
