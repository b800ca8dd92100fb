"""The forge demo's world is real: its plan fits the rules, and its code does on real branches what the story says."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairwitness.agents.answer import read_answer, with_known
from fairwitness.agents.cassette_file import load, name_of
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.arguments import (
    ConflictResolution,
    CreateFile,
    Nothing,
    ReadFile,
    ReplaceString,
    StartAgent,
    WriteSubtask,
    as_judged,
    read_arguments,
)
from fairwitness.agents.toolset.files import create_file, replace_string
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.common.tools import Allowed, Role, Scope, Tool
from fairwitness.contracts.forge.dag import Dag, NodeState, NodeType
from fairwitness.contracts.forge.documents import Subtask, SubtaskStatus, Walkthrough
from fairwitness.contracts.forge.returns import CaptainReturn, RefineryReturn, WorkerReturn
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.demo.sessions import RecordedCall, RecordedSession
from fairwitness.rules.change_requests import extension_problems
from fairwitness.rules.claims import SeenAttempt, differences
from fairwitness.rules.dag import dag_problems, effective_dag
from fairwitness.rules.helper_limits import ROLE_OF, spawn_problem, subtask_problem
from fairwitness.rules.tool_policy import may_call
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.mutants import mutants
from support import demo_forge as demo

RUN = "run-2026-02-26-143000"
TESTS = demo.CHECKS[0]
OF = {session.instance: session for session in demo.TEAM}
TASK_OF = {task.id: task for task in (*demo.TASKS, *demo.ADDED)}
ATTEMPTS = {name: session for name, session in OF.items() if session.role is not Role.CAPTAIN and "-h" not in name}
EVERYBODY = tuple(pytest.param(session, id=session.instance) for session in demo.TEAM)
RED = demo.PARSE_FIRST.instance


def _known(session: RecordedSession) -> dict[str, Any]:
    """What the harness fills in."""
    if session.instance == "captain-1":
        dag = {
            "version": 1,
            "runId": RUN,
            "metadata.createdAt": demo.DEMO.repository.committed_at,
            "metadata.createdBy": "captain",
        }
        return {f"dag.{name}": value for name, value in dag.items()}
    if session.role is Role.CAPTAIN:
        return {}
    place = {"task_id": _node(session.instance), "branch": f"forge/{session.instance}", "base_ref": "target"}
    return {f"walkthrough.{name}": value for name, value in place.items()}


def _node(instance: str) -> str:
    """The node of an attempt or of its helper."""
    return instance.partition("-h")[0].rpartition("-")[0]


def _calls(session: RecordedSession) -> list[RecordedCall]:
    return [call for turn in session.turns for call in turn.calls]


def _helpers(session: RecordedSession) -> list[RecordedSession]:
    """Those whom a session starts, in their order."""
    started = sum(call.tool is Tool.AGENT for call in _calls(session))
    return [OF[f"{session.instance}-h{number}"] for number in range(1, started + 1)]


def _answered(session: RecordedSession) -> dict[str, Any]:
    return with_known(session.answer, _known(session))


def _said(session: RecordedSession) -> Walkthrough:
    answer = _answered(session)
    if session.role is Role.REFINERY:
        return RefineryReturn.model_validate(answer).walkthrough
    return WorkerReturn.model_validate(answer).walkthrough


def _plan() -> CaptainReturn:
    return CaptainReturn.model_validate(_answered(OF["captain-1"]))


def _base() -> Dag:
    dag = _plan().dag
    assert dag is not None
    return dag


def _grown() -> Dag:
    overlay = CaptainReturn.model_validate(demo.EXTENSION).overlay
    assert overlay is not None
    dag = effective_dag(_base(), [overlay])
    assert isinstance(dag, Dag)
    return dag


# --- documents


@pytest.mark.parametrize("session", EVERYBODY)
def test_every_answer_fits_its_contract_once_the_harness_has_filled_it_in(session: RecordedSession) -> None:
    name = ROLES[session.role].answer
    assert name is not None
    known = _known(session)
    form_of(name, known)  # refuses a field that nobody can fill in
    assert read_answer("", session.answer, name, known).problems == ()
    for way in known:
        *parents, last = way.split(".")
        inner = session.answer
        for parent in parents:
            inner = inner[parent]
        assert last not in inner, f"no recording can know {way}"


@pytest.mark.parametrize("session", EVERYBODY)
def test_nobody_asks_for_what_its_role_may_not(session: RecordedSession) -> None:
    task = TASK_OF.get(_node(session.instance))
    scope = Scope(writes=task.writes if task else ("**",))
    for call in _calls(session):
        judged = as_judged(call.tool, read_arguments(call.tool, call.args, str))
        assert may_call(session.role.value, judged, scope) == Allowed(), call


def test_the_plan_has_twelve_nodes_of_every_type() -> None:
    dag = _base()
    assert dag_problems(dag) == ()
    assert (len(dag.nodes), dag.metadata.totalTasks, dag.metadata.totalRefineries) == (12, 10, 2)
    assert len(_plan().tasks) == 10
    assert {node.agentType for node in dag.nodes} == {1, 2, 3, "refinery"}
    assert {node.id: node.dependencies for node in dag.nodes if node.type is NodeType.REFINERY} == demo.COLLECTED
    assert _plan().open_questions == (), "no person can be asked in this run"


def test_tasks_with_the_same_files_are_the_two_that_meet_in_a_refinery() -> None:
    writers: dict[str, list[str]] = {}
    for task in (*demo.TASKS, *demo.ADDED):
        for path in task.writes:
            writers.setdefault(path, []).append(task.id)
    assert [tuple(names) for names in writers.values() if len(names) > 1] == [demo.CONFLICTING]
    assert set(demo.CONFLICTING) <= set(demo.COLLECTED[demo.FIRST_REFINERY])


def _status(merged: Iterable[str]) -> DagStatus:
    states = {node.id: NodeState.PENDING for node in _base().nodes} | dict.fromkeys(merged, NodeState.MERGED)
    nodes = {
        name: NodeStatus(taskId=name, status=state, currentAttempt=1, maxAttempts=3) for name, state in states.items()
    }
    return DagStatus(runId=RUN, updatedAt=demo.DEMO.repository.committed_at, nodes=nodes)


def test_the_change_request_adds_two_nodes_that_fit() -> None:
    request = RefineryReturn.model_validate(_answered(demo.FIRST_JOIN)).change_requests
    assert [(each.id, each.emitted_by) for each in request] == [(demo.CHANGE_REQUEST, demo.FIRST_REFINERY)]
    assert RefineryReturn.model_validate(_answered(demo.SECOND_JOIN)).change_requests == ()
    # whatever else has run by then, nothing behind the first refinery has
    status = _status((*demo.COLLECTED[demo.FIRST_REFINERY], demo.FIRST_REFINERY, demo.SHOW))
    sealed = {spec.name: spec.body for spec in _plan().specs}
    answer = CaptainReturn.model_validate(demo.EXTENSION)
    assert extension_problems(answer, demo.CHANGE_REQUEST, _base(), status, sealed) == ()
    grown = _grown()
    assert dag_problems(grown) == ()
    assert len(grown.nodes) == 14
    waits = {node.id: node.dependencies for node in grown.nodes}
    assert waits[demo.PACKAGE] == (demo.ASK, demo.README, demo.CONTRIBUTING)


def test_every_dispatch_of_a_run_has_one_cassette(tmp_path: Path) -> None:
    folder = demo.DEMO.write_cassettes(tmp_path / "deep" / "cassettes")
    assert {path.name for path in folder.iterdir()} == {name_of(each.role, each.instance, 1) for each in demo.TEAM}
    assert len(demo.TEAM) == len(OF) == 20
    for session in demo.TEAM:
        path = folder / name_of(session.role, session.instance, session.number)
        cassette = load(path)
        assert cassette.header.answer == ROLES[session.role].answer
        assert cassette.turns[-1].submitted == session.answer
        assert {turn.seen for turn in cassette.turns} == {None}
        assert "{root" not in path.read_text()
        assert RUN not in path.read_text()


def test_each_node_is_attempted_by_the_agent_that_its_type_asks_for() -> None:
    tried = Counter(_node(name) for name in ATTEMPTS)
    assert tried == dict.fromkeys((node.id for node in _grown().nodes), 1) | {demo.TWICE: 2}
    for name, session in ATTEMPTS.items():
        task = TASK_OF.get(_node(name))
        assert session.role is (ROLE_OF[task.agent] if task else Role.REFINERY)


def test_helpers_are_started_as_the_rules_allow() -> None:
    shown, summed = demo.SHOWN, demo.SUMMED
    assert [helper.role for helper in _helpers(shown)] == [Role.THROWAWAY]
    assert [helper.role for helper in _helpers(summed)] == [Role.THROWAWAY, Role.WORKER]
    assert {session.instance for session in demo.TEAM if _helpers(session)} == {shown.instance, summed.instance}
    for asker in (shown, summed):
        for number, helper in enumerate(_helpers(asker)):
            limits = {"most": 8, "deepest": 3}
            assert spawn_problem(asker.role, helper.role.value, depth=0, started=number, **limits) is None


def test_subtasks_are_written_before_they_are_handed_out_in_their_order() -> None:
    states: dict[str, SubtaskStatus] = {}
    written: dict[str, WriteSubtask] = {}
    for call in _calls(demo.SUMMED):
        asked = read_arguments(call.tool, call.args, str)
        if isinstance(asked, WriteSubtask):
            document = asked.model_dump(exclude={"depends_on"})
            state = {"parent_task": demo.SUMS, "status": "pending", "assigned_agent": None}
            Subtask.model_validate({**document, **state})
            written[asked.id], states[asked.id] = asked, SubtaskStatus.PENDING
        elif isinstance(asked, StartAgent):
            part = written[asked.task]
            waits = {name: states.get(name) for name in part.depends_on}
            assert subtask_problem(states[part.id], part.type, asked.agent, waits) is None
            states[part.id] = SubtaskStatus.COMPLETED
    assert list(states) == ["subtask-001", "subtask-002"]
    assert set(states.values()) == {SubtaskStatus.COMPLETED}


# --- the same on real branches


@dataclass(frozen=True)
class Tried:
    """An attempt as it came out."""

    base: str
    conflicts: tuple[str, ...]
    own: frozenset[str]
    """What its agents changed."""
    head: str


class Ground:
    """A repository in which the recorded sessions are played by plain git."""

    def __init__(self, folder: Path) -> None:
        self.folder = demo.DEMO.lay_out(folder)
        self.git("branch", "target")

    def git(self, *arguments: str, fails: bool = False) -> str:
        person = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ("git", *arguments),
            cwd=self.folder,
            env={**os.environ, **person, **quiet},
            capture_output=True,
            text=True,
            check=False,
        )
        assert fails or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def attempt(self, session: RecordedSession, joined: Iterable[str] = ()) -> Tried:
        """Plays a session on a branch of its own that begins at the target, with other branches joined in."""
        base = self.git("rev-parse", "target")
        self.git("checkout", "-q", "-b", session.instance, base)
        conflicts: list[str] = []
        for branch in joined:
            self.git("merge", "-q", "--no-edit", branch, fails=True)
            conflicts += self.git("diff", "--name-only", "--diff-filter=U").splitlines()
            self.commit("joined")  # with its marks, if there are any
        start = self.git("rev-parse", "HEAD")
        self.play(session)
        self.commit(session.instance)
        own = self.git("diff", "--name-only", start, "HEAD").splitlines()
        return Tried(base, tuple(conflicts), frozenset(own), self.git("rev-parse", "HEAD"))

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def merge(self, branch: str) -> None:
        """Lands a branch on the target; whatever does not merge by itself fails."""
        self.git("checkout", "-q", "target")
        self.git("merge", "-q", "--no-ff", "--no-edit", branch)

    def play(self, session: RecordedSession) -> None:
        """The calls by the very tools that a run uses, helpers at the moment they are asked."""
        tree, helpers = WorktreeFiles(self.folder), iter(_helpers(session))
        for call in _calls(session):
            asked = read_arguments(call.tool, call.args, str)
            match asked:
                case CreateFile():
                    create_file(tree, asked)
                case ReplaceString():
                    replace_string(tree, asked)
                case ReadFile():
                    assert tree.kind(asked.path) == "file"
                case ConflictResolution():
                    assert "<<<<<<<" in (self.folder / asked.path).read_text()
                    (self.folder / asked.path).write_text(asked.content)
                case StartAgent():
                    helper = next(helpers)
                    assert helper.role.value == asked.agent
                    self.play(helper)
                case Nothing() | WriteSubtask():
                    pass
                case _:
                    raise AssertionError(call.tool)

    def stand(self, commit: str, *, tests_of: str | None = None) -> None:
        """Checks a commit out, and the tests of another into it."""
        self.git("checkout", "-q", "-f", "--detach", commit)
        self.git("clean", "-q", "-f", "-d", "-x")
        if tests_of is not None:
            self.git("checkout", "-q", tests_of, "--", "tests")

    def run(self, argv: Iterable[str]) -> tuple[int, str]:
        words = [sys.executable if word == "python3" else word for word in argv]
        done = subprocess.run(
            [words[0], "-B", *words[1:]], cwd=self.folder, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def file(self, commit: str, path: str) -> str:
        return self.git("show", f"{commit}:{path}") + "\n"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("forge") / "measure")


@pytest.fixture(scope="module")
def tried(ground: Ground) -> Mapping[str, Tried]:
    """Every attempt of a run, in the order of its graph."""
    return dict(_played(ground))


def _played(ground: Ground) -> Iterator[tuple[str, Tried]]:
    waits = {node.id: node.dependencies for node in _grown().nodes}
    held = {name: refinery for refinery, names in demo.COLLECTED.items() for name in names}
    ended: set[str] = set()
    while len(ended) < len(waits):
        node = next(name for name, others in waits.items() if name not in ended and ended.issuperset(others))
        joined = [f"{name}-{2 if name == demo.TWICE else 1}" for name in demo.COLLECTED.get(node, ())]
        for session in (each for each in demo.TEAM if each.instance in (f"{node}-1", f"{node}-2")):
            yield session.instance, ground.attempt(session, joined)
        if node not in held:
            ground.merge(session.instance)
        ended.add(node)


def test_the_repository_is_the_same_commit_everywhere_and_its_checks_pass(tmp_path: Path) -> None:
    one, two = (Ground(tmp_path / "deep" / name) for name in ("one", "two"))
    assert one.git("rev-parse", "main") == two.git("rev-parse", "main")
    assert one.git("status", "--porcelain") == ""
    assert [one.run(check)[0] for check in demo.CHECKS] == [0, 0]
    settings, _ = verify_settings(one.folder, user=tmp_path / "none.toml")
    declared = [tuple(word.replace("{python}", "python3") for word in check.argv) for check in settings.check]
    assert declared == list(demo.CHECKS[1:])
    assert demo.DEMO.request.strip()
    assert demo.DEMO.slug.lower() == demo.DEMO.slug


def test_the_type_checker_notices_a_type_that_is_left_out(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "measure")
    with (ground.folder / "measure/convert.py").open("a") as file:
        file.write("\n\ndef twice(amount) -> int:\n    return amount\n")
    code, text = ground.run(demo.CHECKS[1])
    assert code == 1
    assert "measure/convert.py:16:1: error: twice does not say its types" in text


@pytest.mark.parametrize("instance", [name for name in ATTEMPTS if name != RED])
def test_an_attempt_leaves_everything_green(instance: str, ground: Ground, tried: Mapping[str, Tried]) -> None:
    ground.stand(tried[instance].head)
    for check in demo.CHECKS:
        code, text = ground.run(check)
        assert code == 0, text


def test_the_first_attempt_at_reading_is_red_and_says_that_it_is_green(
    ground: Ground, tried: Mapping[str, Tried]
) -> None:
    ground.stand(tried[RED].head)
    code, text = ground.run(TESTS)
    assert code == 1
    assert "test_a_space_is_not_needed" in text
    told = differences(_said(OF[RED]), SeenAttempt(tried[RED].own, red=["unittest"]))
    assert told == ("the walkthrough says that tests.test_parse pass; unittest failed when Fair Witness ran them",)


@pytest.mark.parametrize("instance", ATTEMPTS)
def test_a_walkthrough_names_exactly_the_files_that_changed(instance: str, tried: Mapping[str, Tried]) -> None:
    assert differences(_said(ATTEMPTS[instance]), SeenAttempt(tried[instance].own)) == ()
    task = TASK_OF.get(_node(instance))
    if task is not None:
        assert tried[instance].own == set(task.writes)


CODE = [task for task in (*demo.TASKS, *demo.ADDED) if any(path.startswith("measure/") for path in task.writes)]


@pytest.mark.parametrize("task", CODE, ids=lambda task: task.id)
def test_every_new_test_is_red_without_the_change_and_notices_wrong_forms_of_it(
    task: demo.Task, ground: Ground, tried: Mapping[str, Tried]
) -> None:
    done = tried[f"{task.id}-{2 if task.id == demo.TWICE else 1}"]
    names = [path.removesuffix(".py").replace("/", ".") for path in task.writes if path.startswith("tests/")]
    assert names
    ground.stand(done.base, tests_of=done.head)
    for name in names:
        assert ground.run((*TESTS, name))[0] == 1, f"{name} holds before"
    ground.stand(done.head)
    wrong = mutants([_change(ground, done, path) for path in task.writes], limit=6, seed=0)
    survivors = []
    for mutant in wrong:
        right = (ground.folder / mutant.path).read_text()
        (ground.folder / mutant.path).write_text(mutant.content)
        if ground.run((*TESTS, *names))[0] == 0:
            survivors.append(f"{mutant.path}:{mutant.line} {mutant.description}")
        (ground.folder / mutant.path).write_text(right)
    assert survivors == []


def _change(ground: Ground, done: Tried, path: str) -> ChangedText:
    before = ground.file(done.base, path) if path in demo.DEMO.files else None
    after = ground.file(done.head, path)
    old = (before or "").splitlines()
    added = tuple(number for number, line in enumerate(after.splitlines(), start=1) if line not in old)
    return ChangedText(path, before, after, added, ())


def test_the_two_tasks_conflict_and_the_refinery_keeps_both(ground: Ground, tried: Mapping[str, Tried]) -> None:
    refined = tried[f"{demo.FIRST_REFINERY}-1"]
    assert refined.conflicts == (demo.SETTLED,)
    assert {task: demo.SETTLED in tried[f"{task}-1"].own for task in demo.CONFLICTING} == dict.fromkeys(
        demo.CONFLICTING, True
    )
    settled = ground.file(refined.head, demo.SETTLED)
    assert "KINDS = (LENGTH, MASS, DURATION)" in settled
    assert tried[f"{demo.SECOND_REFINERY}-1"].conflicts == ()


def test_the_end_has_everything_and_is_green(ground: Ground, tried: Mapping[str, Tried]) -> None:
    assert len(tried) == 15
    ground.stand("target")
    for check in demo.CHECKS:
        code, text = ground.run(check)
        assert code == 0, text
    assert "Ran 26 tests" in ground.run(TESTS)[1]
    program = 'import measure; print(measure.ask("2 hours in minutes"), measure.mixed(5400, "s"))'
    assert ground.run(("python3", "-c", program)) == (0, "120 min 1 h 30 min\n")
    files = set(ground.git("ls-files").splitlines())
    assert files == set(demo.DEMO.files) | {path for task in (*demo.TASKS, *demo.ADDED) for path in task.writes}
