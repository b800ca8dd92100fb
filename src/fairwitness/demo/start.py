"""Start a demo: unpack its repository and its recordings, and begin a run."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.run_records.autopilot import open_autopilot_run
from fairwitness.app.runs.begin_autopilot import PhasesRequest, begin_autopilot
from fairwitness.app.runs.begin_feature import RunRequest, begin_feature
from fairwitness.app.runs.begin_forge import begin_forge
from fairwitness.app.runs.verdict import give_verdict
from fairwitness.demo.bundle import AUTOPILOT, FORGE, HONEST, LIGHT, LYING, AutopilotPlan, Demo, load
from fairwitness.errors import UsageError

RECORDINGS = "recordings"


@dataclass(frozen=True, slots=True)
class StartedDemo:
    """A demo run that has begun and can be driven to its end."""

    repository: Path
    run_id: str


def start(name: str, folder: Path | None, *, lie: bool = False) -> StartedDemo:
    """Unpack a demo into an empty folder and begin its run; with `lie`, an implementer reports failing tests as passed.

    Without a folder a temporary one is made; a folder that is not empty is a `UsageError`.
    """
    demo = load(name)
    place = _empty_folder(folder)
    cassettes = demo.write_cassettes(place / RECORDINGS, LYING if lie else HONEST)
    root = demo.lay_out(place / demo.repository.folder)
    return StartedDemo(root, _begin(demo, root, cassettes))


def give_demo_verdict(root: Path, run_id: str) -> str:
    """Pass the phase that waits for a person, and return the command that does the same."""
    phase = _plan().verdict_phase
    give_verdict(root, phase, "pass", (), run_id)
    return f"fairwitness verdict {phase} pass"


def ends_as_scripted(root: Path, run_id: str) -> bool:
    """Return True if every phase of the autopilot demo has the status that its recordings lead to."""
    with open_autopilot_run(root, run_id) as context:
        phases = context.log.state().state.phases
        return {phase: record.status.value for phase, record in phases.items()} == _plan().ends


def _plan() -> AutopilotPlan:
    plan = load(AUTOPILOT).autopilot
    assert plan is not None
    return plan


def _begin(demo: Demo, root: Path, cassettes: Path) -> str:
    """Begin a run of the demo's workflow and return its id."""
    if demo.autopilot is not None:
        plan = demo.autopilot
        phases = PhasesRequest(phases=plan.phases, flags=plan.flags, agents="cassette", cassettes=cassettes)
        return begin_autopilot(root, phases).run_id
    wanted = RunRequest(
        request=demo.request,
        slug=demo.slug,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
        is_light=demo.name == LIGHT,
    )
    return (begin_forge if demo.name == FORGE else begin_feature)(root, wanted).run_id


def _empty_folder(folder: Path | None) -> Path:
    """Return an empty folder, which is created if necessary; `UsageError` if it holds anything."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="fairwitness-demo-"))
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty",
            next_step=f"choose another folder, or go on there: cd {folder} && fairwitness resume",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()
