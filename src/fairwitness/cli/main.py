"""The door: help without any library, everything else through click."""

import sys

from fairwitness.cli.command_list import help_text


def main() -> None:
    """Runs the command line and leaves with its exit code."""
    arguments = sys.argv[1:]
    if arguments in ([], ["--help"], ["-h"]):
        sys.stdout.write(help_text())
        return
    if arguments == ["--version"]:
        from fairwitness import __version__

        sys.stdout.write(f"fairwitness {__version__}\n")
        return
    from fairwitness.cli.group import run

    sys.exit(run(arguments))
