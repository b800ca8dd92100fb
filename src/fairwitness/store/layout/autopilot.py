"""The files of an autopilot run: its state under `.autopilot/`, its plans and their results under `.planning/`."""

from dataclasses import dataclass
from datetime import datetime

from fairwitness.store.layout import names

RUNTIME = ".autopilot"
PLANNING = ".planning"

STATE = f"{RUNTIME}/state.json"
STATE_BACKUP = f"{STATE}.backup"
REPO_MAP = f"{RUNTIME}/repo-map.json"
CODEBASE_ANALYSIS = f"{RUNTIME}/codebase-analysis.md"
CONTEXT_MAP = f"{RUNTIME}/context-map.json"
DISCUSS_CONTEXT = f"{RUNTIME}/discuss-context.json"
LEARNINGS = f"{RUNTIME}/learnings.md"
COMPLETION_REPORT = f"{RUNTIME}/completion-report.md"
COMPLETION_DATA = f"{RUNTIME}/completion-report.json"
ARCHIVE = f"{RUNTIME}/archive"
METRICS = f"{ARCHIVE}/metrics.json"
DIAGNOSTICS = f"{RUNTIME}/diagnostics"

ROADMAP = f"{PLANNING}/ROADMAP.md"
REQUIREMENTS = f"{PLANNING}/REQUIREMENTS.md"
PROJECT = f"{PLANNING}/PROJECT.md"
CONFIG = f"{PLANNING}/config.json"
PHASES = f"{PLANNING}/phases"
DEBUG = f"{PLANNING}/debug"
DEBUG_RESOLVED = f"{DEBUG}/resolved"
SCREENSHOTS = f"{PLANNING}/screenshots"

GITIGNORE = (STATE, STATE_BACKUP, f"{ARCHIVE}/", f"{DIAGNOSTICS}/")
"""Lines for the repository's .gitignore: files that are needed only while a run is active."""


def archived_state(run_id: str) -> str:
    """Return the path of the state of a completed run."""
    return f"{ARCHIVE}/{names.autopilot_run(run_id)}.json"


def diagnostic(at: datetime) -> str:
    """Return the path of a failure report about the whole run."""
    return f"{DIAGNOSTICS}/diagnostic-{at:%Y-%m-%dT%H%M%S}.md"


def phase_post_mortem(phase_id: str) -> str:
    """Return the path of the report on why a phase failed."""
    return f"{DIAGNOSTICS}/phase-{names.phase(phase_id)}-postmortem.json"


def phase_confidence(phase_id: str) -> str:
    """Return the path of the report on what keeps a phase below its threshold."""
    return f"{DIAGNOSTICS}/phase-{names.phase(phase_id)}-confidence.md"


def debug_session(slug: str) -> str:
    """Return the path of an open debug session."""
    return f"{DEBUG}/{_session(slug)}.md"


def resolved_debug_session(slug: str) -> str:
    """Return the path of a resolved debug session."""
    return f"{DEBUG_RESOLVED}/{_session(slug)}.md"


def screenshot(route_name: str, at: datetime) -> str:
    """Return the path of a screenshot of a route, taken at a time in UTC."""
    return f"{SCREENSHOTS}/{names.safe_name('route name', route_name)}-{at:%Y%m%dT%H%M%SZ}.png"


def screenshot_baseline(route_name: str) -> str:
    """Return the path of the screenshot that a route is compared with."""
    return f"{SCREENSHOTS}/baseline/{names.safe_name('route name', route_name)}.png"


def _session(slug: str) -> str:
    return names.slug(slug)


@dataclass(frozen=True, slots=True)
class PhaseLayout:
    """The paths of one phase; an inserted phase such as `6.1` has its own folder."""

    phase_id: str

    def __post_init__(self) -> None:
        names.phase(self.phase_id)

    @property
    def folder(self) -> str:
        return f"{PHASES}/{self.phase_id}"

    @property
    def research(self) -> str:
        return f"{self.folder}/RESEARCH.md"

    @property
    def plan(self) -> str:
        return f"{self.folder}/PLAN.md"

    @property
    def execution_log(self) -> str:
        return f"{self.folder}/EXECUTION-LOG.md"

    @property
    def verification(self) -> str:
        return f"{self.folder}/VERIFICATION.md"

    @property
    def judge_report(self) -> str:
        return f"{self.folder}/JUDGE-REPORT.md"

    @property
    def scorecard(self) -> str:
        return f"{self.folder}/SCORECARD.md"

    @property
    def triage(self) -> str:
        return f"{self.folder}/TRIAGE.json"

    @property
    def context(self) -> str:
        return f"{self.folder}/CONTEXT.md"

    @property
    def visual_bugs(self) -> str:
        return f"{self.folder}/VISUAL-BUGS.md"

    @property
    def handoff(self) -> str:
        """What a phase that ran out of context leaves for its next run."""
        return f"{self.folder}/HANDOFF.md"

    @property
    def trace(self) -> str:
        """All step traces in the order in which the steps ran."""
        return f"{self.folder}/TRACE.jsonl"

    def step_trace(self, step: str) -> str:
        return f"{self.folder}/{names.safe_name('step', step)}-trace.jsonl"

    @property
    def tests(self) -> str:
        return f"{self.folder}/tests"

    def test_script(self, task_id: str) -> str:
        return f"{self.tests}/task-{names.safe_name('task id', task_id)}.sh"
