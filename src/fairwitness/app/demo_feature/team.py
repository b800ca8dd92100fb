"""The whole recorded team: every dispatch of a run in its order, and the files that a cassette backend plays."""

from pathlib import Path
from typing import Any

from fairwitness.agents.cassettes import NO_PROMPT, Cassette, name_of, spell
from fairwitness.agents.roles import ROLES
from fairwitness.app.demo_feature import designs, groundwork, lessons, plans, reviews, specification, work
from fairwitness.app.demo_feature.scripts import Said, Session
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn

MODEL = "scripted"
ITERATIONS = 3
"""How often the liar is asked, which is as often as a run asks anybody."""
_READ, _WRITTEN_PER_TURN, _LETTERS = 900, 40, 4
"""Tokens that a turn begins with and ends with, and letters of a token: a guess, for nobody was asked."""

_BEFORE_WORK: tuple[Session, ...] = (
    *groundwork.SESSIONS,
    *specification.SESSIONS,
    designs.SESSIONS[0],
    *reviews.DESIGN_FIRST,
    designs.SESSIONS[1],
    *reviews.DESIGN_AGAIN,
    plans.PLANNED,
)
HONEST: tuple[Session, ...] = (
    *_BEFORE_WORK,
    *work.FIRST,
    plans.replanned(2),
    *work.SECOND,
    *reviews.code(without_receipt=False),
    lessons.learned(from_a_lie=False),
)
"""A run that ends in a commit: one design revised, one task replanned, one reviewer against."""
LYING: tuple[Session, ...] = (
    *_BEFORE_WORK,
    *work.lied(1),
    *(
        session
        for iteration in range(2, ITERATIONS + 1)
        for session in (plans.replanned(iteration), *work.lied(iteration))
    ),
    *reviews.code(without_receipt=True),
    lessons.learned(from_a_lie=True),
)
"""The same with an implementer of the receipt who claims green on red tests, as often as it is asked."""


def write_cassettes(folder: Path, *, lie: bool = False) -> Path:
    """Writes one file for each dispatch; what is shown to the players is compared with nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in LYING if lie else HONEST:
        path = folder / name_of(session.role, session.instance, session.number)
        path.write_bytes(spell(cassette_of(session)))
    return folder


def cassette_of(session: Session) -> Cassette:
    """A session as its recording."""
    header = CassetteHeader(
        cassette=1,
        role=session.role,
        instance=session.instance,
        model=MODEL,
        prompt=NO_PROMPT,
        answer=ROLES[session.role].answer,
    )
    turns = [_turn(number, said) for number, said in enumerate(session.turns)]
    last = _turn(len(turns), Said(session.last_words, ()), submitted=session.answer)
    return Cassette(header, (*turns, last))


def _turn(number: int, said: Said, submitted: dict[str, Any] | None = None) -> CassetteTurn:
    written = f"{said.text}{[call.args for call in said.calls]}{submitted or ''}"
    return CassetteTurn(
        turn=number,
        text=said.text,
        calls=tuple(CassetteCall(tool=call.tool.value, args=dict(call.args), ok=True) for call in said.calls),
        submitted=submitted,
        usage=(_READ * (number + 1), _WRITTEN_PER_TURN + len(written) // _LETTERS),
        ms=0,
        seen=None,
    )
