"""The last word on a feature run: the bundle in ten lines, or the question that it waits with."""

from typing import TYPE_CHECKING

from fairwitness.cli.run_words import say_lines

if TYPE_CHECKING:
    from fairwitness.app.watching import Watching


def say_end_of_feature(run: "Watching") -> None:
    """How it ended, or what it waits for."""
    from fairwitness.app.feature_end import end_lines

    say_lines(end_lines(run.root, run.run_id))
