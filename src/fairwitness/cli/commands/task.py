"""`fairwitness task`: shows one task of a run and its attempts."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="task", context_settings=_SETTINGS)
def command() -> None:
    """The tasks of a run."""


@command.command(name="show")
@click.argument("task")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(task: str, run: str, as_json: bool) -> int:
    """Show TASK of RUN (default: the latest run with this task): its document, attempts and walkthroughs."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.text import safe_lines
    from fairwitness.app.views.task import read_task, run_with_task

    root = repository_root(Path.cwd())
    view = read_task(root, run_with_task(root, run, task), task)
    if as_json:
        click.echo(json.dumps(view.plain()))
        return ExitCode.REACHED
    width = terminal_width()

    def say(text: str, first: str = "", rest: str = "") -> None:
        for safe in safe_lines(text):
            for line in wrapped(safe, width, first=first, rest=rest):
                click.echo(line)

    most = f" of {view.max_attempts}" if view.max_attempts is not None else ""
    click.secho(f"{view.id}  {view.type}  {view.state}  attempt {view.attempt}{most}", bold=True)
    if view.dependencies:
        say(f"after {', '.join(view.dependencies)}")
    for attempt in view.attempts:
        said = f"says {attempt.says}, confidence {attempt.confidence:g}" if attempt.confidence is not None else ""
        say("  ".join(filter(None, (f"attempt {attempt.number}", attempt.state, said))))
        if attempt.branch:
            say(f"branch {attempt.branch}", "  ", "    ")
        for label, texts in (
            ("because", [attempt.reason] if attempt.reason else []),
            ("DISPUTED", attempt.disputed),
            ("helper", attempt.helpers),
            ("tells", [attempt.walkthrough] if attempt.walkthrough else []),
        ):
            for text in texts:
                say(f"{label}: {text}", "  ", "    ")
    for name, how in view.subtasks.items():
        say(f"{name}  {how}", "  ", "    ")
    if view.document:
        click.echo("the task document, as approved:")
    for line in safe_lines(view.document):
        say(line, "| ", "| ")
    click.echo(f"next:  fairwitness gate explain {view.run_id} verify:{view.id}", err=True)
    return ExitCode.REACHED
