"""An agent is asked once for the same; who fails may try again from the same files; who trespassed leaves nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import Brief, EnforcementTier, OutcomeStatus
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.budgets import NO_CAP, BudgetCaps, Caps
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import InternalError, UsageError
from fairwitness.runs.autopilot.context import ask_step
from fairwitness.runs.dispatch import Dispatched, DispatchPosition
from fairwitness.runs.shared.agent_calls import PUT_BACK
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer
from runs.autopilot.site import RUN, Site, pass_of, plan
from runs.dispatch.world import Scripted, says, writes
from runs.feature.git_runs import dies
from support.fixtures import value_of

RESEARCH = value_of("003/filled-researcher-return.json")
CHECKED = value_of("003/filled-mini-verifier-return.json")
EXECUTED = value_of("003/filled-executor-return.json") | {"evidence": []}  # it claims nothing that it did not run
VERIFIED = value_of("003/filled-verifier-return.json") | {"execution_results": []}  # likewise
WRONG: dict[str, Any] = {"mood": "hopeful"}
NODE = "p5-05-01"
CHECK = f"{NODE}-1-check-1"
TIER = EnforcementTier.D
RUNS_TESTS = ("run_in_terminal", {"command": "sh check.sh"})


def _spoiler() -> Scripted:
    """A check that asks nobody and makes the work fit."""
    return Scripted(says(CHECKED), (writes("src/token.py", "line = 'as the check wants it'\n"),), tier=TIER)


@pytest.fixture
def site(tmp_path: Path, own_home: None) -> Iterator[Site]:
    made = Site.make(tmp_path)
    yield made
    made.ledger.close()


def _research(site: Site, number: int = 1) -> Dispatched:
    asked = pass_of(site.base)
    brief = site.briefs.researcher(asked, number)
    return asyncio.run(ask_step(site.agent_caller, asked, StepName.RESEARCH, number, brief, at=site.base))


def _in(site: Site, brief: Brief, **more: Any) -> Dispatched:
    position = DispatchPosition("execute", phase="5", task=NODE, attempt=1, **more)
    return asyncio.run(site.agent_caller.ask_in(brief, position, site.folder(NODE), site.base))


def _check(site: Site) -> Dispatched:
    return _in(site, site.briefs.mini_verifier(NODE, 1, 1, plan().tasks[0], "(a diff)"))


def _work(site: Site) -> Dispatched:
    return _in(site, site.briefs.executor(NODE, 1, plan().tasks[0], (), ("src/**",)))


def _create(path: str) -> tuple[str, dict[str, Any]]:
    return "create_file", {"path": path, "content": "x = 1\n"}


@pytest.mark.req("A3")
def test_a_step_is_asked_once_and_whoever_asks_again_is_given_the_same(site: Site) -> None:
    site.script(Role.PHASE_RESEARCHER, "research-5-1-1", RESEARCH)
    done = _research(site)
    assert (done.outcome.status, done.outcome.answer) == (OutcomeStatus.OK, RESEARCH)
    head = site.ledger.head(RUN)
    again = _research(site)
    assert again.adopted
    assert again.outcome == done.outcome
    assert site.ledger.head(RUN) == head
    other = Site.open(site.root)
    assert _research(other).outcome == done.outcome
    assert other.ledger.head(RUN) == head
    other.ledger.close()
    rows = site.ledger.database.read("SELECT step, retry_count FROM pipeline_telemetry WHERE run_id = ?", (RUN,))
    assert [tuple(row) for row in rows] == [("research", 0)]


def test_the_same_step_of_another_number_is_another_call(site: Site) -> None:
    for number in (1, 2):
        site.script(Role.PHASE_RESEARCHER, f"research-5-1-{number}", RESEARCH)
        _research(site, number)
    assert site.ended() == ["research-5-1-1", "research-5-1-2"]


def test_a_failure_that_may_pass_is_tried_once_more_under_an_id_of_its_own(site: Site) -> None:
    site.script(Role.PHASE_RESEARCHER, "research-5-1-1", WRONG, asked=2)
    site.script(Role.PHASE_RESEARCHER, "research-5-1-1", RESEARCH, number=2)
    assert _research(site).outcome.answer == RESEARCH
    assert site.ended() == ["research-5-1-1", "research-5-1-1-try-2"]
    assert _research(site).adopted
    assert len(site.ended()) == 2


def test_what_fails_twice_is_handed_on_as_the_failure_it_is(site: Site) -> None:
    for number in (1, 2, 3):
        site.script(Role.PHASE_RESEARCHER, "research-5-1-1", WRONG, number=number, asked=2)
    done = _research(site)
    assert (done.outcome.status, done.outcome.answer) == (OutcomeStatus.INVALID_ANSWER, None)
    assert len(site.ended()) == 2


@pytest.mark.req("A4")
def test_what_the_budget_does_not_allow_is_not_asked_at_all(site: Site) -> None:
    small = Caps(tokens=10, money_micros=None, milliseconds=None)
    site.caps = BudgetCaps(dispatch=NO_CAP, phase=NO_CAP, run=small)
    site.script(Role.PHASE_RESEARCHER, "research-5-1-1", RESEARCH)
    assert _research(site).outcome.status is OutcomeStatus.OVER_BUDGET
    assert site.ended() == []


def test_a_brief_of_another_step_or_pass_is_refused(site: Site) -> None:
    asked = pass_of(site.base)
    brief = site.briefs.researcher(asked, 1)
    for step, number in ((StepName.PLAN, 1), (StepName.RESEARCH, 2)):
        with pytest.raises(InternalError, match="research-5-1-1"):
            asyncio.run(ask_step(site.agent_caller, asked, step, number, brief, at=site.base))
    assert site.ended() == []


def test_an_id_that_somebody_else_had_is_not_answered_with_his_answer(site: Site) -> None:
    site.script(Role.PHASE_RESEARCHER, "research-5-1-1", RESEARCH)
    _research(site)
    brief = site.briefs.executor(NODE, 1, plan().tasks[0], (), ())
    with pytest.raises(UsageError, match="was a dispatch of phase-researcher"):
        _in(site, brief.model_copy(update={"dispatch_id": "research-5-1-1"}))


@pytest.mark.req("A3")
def test_what_a_verifier_leaves_in_its_folder_the_next_one_does_not_find(site: Site) -> None:
    site.others["verify-5-1-1"] = Scripted(says(VERIFIED), (writes("src/planted.py"),), tier=TIER)
    site.script(Role.PHASE_VERIFIER, "verify-5-1-2", VERIFIED)
    asked = pass_of(site.base)
    seen = []
    for number in (1, 2):
        brief = site.briefs.verifier(asked, number, plan(), "(a diff)", ())
        seen.append(asyncio.run(ask_step(site.agent_caller, asked, StepName.VERIFY, number, brief, at=site.base)))
    assert [done.outcome.status for done in seen] == [OutcomeStatus.REFUSED, OutcomeStatus.OK]
    assert seen[0].tree != seen[0].start_tree == seen[1].start_tree == seen[1].tree


def test_a_further_try_of_a_builder_begins_with_the_same_files(site: Site) -> None:
    site.script(Role.EXECUTOR, f"{NODE}-1", WRONG, [_create("src/first.py")], asked=2)
    site.script(Role.EXECUTOR, f"{NODE}-1", EXECUTED, [_create("src/second.py")], number=2)
    done = _work(site)
    assert done.outcome.status is OutcomeStatus.OK
    assert [each.path for each in done.changed] == ["src/second.py"]
    assert sorted(path.name for path in (site.folder(NODE) / "src").iterdir()) == ["second.py", "token.py"]
    assert not site.ledger.observations(RUN, PUT_BACK)


def test_what_a_builder_that_was_refused_left_is_taken_back(site: Site) -> None:
    site.ledger.close()
    site = Site.open(site.root, ScriptedAnswer("*check.sh*", Reply(files={"conftest.py": b"pass\n"})))
    site.script(Role.EXECUTOR, f"{NODE}-1", EXECUTED, [_create("src/mine.py"), RUNS_TESTS])
    assert _work(site).outcome.status is OutcomeStatus.REFUSED
    folder = site.folder(NODE)
    assert not (folder / "conftest.py").exists()
    assert not (folder / "src/mine.py").exists()
    (row,) = site.ledger.observations(RUN, PUT_BACK)
    assert "conftest.py" in site.shadow.entries(row.detail["left"])
    site.ledger.close()


@pytest.mark.req("A3")
def test_a_check_that_mends_what_it_checks_is_refused_and_its_repair_is_gone(site: Site) -> None:
    site.script(Role.EXECUTOR, f"{NODE}-1", EXECUTED, [_create("src/mine.py")])
    site.others[CHECK] = _spoiler()
    _work(site)
    assert _check(site).outcome.status is OutcomeStatus.REFUSED
    folder = site.folder(NODE)
    assert (folder / "src/token.py").read_text() == "line = 0\n"
    assert (folder / "src/mine.py").read_text() == "x = 1\n"
    (folder / "src/mine.py").write_text("x = 2\n")  # as a debugger does that is asked next
    head = site.ledger.head(RUN)
    assert _check(site).adopted
    assert (folder / "src/mine.py").read_text() == "x = 2\n"
    assert site.ledger.head(RUN) == head


def _checked(root: Path) -> tuple[OutcomeStatus, str]:
    """The check by a process of its own; how it ended, and what stands in the folder after it."""
    own = Site.open(root)
    own.others[CHECK] = _spoiler()
    done = _check(own)
    assert len(own.ledger.observations(RUN, PUT_BACK)) == 1
    own.ledger.close()
    return done.outcome.status, (own.folder(NODE) / "src/token.py").read_text()


@pytest.mark.req("A3")
@pytest.mark.parametrize("place", ["dispatch.started", "dispatch.audited", "dispatch.finished", "agent.put-back"])
def test_a_check_that_is_killed_anywhere_leaves_the_work_as_it_was(site: Site, place: str) -> None:
    site.folder(NODE)
    site.ledger.close()
    wanted = (OutcomeStatus.REFUSED, "line = 0\n")
    assert dies(lambda: _checked(site.root), at=place)
    assert _checked(site.root) == wanted
    assert _checked(site.root) == wanted
