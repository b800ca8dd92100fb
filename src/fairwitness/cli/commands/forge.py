"""`fairwitness forge`: turns a request into a plan of many tasks, and the plan into a branch."""

import sys
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="forge", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("request")
@click.option("--plan-only", is_flag=True, help="Stop when the plan is ready for review.")
@click.option("--approve", is_flag=True, help="Approve the plan without asking.")
@click.option("--agents", metavar="NAME", help="The agent to use for every role.")
@click.option("--cassette", type=click.Path(exists=True, path_type=Path), help="A folder of recordings to play.")
@click.option("--slug", help="A short name. Default: made from the request.")
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    request: str,
    plan_only: bool,
    approve: bool,
    agents: str | None,
    cassette: Path | None,
    slug: str | None,
    plain: bool,
    as_lines: bool,
    as_json: bool,
) -> int:
    """Plan REQUEST (a text, `@FILE`, or `-` for standard input) as a graph of tasks, and execute it.

    A captain writes the plan, you review it (or pass --approve), workers execute its tasks on their own branches, and
    refineries join them on one branch. Without a terminal the run waits for the review (exit code 4) until you run
    `fairwitness plan approve`. Exit code 0: everything is merged. 1: a task failed. 5: the budget is used up.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.begin_feature import RunRequest, request_text
    from fairwitness.app.runs.begin_forge import begin_forge
    from fairwitness.cli.foreground import confirm_estimate, drive_here
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    if plan_only and approve:
        raise click.UsageError("--plan-only stops before the approval; remove --approve")
    root = repository_root(Path.cwd())
    wanted = RunRequest(
        request=request_text(request, sys.stdin),
        slug=slug,
        is_autonomous=approve,
        agents=agents or ("cassette" if cassette else None),
        cassettes=cassette,
    )
    if not confirm_estimate(root, wanted.agents, "forge"):
        return ExitCode.BUDGET
    begun = begin_forge(root, wanted)
    for warning in begun.warnings:
        click.echo(warning, err=True)
    if begun.is_dirty and not as_json:
        click.echo("uncommitted changes are not part of this run and are not touched", err=True)
    code = drive_here(root, begun.run_id, asked, is_asking=not plan_only)
    if plan_only and code is ExitCode.WAITS_FOR_PERSON:
        return ExitCode.REACHED  # --plan-only: done
    return code
