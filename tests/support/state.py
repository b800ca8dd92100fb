"""State folders of the person who runs the tests: made for tests that lay a ledger into one, or copied with a drill."""

import json
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

from fairwitness.kit.own_folder import Standing, claim, identity_of, look
from fairwitness.kit.user_state import remember, user_state
from fairwitness.ledger.anchors import LEDGERS, file_of


def own_state(root: Path) -> Path:
    """The state folder of a repository, made as Fair Witness makes it."""
    made = claim(root / ".fairwitness")
    assert made.standing is Standing.OURS, made
    return made.path


def take_for_the_same(root: Path) -> None:
    """Make the copied state folders in a folder ours without a new id, so that a drill repeats its run exactly.

    What this machine wrote about their ledgers after the copy was made is forgotten: a drill is no rollback.
    """
    for state in (*root.glob(".fairwitness"), *root.glob("*/.fairwitness")):
        place = look(state).path
        remember("state_folders.jsonl", {"id": identity_of(place), "path": str(place), "inode": place.stat().st_ino})
        assert look(state).standing is Standing.OURS
        if (place / "evidence.db").exists():
            _forget_later_anchors(place / "evidence.db")


def _forget_later_anchors(database: Path) -> None:
    with closing(connect(database)) as connection:
        last = connection.execute("SELECT ledger, number FROM anchors ORDER BY number DESC LIMIT 1").fetchone()
    ledger, number = last
    heads, ledgers = user_state() / file_of(ledger), user_state() / LEDGERS
    _keep(heads, [line for line in _lines(heads) if json.loads(line)["number"] <= number])
    place = str(database.resolve())
    _keep(ledgers, [line for line in _lines(ledgers) if _is_of(line, ledger) or json.loads(line)["place"] != place])


def _is_of(line: str, ledger: str) -> bool:
    return bool(json.loads(line)["ledger"] == ledger)


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines(keepends=True)


def _keep(file: Path, lines: list[str]) -> None:
    file.write_text("".join(lines))
