"""The files of a feature run: `docs/feature/<slug>/`.

Files for machines are YAML, files for people Markdown. Specification, design and plan have one of each; every other
output has exactly one form.
"""

from dataclasses import dataclass
from datetime import date

from fairwitness.errors import UnsafePath
from fairwitness.store.layout import names


@dataclass(frozen=True, slots=True)
class FeatureLayout:
    """The paths of one feature, relative to the repository."""

    slug: str
    base: str = "docs/feature"

    def __post_init__(self) -> None:
        names.slug(self.slug)
        names.base_folder(self.base)

    @property
    def folder(self) -> str:
        return f"{self.base}/{self.slug}"

    @property
    def initial_request(self) -> str:
        return f"{self.folder}/initial-request.md"

    @property
    def ledger(self) -> str:
        """The ledger rows of this run, exported with their hash chain."""
        return f"{self.folder}/verification-ledger.db"

    @property
    def spec(self) -> str:
        return f"{self.folder}/spec-output.yaml"

    @property
    def spec_companion(self) -> str:
        return f"{self.folder}/feature.md"

    @property
    def design(self) -> str:
        return f"{self.folder}/design-output.yaml"

    @property
    def design_companion(self) -> str:
        return f"{self.folder}/design.md"

    @property
    def plan(self) -> str:
        return f"{self.folder}/plan-output.yaml"

    @property
    def plan_companion(self) -> str:
        return f"{self.folder}/plan.md"

    @property
    def knowledge(self) -> str:
        return f"{self.folder}/knowledge-output.yaml"

    @property
    def decisions(self) -> str:
        """The decision log, which is append-only."""
        return f"{self.folder}/decisions.yaml"

    @property
    def evidence_bundle(self) -> str:
        return f"{self.folder}/evidence-bundle.md"

    def research(self, focus: str) -> str:
        return f"{self.folder}/research/{names.safe_name('research focus', focus)}.yaml"

    def task(self, task_id: str) -> str:
        return f"{self.folder}/tasks/{names.feature_task(task_id)}.yaml"

    def implementation_report(self, task_id: str) -> str:
        return f"{self.folder}/implementation-reports/{names.feature_task(task_id)}.yaml"

    def verification_report(self, task_id: str) -> str:
        return f"{self.folder}/verification-reports/{names.feature_task(task_id)}.yaml"

    def review_findings(self, scope: str, perspective: str) -> str:
        return f"{self.folder}/review-findings/{_review(scope, perspective)}.md"

    def review_verdict(self, scope: str, perspective: str) -> str:
        return f"{self.folder}/review-verdicts/{_review(scope, perspective)}.yaml"

    def run_log(self, day: date) -> str:
        """Return the path of a day's log of what the agents cost and returned."""
        return f"{self.folder}/agent-metrics/{_day(day)}-run-log.md"

    def post_mortem(self, day: date) -> str:
        return f"{self.folder}/post-mortems/{_day(day)}-{self.slug}.md"

    def archive(self, run_id: str) -> str:
        """Return the folder for the outputs of an earlier run when its slug is run again."""
        return f"{self.folder}/archive/{names.run(run_id)}"

    def archived(self, run_id: str, path: str) -> str:
        """Return the path of an output after its run is archived."""
        inside = path.removeprefix(f"{self.folder}/")
        if inside == path:
            raise UnsafePath(f"{path!r} is not a path of the feature {self.slug}", next_step="name one of its outputs")
        return f"{self.archive(run_id)}/{inside}"


def _review(scope: str, perspective: str) -> str:
    return f"{names.safe_name('review scope', scope)}-{names.safe_name('review perspective', perspective)}"


def _day(day: date) -> str:
    return f"{day:%Y-%m-%d}"
