"""`fairwitness forge`: a request becomes a plan of many tasks, and the plan a branch."""

from pathlib import Path

import click

from fairwitness.cli.commands.feature import text_of
from fairwitness.cli.exit_codes import ExitCode


@click.command(name="forge", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("request")
@click.option("--plan-only", is_flag=True, help="Stop when there is a plan to look at.")
@click.option("--approve", is_flag=True, help="Approve the plan without asking anybody.")
@click.option("--agents", metavar="NAME", help="The agent that plays every role.")
@click.option("--cassette", type=click.Path(exists=True, path_type=Path), help="A folder of recordings to be played.")
@click.option("--slug", help="A short name; without it made from the request.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
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
    """Plan REQUEST (a text, or `@FILE`, or `-` for what is piped in) as a graph of tasks, and carry it out.

    A captain plans, you review the plan (or --approve it beforehand), workers carry out its tasks on branches of their
    own, and refineries join them on one branch. Without a terminal it waits for the review: exit code 4, then `fairwitness
    plan approve`. Exit code 0: everything is merged. 1: something could not be done. 5: its budget is used up.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.begin_feature import RunRequest
    from fairwitness.app.runs.begin_forge import begin_forge
    from fairwitness.cli.foreground import drive_here
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    if plan_only and approve:
        raise click.UsageError("--plan-only stops before the plan is approved; leave out --approve")
    root = repository_root(Path.cwd())
    wanted = RunRequest(
        request=text_of(request),
        slug=slug,
        is_autonomous=approve,
        agents=agents or ("cassette" if cassette else None),
        cassettes=cassette,
    )
    begun = begin_forge(root, wanted)
    if begun.is_dirty and not as_json:
        click.echo("what is not committed here is no part of this, and stays as it is", err=True)
    code = drive_here(root, begun.run_id, asked, is_asking=not plan_only)
    if plan_only and code is ExitCode.WAITS_FOR_PERSON:
        return ExitCode.REACHED  # a plan was all that was wanted
    return code
