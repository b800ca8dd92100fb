"""Agents that hang, flood, vanish or reach for what is not theirs: each is kept in, put on record, and routed.

Recordings play most of them. What no recording can do (take its time, say fifty megabytes, fail) is done by backends
of our own, in a run that is otherwise the real one.
"""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Session
from fairwitness.agents.roles import ROLES
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import EnforcementTier, Kind, Layer, OutcomeStatus, Probe, Stop, Usage
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.decisions import ErrorCause, Halt, HaltOutcome, Replan
from fairwitness.contracts.common.ids import baseline_tag
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.errors import NotReady
from feature.grounds import MARK, TASK, Grounds, Otherwise, Run, as_turns, call, carry_otherwise, git, of
from feature.grounds import Turn as Played
from support import demo_feature as demo
from support.ladder import SWEEP, widened

TESTS, CODE, OTHERS = "tests/test_vouchers.py", "till/vouchers.py", "till/payment.py"
RUN_TESTS = "python3 -m unittest discover -v -s . -p test_vouchers.py"
"""The project's own command, so an implementer may type it; what the tests do is theirs."""
LONG_MS = 600_000


@pytest.fixture
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    """A repository with a team that does everything right so far."""
    return Grounds.lay_out(tmp_path_factory.mktemp("grounds"))


def without(grounds: Grounds, *names: str) -> None:
    """Takes recordings away, so that a run ends where nothing more is to be seen."""
    for name in names:
        (grounds.cassettes / f"{name}.jsonl").unlink()


def refused(run: Run, dispatch_id: str) -> dict[str, str]:
    """What was refused in a dispatch, as the events tell it: the reason by its target."""
    told = (event.data for event in run.events("call_refused"))
    return {data["target"]: data["reason"] for data in told if data["dispatch_id"] == dispatch_id}


# --- tools that a role does not have, and paths that are not its own


IMPACT = "step-1-1-researcher-impact-1"
READERS = {"step-0-1-intake-1": of(Role.INTAKE), IMPACT: of(Role.RESEARCHER, "researcher-impact")}


@pytest.mark.req("P12")
def test_what_a_reader_may_not_do_is_refused_told_and_without_effect(grounds: Grounds) -> None:
    stolen = grounds.top.parent / "stolen"
    asked = (
        call("create_file", path=OTHERS, content=MARK),
        call("create_file", path=demo.LAYOUT.research("architecture"), content=MARK),  # the program writes it
        call("create_file", path="../stolen", content=MARK),
        call("create_file", path=str(stolen), content=MARK),
        call("read_file", path="../../../.git/config"),
        call("run_in_terminal", command="git branch -D main"),
        call("no_such_tool", path="x"),
    )
    for session in READERS.values():
        grounds.record(session.role, session.instance, 1, as_turns(session, Played("I help myself.", asked)))
    without(grounds, "spec.spec.1")
    before, files, run = grounds.refs(), grounds.files(), grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    for dispatch_id, session in READERS.items():
        told = [event.data for event in run.events("call_refused") if event.data["dispatch_id"] == dispatch_id]
        assert [data["tool"] for data in told] == [tool for tool, _ in asked]
        reasons = [data["reason"] for data in told]
        assert f"{session.role.value} does not have run_in_terminal" in reasons
        assert "there is no tool no_such_tool" in reasons
        assert "../../../.git/config: it has a '..' segment" in reasons
        # it brought its document all the same, and that is what counts
        assert run.state().dispatches[dispatch_id].status is DispatchStatus.DONE
        assert len(run.outcomes()[dispatch_id].denials) == len(asked)
    assert refused(run, IMPACT)[OTHERS].startswith(f"{OTHERS} is not among the files this role may write: ")
    assert (grounds.refs(), grounds.files()) == (before, files)
    assert not stolen.exists()
    assert not grounds.marked()


TRIED = (
    "branch -D somebody-elses",
    "tag -d v1",
    "update-ref -d refs/heads/main",
    "update-ref refs/heads/main HEAD",
    "tag -f {baseline} HEAD",
    "update-ref -d refs/fairwitness/baseline/{ref}",
    "commit --amend --allow-empty -m evil",
    "reset --hard HEAD~1",
    "checkout -B main",
    "symbolic-ref HEAD refs/heads/evil",
    "worktree prune",
    "gc --prune=now",
    "config user.name evil",
)
ALONE = '"""Tests."""\n\nimport unittest\n'
EVIL = '''

class Evil(unittest.TestCase):
    """Does whatever it likes, and says that it passed."""

    def test_evil(self) -> None:
        """Reaches for everything."""
        import subprocess
        from pathlib import Path

        for where in (".", "@TOP@"):
            for line in @LINES@:
                done = subprocess.run(["git", "-C", where, *line.split()], capture_output=True)
                print("git", "done" if done.returncode == 0 else "failed", line)
        places = ("till/money.py", ".git/config", ".git/refs/heads/main", ".git/packed-refs", "evil", "../evil")
        for path in (*(f"@TOP@/{place}" for place in places), ".git", "../evil", "/etc/evil"):
            try:
                Path(path).write_text("evil")
            except OSError:
                pass
'''


def evil_tests(run: Run, beside: str) -> str:
    """Some tests, and beside them one that reaches for everything."""
    lines = tuple(line.format(baseline=baseline_tag(run.run_id), ref=run.run_id.replace(":", "-")) for line in TRIED)
    return beside + EVIL.replace("@TOP@", str(run.grounds.top)).replace("@LINES@", repr(lines))


@pytest.mark.req("P12", "P9")
def test_nothing_that_an_implementer_runs_reaches_the_repository(grounds: Grounds) -> None:
    """By its terminal, by its tools and by the tests it writes; then it does its work, and that is taken."""
    session, run = of(Role.IMPLEMENTER), grounds.begin()
    mischief = (
        Played("Tests can do anything.", (call("create_file", path=TESTS, content=evil_tests(run, ALONE)),)),
        Played("", (call("run_in_terminal", command=RUN_TESTS),)),
        Played("", tuple(call("run_in_terminal", command=f"git {line}") for line in TRIED)),
        Played(
            "",
            (
                call("run_in_terminal", command="git push --force origin main"),
                call("run_in_terminal", command=f"rm {OTHERS}"),
                call("run_in_terminal", command="sh -c 'rm -rf ..'"),
                call("create_file", path="../evil", content=MARK),
                call("create_file", path=str(grounds.top / "till/money.py"), content=MARK),
                call("create_file", path=OTHERS, content=MARK),
                call("create_file", path=".git", content=MARK),
                call("create_file", path=demo.LAYOUT.task(TASK), content=MARK),
            ),
        ),
    )
    grounds.record(session.role, session.instance, 1, as_turns(session, *mischief))
    judges = {
        f"step-6-1-{TASK}-1": of(Role.VERIFIER),
        "step-7-1-security-sentinel-1": of(Role.REVIEWER, "security-sentinel", 2),
        "step-8-1-knowledge-agent-1": of(Role.KNOWLEDGE),
    }
    for judge in judges.values():
        helped = Played("I help.", (call("create_file", path=CODE, content=MARK),))
        grounds.record(judge.role, judge.instance, judge.number, as_turns(judge, helped))
    before = grounds.refs()
    assert run.carry() is WatchEnd.COMPLETED
    for judged in judges:
        told = refused(run, judged)
        assert list(told) == [CODE]
        assert told[CODE].startswith(f"{CODE} is not among the files this role may write: ")
    dispatch_id = f"step-5-1-{TASK}-1"
    told = refused(run, dispatch_id)
    assert {f"git {line}" for line in TRIED} - set(told) == set()
    assert {"git push --force origin main", "../evil", OTHERS, ".git", demo.LAYOUT.task(TASK)} <= set(told)
    assert told[str(grounds.top / "evil")].startswith("write")
    assert told[str(grounds.top / ".git/refs/heads/main")].startswith("write")
    layers = {denial.layer for denial in run.outcomes()[dispatch_id].denials}
    assert layers == {Layer.SANDBOX, Layer.DECISION}
    assert "git failed tag -d v1" in run.transcript(dispatch_id)
    assert "git done" not in run.transcript(dispatch_id)
    unchanged(grounds, run, before)
    assert set(git_names(grounds, "feature/gift-vouchers")) == {TESTS, CODE}
    assert not grounds.marked()


def unchanged(grounds: Grounds, run: Run, before: dict[str, str]) -> None:
    """The person's refs, and those that the run relies on."""
    after, everything = grounds.refs(), grounds.all_refs()
    assert {name: after.get(name) for name in before if name != "HEAD"} | {"HEAD": before["HEAD"]} == before
    order_base = before["refs/heads/main"]
    assert everything[f"refs/tags/{baseline_tag(run.run_id)}"] == order_base
    assert not [
        path for path in (grounds.top / "evil", grounds.top.parent / "evil", Path("/etc/evil")) if path.exists()
    ]
    told = subprocess.run(["git", "-C", str(grounds.top), "fsck", "--strict"], capture_output=True, check=False)
    assert told.returncode == 0
    assert "evil" not in (grounds.top / ".git/config").read_text()


def git_names(grounds: Grounds, branch: str) -> list[str]:
    """The files in which a branch differs from main."""
    told = subprocess.run(
        ["git", "-C", str(grounds.top), "diff", "--name-only", "main", branch],
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.split()


@pytest.mark.req("P9")
def test_tests_that_reach_out_are_no_evidence_when_the_harness_runs_them(grounds: Grounds) -> None:
    session, run = of(Role.IMPLEMENTER), grounds.begin()
    good = as_turns(session)
    evil = Played(
        "One test more.",
        (call("create_file", path=TESTS, content=evil_tests(run, demo.CALLS["task-01"][0].args["content"])),),
    )
    grounds.record(session.role, session.instance, 1, (*good[:-1], evil, good[-1]))
    before, files = grounds.refs(), grounds.files()
    assert run.carry() is WatchEnd.FAILED  # nobody recorded a second plan
    assert [decision.tasks for decision in run.decisions() if isinstance(decision, Replan)] == [(TASK,)]
    (attempt,) = run.state().tasks[TASK].attempts
    assert "tests (no evidence: violation)" in str(attempt.reason)
    assert run.state().tasks[TASK].merged is None
    unchanged(grounds, run, before)
    assert (grounds.refs()["HEAD"], grounds.files()) == (before["HEAD"], files)


ESCAPES = {
    "another task's file": f"Path('{OTHERS}').write_text('evil')",
    "a file of the run": f"Path('{demo.LAYOUT.task(TASK)}').parent.mkdir(parents=True, exist_ok=True)"
    f" or Path('{demo.LAYOUT.task(TASK)}').write_text('{MARK}')",
    "a link out of the worktree": f"Path('{CODE}').symlink_to('/etc/passwd')",
    "a file that is gone": "Path('till/basket.py').unlink()",
}


@pytest.mark.req("P12", "P16")
@pytest.mark.parametrize("what", widened(ESCAPES, list(ESCAPES)[:1]))
def test_a_change_outside_of_its_task_voids_the_dispatch(grounds: Grounds, what: str) -> None:
    """Made by a command that may write the worktree, so that no tool could refuse it; it is found afterwards."""
    session = of(Role.IMPLEMENTER)
    code = f'"""No tests."""\n\nfrom pathlib import Path\n\n{ESCAPES[what]}\n'
    turns = (
        Played("", (call("create_file", path=TESTS, content=code),)),
        Played("", (call("run_in_terminal", command=RUN_TESTS),)),
    )
    last = as_turns(session)[-1]
    grounds.fail_first(session, (*turns, last))
    before, run = grounds.refs(), grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    outcome = run.outcomes()[f"step-5-1-{TASK}-1"]
    assert (outcome.status, outcome.cause) == (OutcomeStatus.REFUSED, ErrorCause.OUT_OF_SCOPE)
    assert outcome.answer is None
    assert Layer.AUDIT in {denial.layer for denial in outcome.denials}
    assert f"step-5-1-{TASK}-2" not in run.outcomes()  # what is out of scope is not tried again
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert (halt.outcome, halt.resumable) == (HaltOutcome.ERROR, True)
    assert halt.reason == f"the step failed and no retry is left: {TASK} (out_of_scope)"
    assert f"implementation-reports/{TASK}.yaml" not in grounds.feature_files()
    assert not grounds.marked()
    unchanged(grounds, run, before)
    if SWEEP:
        assert run.carry() is WatchEnd.COMPLETED
        assert set(git_names(grounds, "feature/gift-vouchers")) == {TESTS, CODE}


@pytest.mark.req("P12")
def test_no_agent_runs_a_line_of_a_shell(grounds: Grounds) -> None:
    """It may run the project's programs, but a line would hide which."""
    typed = [f"sh {options} true" for options in ("-c", "-ec", "-l -c")]
    asked = Played("", tuple(call("run_in_terminal", command=command) for command in typed))
    session = of(Role.IMPLEMENTER)
    grounds.record(session.role, session.instance, 1, (asked, as_turns(session)[-1]))
    without(grounds, f"verifier.{TASK}.1")
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    assert set(refused(run, f"step-5-1-{TASK}-1")) == set(typed)


# --- refs of the run, moved by whoever got at them after all


CODE_REVIEW = "adversarial-reviewer.security-sentinel.2.jsonl"


def halted_in_code_review(grounds: Grounds) -> tuple[Run, str, bytes]:
    """A run whose work is merged and not yet committed, its branch, and the recording that it lacks."""
    path = grounds.cassettes / CODE_REVIEW
    good = path.read_bytes()
    path.unlink()
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    assert run.state().tasks[TASK].merged is not None
    return run, f"refs/heads/fairwitness/{run.run_id.replace(':', '-')}/target", good


def with_a_back_door(grounds: Grounds, target: str) -> str:
    """A commit on top of the run's work with a file that nobody made, judged or reviewed."""
    door = grounds.top.parent / "door.py"
    door.write_text(f'"""A back door: {MARK}."""\n')
    blob = git(grounds.top, "hash-object", "-w", str(door)).strip()
    listed = git(grounds.top, "ls-tree", f"{target}:till")
    folder = git(grounds.top, "mktree", given=f"{listed}100644 blob {blob}\tbackdoor.py\n").strip()
    rows = git(grounds.top, "ls-tree", target).splitlines()
    kept = [row if not row.endswith("\ttill") else f"040000 tree {folder}\ttill" for row in rows]
    tree = git(grounds.top, "mktree", given="\n".join(kept) + "\n").strip()
    return git(grounds.top, "commit-tree", tree, "-p", target, "-m", "evil").strip()


@pytest.mark.req("P9", "P11")
def test_a_branch_that_somebody_moved_is_not_taken_for_the_runs_work(grounds: Grounds) -> None:
    run, target, lacking = halted_in_code_review(grounds)
    git(grounds.top, "update-ref", target, with_a_back_door(grounds, target))
    (grounds.cassettes / CODE_REVIEW).write_bytes(lacking)
    with contextlib.suppress(NotReady):
        run.carry()
    branch = "refs/heads/feature/gift-vouchers"
    names = git_names(grounds, branch) if branch in grounds.all_refs() else []
    assert "till/backdoor.py" not in names
    assert run.state().commit is None or set(names) == {TESTS, CODE}


@pytest.mark.req("P9", "P16")
@pytest.mark.width("sweep")
def test_a_run_goes_by_its_order_wherever_its_refs_are_moved_to(grounds: Grounds) -> None:
    """The baseline is the commit that the order names; a branch that is gone is made again where it was."""
    before = grounds.refs()
    run, target, lacking = halted_in_code_review(grounds)
    evil = with_a_back_door(grounds, target)
    git(grounds.top, "tag", "-f", baseline_tag(run.run_id), evil)
    git(grounds.top, "update-ref", f"refs/fairwitness/baseline/{run.run_id.replace(':', '-')}", evil)
    git(grounds.top, "update-ref", "-d", target)
    (grounds.cassettes / CODE_REVIEW).write_bytes(lacking)
    assert run.carry() is WatchEnd.COMPLETED
    assert set(git_names(grounds, "feature/gift-vouchers")) == {TESTS, CODE}
    assert grounds.refs()["refs/heads/main"] == before["refs/heads/main"]


# --- agents that hang, flood and vanish


def timed(role: Role, seconds: float = 1.0) -> dict[Role, RoleSpec]:
    """A role with less time than it has."""
    return {role: ROLES[role].model_copy(update={"timeout_s": seconds})}


def slowly(place: Path) -> CassetteBackend:
    """Recordings that take the time they say."""
    return CassetteBackend(place, speed=1.0)


def hang(grounds: Grounds, name: str, *, at: int) -> None:
    """Lets a recording wait before a turn."""
    path = grounds.cassettes / f"{name}.jsonl"
    lines = path.read_text().splitlines()
    lines[at + 1] = lines[at + 1].replace('"ms":0', f'"ms":{LONG_MS}').replace('"ms": 0', f'"ms": {LONG_MS}')
    assert str(LONG_MS) in lines[at + 1]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.req("P12", "P16")
def test_an_agent_that_hangs_is_ended_at_its_time_asked_again_and_then_the_run_halts(grounds: Grounds) -> None:
    good = (grounds.cassettes / "intake.intake.1.jsonl").read_bytes()
    hang(grounds, "intake.intake.1", at=1)
    run = grounds.begin()
    began = time.monotonic()
    told = carry_otherwise(run, Otherwise(timed(Role.INTAKE), {Role.INTAKE: slowly}))
    assert (told, time.monotonic() - began < 60) == ("done", True)
    outcomes = run.outcomes()
    assert list(outcomes) == ["step-0-1-intake-1", "step-0-1-intake-2"]
    for outcome in outcomes.values():
        assert (outcome.status, outcome.cause) == (OutcomeStatus.TIMED_OUT, ErrorCause.TIMEOUT)
        assert 1000 <= outcome.duration_ms < 15_000
    assert {dispatch.status for dispatch in run.state().dispatches.values()} == {DispatchStatus.TIMEOUT}
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert (halt.outcome, halt.resumable) == (HaltOutcome.ERROR, True)
    assert halt.reason == "the step failed and no retry is left: intake (timeout)"
    (grounds.cassettes / "intake.intake.1.jsonl").write_bytes(good)
    without(grounds, "spec.spec.1")
    assert run.carry() is WatchEnd.FAILED
    assert run.state().dispatches["step-0-1-intake-3"].status is DispatchStatus.DONE


@pytest.mark.req("P12", "P16")
def test_an_implementer_that_hangs_leaves_no_process_and_nothing_in_the_repository(grounds: Grounds) -> None:
    session, name = of(Role.IMPLEMENTER), f"implementer.{TASK}.1"
    started = (
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{MARK}'], start_new_session=True)"
    )
    code = f'"""No tests."""\n\nimport subprocess\nimport sys\n\n{started}\n'
    turns = (
        Played("", (call("create_file", path=TESTS, content=code),)),
        Played("", (call("run_in_terminal", command=RUN_TESTS),)),
        as_turns(session)[-1],
    )
    grounds.record(session.role, session.instance, 1, turns)
    hang(grounds, name, at=2)
    before, files, run = grounds.refs(), grounds.files(), grounds.begin()
    carry_otherwise(run, Otherwise(timed(Role.IMPLEMENTER, 4.0), {Role.IMPLEMENTER: slowly}))
    outcomes = {id_: outcome for id_, outcome in run.outcomes().items() if id_.startswith("step-5")}
    assert [outcome.status for outcome in outcomes.values()] == [OutcomeStatus.TIMED_OUT] * 2
    assert not alive(MARK)
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert (halt.reason, halt.resumable) == (f"the step failed and no retry is left: {TASK} (timeout)", True)
    unchanged(grounds, run, before)
    assert grounds.files() == files
    assert f"implementation-reports/{TASK}.yaml" not in grounds.feature_files()
    if SWEEP:
        grounds.record(session.role, session.instance, 1, as_turns(session))
        assert run.carry() is WatchEnd.COMPLETED


def alive(mark: str) -> list[str]:
    """Processes with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if mark.encode() in line and path.parent.name != str(os.getpid()):
            found.append(line.decode(errors="replace"))
    return found


Says = Callable[[AgentJob, int], AgentTurn]
"""What is answered to the n-th question of a session."""


class Speaker:
    """A backend whose agent says whatever it is told to."""

    name = "speaker"

    def __init__(self, says: Says) -> None:
        self._says = says

    def probe(self) -> Probe:
        """It is always there."""
        return Probe(name=self.name, kind="cassette", found=True, tier=EnforcementTier.A)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """A session."""
        return self._open(job)

    @asynccontextmanager
    async def _open(self, job: AgentJob) -> AsyncIterator[Session]:
        yield _Spoken(job, self._says)


class _Spoken:
    def __init__(self, job: AgentJob, says: Says) -> None:
        self._job, self._says, self._asked = job, says, 0

    async def ask(self, prompt: str) -> AgentTurn:
        assert prompt
        self._asked += 1
        await asyncio.sleep(0)
        turn = self._says(self._job, self._asked)
        self._job.report(Kind.TEXT, turn.text)
        return turn

    async def cancel(self) -> None:
        """There is nothing to cancel."""


def speaking(role: Role, says: Says) -> Otherwise:
    """A team of which one role is played so."""
    return Otherwise({}, {role: lambda _place: Speaker(says)})


def _vanish(_job: AgentJob, _asked: int) -> AgentTurn:
    return AgentTurn(text="", stop=Stop.DONE, usage=Usage())


def _die(_job: AgentJob, _asked: int) -> AgentTurn:
    return AgentTurn(
        text=MARK, stop=Stop.FAILED, usage=Usage(), cause=ErrorCause.AGENT_ERROR, error="ended by signal 9"
    )


def _raise(_job: AgentJob, _asked: int) -> AgentTurn:
    raise RuntimeError(MARK)


def _give_up(_job: AgentJob, _asked: int) -> AgentTurn:
    return AgentTurn(text=MARK, stop=Stop.REFUSED, usage=Usage())


ENDS: dict[str, tuple[Says, OutcomeStatus, ErrorCause]] = {
    "exits without a document": (_vanish, OutcomeStatus.INVALID_ANSWER, ErrorCause.SCHEMA_VIOLATION),
    "dies": (_die, OutcomeStatus.AGENT_ERROR, ErrorCause.AGENT_ERROR),
    "breaks its backend": (_raise, OutcomeStatus.AGENT_ERROR, ErrorCause.AGENT_ERROR),
    "will not go on": (_give_up, OutcomeStatus.REFUSED, ErrorCause.AGENT_ERROR),
}


@pytest.mark.req("P12", "P16")
@pytest.mark.parametrize("how", ENDS)
def test_an_agent_that_ends_without_a_document_is_asked_again_and_then_the_run_halts(
    grounds: Grounds, how: str
) -> None:
    says, status, cause = ENDS[how]
    run = grounds.begin()
    assert carry_otherwise(run, speaking(Role.INTAKE, says)) == "done"
    outcomes = run.outcomes()
    assert [(outcome.status, outcome.cause) for outcome in outcomes.values()] == [(status, cause)] * 2
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert (halt.reason, halt.resumable) == (f"the step failed and no retry is left: intake ({cause.value})", True)
    assert not grounds.marked()


@pytest.mark.req("P12")
def test_an_agent_that_goes_round_in_circles_is_ended_at_its_turns(grounds: Grounds) -> None:
    turns = ROLES[Role.INTAKE].turns
    again = Played("Once more.", (call("read_file", path="README.md"),))
    grounds.record(Role.INTAKE, "intake", 1, (again,) * (turns + 5))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    outcomes = run.outcomes()
    assert [outcome.status for outcome in outcomes.values()] == [OutcomeStatus.OVER_BUDGET] * 2
    assert all(outcome.usage.turns == turns for outcome in outcomes.values())
    halt = run.decisions()[-1]
    assert isinstance(halt, Halt)
    assert halt.resumable


@pytest.mark.req("P12")
def test_an_agent_that_floods_is_kept_to_a_bounded_record(grounds: Grounds) -> None:
    lines, answer = 12_000 if SWEEP else 2_000, of(Role.INTAKE).answer

    def flood(job: AgentJob, _asked: int) -> AgentTurn:
        for _ in range(lines):
            job.report(Kind.TEXT, MARK * 60)
        return AgentTurn(text="Done.", stop=Stop.DONE, usage=Usage(), submitted=answer)

    run = grounds.begin()
    without(grounds, *(f"researcher.researcher-{focus}.1" for focus in ("impact", "patterns", "architecture")))
    carry_otherwise(run, speaking(Role.INTAKE, flood))
    assert run.outcomes()["step-0-1-intake-1"].status is OutcomeStatus.OK
    assert len(run.transcript("step-0-1-intake-1")) < 9 << 20
    assert not grounds.marked()


@pytest.mark.req("P12")
@pytest.mark.width("sweep")
def test_fifty_megabytes_are_no_answer_and_hold_nothing_up(grounds: Grounds) -> None:
    answer = of(Role.INTAKE).answer

    def say(_job: AgentJob, asked: int) -> AgentTurn:
        if asked == 1:
            return AgentTurn(text=f"{MARK} " * (50 * 1024 * 1024 // (len(MARK) + 1)), stop=Stop.DONE, usage=Usage())
        return AgentTurn(text="Short now.", stop=Stop.DONE, usage=Usage(), submitted=answer)

    run = grounds.begin()
    without(grounds, *(f"researcher.researcher-{focus}.1" for focus in ("impact", "patterns", "architecture")))
    carry_otherwise(run, speaking(Role.INTAKE, say))
    outcome = run.outcomes()["step-0-1-intake-1"]
    assert (outcome.status, outcome.asked) == (OutcomeStatus.OK, 2)
    assert len(run.transcript("step-0-1-intake-1")) < 1 << 20
    assert outcome.duration_ms < 30_000, "a text is cleaned as a whole, of which only the beginning is kept"
