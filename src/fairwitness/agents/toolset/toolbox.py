"""The tools of one dispatch: only those of its role are offered, every call is checked, and its result is a text.

Nothing that a model does raises. Calls on files run one at a time, a few commands run concurrently, and tools that are
answered elsewhere (`sources`) do not wait. A cancelled call returns only after its command has ended.
"""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fairwitness.agents.toolset import arguments as given
from fairwitness.agents.toolset.files import create_file, list_dir, multi_replace, read_file, replace_string
from fairwitness.agents.toolset.model import (
    CommandEnvironment,
    GitReader,
    Surroundings,
    ToolCancelled,
    ToolFailed,
    ToolResult,
    ToolSource,
    ToolSpec,
)
from fairwitness.agents.toolset.offers import is_usable, offer
from fairwitness.agents.toolset.plain import PathVeil, one_line
from fairwitness.agents.toolset.search import file_search, grep_search
from fairwitness.agents.toolset.terminal import Terminal
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.contracts.agents.dispatch import Denial, Layer
from fairwitness.contracts.common.tools import POLICIES, Allowed, Role, Scope, Tool, ToolCall, ToolRefusal
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.rules.tool_policy import may_call, path_problem
from fairwitness.sandbox.runner import Runner

OWN_TOOLS = frozenset(
    {
        Tool.READ_FILE,
        Tool.LIST_DIR,
        Tool.GREP_SEARCH,
        Tool.FILE_SEARCH,
        Tool.CREATE_FILE,
        Tool.REPLACE_STRING,
        Tool.MULTI_REPLACE,
        Tool.RUN_IN_TERMINAL,
        Tool.TERMINAL_OUTPUT,
    }
)
"""Tools that are implemented here; any other is answered by a source or not offered."""
COMMANDS_AT_ONCE = 4
_NAMES = frozenset(tool.value for tool in Tool)
_TARGET = 2_000
_SHOWN_VIOLATIONS = 10
_NO_SOURCES: Mapping[Tool, ToolSource] = {}


class Toolbox:
    """The tools of one dispatch."""

    def __init__(
        self,
        *,
        role: Role,
        scope: Scope,
        worktree: Path,
        runner: Runner,
        surroundings: Surroundings = CommandEnvironment,
        sources: Mapping[Tool, ToolSource] = _NO_SOURCES,
        git: GitReader | None = None,
        denied: Callable[[Denial], None] | None = None,
    ) -> None:
        """Set the tools of a dispatch. `git` answers git's reading commands outside the sandbox, where the repository
        is; without it they run inside like any other. `denied` is called with every denial."""
        if not worktree.is_absolute() or worktree == Path("/"):
            raise UsageError(f"{worktree} is no place for a worktree", next_step="name a folder from the root on")
        if doubled := OWN_TOOLS & set(sources):
            raise UsageError(f"{min(doubled)} is answered by the toolset itself", next_step="leave out its source")
        self.role, self.scope, self.worktree = role, scope, worktree
        self._sources, self._git, self._denied = dict(sources), git, denied
        self.tree, self._veil = WorktreeFiles(worktree), PathVeil(worktree)
        """The files, through the folder as it was opened here; a second opening could meet another folder."""
        self.surroundings = surroundings
        self._terminal = Terminal(worktree, runner, surroundings, writable=POLICIES[role].source)
        self._denials: list[Denial] = []
        self._ran: list[str] = []
        self._files, self._commands = asyncio.Semaphore(1), asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._pool = ThreadPoolExecutor(max_workers=1 + COMMANDS_AT_ONCE, thread_name_prefix="fairwitness-tools")
        self._working: dict[asyncio.Future[str], threading.Event] = {}
        self._is_closed = False

    @property
    def denials(self) -> tuple[Denial, ...]:
        """All denials so far."""
        return tuple(self._denials)

    @property
    def ran(self) -> tuple[str, ...]:
        """The commands and the checks (as `run_check <name> <path>`) that were allowed to run so far."""
        return tuple(self._ran)

    def offered(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the role that can be answered and are of use here; a model is shown no others."""
        usable = (tool for tool in Tool if self._has(tool) and is_usable(tool, self.role, self.scope))
        return tuple(offer(tool, self.role, self.scope) for tool in usable)

    def judge(self, call: ToolCall, *, target: str = "") -> Allowed | ToolRefusal:
        """Return whether the role may make a call, and record a denial; `target` replaces the one of the call."""
        answer = may_call(self.role, call, self.scope)
        if isinstance(answer, ToolRefusal):
            self._deny(Layer.DECISION, call.tool, target or _target(call), answer.reason)
        return answer

    def deny(self, denial: Denial) -> None:
        """Record a denial from elsewhere: by the sandbox, or for an unclear call.

        Its texts may come from an agent: they are shortened, made visible and stripped of the worktree's path.
        """
        self._deny(denial.layer, denial.tool, denial.target, denial.reason)

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        """Make a call; its result says what is wrong with it, if anything."""
        try:
            return ToolResult(True, self._veil.over(await self._call(tool, args)))
        except ToolFailed as why:
            for violation in why.violations[:_SHOWN_VIOLATIONS]:
                reason = f"{violation.kind}: {violation.call}{'' if violation.blocked else ', which nothing stopped'}"
                self._deny(Layer.SANDBOX, tool, violation.path, reason)
            return ToolResult(False, self._veil.over(str(why)))

    async def close(self) -> None:
        """End running calls; later calls fail."""
        self._is_closed = True
        for stop in self._working.values():
            stop.set()
        if self._working:
            await asyncio.wait(set(self._working))
        self._pool.shutdown(wait=False)
        self.tree.close()

    def _has(self, tool: Tool) -> bool:
        return tool in POLICIES[self.role].tools and (tool in OWN_TOOLS or tool in self._sources)

    def _deny(self, layer: Layer, tool: str, target: str, reason: str) -> None:
        denial = Denial(
            layer=layer,
            tool=one_line(tool, 200).strip() or "(nothing)",
            target=self._veil.over(one_line(target, _TARGET)),
            reason=self._veil.over(one_line(reason, _TARGET)),
        )
        self._denials.append(denial)
        if self._denied is not None:
            self._denied(denial)

    def _require(self, call: ToolCall, target: str = "") -> None:
        answer = self.judge(call, target=target)
        if isinstance(answer, ToolRefusal):
            raise ToolFailed(f"refused: {one_line(answer.reason, _TARGET)}")

    async def _call(self, name: str, args: Mapping[str, Any]) -> str:
        if self._is_closed:
            raise ToolFailed("the dispatch is over")
        if name not in _NAMES or Tool(name) not in POLICIES[self.role].tools:
            self._require(ToolCall(tool=name))
        tool = Tool(name)
        if not self._has(tool):
            raise ToolFailed(f"{name} is not available here")
        arguments = given.read_arguments(tool, args, self._veil.relative)
        self._require(given.as_judged(tool, arguments))
        if isinstance(arguments, given.RunInTerminal):
            self._ran.append(arguments.command)
        if isinstance(arguments, given.RunCheck):
            self._ran.append(" ".join(filter(None, (Tool.RUN_CHECK.value, arguments.check, arguments.path))))
        if tool in self._sources:
            return await self._from_source(tool, arguments)
        if isinstance(arguments, given.RunInTerminal) and self._git is not None and arguments.argv[0] == "git":
            return await self._from_git(self._git, arguments.argv)
        return await self._in_turn(arguments)

    async def _from_source(self, tool: Tool, arguments: given.Arguments) -> str:
        if isinstance(arguments, given.ConflictResolution) and (problem := path_problem(arguments.path)) is not None:
            reason = f"{one_line(arguments.path)}: {problem}"
            self._deny(Layer.DECISION, tool, arguments.path, reason)
            raise ToolFailed(f"refused: {reason}")
        values = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        return await _answered(lambda: self._sources[tool](**values))

    async def _from_git(self, git: GitReader, argv: tuple[str, ...]) -> str:
        return self._terminal.keep(await _answered(lambda: git(argv)))

    async def _in_turn(self, arguments: given.Arguments) -> str:
        async with self._commands if isinstance(arguments, given.RunInTerminal) else self._files:
            if self._is_closed:
                raise ToolFailed("the dispatch is over")
            stop = threading.Event()
            working = asyncio.get_running_loop().run_in_executor(self._pool, self._work, arguments, stop)
            self._working[working] = stop
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                stop.set()
                while not working.done():  # its command has ended when it returns
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.wait({working})
                working.exception()  # mark it as retrieved
                raise
            except ToolCancelled:
                raise ToolFailed("it was stopped") from None
            finally:
                del self._working[working]

    def _work(self, arguments: given.Arguments, cancel: threading.Event) -> str:
        match arguments:
            case given.ReadFile():
                return read_file(self.tree, arguments)
            case given.ListDir():
                return list_dir(self.tree, arguments)
            case given.GrepSearch():
                return grep_search(self.tree, arguments, cancel)
            case given.FileSearch():
                return file_search(self.tree, arguments, cancel)
            case given.CreateFile():
                return create_file(self.tree, arguments)
            case given.ReplaceString():
                return replace_string(self.tree, arguments)
            case given.MultiReplace():
                return multi_replace(self.tree, arguments.replacements)
            case given.RunInTerminal():
                return self._terminal.run(arguments.argv, cancel)
            case given.TerminalOutput():
                return self._terminal.output(arguments.start_line, arguments.end_line)
            case _:
                raise AssertionError(f"{type(arguments).__name__} has no tool of ours")


def _target(call: ToolCall) -> str:
    """Return the paths, command, query or agent of a call."""
    return " ".join([*call.paths, *(call.argv or ()), *filter(None, (call.sql, call.agent))])


async def _answered(ask: Callable[[], Any]) -> str:
    """Return the text of a source; its errors become `ToolFailed`."""
    try:
        answer = ask()
        return str(await answer if inspect.isawaitable(answer) else answer)
    except FairWitnessError as error:
        raise ToolFailed(error.what) from None
    except (ValueError, LookupError, OSError) as error:
        raise ToolFailed(f"it failed: {type(error).__name__}: {one_line(str(error))}") from None
