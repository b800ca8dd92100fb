"""Before each phase the specifications are looked at again: changed, gone and new ones are all told."""

from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.rules.spec_lock import SpecTurn
from fairwitness.runs.autopilot.preflight import changed_specs
from fairwitness.store.artifacts import content_hash
from runs.autopilot.logbook import Logbook

MOMENT = "2026-02-09T14:30:52Z"
SPECS = (".planning/REQUIREMENTS.md", ".planning/PROJECT.md", ".planning/ROADMAP.md")


@pytest.mark.req("A2")
def test_a_specification_that_changed_went_or_came_stops_the_next_phase(tmp_path: Path) -> None:
    locks = [SpecLock(path=path, hash=content_hash(path.encode()), locked_at=MOMENT) for path in SPECS[1:]]
    logbook = Logbook.create(tmp_path, specs=tuple(locks), spec_paths=SPECS)
    for path in SPECS[1:]:
        logbook.files.put(path, path.encode())
    assert changed_specs(logbook.log, logbook.files) == ()
    logbook.files.put(SPECS[0], b"something new is required")
    logbook.files.put(SPECS[1], b"something else")
    (tmp_path / "checkout" / SPECS[2]).unlink()
    found = {change.path: change.turn for change in changed_specs(logbook.log, logbook.files)}
    assert found == dict(zip(SPECS, (SpecTurn.NEW, SpecTurn.CHANGED, SpecTurn.MISSING), strict=True))
    logbook.close()
