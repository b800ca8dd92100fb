"""The entry point: prints help without loading a library, and leaves everything else to click."""

import os
import sys

from fairwitness.cli.command_list import help_text


def main() -> None:
    """Run the command line and exit with its code."""
    _hold_standard_streams()
    _drop_relative_places()
    arguments = sys.argv[1:]
    if arguments in ([], ["--help"], ["-h"]):
        _print(help_text())
    if arguments == ["--version"]:
        from fairwitness import __version__

        _print(f"fairwitness {__version__}\n")
    from fairwitness.cli.group import run

    sys.exit(run(arguments))


def _hold_standard_streams() -> None:
    """Open the null device for each standard stream that the caller closed.

    The next file that is opened, such as the ledger, would otherwise get the number of a standard stream, and whatever
    is printed would be written into it.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 -- open until the process ends
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115


def _drop_relative_places() -> None:
    """Forget the entries of PATH and PYTHONPATH that depend on the current folder.

    The current folder is often a repository that somebody else wrote: its `git` or `bwrap` would run in place of the
    real one, and its `click.py` would be imported.
    """
    relative = [entry for entry in _entries("PYTHONPATH") if not entry.startswith("/")]
    if relative:  # Python has made them absolute by now
        here = {os.path.abspath(entry) for entry in relative}  # noqa: PTH100 -- pathlib would double the time of --help
        sys.path[:] = [place for place in sys.path if place not in here]
    for name in ("PATH", "PYTHONPATH"):
        if name in os.environ:
            os.environ[name] = os.pathsep.join(entry for entry in _entries(name) if entry.startswith("/"))


def _entries(name: str) -> list[str]:
    value = os.environ.get(name, "")
    return value.split(os.pathsep) if value else []


def _print(text: str) -> None:
    """Print a text and exit; a reader that is gone or a full disk ends with a code instead of a traceback."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from fairwitness.cli.group import unheard

        sys.exit(unheard(error))
    sys.exit(0)
