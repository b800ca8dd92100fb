"""`fairwitness resume`: continues a run in this process."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.foreground import StopSignal, exit_code_of_end, stoppable

if TYPE_CHECKING:
    from fairwitness.app.views.followed_run import FollowedRun
    from fairwitness.cli.screens.run import OutputMode


@click.command(name="resume", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", required=False)
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(run: str | None, plain: bool, as_lines: bool, as_json: bool) -> int:
    """Continue RUN until it ends.

    Without RUN: the only unfinished run, or the latest run if it failed and can continue. A run that was paused,
    cancelled, killed or stopped continues where it was. A run that another worker executes is only shown. The exit
    codes are those of `fairwitness watch`.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.drive import run_to_resume
    from fairwitness.app.views.followed_run import follow_run
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    root = repository_root(Path.cwd())
    with follow_run(root, run or run_to_resume(root), after=asked.after) as followed:
        return resume_run(root, followed, asked)


def resume_run(root: Path, followed: "FollowedRun", asked: "OutputMode") -> int:
    """Continue a run, or show it if another worker executes it; return the exit code."""
    from fairwitness.app.runs.drive import can_go_on, record_resumed, refuse_undrivable
    from fairwitness.cli.screens.run import show_end

    view = followed.view
    refuse_undrivable(root, view)
    if not view.is_over or can_go_on(root, view):
        if view.is_over or view.status == "paused":
            record_resumed(root, view)
        if followed.worker() is None:
            from fairwitness.cli.foreground import drive_here

            return drive_here(root, view.run_id, asked)
        try:
            _show(followed, asked)
        except StopSignal as stopped:
            return stopped.exit_code
    show_end(followed, asked)
    end = view.ended()
    assert end is not None
    return exit_code_of_end(end)


def _show(followed: "FollowedRun", asked: "OutputMode") -> None:
    """Show a run that another worker executes."""
    from fairwitness.app.views.followed_run import follow
    from fairwitness.cli.screens.choice import screen_of

    worker = followed.worker()
    assert worker is not None
    click.echo(f"process {worker.pid} on {worker.host} executes this run; showing its progress", err=True)
    try:
        with stoppable(), screen_of(followed, asked, hint="Ctrl-C stops showing it; the run goes on") as shown:
            follow(followed, shown.show)
    except StopSignal:
        click.echo(f"next:  fairwitness watch {followed.run_id}", err=True)
        raise
