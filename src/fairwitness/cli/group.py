"""The click group: imports commands when they are called, and turns every error into a message and an exit code."""

import importlib
import os
import sys
from typing import Any

import click

from fairwitness.cli.command_list import COMMANDS, help_text
from fairwitness.cli.exit_codes import ExitCode, exit_code_of
from fairwitness.errors import FairWitnessError

_MODULES = {command.name: command.module for command in COMMANDS}


def command_named(name: str) -> click.Command:
    """Import and return a command of the list."""
    command = importlib.import_module(_MODULES[name]).command
    assert isinstance(command, click.Command)
    return command


class _Lazy(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_named(cmd_name) if cmd_name in _MODULES else None

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip("\n")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in _MODULES and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], _MODULES, n=1)
            hint = f" Did you mean `fairwitness {near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Lazy, name="fairwitness", context_settings={"help_option_names": ["-h", "--help"]})
def _fairwitness() -> None:
    """The help text of the command list replaces this one."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; no exception escapes."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character prints its escape instead of failing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # always text streams here
    try:
        return int(_fairwitness.main(arguments, prog_name="fairwitness", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        _say(error.format_message(), _usage_hint(error))
        return ExitCode.USAGE
    except click.Abort:
        _say("interrupted", "")
        return ExitCode.INTERRUPTED
    except FairWitnessError as error:
        _say(error.what, error.next_step)
        return exit_code_of(error)
    except (BrokenPipeError, SystemExit):
        # The reader closed the pipe (`| head`; click turns it into SystemExit). Incomplete output must not look like
        # success: return the code of a process killed by SIGPIPE.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.UNHEARD
    except Exception as error:  # unexpected: print a message instead of a traceback
        if os.environ.get("FAIRWITNESS_DEBUG"):
            raise
        _say(
            f"internal error in Fair Witness: {type(error).__name__}: {error}",
            "this is a bug: run again with FAIRWITNESS_DEBUG=1 and report the traceback",
        )
        return ExitCode.BUG


def _usage_hint(error: click.UsageError) -> str:
    return f"{error.ctx.command_path} --help" if error.ctx is not None else "fairwitness --help"


def _say(what: str, next_step: str) -> None:
    sentence = what[:1].lower() + what[1:] if not what[:2].isupper() else what
    click.echo(f"fairwitness: {sentence}", err=True)
    if next_step:
        click.echo(f"next:  {next_step}", err=True)
