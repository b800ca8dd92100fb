"""Whole runs on bundled repositories with recorded teams: everything but the models is real."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay.app.demo_feature import repository as till
from assay.app.demo_feature import team as feature_team
from assay.app.demo_forge import repository as measures
from assay.app.demo_forge import team as forge_team
from assay.app.feature import Wanted, begin_feature
from assay.app.forge import begin_forge
from assay.errors import UsageError

RECORDINGS = "recordings"
REPOSITORY, FORGE_REPOSITORY = "till", "measures"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A demo that is ready to be carried."""

    folder: Path
    repository: Path
    run_id: str


def prepare(folder: Path | None, *, lie: bool) -> Prepared:
    """A feature run on its repository; with `lie`, one of its team claims green on red tests."""
    place = _place(folder)
    cassettes = feature_team.write_cassettes(place / RECORDINGS, lie=lie)
    root = till.lay_out(place / REPOSITORY)
    return Prepared(place, root, begin_feature(root, _wanted(till.REQUEST, till.SLUG, cassettes)).run_id)


def prepare_forge(folder: Path | None) -> Prepared:
    """A forge run on its repository."""
    place = _place(folder)
    cassettes = forge_team.write_cassettes(place / RECORDINGS)
    root = measures.lay_out(place / FORGE_REPOSITORY)
    return Prepared(place, root, begin_forge(root, _wanted(measures.REQUEST, measures.SLUG, cassettes)).run_id)


def _wanted(request: str, slug: str, cassettes: Path) -> Wanted:
    return Wanted(request=request, slug=slug, is_autonomous=True, agents="cassette", cassettes=cassettes)


def _place(folder: Path | None) -> Path:
    """A folder that holds nothing; one that does is refused."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="assay-demo-"))
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty", next_step=f"choose another folder, or go on there: cd {folder} && assay resume"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()
