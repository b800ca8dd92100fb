"""Forge keeps its promise: an unmet criterion, a lost branch and a contradicted claim are stopped before the merge.

Each dishonest agent has an honest twin, its next attempt, which is merged. Whole runs with real git, real checks and a
recorded team; where several faults fit into one run, they share it.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from cli.graph_grounds import NEEDS_SANDBOX
from fairwitness.app.views.ends import end_lines
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.shared.criteria import NOT_RED
from feature.grounds import Turn, call, git
from forge.grounds import JOIN, ONE, TWO, Document, Grounds, Node, Run, part, planned, refined, walked, worked
from support.promises import sections_of

pytestmark = [pytest.mark.timeout(400), NEEDS_SANDBOX]

THREE = Node("task-003")


def shown(node: Node, command: str) -> Document:
    """A walkthrough that names the command for the criterion of a task."""
    evidence = [{"criterion": f"parts/{node.id} is good", "command": command}]
    return walked(f"parts/{node.id}", evidence=evidence)


def insisted(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Somebody who is told what is wrong with an answer, and gives it again."""
    return (*turns, turns[-1])


@pytest.fixture(scope="module")
def unmet(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three workers who claim what is not so at first. The plan says how the first is judged, the workers the rest."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("unmet"), ONE, TWO, THREE)
    plan = planned(ONE, TWO, THREE)
    for task in plan["tasks"][1:]:
        del task["evidence"]
    grounds.plans(plan)
    grounds.does(ONE, worked(part("other")))  # every check passes, and its own part is not there
    grounds.does(ONE, attempt=2)
    grounds.does(TWO, insisted(worked(part("task-002"))), sessions=2)
    grounds.does(TWO, worked(part("task-002"), said=shown(TWO, "sh check.sh parts/task-002")), attempt=2)
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh check.sh parts/first")))
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh check.sh parts/task-003")), attempt=2)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


def why(run: Run, node: Node) -> str:
    """Why a node was tried again, once."""
    (retried,) = run.events("task.retried", nodeId=node.id)
    return str(retried["reason"])


@pytest.mark.req("F2", "X1")
def test_a_worker_that_claims_an_unmet_criterion_is_not_merged_and_its_honest_twin_is(unmet: Run) -> None:
    assert "ac-1 is unmet: parts/task-001 is good (it fails: exit code 1)" in why(unmet, ONE)
    assert unmet.parts() == {"task-001", "task-002", "task-003"}
    with unmet.context() as context:
        rows = context.log.ledger.observations(unmet.run_id, "criteria")
    assert {(row.key, row.holds) for row in rows} >= {
        ("criteria:task-001:1", False),
        ("criteria:task-001:2", True),
        ("criteria:task-002:2", True),
    }


@pytest.mark.req("F2", "X1")
def test_a_criterion_without_evidence_comes_back_to_the_worker_and_then_fails_the_attempt(unmet: Run) -> None:
    outcome = unmet.outcomes()["task-002-1"]
    assert outcome.status is OutcomeStatus.INVALID_ANSWER
    assert "the worker did not judge it" in "".join(outcome.problems)
    told = unmet.transcript("task-002-1")
    assert "commands may begin with: `sh check.sh`" in told
    assert "invalid_answer" in why(unmet, TWO)


@pytest.mark.req("F9")
def test_commits_say_what_was_done(unmet: Run, dropped: Run) -> None:
    subjects = [set(git(run.top, "log", "--all", "--format=%s").splitlines()) for run in (unmet, dropped)]
    assert any("fairwitness(task-001): The part task-001" in each for each in subjects)
    merges = {line for each in subjects for line in each if line.startswith("fairwitness: merge ")}
    assert merges
    assert all(re.fullmatch(r"fairwitness: merge (task-00\d): The part \1", line) for line in merges), merges
    assert "fairwitness(refinery-001): merge task-001, task-002" in subjects[1]


@pytest.mark.req("F2", "X1")
def test_evidence_that_was_green_before_the_change_shows_no_new_behaviour(unmet: Run) -> None:
    assert NOT_RED in why(unmet, THREE)


# --- a refinery that throws work away


NO_CONFLICT_BEFORE = "files were changed that were neither in conflict nor named in `fixes`: parts/task-002"


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A refinery that deletes the work of a task: first in silence, then as a declared fix. Its twin joins both."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("dropped"), ONE, TWO, JOIN)
    drop = call("run_in_terminal", command="rm parts/task-002")
    grounds.does(JOIN, insisted(refined(drop)), sessions=2)
    grounds.does(JOIN, insisted(refined(drop, fixes=["parts/task-002"])), attempt=2, sessions=2)
    grounds.does(JOIN, attempt=3)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F4", "X1")
def test_a_refinery_that_drops_a_branch_is_told_and_fails_and_its_honest_twin_joins_both(dropped: Run) -> None:
    first, second = (dropped.outcomes()[f"refinery-001-{number}"] for number in (1, 2))
    assert {first.status, second.status} == {OutcomeStatus.INVALID_ANSWER}
    assert NO_CONFLICT_BEFORE in first.problems
    assert "the work of task-002 is gone from parts/task-002" in first.problems
    assert second.problems == ("the work of task-002 is gone from parts/task-002",)
    assert [event["nextAttempt"] for event in dropped.events("task.retried", nodeId="refinery-001")] == [2, 3]
    assert dropped.parts() == {"task-001", "task-002"}


@pytest.mark.req("F4", "X1")
def test_the_criteria_of_joined_tasks_are_judged_again_on_the_joined_tree(dropped: Run) -> None:
    with dropped.context() as context:
        row = context.log.ledger.observation(dropped.run_id, "criteria:refinery-001:3")
    assert row is not None
    assert row.holds
    assert [each["check"] for each in row.detail["judged"]] == ["ac-1", "ac-2"]


@pytest.mark.req("F9")
def test_a_refinery_gets_the_change_of_each_task_and_what_must_hold(dropped: Run) -> None:
    sections = sections_of(dropped.prompt("refinery-001-1"))
    for name in ("task-001", "task-002"):
        assert f"+++ b/parts/{name}" in sections[f"Change of {name}"]
        assert sections[f"Change of {name}"].count("+++ b/") == 1  # its own, and not what it began with
        held = f"- {name}: parts/{name} is good (shown by `sh check.sh parts/{name}`)"
        assert held in sections["What must hold on the joined tree"]


# --- text that is to prove what only a command can


TEXT = "README.md:1 is only text, and the plan does not speak of README.md: name a test or a command"


def note(path: str, text: str) -> tuple[str, dict[str, Any]]:
    """Writes a text."""
    return call("create_file", path=path, content=text)


def told(criterion: str, location: str) -> Document:
    """A place that is claimed to show a criterion."""
    return {"criterion": criterion, "location": location, "claim": "it is so"}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Workers who write that it is done: with other code, or with nothing else. The third writes what it was asked."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("described"), ONE, TWO, THREE)
    plan = planned(ONE, TWO, THREE)
    plan["tasks"][0]["acceptance_criteria"].append("there is one more part")
    for task in plan["tasks"]:
        del task["evidence"]
    plan["tasks"][2]["acceptance_criteria"] = ["parts/task-003 is good", "The changelog tells of it"]
    grounds.plans(plan)
    text, good = note("README.md", "parts/task-001 is good\n"), told("parts/task-001 is good", "README.md:1")
    more = {"criterion": "there is one more part", "command": "sh check.sh parts/other"}
    said = walked("parts/other", "README.md", evidence=[good, more], confidence=0.4)
    grounds.does(ONE, insisted(worked(part("other"), text, said=said)), sessions=2)
    shown_by = {"criterion": "parts/task-001 is good", "command": "sh check.sh parts/task-001"}
    both = walked("parts/other", "parts/task-001", evidence=[shown_by, more])
    grounds.does(ONE, worked(part("other"), part("task-001"), said=both), attempt=2)
    only = walked("README.md", evidence=[told("parts/task-002 is good", "README.md:1")])
    grounds.does(TWO, insisted(worked(note("README.md", "parts/task-002 is good\n"), said=only)), sessions=2)
    grounds.does(TWO, worked(part("task-002"), said=shown(TWO, "sh check.sh parts/task-002")), attempt=2)
    good = {"criterion": "parts/task-003 is good", "command": "sh check.sh parts/task-003"}
    honest = walked(
        "parts/task-003", "CHANGELOG.md", evidence=[good, told("The changelog tells of it", "CHANGELOG.md:2")]
    )
    cache = call("run_in_terminal", command="mkdir __pycache__"), note("__pycache__/part.pyc", "a cache\n")
    grounds.does(THREE, worked(*cache, part("task-003"), note("CHANGELOG.md", "# Changes\n- task-003\n"), said=honest))
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F2", "X1")
def test_a_text_proves_only_a_criterion_that_speaks_of_its_file(described: Run) -> None:
    for name in ("task-001-1", "task-002-1"):
        outcome = described.outcomes()[name]
        assert outcome.status is OutcomeStatus.INVALID_ANSWER
        assert TEXT in "".join(outcome.problems)
    assert described.outcomes()["task-003-1"].status is OutcomeStatus.OK
    assert described.events("task.retried", nodeId="task-003") == []
    assert described.parts() == {"other", "task-001", "task-002", "task-003"}


@pytest.mark.req("F2")
def test_what_no_commit_takes_refutes_nobody(described: Run) -> None:
    assert described.events("walkthrough.disputed") == []
    assert "__pycache__" not in described.files()


# --- a refinery that takes one side of a conflict


@pytest.fixture(scope="module")
def sided(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two tasks write the same file. The refinery takes one side of it, then both without a word on it."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("sided"), ONE, TWO, JOIN)
    plan = planned(ONE, TWO, JOIN)
    plan["tasks"][1]["acceptance_criteria"] = ["CHANGELOG.md tells of two"]
    del plan["tasks"][1]["evidence"]
    grounds.plans(plan)
    grounds.does(ONE, worked(part("task-001"), note("CHANGELOG.md", "one\n")))
    said = walked("CHANGELOG.md", evidence=[told("CHANGELOG.md tells of two", "CHANGELOG.md:1")])
    grounds.does(TWO, worked(note("CHANGELOG.md", "two\n"), said=said))
    grounds.does(JOIN, insisted(refined(call("fix_conflict", path="CHANGELOG.md", content="one\n"))), sessions=2)
    other = "one\nand what the other one said\n"
    settled = call("fix_conflict", path="CHANGELOG.md", content=other)
    grounds.does(JOIN, insisted(refined(settled)), attempt=2, sessions=2)
    joined = refined(call("fix_conflict", path="CHANGELOG.md", content="one\ntwo\n"))
    assert joined[-1].submitted is not None
    del joined[-1].submitted["walkthrough"]["files_changed"]
    grounds.does(JOIN, joined, attempt=3)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F4", "X1")
def test_a_refinery_that_takes_one_side_of_a_conflict_is_told_and_fails_and_its_honest_twin_keeps_both(
    sided: Run,
) -> None:
    line = "the line of CHANGELOG.md is gone that shows 'CHANGELOG.md tells of two' of task-002: two"
    first, second = (sided.outcomes()[f"refinery-001-{number}"] for number in (1, 2))
    assert {first.status, second.status} == {OutcomeStatus.INVALID_ANSWER}
    assert first.problems == ("the work of task-002 is gone from CHANGELOG.md", line)
    assert second.problems == (line,)
    assert sided.show("CHANGELOG.md") == "one\ntwo\n"


@pytest.mark.req("F4")
def test_a_refinery_need_not_name_the_files_that_it_settled(sided: Run) -> None:
    assert sided.events("walkthrough.disputed") == []


# --- whose test is red


TAP = """\
n=0
for file in tests/*.sh; do
  n=$((n + 1))
  if sh "$file"; then echo "ok $n - $file"; else echo "not ok $n - $file"; red=1; fi
done
echo "1..$n"
exit ${red:-0}
"""
CHECKS = """
[[verify.check]]
name = "tests"
id = "tap"
argv = ["sh", "tap.sh"]
report = "tap"

[[verify.check]]
name = "lint"
argv = ["sh", "lint.sh"]
"""
LINT = """for file in "$@"; do test -e "$file" || exit 1; done"""
LATE = Node("task-002", ("task-001",))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A task that begins with the unmerged work of another, and one whose linter fails where its file is not there."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("begun"), ONE, LATE, THREE, JOIN)
    grounds.adds({"tap.sh": TAP, "lint.sh": LINT, "tests/first.sh": "grep -q good parts/first\n"}, settings=CHECKS)
    plan = planned(ONE, LATE, THREE, JOIN)
    for task in plan["tasks"][1:]:
        del task["evidence"]
    grounds.plans(plan)
    grounds.does(ONE, worked(part("task-001"), note("tests/task-001.sh", "grep -q good parts/task-001\n")))
    green, files = "sh check.sh parts/task-001", ("parts/task-002", "tests/task-002.sh")
    evidence = [{"criterion": "parts/task-002 is good", "command": green}]
    said = walked(*files, evidence=evidence)
    grounds.does(LATE, worked(part("task-002"), note(files[1], "true\n"), said=said))
    real = note(files[1], "grep -q good parts/task-002\n")
    grounds.does(LATE, worked(part("task-002"), real, said=said), attempt=2)
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh lint.sh parts/task-003")))
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh check.sh parts/task-003")), attempt=2)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F2", "X1")
def test_the_red_test_of_another_task_shows_nothing_and_an_own_one_does(begun: Run) -> None:
    assert why(begun, LATE) == NOT_RED
    assert begun.parts() == {"task-001", "task-002", "task-003"}


@pytest.mark.req("F2", "X1")
def test_a_linter_that_misses_the_new_file_shows_no_new_behaviour(begun: Run) -> None:
    assert why(begun, THREE) == NOT_RED


@pytest.mark.req("F2")
def test_an_honest_task_that_begins_with_an_unmerged_one_passes_at_once(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE, LATE, JOIN)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    assert run.events("task.retried") == []


# --- a plan that nobody can carry out, a test that nobody wrote, and a worker that is unsure


@pytest.fixture(scope="module")
def claimed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A captain that names a command which is none; a worker that invents a test, and then says how sure it is."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("claimed"), ONE)
    plan = planned(ONE)
    plan["tasks"][0]["evidence"] = [{"criterion": "parts/task-001 is good", "command": "make verify"}]
    turns = tuple(Turn("A plan.", submitted=each) for each in (plan, planned(ONE)))
    grounds.record(Role.CAPTAIN, "captain-1", turns)
    invented = walked("parts/task-001", tests={"tests/test_part.py::test_it_is_good": "pass"})
    grounds.does(ONE, insisted(worked(part("task-001"), said=invented)), sessions=2)
    honest = walked("parts/task-001", tests={"sh check.sh": "pass"}, confidence=0.4)
    grounds.does(ONE, worked(part("task-001"), said=honest), attempt=2)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F1", "X1")
def test_a_command_of_the_plan_that_can_never_be_run_comes_back_to_the_captain(claimed: Run) -> None:
    told = claimed.transcript("captain-1")
    assert "expected a command that begins with `sh check.sh`; found `make verify` was not run" in told
    assert [event["tasks"] for event in claimed.events("plan.proposed")] == [1]


@pytest.mark.req("F2", "X1")
def test_an_invented_test_is_a_rejected_answer_though_every_check_is_green(claimed: Run) -> None:
    outcome = claimed.outcomes()["task-001-1"]
    assert outcome.status is OutcomeStatus.INVALID_ANSWER
    said = "the walkthrough tells of tests that do not exist: tests/test_part.py::test_it_is_good"
    assert outcome.problems == (said,)
    assert claimed.outcomes()["task-001-2"].status is OutcomeStatus.OK


@pytest.mark.req("F2")
def test_the_end_of_a_run_asks_for_a_review_of_what_its_worker_is_unsure_of(claimed: Run) -> None:
    with follow_run(claimed.top, claimed.run_id) as followed:
        lines = end_lines(followed)
    assert "review    fairwitness task show task-001 (confidence 0.40)" in lines
