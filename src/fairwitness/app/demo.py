"""Whole runs on bundled repositories with recorded teams: everything but the models is real."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.demo_autopilot import repository as larder
from fairwitness.app.demo_autopilot import team as autopilot_team
from fairwitness.app.demo_feature import repository as till
from fairwitness.app.demo_feature import team as feature_team
from fairwitness.app.demo_forge import repository as measures
from fairwitness.app.demo_forge import team as forge_team
from fairwitness.app.run_records.autopilot import opened_autopilot
from fairwitness.app.runs.begin_autopilot import WantedPhases, begin_autopilot
from fairwitness.app.runs.begin_feature import Wanted, begin_feature
from fairwitness.app.runs.begin_forge import begin_forge
from fairwitness.app.runs.verdict import give_verdict
from fairwitness.errors import UsageError

RECORDINGS = "recordings"
REPOSITORY, FORGE_REPOSITORY, AUTOPILOT_REPOSITORY = "till", "measures", "larder"


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


def prepare_autopilot(folder: Path | None) -> Prepared:
    """An autopilot run over the roadmap of its repository."""
    place = _place(folder)
    cassettes = autopilot_team.write_cassettes(place / RECORDINGS)
    root = larder.lay_out(place / AUTOPILOT_REPOSITORY)
    wanted = WantedPhases(phases=larder.PHASES, flags=larder.FLAGS, agents="cassette", cassettes=cassettes)
    return Prepared(place, root, begin_autopilot(root, wanted).run_id)


def say_verdict(root: Path, run_id: str) -> str:
    """What the person of the roadmap says about the phase that was put to them, as a command."""
    give_verdict(root, larder.ASKED, "pass", (), run_id)
    return f"fairwitness verdict {larder.ASKED} pass"


def ends_as_scripted(root: Path, run_id: str) -> bool:
    """Whether the roadmap's run came to the end it has: everything but one phase, and what rests on it."""
    with opened_autopilot(root, run_id) as context:
        phases = context.log.state().state.phases
        return {phase: record.status.value for phase, record in phases.items()} == larder.ENDS


def _wanted(request: str, slug: str, cassettes: Path) -> Wanted:
    return Wanted(request=request, slug=slug, is_autonomous=True, agents="cassette", cassettes=cassettes)


def _place(folder: Path | None) -> Path:
    """A folder that holds nothing; one that does is refused."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="fairwitness-demo-"))
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty",
            next_step=f"choose another folder, or go on there: cd {folder} && fairwitness resume",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()
