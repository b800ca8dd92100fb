"""`fairwitness plan`: shows, edits and approves the plan of a forge run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.runs.plan import PlannedNode, PlanView

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_LONG = 4000
_MARGIN = "    "


@click.group(name="plan", context_settings=_SETTINGS)
def command() -> None:
    """The plan of a forge run: specs, tasks and their graph. Its files may be edited until it is approved."""


@command.command(name="show")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(run: str | None, as_json: bool) -> int:
    """Show the current plan of RUN (an id, or `last`; default: the only unfinished run)."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.plan import read_plan_view

    view = read_plan_view(repository_root(Path.cwd()), run)
    if as_json:
        click.echo(json.dumps(view.plain(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in _lines(view, terminal_width()):
        click.echo(line)
    click.echo(f"next:  {view.following}", err=True)
    return ExitCode.REACHED


@command.command(name="edit")
@click.argument("run")
@click.argument("file", default="dag.json")
@click.option("--with", "given", type=click.Path(path_type=Path), help="Use this file instead of opening an editor.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def edit(run: str, file: str, given: Path | None, as_json: bool) -> int:
    """Edit FILE of the plan of RUN: dag.json, specs/NAME.md or tasks/ID.md, existing or new.

    Opens your editor ($VISUAL or $EDITOR) and then checks the plan: exit code 2 and the first problem if it is not
    consistent. The file keeps your edits, but only a consistent plan can be approved.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.plan import edit_plan
    from fairwitness.app.views.detail import resolve_run_at

    root = repository_root(Path.cwd())
    run_id = resolve_run_at(root, run)
    path = edit_plan(root, run_id, file, given)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "file": str(path), "fits": True}))
    else:
        click.echo(f"{path}: the plan is consistent")
        click.echo(f"next:  fairwitness plan approve {run_id}", err=True)
    return ExitCode.REACHED


@command.command(name="approve")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def approve(run: str | None, as_json: bool) -> int:
    """Approve the plan of RUN as it is in its files: it is sealed and executed."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.plan import approve_plan

    run_id, is_carried = approve_plan(repository_root(Path.cwd()), run)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "answer": "approve", "is_carried": is_carried}))
    else:
        click.echo(f"{run_id}: the plan is approved and sealed")
    click.echo(f"next:  fairwitness {'watch' if is_carried else 'resume'} {run_id}", err=True)
    return ExitCode.REACHED


def _lines(view: "PlanView", width: int) -> Iterator[str]:
    """Print a plan in lines that fit the terminal, with control sequences made visible."""
    from fairwitness.app.text import safe_line

    plan = view.plan
    yield f"{view.run_id}  {'sealed' if view.is_sealed else 'not approved yet'}"
    yield from wrapped(safe_line(view.request, _LONG), width, first="request  ", rest=" " * 9)
    if view.problem is not None:
        yield from wrapped(safe_line(view.problem, _LONG), width, first="does not fit  ", rest=" " * 14)
        yield "What follows is the plan as the captain proposed it."
    for spec in plan.specs:
        first = next((line for line in spec.body.splitlines() if line.strip()), "")
        yield from wrapped(f"{spec.name}: {safe_line(first, _LONG)}", width, first="spec  ", rest=" " * 6)
    for node in view.nodes:
        yield from _node(node, width)
    for name, texts in (("assumed", plan.assumptions), ("open", plan.questions)):
        for text in texts:
            yield from wrapped(safe_line(text, _LONG), width, first=f"{name:<8} ", rest=" " * 9)
    tasks, refineries = plan.dag.metadata.totalTasks, plan.dag.metadata.totalRefineries
    yield f"{tasks} task{'' if tasks == 1 else 's'}, {refineries} refiner{'y' if refineries == 1 else 'ies'}"
    for text in view.grown:
        yield from wrapped(f"{text}: fairwitness dag show {view.run_id}", width, first="since    ", rest=" " * 9)
    yield f"files    {safe_line(str(view.folder), _LONG)}"


def _node(view: "PlannedNode", width: int) -> Iterator[str]:
    from fairwitness.app.text import safe_line

    node = view.node
    kind = node.worker
    facts = "  ".join(filter(None, (node.id, kind, view.complexity)))
    yield from (
        wrapped(safe_line(view.title, _LONG), width, first=f"{facts}  ", rest=_MARGIN) if view.title else (facts,)
    )
    if node.dependencies:
        yield from wrapped(f"after {', '.join(node.dependencies)}", width, first=_MARGIN, rest=_MARGIN)
    for criterion in view.criteria:
        yield from wrapped(safe_line(criterion, _LONG), width, first=f"{_MARGIN}- ", rest=f"{_MARGIN}  ")
