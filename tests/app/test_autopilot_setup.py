"""`init` writes what is missing and nothing else; `lock` locks changed specifications on purpose, for one run."""

import json
from pathlib import Path

import pytest

from app.autopilot_grounds import ROADMAP, RUN, begun, commit, completed, git, lay_out, opened, over, started, tell
from fairwitness.app.run_records.autopilot import RELOCK, open_autopilot_run
from fairwitness.app.runs.autopilot_setup import GROWN, KEPT, WRITTEN, init, lock
from fairwitness.contracts.autopilot.roadmap import ProjectConfig
from fairwitness.errors import UsageError
from fairwitness.rules.roadmap import read_roadmap
from fairwitness.rules.spec_lock import SpecTurn
from fairwitness.runs.autopilot import preflight
from fairwitness.store.artifacts import content_hash
from fairwitness.store.layout import autopilot as layout

SPEC = ".planning/REQUIREMENTS.md"


def what(top: Path) -> dict[str, str]:
    return {each.path: each.what for each in init(top)}


@pytest.mark.req("A2")
def test_what_is_missing_is_written_and_read_again(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop", None)
    assert what(top) == {layout.ROADMAP: WRITTEN, layout.CONFIG: WRITTEN, ".gitignore": WRITTEN}
    assert read_roadmap((top / layout.ROADMAP).read_text()).roadmap is not None
    config = ProjectConfig.model_validate(json.loads((top / layout.CONFIG).read_text()))
    assert config.project.commands == {"test": "make test"}
    assert set(layout.GITIGNORE) <= set((top / ".gitignore").read_text().splitlines())
    before = {path: (top / path).read_bytes() for path in (layout.ROADMAP, layout.CONFIG, ".gitignore")}
    assert what(top) == dict.fromkeys(before, KEPT)
    assert {path: (top / path).read_bytes() for path in before} == before


@pytest.mark.req("A2")
def test_commands_are_found_as_verify_finds_its_checks(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop", None)
    (top / "Makefile").unlink()
    (top / "setup.py").write_text("from setuptools import setup\n\nsetup(name='shop', py_modules=['shop'])\n")
    (top / "test_shop.py").write_text("import pytest\n\n\ndef test_it():\n    assert True\n")
    init(top)
    config = ProjectConfig.model_validate(json.loads((top / layout.CONFIG).read_text()))
    assert (config.project.type, config.project.commands) == ("python", {"test": "python -m pytest"})


@pytest.mark.req("A6")
def test_what_stands_there_stays(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    (top / ".gitignore").write_text("*.pyc")
    assert what(top) == {layout.ROADMAP: KEPT, layout.CONFIG: WRITTEN, ".gitignore": GROWN}
    assert (top / layout.ROADMAP).read_text() == ROADMAP
    assert (top / ".gitignore").read_text().startswith("*.pyc\n")


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop", None)
    outside = tmp_path / "outside"
    outside.mkdir()
    (top / ".planning").symlink_to(outside)
    with pytest.raises(UsageError):
        init(top)
    assert list(outside.iterdir()) == []


def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop", None)
    (top / "package.json").write_text("{")
    with pytest.raises(UsageError, match=r"package\.json cannot be read"):
        init(top)
    assert not (top / layout.ROADMAP).exists()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = lay_out(tmp_path / "shop")
    (folder / SPEC).write_text("REQ-01: sign in\n")
    commit(folder)
    begun(folder)
    return folder


@pytest.mark.req("A2")
def test_a_changed_specification_is_locked_on_purpose_and_the_preflight_goes_by_it(top: Path) -> None:
    assert lock(top, None).changes == ()
    (top / SPEC).write_text("REQ-01: sign in with a key\n")
    (top / ".planning" / "PROJECT.md").write_text("a shop\n")
    done = lock(top, RUN)
    assert [(change.path, change.turn) for change in done.changes] == [
        (SPEC, SpecTurn.CHANGED),
        (".planning/PROJECT.md", SpecTurn.NEW),
    ]
    with open_autopilot_run(top, RUN) as context:
        locks = {each.path: each.hash for each in context.locks()}
        assert context.locks() == preflight.locks_of(context.log)
        assert context.log.order().specs != context.locks()
        assert [row.key for row in context.log.ledger.observations(RUN, RELOCK)] == ["relock:1"]
    assert (RELOCK, locks[SPEC]) == (preflight.RELOCK, content_hash((top / SPEC).read_bytes()))
    assert lock(top, None).changes == ()
    (top / SPEC).unlink()
    assert [(change.path, change.turn) for change in lock(top, None).changes] == [(SPEC, SpecTurn.MISSING)]
    with opened(top) as log:
        assert [row.key for row in log.ledger.observations(RUN, RELOCK)] == ["relock:1", "relock:2"]


def test_a_run_goes_by_one_roadmap(top: Path) -> None:
    (top / layout.ROADMAP).write_text(ROADMAP.replace("People find things.", "People find everything."))
    with pytest.raises(UsageError, match="differs in phase 2") as found:
        lock(top, None)
    assert f"fairwitness cancel {RUN}" in found.value.next_step
    (top / layout.ROADMAP).write_text(ROADMAP.replace("[ ] **Phase 1", "[x] **Phase 1") + "\nA remark.\n")
    assert [change.path for change in lock(top, None).changes] == [layout.ROADMAP]


def test_a_phase_that_is_done_may_be_described_anew(top: Path) -> None:
    tell(top, started("1"), completed("1"))
    (top / layout.ROADMAP).write_text(ROADMAP.replace("People can sign in.", "People could sign in."))
    assert [change.path for change in lock(top, None).changes] == [layout.ROADMAP]


def test_a_completed_run_has_nothing_to_lock(top: Path) -> None:
    tell(top, over())
    with pytest.raises(UsageError, match="is completed"):
        lock(top, None)
    with pytest.raises(UsageError, match="is not an autopilot run"):
        lock(top, "run-2026-01-01-000000")
    git(top, "status")
