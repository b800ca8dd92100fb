"""The last word on a feature run: the bundle in ten lines, or the question that it waits with."""

from typing import TYPE_CHECKING

import click

from assay.cli.columns import cells, terminal_width, wrapped

if TYPE_CHECKING:
    from assay.app.watching import Watching


def say_end_of_feature(run: "Watching") -> None:
    """How it ended, or what it waits for."""
    from assay.app.feature_end import end_lines

    width = terminal_width()
    for text in end_lines(run.root, run.run_id):
        for line in [text] if cells(text) <= width else wrapped(text, width, rest=" " * 10):
            click.echo(line)
