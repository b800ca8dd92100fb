"""`fairwitness feature`: turns a request into a commit with its evidence."""

import sys
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="feature", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("request")
@click.option("--interactive/--autonomous", default=None, help="Ask at approval gates, or select the default.")
@click.option("--agents", metavar="NAME", help="The agent to use for every role.")
@click.option("--cassette", type=click.Path(exists=True, path_type=Path), help="A folder of recordings to play.")
@click.option("--slug", help="The feature's short name. Default: made from the request.")
@click.option("--light", is_flag=True, help="Skip research, design and two reviewers, unless a file is 🔴.")
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    request: str,
    interactive: bool | None,
    agents: str | None,
    cassette: Path | None,
    slug: str | None,
    light: bool,
    plain: bool,
    as_lines: bool,
    as_json: bool,
) -> int:
    """Build REQUEST (a text, `@FILE`, or `-` for standard input) on its own branch, with evidence.

    In a terminal you are prompted at each approval gate. Otherwise the run waits (exit code 4) until you run
    `fairwitness answer`. With --light a small change takes five calls of agents; its checks are the same, and a plan
    with a 🔴 file continues on the full path. Exit code 0: committed. 1: the evidence is insufficient and nothing was
    committed. 5: the budget is used up.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.begin_feature import RunRequest, begin_feature, request_text
    from fairwitness.cli.foreground import confirm_estimate, drive_here
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    root = repository_root(Path.cwd())
    wanted = RunRequest(
        request=request_text(request, sys.stdin),
        slug=slug,
        is_autonomous=interactive is False,
        agents=agents or ("cassette" if cassette else None),
        cassettes=cassette,
        is_light=light,
    )
    if not confirm_estimate(root, wanted.agents, "feature", light=light):
        return ExitCode.BUDGET
    begun = begin_feature(root, wanted)
    for warning in begun.warnings:
        click.echo(warning, err=True)
    if begun.order.snapshot is not None and not as_json:
        click.echo("uncommitted changes are not part of this run; a copy of them is kept", err=True)
    return drive_here(root, begun.run_id, asked)
