"""What a feature run was begun with; it stands in the ledger and holds until the run is over."""

from enum import StrEnum
from typing import Any

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Flag, Maybe, Prose, Text
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, GitRef, Sha256, Slug
from fairwitness.contracts.common.policy import Policy


class KeepArtifacts(StrEnum):
    """Whether the feature folder is committed too."""

    NO = "no"
    SEPARATE_COMMIT = "separate-commit"


class FinishSettings(Contract):
    """How a run ends in git."""

    checkout: Flag = True
    """Whether the person's checkout is switched to the feature's branch, if it is clean and still at the base."""
    artifacts: KeepArtifacts = KeepArtifacts.NO
    co_author: Flag = True
    """Whether the commit names the pipeline as its co-author."""


class FeatureOrder(Contract):
    """One feature, as a person asked for it and as the machine stood then."""

    request: Prose
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    """What the work starts from: the checkout's commit."""
    base_branch: Maybe[GitRef] = None
    """The branch that was checked out; None if none was."""
    snapshot: Maybe[GitRef] = None
    """The ref that keeps what was not committed, which is no part of the work; None if everything was."""
    baseline_tag: GitRef
    target: GitRef
    """The run's own branch that everything is merged into."""
    policy: Policy = Policy()
    finish: FinishSettings = FinishSettings()
    verify: dict[str, Any]
    """The person's settings of the checks."""
    settings_hash: Sha256
    agents: Maybe[Text] = None
    """The agent that was asked for on the command line; None for what each role's settings say."""
    cassettes: Maybe[Text] = None
    started_by: Text


class Dirty(StrEnum):
    """What is done about changes that are not committed."""

    SNAPSHOT = "snapshot"
    REFUSE = "refuse"


class FinishTable(Contract):
    """`[finish]`."""

    checkout: Flag = True
    co_author: Flag = True


class ArtifactsTable(Contract):
    """`[artifacts]`."""

    commit: KeepArtifacts = KeepArtifacts.NO


class FeatureTable(Contract):
    """`[feature]`."""

    dirty: Dirty = Dirty.SNAPSHOT


class FeatureSettings(Contract):
    """The tables of `fairwitness.toml` that a feature run reads."""

    feature: FeatureTable = FeatureTable()
    policy: Policy = Policy()
    finish: FinishTable = FinishTable()
    artifacts: ArtifactsTable = ArtifactsTable()
    budget: BudgetTable = BudgetTable()

    @property
    def ends(self) -> FinishSettings:
        """How a run ends in git."""
        return FinishSettings(
            checkout=self.finish.checkout, artifacts=self.artifacts.commit, co_author=self.finish.co_author
        )
