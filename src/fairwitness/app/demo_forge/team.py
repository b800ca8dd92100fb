"""The whole recorded team, and the files that a cassette backend plays."""

from pathlib import Path

from fairwitness.agents.cassettes import name_of, spell
from fairwitness.app.demo_feature.scripts import Session
from fairwitness.app.demo_feature.team import cassette_of
from fairwitness.app.demo_forge import joining, plans, work

SESSIONS: tuple[Session, ...] = (*plans.SESSIONS, *work.SESSIONS, *joining.SESSIONS)
"""Every dispatch of a run: the captain twice, fifteen attempts at fourteen nodes, and three helpers."""


def write_cassettes(folder: Path) -> Path:
    """Writes one file for each dispatch; what is shown to the players is compared with nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in SESSIONS:
        path = folder / name_of(session.role, session.instance, session.number)
        path.write_bytes(spell(cassette_of(session)))
    return folder
