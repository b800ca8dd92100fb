"""A plan is checked while its planner can still put it right: its documents, and the commands that they name."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.kit import yaml_text
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps
from fairwitness.runs.feature.plan_check import with_plan_check
from runs.feature.run_events import played
from support import demo_feature as demo
from support.paper.run import Ground, PaperRun
from support.paper.script import Script


@pytest.fixture
def run(tmp_path: Path) -> Iterator[PaperRun]:
    made = PaperRun(Ground.lay(tmp_path / "ground"), tmp_path / "run", Script())
    for session in (demo.SPEC, demo.FIRST_DESIGN):
        played(made.context, session)
    yield made
    made.close()


def objections(run: PaperRun, folder: Path, answer: dict[str, Any], *, has_base: bool = True) -> tuple[str, ...]:
    context = run.context
    base = context.repository.tree_of(context.order.base_commit)
    brief = Brief(dispatch_id="d", run_id=context.run_id, role=Role.PLANNER, instance="planner", task="Plan.")
    unused: Any = None
    deps = DispatchDeps(
        backend=unused,
        probe=unused,
        models=unused,
        runner=unused,
        worktree=folder,
        base_tree=base if has_base else None,
    )
    shared: DispatchContext = run._caller.context
    _, equipped = with_plan_check(context, run._verify_deps)(brief, shared, deps)
    assert replace(equipped, check=deps.check) == deps, "nothing else is changed"
    return equipped.check(PlanOutput.model_validate(answer))


def write_tasks(folder: Path, criterion: str | None = None) -> Path:
    for task in demo.TASKS:
        document = task.document()
        if criterion is not None and task.id == "task-01":
            document["task"]["acceptance_criteria"][1] = criterion
        path = folder / demo.LAYOUT.task(task.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml_text.render(document))
    return folder


@pytest.mark.req("P8")
def test_a_plan_that_can_be_carried_out_meets_no_objection(run: PaperRun, tmp_path: Path) -> None:
    folder = write_tasks(tmp_path / "worktree")
    assert objections(run, folder, demo.PLANNED.answer) == ()


@pytest.mark.req("P8", "P9")
def test_a_criterion_whose_command_cannot_be_run_is_told_why_and_what_is_allowed(run: PaperRun, tmp_path: Path) -> None:
    folder = write_tasks(tmp_path / "worktree", "`python3 -c 'import till'` passes.")
    wrong, allowed = objections(run, folder, demo.PLANNED.answer)
    assert wrong.startswith("tasks/task-01.yaml: task.acceptance_criteria[1]: ")
    assert "no check of this project begins with python3 -c" in wrong
    assert "`python3 -m unittest`" in allowed
    assert objections(run, folder, demo.PLANNED.answer, has_base=False) == ()


@pytest.mark.req("P8")
def test_a_test_that_a_task_will_write_can_be_named_and_another_cannot(run: PaperRun, tmp_path: Path) -> None:
    folder = write_tasks(tmp_path / "worktree", "`python3 -m unittest tests.test_vouchers` passes.")
    assert objections(run, folder, demo.PLANNED.answer) == ()
    folder = write_tasks(tmp_path / "worktree", "`tests/test_nothing.py::test_x` passes.")
    assert len(objections(run, folder, demo.PLANNED.answer)) == 2


@pytest.mark.req("P8")
def test_a_plan_without_its_documents_is_sent_back_and_one_that_gave_up_is_not_judged(
    run: PaperRun, tmp_path: Path
) -> None:
    empty = tmp_path / "worktree"
    empty.mkdir()
    found = objections(run, empty, demo.PLANNED.answer)
    assert "tasks/task-01.yaml: expected a task document, found none" in found
    given_up = copy.deepcopy(demo.PLANNED.answer)
    given_up["completion"] |= {"status": "ERROR"}
    assert objections(run, empty, given_up) == ()
