"""A whole feature run on a bundled repository with a recorded team: everything but the models is real."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay.app.demo_feature import repository, team
from assay.app.feature import BegunFeature, Wanted, begin_feature
from assay.errors import UsageError

RECORDINGS = "recordings"
REPOSITORY = "till"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A demo that is ready to be carried."""

    folder: Path
    repository: Path
    run: BegunFeature


def prepare(folder: Path | None, *, lie: bool) -> Prepared:
    """Unpacks the repository and the recordings, and begins the run; a folder that holds something is refused."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    elif folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty", next_step=f"choose another folder, or go on there: cd {folder} && assay resume"
        )
    folder.mkdir(parents=True, exist_ok=True)
    cassettes = team.write_cassettes(folder.absolute() / RECORDINGS, lie=lie)
    root = repository.lay_out(folder / REPOSITORY)
    wanted = Wanted(
        request=repository.REQUEST,
        slug=repository.SLUG,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
    )
    return Prepared(folder, root, begin_feature(root, wanted))
