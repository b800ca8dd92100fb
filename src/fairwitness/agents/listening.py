"""What is heard of one session, turn by turn: words, calls through our toolbox, and what was done beside it."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairwitness.agents.base import Job, Turn
from fairwitness.agents.cassettes import Cassette, packed, prompt_digest, schema_digest, seen
from fairwitness.agents.toolset.toolbox import ToolResult
from fairwitness.agents.watching import Changed, Watch
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import Happening, Kind, Stop
from fairwitness.contracts.common.tools import Allowed, Tool, ToolCall
from fairwitness.errors import UsageError
from fairwitness.rules.tool_policy import may_call

_NAMED = 5


_Call = tuple[str, Mapping[str, Any], bool | None]
"""A tool, its arguments, and whether it did what it was asked for; None where nobody looked."""


@dataclass(slots=True)
class Heard:
    """A turn, as far as it was heard."""

    text: str = ""
    calls: list[_Call] = field(default_factory=list)
    results: list[tuple[bool, str]] | None = field(default_factory=list)
    """What the model was shown of its calls; None if nobody knows."""
    tokens_in: int = 0
    tokens_out: int = 0
    ms: int = 0
    submitted: dict[str, Any] | None = None


class Notes:
    """What is heard of one session."""

    def __init__(self, job: Job, watch: Watch | None) -> None:
        self._job, self._watch = job, watch
        self._turns: list[Heard] = []
        self._since = 0.0
        self._asked: list[str] = []
        self._ends: list[Turn] = []
        self._first = 0
        """The first turn of the ask that is under way."""

    def tell(self, happening: Happening) -> None:
        """Words and counts; calls are heard at the toolbox."""
        if happening.kind in (Kind.TEXT, Kind.THOUGHT, Kind.USAGE):
            turn = self._speaking()
            turn.ms = self._waited()
            if happening.kind is Kind.TEXT:
                turn.text += happening.text
            if happening.kind is Kind.USAGE and happening.args is not None:
                turn.tokens_in += _count(happening.args.get("tokens_in"))
                turn.tokens_out += _count(happening.args.get("tokens_out"))
        self._job.tell(happening)

    def asked(self, prompt: str) -> None:
        """A prompt begins."""
        self._asked.append(prompt)
        self._since, self._first = time.monotonic(), len(self._turns)
        self._turns.append(Heard())

    def answered(self, end: Turn) -> None:
        """A prompt has come to its end."""
        last = self._turns[-1]
        self._act_alone(last)
        if last.calls and end.submitted is None:
            last = Heard()  # what ends an ask is a turn without calls
            self._turns.append(last)
        if not last.calls:
            last.text = end.text
        last.submitted = end.submitted
        self._count_up(end)
        self._ends.append(end)

    def calling(self) -> None:
        """Before a call of ours: what has changed by now was not its doing."""
        turn = self._turns[-1]
        turn.ms = turn.ms or self._waited()
        self._act_alone(turn)

    def called(self, tool: str, args: Mapping[str, Any], result: ToolResult) -> None:
        """After a call of ours."""
        turn = self._turns[-1]
        turn.calls.append((tool, dict(args), result.ok))
        if turn.results is not None:
            turn.results.append((result.ok, result.text))
        self._since = time.monotonic()
        if self._watch is not None:
            self._watch.settle()

    def cassette(self, backend: str) -> Cassette:
        """Everything, as it is played again."""
        ends = [end.stop for end in self._ends]
        if not ends or len(ends) != len(self._asked) or set(ends) != {Stop.DONE}:
            raise UsageError("the session did not come to its own end", next_step="record it again")
        job, root = self._job, self._job.worktree
        header = CassetteHeader(
            cassette=1,
            role=job.spec.role,
            instance=job.brief.instance,
            model=next((end.model for end in reversed(self._ends) if end.model), None) or backend,
            prompt=prompt_digest(self._asked[0], root),
            answer=job.form.name,
            schema_digest=schema_digest(job.form.schema),
        )
        shown: list[tuple[bool, str]] | None = []
        turns = []
        for number, turn in enumerate(self._turns):
            turns.append(
                CassetteTurn(
                    turn=number,
                    text=packed(turn.text, root),
                    calls=tuple(
                        CassetteCall(tool=tool.strip() or "(nothing)", args=packed(dict(args), root), ok=ok)
                        for tool, args, ok in turn.calls
                    ),
                    submitted=packed(turn.submitted, root),
                    usage=(turn.tokens_in, turn.tokens_out),
                    ms=turn.ms,
                    seen=seen(shown, root) if shown is not None else None,
                )
            )
            shown = turn.results
        return Cassette(header, tuple(turns))

    def _speaking(self) -> Heard:
        """The turn that is being said: what comes after calls is another one."""
        if not self._turns or self._turns[-1].calls:
            self._turns.append(Heard())
        return self._turns[-1]

    def _waited(self) -> int:
        return max(0, int((time.monotonic() - self._since) * 1000))

    def _count_up(self, end: Turn) -> None:
        """The session's count is right where the turns' own are not: some agents only tell a sum, some do it twice."""
        for side in ("tokens_in", "tokens_out"):
            whole = getattr(end.usage, side)
            heard = sum(getattr(turn, side) for turn in self._turns)
            if whole is None or heard == whole:
                continue
            if heard > whole:
                for turn in self._turns[self._first :]:
                    setattr(turn, side, 0)
                heard = sum(getattr(turn, side) for turn in self._turns)
            last = self._turns[-1]
            setattr(last, side, getattr(last, side) + max(0, whole - heard))

    def _act_alone(self, turn: Heard) -> None:
        """Puts what the agent did by itself in front of what it does next."""
        if self._watch is None:
            return
        found = [(change, self._as_call(change)) for change in self._watch.changes()]
        calls = [call for _, call in found if call is not None]
        lost = [change.path for change, call in found if call is None]
        if lost:
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            named = ", ".join(lost[:_NAMED])
            self._job.happened(Kind.NOTE, f"changed, and no part of the recording: {named}{more}")
        if calls and turn.text and not turn.calls:
            # it was done before this was said
            self._turns.insert(len(self._turns) - 1, Heard(calls=calls, results=None))
        elif calls:
            turn.calls += calls
            turn.results = None

    def _as_call(self, change: Changed) -> _Call | None:
        """A call of ours that does the same; None if there is none, or the role may not make it."""
        if change.text is not None:
            return self._allowed(Tool.CREATE_FILE, {"path": change.path, "content": change.text}, paths=(change.path,))
        if not change.is_gone:
            return None
        argv = ("rm", "-f", change.path)
        return self._allowed(Tool.RUN_IN_TERMINAL, {"command": shlex.join(argv)}, argv=argv)

    def _allowed(self, tool: Tool, args: dict[str, Any], **judged: Any) -> _Call | None:
        call = ToolCall(tool=tool.value, **judged)
        answer = may_call(self._job.spec.role, call, self._job.brief.scope)
        return (tool.value, args, None) if isinstance(answer, Allowed) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
