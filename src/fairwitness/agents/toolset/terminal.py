"""Runs commands of an agent in the sandbox, without a shell, and summarizes their output."""

import os
import signal
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from fairwitness.agents.toolset.files import split_lines, window
from fairwitness.agents.toolset.model import CommandEnvironment, Surroundings, ToolCancelled, ToolFailed
from fairwitness.agents.toolset.plain import head_and_tail, one_line, spelled, without_codes
from fairwitness.contracts.common.sandbox import Command, Confined, Confinement, End, SandboxLimits, Violation
from fairwitness.errors import UnsafePath, UsageError
from fairwitness.kit.redaction import redact_forms
from fairwitness.kit.safe_open import HeldFolder
from fairwitness.sandbox.checked_command import PATH
from fairwitness.sandbox.runner import Finished, Runner

_QUIET: Mapping[str, str] = {"TERM": "dumb", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
"""No colours, and no bytecode files; the environment of the dispatch may override it."""
_OUT_ROOM, _ERR_ROOM = 14_000, 7_000
_SHOWN_VIOLATIONS = 10


class Terminal:
    """Runs commands and keeps the output of the last one."""

    def __init__(self, worktree: Path, runner: Runner, surroundings: Surroundings, *, writable: bool) -> None:
        self._worktree, self._runner, self._find_surroundings = worktree, runner, surroundings
        self._held = HeldFolder(worktree)
        self._writable = writable
        self._last: list[str] | None = None

    def run(self, argv: tuple[str, ...], cancel: threading.Event) -> str:
        """Run a command that the policy allowed and return its result, also if the command failed."""
        self._require_worktree()
        program = self._program(argv[0])
        try:
            finished = self._runner.run(self._command(program, argv), cancel=cancel)
        except UsageError as error:
            raise ToolFailed(f"it was not run: {error.what}") from None
        self._require_worktree()
        result = finished.result
        if result.end is End.CANCELLED:
            raise ToolCancelled
        if result.end is End.SANDBOX_ERROR:
            raise ToolFailed(f"it has no result: the sandbox was lost: {one_line(result.sandbox_error or '')}")
        text = self._told(finished)
        if result.end in (End.OK, End.FAILED):
            return text
        raise ToolFailed(text, violations=result.violations)

    def _require_worktree(self) -> None:
        """Raise `ToolFailed` if the worktree was replaced: a command would run in another folder."""
        try:
            self._held.check()
        except UnsafePath as error:
            raise ToolFailed(error.what) from None

    def keep(self, text: str) -> str:
        """Keep and return the output of a command that was answered elsewhere."""
        plain = redact_forms(without_codes(text))
        self._last = split_lines(plain)
        return head_and_tail(spelled(plain), _OUT_ROOM) or "no output"

    def output(self, start: int, end: int | None) -> str:
        """Return lines of the last command's output."""
        if self._last is None:
            raise ToolFailed("no command was run yet")
        if not self._last:
            return "no output"
        shown, first, last = window(self._last, start, end, "the output")
        return "\n".join([f"lines {first} to {last} of {len(self._last)}", *shown])

    @cached_property
    def _surroundings(self) -> CommandEnvironment:
        return self._find_surroundings()

    def _command(self, program: str, argv: tuple[str, ...]) -> Command:
        around = self._surroundings
        limits = around.limits or SandboxLimits(wall_s=around.wall_s)
        return Command(
            argv=(program, *argv[1:]),
            confinement=Confinement(
                worktree=str(self._worktree),
                writable=self._writable,
                read=around.read,
                write=around.write,
                network=around.network,
                env={**_QUIET, **around.env},
                min_tier=around.min_tier,
            ),
            limits=limits.model_copy(update={"wall_s": min(limits.wall_s, around.wall_s)}),
            purpose="a command of an agent",
        )

    @property
    def _path(self) -> str:
        return self._surroundings.env.get("PATH", PATH)

    def _program(self, name: str) -> str:
        """Return the absolute path of a program; a bare name is looked up on PATH, never in the worktree."""
        if "/" in name:
            path = Path(self._worktree, name)
            found = str(path) if _is_program(path) else None
        else:
            places = (Path(folder, name) for folder in self._path.split(os.pathsep) if folder.startswith("/"))
            found = next((str(place) for place in places if _is_program(place)), None)
        if found is None:
            raise ToolFailed(f"there is no program {one_line(name)} here; it is looked for in {self._path}")
        return found

    def _told(self, finished: Finished) -> str:
        result = finished.result
        out, err = _text(finished.stdout), _text(finished.stderr)
        self._last = [*split_lines(out), *(["stderr:", *split_lines(err)] if err.strip() else [])] if out + err else []
        parts = [_ending(result), *_violations(result.violations)]
        for name, text, space in (("stdout", out, _OUT_ROOM), ("stderr", err, _ERR_ROOM)):
            if text.strip():
                parts += [f"{name}:", head_and_tail(spelled(text), space).rstrip("\n")]
        if not (out + err).strip():
            parts[0] += ", no output"
        return "\n".join(parts)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _text(kept: bytes) -> str:
    return redact_forms(without_codes(kept.decode("utf-8", "replace")))  # without codes, more is recognized


def _ending(result: Confined) -> str:
    if result.limit_hit == "wall":
        return f"stopped: it ran longer than the {result.limits.wall_s:g} s it may"
    if result.limit_hit is not None:
        return f"stopped: it went beyond its limit of {result.limit_hit}"
    if result.signal is not None:
        return f"ended by signal {result.signal}{_name_of(result.signal)}"
    return f"exit code {result.exit_code}" if result.exit_code is not None else "it did not come to an end"


def _name_of(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def _violations(violations: tuple[Violation, ...]) -> list[str]:
    lines = [
        f"the sandbox {'stopped' if each.blocked else 'saw'} {each.kind}: {one_line(each.path)} ({each.call})"
        for each in violations[:_SHOWN_VIOLATIONS]
    ]
    more = len(violations) - _SHOWN_VIOLATIONS
    return [*lines, f"and {more} more"] if more > 0 else lines
