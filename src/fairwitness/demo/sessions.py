"""Recorded sessions: what an agent says, which tools it calls and what it returns, read from a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.cassette_file import NO_PROMPT, Cassette, name_of, spell
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.kit.documents import Format, read

MODEL = "scripted"
_TOKENS_READ, _TOKENS_WRITTEN, _LETTERS_PER_TOKEN = 900, 40, 4
"""An estimate of what a turn costs: no model was asked, so there is nothing to count."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call."""

    tool: Tool
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn before the last: a text and the tool calls that follow it."""

    text: str
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """The n-th dispatch of a role under an instance name, counted from 1."""

    role: Role
    instance: str
    number: int
    answer: dict[str, Any]
    """The document that the agent returns with its last turn."""
    closing_text: str
    turns: tuple[RecordedTurn, ...] = ()

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The tool calls of all turns."""
        return tuple(call for turn in self.turns for call in turn.calls)

    @property
    def file_name(self) -> str:
        """The name of the cassette file that the cassette backend looks for."""
        return name_of(self.role, self.instance, self.number)

    def cassette(self) -> bytes:
        """Return the cassette file that plays this session."""
        header = CassetteHeader(
            cassette=1,
            role=self.role,
            instance=self.instance,
            model=MODEL,
            prompt=NO_PROMPT,
            answer=ROLES[self.role].answer,
        )
        turns = [_cassette_turn(number, turn) for number, turn in enumerate(self.turns)]
        last = _cassette_turn(len(turns), RecordedTurn(self.closing_text, ()), submitted=self.answer)
        return spell(Cassette(header, (*turns, last)))


def read_session(path: Path) -> RecordedSession:
    """Return the session in a YAML file, as the first dispatch of its instance; `BadDocument` if it is not YAML.

    A session file has the keys `role`, `instance`, `turns` (optional), `closing_text` and `answer`. A turn is a `text`
    with its `calls`, and a call is one key, the tool, with the arguments.
    """
    document = read(path.read_bytes(), Format.YAML, source=str(path)).value
    turns = tuple(
        RecordedTurn(
            turn["text"], tuple(RecordedCall(Tool(tool), args) for call in turn["calls"] for tool, args in call.items())
        )
        for turn in document.pop("turns", ())
    )
    return RecordedSession(role=Role(document.pop("role")), number=1, turns=turns, **document)


def _cassette_turn(number: int, turn: RecordedTurn, submitted: dict[str, Any] | None = None) -> CassetteTurn:
    written = f"{turn.text}{[call.args for call in turn.calls]}{submitted or ''}"
    return CassetteTurn(
        turn=number,
        text=turn.text,
        calls=tuple(CassetteCall(tool=call.tool.value, args=dict(call.args), ok=True) for call in turn.calls),
        submitted=submitted,
        usage=(_TOKENS_READ * (number + 1), _TOKENS_WRITTEN + len(written) // _LETTERS_PER_TOKEN),
        ms=0,
        seen=None,
    )
