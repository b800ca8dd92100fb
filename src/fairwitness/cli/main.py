"""The entry point: prints help without loading a library, and leaves everything else to click."""

import sys

from fairwitness.cli.command_list import help_text


def main() -> None:
    """Run the command line and exit with its code."""
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
