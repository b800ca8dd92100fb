"""`fairwitness watch`: follows a run until it ends."""

from pathlib import Path

import click

HINT = "Ctrl-C stops watching; the run goes on"


@click.command(name="watch", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", required=False)
@click.option("--after", type=click.IntRange(min=0), help="Start after this event. Default: with the last events.")
@click.option("--plain", is_flag=True, help="Print plain lines even in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a JSON object on its own line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(run: str | None, after: int | None, plain: bool, as_lines: bool, as_json: bool) -> int:
    """Follow RUN (an id, or `last`; default: the only unfinished run) until it ends.

    Exit code 0: it completed. 1: it failed. 4: it waits for you. 5: its budget is used up. Watching changes nothing.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.followed_run import follow, follow_run
    from fairwitness.cli.foreground import StopSignal, exit_code_of_end, stoppable
    from fairwitness.cli.screens.choice import screen_of
    from fairwitness.cli.screens.run import output_mode, show_end

    asked = output_mode(plain, as_lines, as_json)
    with follow_run(repository_root(Path.cwd()), run, after=asked.after if after is None else after) as followed:
        try:
            with stoppable(), screen_of(followed, asked, hint=HINT) as shown:
                end = follow(followed, shown.show)
        except StopSignal as stopped:
            click.echo(f"next:  fairwitness watch {followed.run_id}", err=True)
            return stopped.exit_code
        show_end(followed, asked)
    return exit_code_of_end(end)
