"""The whole recorded team, and the files that a cassette backend plays."""

from pathlib import Path

from fairwitness.agents.cassettes import name_of, spell
from fairwitness.app.demo_autopilot import audit, recipes, shopping, slip, stock
from fairwitness.app.demo_feature.scripts import Session
from fairwitness.app.demo_feature.team import cassette_of

SESSIONS: tuple[Session, ...] = (
    *stock.SESSIONS,
    *shopping.SESSIONS,
    *recipes.SESSIONS,
    *slip.SESSIONS,
    *audit.SESSIONS,
)
"""Every dispatch of a run: a phase that passes, one that is mended, one that fails, one for a person, and the audit."""


def write_cassettes(folder: Path) -> Path:
    """Writes one file for each dispatch; what is shown to the players is compared with nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in SESSIONS:
        path = folder / name_of(session.role, session.instance, session.number)
        path.write_bytes(spell(cassette_of(session)))
    return folder
