"""`fairwitness autopilot`: drives a roadmap of phases to its end."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_RUN = "run"
_LABEL = 10
_OF_ALL = ("force", "quality", "gaps", "complete")
"""Flags that apply to all phases, so that the range may be omitted."""


class _Phases(click.Group):
    """A group whose first argument may be a range of phases instead of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *_SETTINGS["help_option_names"]):
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Phases, name="autopilot", context_settings=_SETTINGS)
def command() -> None:
    """Drive the phases of .planning/ROADMAP.md to their end: `fairwitness autopilot 3-7`, `next`, `all`.

    Each phase is researched, planned, executed, verified, judged and rated; it passes when its score reaches the
    threshold. Phases that only you can judge wait for `fairwitness verdict`. `fairwitness autopilot run --help` lists
    the flags.
    """


@command.command(name=_RUN, context_settings=_SETTINGS)
@click.argument("phases", required=False, metavar="[RANGE|next|all]")
@click.option("--force", is_flag=True, help="Run all steps of completed phases again.")
@click.option("--quality", is_flag=True, help="Require a score of 9.5; completed phases below it are improved.")
@click.option("--gaps", is_flag=True, help="Close the remaining gaps of completed phases one by one.")
@click.option("--complete", is_flag=True, help="Run every phase that is not completed; continue past failures.")
@click.option("--lenient", is_flag=True, help="Accept a score of 7 and remediate nothing.")
@click.option("--map", "maps", is_flag=True, help="Score what is known about the phases before running them.")
@click.option("--discuss", is_flag=True, help="Discuss the phases before running them.")
@click.option("--visual", is_flag=True, help="Check screens as well.")
@click.option("--sequential", is_flag=True, help="Run one phase after the other (always the case).")
@click.option("--cycles", type=click.IntRange(min=1), help="The maximum number of --quality or --gaps cycles.")
@click.option("--checkpoint-every", type=click.IntRange(min=1), metavar="N", help="Pause after N phases.")
@click.option("--agents", metavar="NAME", help="The agent to use for every role.")
@click.option("--cassette", type=click.Path(exists=True, path_type=Path), help="A folder of recordings to play.")
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def run(
    phases: str | None,
    cycles: int | None,
    checkpoint_every: int | None,
    agents: str | None,
    cassette: Path | None,
    plain: bool,
    as_lines: bool,
    as_json: bool,
    sequential: bool,  # phases never run side by side
    maps: bool,
    **flags: bool,
) -> int:
    """Run phases: a range such as 3-7, 3,5,8 or 6.1, `next` for the next open one, or `all`.

    Exit code 0: all are completed. 1: a phase failed. 4: the run waits for you or is paused. 5: a limit is used up.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.begin_autopilot import PhasesRequest, begin_autopilot
    from fairwitness.cli.foreground import confirm_estimate, drive_here
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    given = [name for name, is_given in {**flags, "map": maps}.items() if is_given]
    if phases is None and not any(name in _OF_ALL for name in given):
        raise click.UsageError("no phases given: add a range such as 3-7, `next`, or `all`")
    root = repository_root(Path.cwd())
    wanted = PhasesRequest(
        phases=phases or "all",
        flags=tuple(f"--{name}" for name in given),
        cycles=cycles,
        pause_after=checkpoint_every,
        agents=agents or ("cassette" if cassette else None),
        cassettes=cassette,
    )
    if not confirm_estimate(root, wanted.agents, "autopilot", each=" for each phase"):
        return ExitCode.BUDGET
    begun = begin_autopilot(root, wanted)
    for warning in begun.warnings:
        click.echo(warning, err=True)
    return drive_here(root, begun.run_id, asked)


@command.command(name="resume", context_settings=_SETTINGS)
@click.argument("run", required=False)
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def resume(run: str | None, plain: bool, as_lines: bool, as_json: bool) -> int:
    """Continue RUN (an id; default: the latest) after it stopped, was paused, or failed.

    A run that the circuit breaker paused continues after the cooldown; until then the exit code is 3. A completed run
    stays completed.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.autopilot import latest_run_at
    from fairwitness.app.views.followed_run import follow_run
    from fairwitness.cli.commands.resume import resume_run
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    root = repository_root(Path.cwd())
    with follow_run(root, latest_run_at(root, run), after=asked.after) as followed:
        return resume_run(root, followed, asked)


@command.command(name="status", context_settings=_SETTINGS)
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(run: str | None, as_json: bool) -> int:
    """Show RUN (an id; default: the latest) as a board, and the phases of the roadmap."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.autopilot import has_run, next_autopilot_command, roadmap_phases
    from fairwitness.app.views.board import view_of_run
    from fairwitness.cli.screens.autopilot import board_lines, standing_lines
    from fairwitness.errors import UsageError

    root = repository_root(Path.cwd())
    view = view_of_run(root, run) if run is not None or has_run(root) else None
    try:
        standings = roadmap_phases(root)
    except UsageError:
        if view is None:
            raise
        standings = ()  # the run uses the roadmap it was begun with
    following = "fairwitness autopilot next" if view is None else next_autopilot_command(root, view)
    if as_json:
        phases = [{"id": each.id, "name": each.name, "status": each.status} for each in standings]
        board = None if view is None else view.plain()
        click.echo(json.dumps({"run": board, "roadmap": phases, "next": following}, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in () if view is None else board_lines(view, terminal_width()):
        click.echo(line)
    shown = frozenset(phase.id for phase in view.phases) if view is not None else frozenset()
    for line in standing_lines([each for each in standings if each.id not in shown]):
        click.echo(line)
    click.echo(f"next:  {following}", err=True)
    return ExitCode.REACHED


@command.command(name="init", context_settings=_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(as_json: bool) -> int:
    """Write a roadmap template, the project's settings, and lines for .gitignore; existing files are kept."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.autopilot_setup import init as set_up

    done = set_up(repository_root(Path.cwd()))
    if as_json:
        click.echo(json.dumps({"files": {each.path: each.what for each in done}}))
        return ExitCode.REACHED
    for each in done:
        click.echo(f"{each.what:<{_LABEL}}{each.path}")
    click.echo("next:  fill in .planning/ROADMAP.md, commit it, then: fairwitness autopilot next", err=True)
    return ExitCode.REACHED


@command.command(name="lock", context_settings=_SETTINGS)
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def lock(run: str | None, as_json: bool) -> int:
    """Accept the current specifications of RUN (an id; default: the latest) by locking them again.

    A run stops before a phase if a specification changed since it was locked; after this command it continues with
    the change. A roadmap that changes a phase still to come is not locked: begin a new run for it.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.autopilot_setup import lock as lock_now

    done = lock_now(repository_root(Path.cwd()), run)
    if as_json:
        changes = [{"path": change.path, "turn": change.turn.value} for change in done.changes]
        click.echo(json.dumps({"run_id": done.run_id, "changes": changes, "locked": list(done.paths)}))
        return ExitCode.REACHED
    for change in done.changes:
        click.echo(f"{change.turn.value:<{_LABEL}}{change.path}")
    if not done.changes:
        click.echo(f"no specification of {done.run_id} changed since it was locked")
    click.echo(f"next:  fairwitness resume {done.run_id}", err=True)
    return ExitCode.REACHED


@command.command(name="report", context_settings=_SETTINGS)
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def report(run: str | None, as_json: bool) -> int:
    """Show the results of RUN (an id; default: the latest) and where its documents are."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.autopilot import next_autopilot_command, report_of
    from fairwitness.cli.screens.autopilot import board_lines, report_lines

    root = repository_root(Path.cwd())
    found = report_of(root, run)
    if as_json:
        click.echo(json.dumps(found.plain(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in (*board_lines(found.view, terminal_width()), *report_lines(found)):
        click.echo(line)
    click.echo(f"next:  {next_autopilot_command(root, found.view, is_reported=True)}", err=True)
    return ExitCode.REACHED


@command.command(name="metrics", context_settings=_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def metrics(as_json: bool) -> int:
    """Show the metrics of every run that ended, and how the last compares with the one before."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.autopilot import all_metrics
    from fairwitness.cli.screens.autopilot import metrics_lines

    found = all_metrics(repository_root(Path.cwd()))
    if as_json:
        click.echo(json.dumps(found.plain(), indent=2))
        return ExitCode.REACHED
    if not found.runs.root:
        click.echo("No autopilot run has ended here yet.")
    for line in metrics_lines(found):
        click.echo(line)
    click.echo("next:  fairwitness autopilot report", err=True)
    return ExitCode.REACHED
