"""A run carried in this process until it ends, with its questions put to whoever is here."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.stopping import SIGNALS, exit_code_of_end

if TYPE_CHECKING:
    from fairwitness.cli.run_screen import How

HINT = "Ctrl-C stops it here; everything is saved, and `fairwitness resume` goes on"


def carry_here(root: Path, run_id: str, asked: "How", *, is_asking: bool = True) -> int:
    """Carries a run here until it ends; without `is_asking`, or with nobody here, a question ends it, too."""
    from fairwitness.app.carrying import carry
    from fairwitness.app.watching import watching
    from fairwitness.cli.asking import ask_here, is_somebody_here, offer_proposals
    from fairwitness.cli.run_screen import show_end
    from fairwitness.cli.screens import screen_of

    is_talking = not (asked.as_json or asked.as_lines) and is_somebody_here()
    after = asked.after
    while True:
        with watching(root, run_id, after=after) as followed:
            with screen_of(followed, asked, hint=HINT, is_ours=True) as shown:
                ended = carry(root, followed, shown.show)
            if isinstance(ended, int):
                click.echo("stopped; everything so far is saved", err=True)
                click.echo(f"next:  fairwitness resume {run_id}", err=True)
                return SIGNALS[signal.Signals(ended)]
            code = exit_code_of_end(ended)
            if code is not ExitCode.WAITS_FOR_PERSON or not is_talking or not is_asking:
                if is_talking and followed.look.workflow == "feature":
                    offer_proposals(root, run_id)
                show_end(followed, asked, is_ours=True)
                return code
            is_feature, seen = followed.look.workflow == "feature", followed.look.seq
        if not ask_here(root, run_id):
            return code  # it was paused, and asks nothing
        after = None if is_feature else seen  # what was shown is not shown again
