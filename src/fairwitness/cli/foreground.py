"""A run driven in this process until it ends, with prompts for its questions; signals and exit codes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.cli.screens.run import OutputMode


EXIT_CODES = {
    "completed": ExitCode.REACHED,
    "failed": ExitCode.GATE_SHUT,
    "budget": ExitCode.BUDGET,
    "person": ExitCode.WAITS_FOR_PERSON,
}
SIGNALS = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HUNG_UP,
}


class StopSignal(Exception):
    """SIGINT, SIGTERM or SIGHUP was received."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = SIGNALS[signal.Signals(number)]


def exit_code_of_end(end: str) -> ExitCode:
    """Return the exit code for the end of a run."""
    return EXIT_CODES[end]


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `StopSignal` on Ctrl-C, SIGTERM and SIGHUP inside the block, so that the screen is restored."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise StopSignal(number)

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # `nohup` ignores one
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def confirm_estimate(root: Path, agents: str | None, workflow: str, *, each: str = "", light: bool = False) -> bool:
    """Print what a run will probably use; return False if a person at the terminal does not want that much."""
    from fairwitness.app.runs.estimate import estimate_run
    from fairwitness.cli.screens.prompts import is_interactive

    estimate = estimate_run(root, agents, workflow, light=light)
    if estimate is None:
        return True
    click.echo(f"estimate{each}: {estimate.text}", err=True)
    if not estimate.is_large or not is_interactive():
        return True
    if click.confirm("It may be more than [budget] allows without a question. Begin?", default=False, err=True):
        return True
    click.echo("nothing was begun", err=True)
    return False


HINT = "Ctrl-C stops the run; everything is saved, and `fairwitness resume` continues it"


def drive_here(
    root: Path, run_id: str, asked: "OutputMode", *, is_asking: bool = True, shown: int | None = None
) -> int:
    """Drive a run in this process until it ends, or until a question if prompting is off or there is no terminal.

    Events up to number `shown` are not shown again.
    """
    from fairwitness.app.runs.drive import drive
    from fairwitness.app.views.followed_run import follow_run
    from fairwitness.cli.screens.choice import screen_of
    from fairwitness.cli.screens.prompts import ask_in_terminal, is_interactive, offer_proposals
    from fairwitness.cli.screens.run import print_next, show_end

    is_talking = not (asked.as_json or asked.as_lines) and is_interactive()
    after = asked.after if shown is None else shown
    while True:
        with follow_run(root, run_id, after=after) as followed:
            with screen_of(followed, asked, hint=HINT, is_ours=True, shown=shown) as screen:
                ended = drive(root, followed, screen.show)
            if isinstance(ended, int):
                click.echo("stopped; everything so far is saved", err=True)
                print_next(root, f"fairwitness resume {run_id}")
                return SIGNALS[signal.Signals(ended)]
            code, shown, is_feature = exit_code_of_end(ended), followed.view.seq, followed.view.workflow == "feature"
            if code is not ExitCode.WAITS_FOR_PERSON or not is_talking or not is_asking:
                if is_talking and is_feature:
                    offer_proposals(root, run_id)
                show_end(followed, asked)
                return code
        if not ask_in_terminal(root, run_id):
            return code  # paused without a question
        after = None if is_feature else shown  # the screen of a feature needs every event
