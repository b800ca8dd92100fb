"""`fairwitness feature`: from a request to a commit with its evidence."""

import sys
from pathlib import Path

import click


@click.command(name="feature", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("request")
@click.option("--interactive/--autonomous", default=None, help="Ask at the gates, or select the default there.")
@click.option("--agents", metavar="NAME", help="The agent that plays every role.")
@click.option("--cassette", type=click.Path(exists=True, path_type=Path), help="A folder of recordings to be played.")
@click.option("--slug", help="The feature's short name; without it made from the request.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    request: str,
    interactive: bool | None,
    agents: str | None,
    cassette: Path | None,
    slug: str | None,
    plain: bool,
    as_lines: bool,
    as_json: bool,
) -> int:
    """Build REQUEST (a text, or `@FILE`, or `-` for what is piped in) on a branch of its own, with evidence.

    Without a word about it a terminal is asked at the gates, and anything else waits: exit code 4, and `fairwitness answer`
    goes on. Exit code 0: committed. 1: the evidence did not suffice, nothing was committed. 5: its budget is used up.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.begin_feature import RunRequest, begin_feature
    from fairwitness.cli.foreground import drive_here
    from fairwitness.cli.screens.run import output_mode

    asked = output_mode(plain, as_lines, as_json)
    root = repository_root(Path.cwd())
    wanted = RunRequest(
        request=text_of(request),
        slug=slug,
        is_autonomous=interactive is False,
        agents=agents or ("cassette" if cassette else None),
        cassettes=cassette,
    )
    begun = begin_feature(root, wanted)
    if begun.order.snapshot is not None and not as_json:
        click.echo("what is not committed here is no part of this; a copy is kept in case", err=True)
    return drive_here(root, begun.run_id, asked)


def text_of(request: str) -> str:
    """A request as it was given: the words themselves, a file, or what is piped in."""
    if request == "-":
        return sys.stdin.read()
    if request.startswith("@"):
        path = Path(request[1:])
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{path} cannot be read: {error}") from None
    return request
