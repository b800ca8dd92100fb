"""The click group: imports commands when they are called, and turns every error into a message and an exit code."""

import contextlib
import errno
import importlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import click

from fairwitness.app.text import ShownOutput
from fairwitness.cli.command_list import COMMANDS, help_text
from fairwitness.cli.exit_codes import ExitCode, exit_code_of
from fairwitness.errors import FairWitnessError, NotReady, UsageError

_MODULES = {command.name: command.module for command in COMMANDS}


class _Text(click.types.StringParamType):
    """A text that can be stored: the bytes on the command line were UTF-8."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text!r} is not UTF-8.", param, ctx)
        return text


class _Number(click.IntRange):
    """A whole number that a database can store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if abs(number) >= 2**63:
            self.fail("the number is too large.", param, ctx)
        return number


def command_named(name: str) -> click.Command:
    """Import and return a command of the list; its texts and numbers are limited to what can be stored."""
    command = importlib.import_module(_MODULES[name]).command
    assert isinstance(command, click.Command)
    _limit(command)
    return command


def _limit(command: click.Command) -> None:
    for parameter in command.params:
        kind = parameter.type
        if kind is click.STRING:
            parameter.type = _Text()
        elif isinstance(kind, click.IntRange):
            parameter.type = _Number(kind.min, kind.max)
        elif kind is click.INT:
            parameter.type = _Number()
            parameter.type.name = kind.name
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _limit(inner)


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
    with contextlib.redirect_stdout(ShownOutput(sys.stdout)), contextlib.redirect_stderr(ShownOutput(sys.stderr)):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    code = _called(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        return code or unheard(error)
    return code


def _called(arguments: list[str]) -> int:
    try:
        _refuse_at_once(arguments)
        return int(_fairwitness.main(arguments, prog_name="fairwitness", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        _say(error.format_message(), _usage_hint(error))
        return ExitCode.USAGE
    except click.Abort:
        _say("interrupted", "")
        return ExitCode.INTERRUPTED
    except FairWitnessError as error:
        _say(error.what, error.next_step)
        return exit_code_of(error)
    except (BrokenPipeError, SystemExit):  # click turns the first into the second
        return unheard(BrokenPipeError())
    except OSError as error:
        if _is_terminal_gone(error):
            return unheard(error)
        if os.environ.get("FAIRWITNESS_DEBUG"):
            raise
        return _refused_by_machine(error, arguments)
    except MemoryError:
        _say("there is not enough memory", "close other programs, or give this one more memory")
        return ExitCode.NOT_READY
    except Exception as error:  # unexpected: print a message instead of a traceback
        if os.environ.get("FAIRWITNESS_DEBUG"):
            raise
        _say(
            f"internal error in Fair Witness: {type(error).__name__}: {error}",
            "this is a bug: run again with FAIRWITNESS_DEBUG=1 and report the traceback",
        )
        return ExitCode.BUG


def _is_terminal_gone(error: Exception) -> bool:
    """Return whether an error comes from printing to a terminal that was closed."""
    if not isinstance(error, OSError) or error.errno != errno.EIO:
        return False
    return stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode) and not sys.stdout.isatty()


def _refuse_at_once(arguments: list[str]) -> None:
    """Refuse what no command can use."""
    for number, argument in enumerate(arguments, start=1):
        if "\0" in argument:
            raise UsageError(f"argument {number} contains a NUL character", next_step="remove it")
    try:
        Path.cwd()
    except OSError as error:
        raise NotReady(
            f"the current folder cannot be used: {error.strerror}", next_step="cd to a folder that exists"
        ) from None


def _refused_by_machine(error: OSError, arguments: list[str]) -> int:
    """Say what the operating system refused; a path that was given on the command line is a mistake of the person."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    reason = error.strerror or type(error).__name__
    words = {word for argument in arguments for word in (argument, argument.partition("=")[2]) if word}
    if path and any(path == word or path.endswith(f"/{word}") for word in words):
        _say(f"{path} cannot be used: {reason}", "name another path")
        return ExitCode.USAGE
    _say(
        f"the operating system refused{f' {path}' if path else ''}: {reason}",
        "check the disk, the permissions and the path; FAIRWITNESS_DEBUG=1 shows where it happened",
    )
    return ExitCode.NOT_READY


def unheard(error: OSError) -> int:
    """Return the exit code for output that could not be written; incomplete output must not look like success."""
    if _is_terminal_gone(error):
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return ExitCode.HUNG_UP
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes at its end
    if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as `head` does: the code after SIGPIPE
        return ExitCode.UNHEARD
    _say(f"the output cannot be written: {error.strerror}", "make room, or write it to another place")
    return ExitCode.NOT_READY


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context is not None else "fairwitness --help"


def _say(what: str, next_step: str) -> None:
    """Print one sentence and the next step; words of others in them are shown and never interpreted."""
    from fairwitness.app.text import safe_sentence

    sentence = what[:1].lower() + what[1:] if not what[:2].isupper() else what
    try:
        click.echo(f"fairwitness: {safe_sentence(sentence)}", err=True)
        if next_step:
            click.echo(f"next:  {safe_sentence(next_step)}", err=True)
    except OSError:  # nothing can be said any more; the exit code remains
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
