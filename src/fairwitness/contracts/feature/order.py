"""The order of a feature run, kept in the ledger for the whole run, and the settings of feature runs."""

from enum import StrEnum

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Flag, Maybe, Prose, Text
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, GitRef, Slug
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.verify.run_settings import RunSettings


class KeepArtifacts(StrEnum):
    """Whether the feature folder is committed too."""

    NO = "no"
    SEPARATE_COMMIT = "separate-commit"


class FinishSettings(Contract):
    """How a finished run is delivered in git."""

    checkout: Flag = True
    """Whether the user's checkout switches to the feature branch, if it is clean and still at the base."""
    artifacts: KeepArtifacts = KeepArtifacts.NO
    co_author: Flag = True
    """Whether the commit names the pipeline as its co-author."""


class FeatureOrder(RunSettings):
    """The order of a feature run: the request, and the repository and settings when it was given."""

    request: Prose
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    """The commit that the work starts from: the one checked out."""
    base_branch: Maybe[GitRef] = None
    """The branch that was checked out, if any."""
    snapshot: Maybe[GitRef] = None
    """The ref that saves uncommitted changes, which are not part of the work; null if there were none."""
    baseline_tag: GitRef
    target: GitRef
    """The run's own branch that everything is merged into."""
    policy: Policy = Policy()
    finish: FinishSettings = FinishSettings()
    started_by: Text


class Dirty(StrEnum):
    """How uncommitted changes are handled."""

    SNAPSHOT = "snapshot"
    REFUSE = "refuse"


class FinishTable(Contract):
    """The `[finish]` table of the settings."""

    checkout: Flag = True
    co_author: Flag = True


class ArtifactsTable(Contract):
    """The `[artifacts]` table of the settings."""

    commit: KeepArtifacts = KeepArtifacts.NO


class FeatureTable(Contract):
    """The `[feature]` table of the settings."""

    dirty: Dirty = Dirty.SNAPSHOT


class FeatureSettings(Contract):
    """The settings of a feature run in `fairwitness.toml`."""

    feature: FeatureTable = FeatureTable()
    policy: Policy = Policy()
    finish: FinishTable = FinishTable()
    artifacts: ArtifactsTable = ArtifactsTable()
    budget: BudgetTable = BudgetTable()

    @property
    def ends(self) -> FinishSettings:
        """How a finished run is delivered in git."""
        return FinishSettings(
            checkout=self.finish.checkout, artifacts=self.artifacts.commit, co_author=self.finish.co_author
        )
