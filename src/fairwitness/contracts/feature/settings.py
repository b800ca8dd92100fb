"""What a person may set about feature runs, in `fairwitness.toml`; the seeds' numbers are the defaults."""

from enum import StrEnum

from fairwitness.contracts.common.base import Contract, Flag
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.order import FinishSettings, KeepArtifacts


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
