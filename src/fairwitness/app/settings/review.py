"""What a repository's `fairwitness.toml` asks of this user: every setting that needs trust, and the trust itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairwitness.agents.roles import ROLES
from fairwitness.app.settings.agents import read_agents_table
from fairwitness.app.settings.tables import table_readings
from fairwitness.app.settings.trust import (
    NAME,
    RepositoryFile,
    identity_of,
    left_out_note,
    record_revoked,
    record_trust,
)
from fairwitness.app.settings.verify import RepositoryContent, TableReading, checkout_file, read_verify_table
from fairwitness.app.state import state_of
from fairwitness.contracts.autopilot.order import AutopilotSettings
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.feature.order import FeatureSettings
from fairwitness.contracts.graph.forge_order import ForgeSettings
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.rules.repository_settings import HeldSetting

CONTRACTS: tuple[type[Contract], ...] = (FeatureSettings, ForgeSettings, AutopilotSettings)


class SettingsReview(NamedTuple):
    """The settings of a repository's file that need trust, and whether the file is trusted."""

    file: RepositoryFile | None
    asking: tuple[HeldSetting, ...]
    is_trusted: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence about the settings that are not in force; empty if all are."""
        is_quiet = self.is_trusted or self.file is None or not self.asking
        return () if is_quiet or self.file is None else (left_out_note(self.file, self.asking),)

    @property
    def trusted_hash(self) -> str | None:
        """The hash of the file if settings are in force because it is trusted."""
        return f"sha256:{self.file.sha256}" if self.file is not None and self.asking and self.is_trusted else None


def review_settings(
    top: Path | None,
    contract: type[Contract] | None = None,
    *,
    only_verify: bool = False,
    user: Path | None = None,
    instead: RepositoryContent | None = None,
) -> SettingsReview:
    """Return what the file asks for: in all tables, in those of one workflow, or only in `[verify]`."""
    contracts = () if only_verify else CONTRACTS if contract is None else (contract,)
    readings = list(_readings(top, contracts, only_verify=only_verify, user=user, instead=instead))
    asking = {setting.path: setting for reading in readings for setting in reading.asking}
    trusted = all(reading.is_trusted for reading in readings)
    return SettingsReview(readings[0].file, tuple(asking.values()), trusted)


def _readings(
    top: Path | None,
    contracts: tuple[type[Contract], ...],
    *,
    only_verify: bool,
    user: Path | None,
    instead: RepositoryContent | None,
) -> Iterator[TableReading]:
    yield read_verify_table(top, user=user, instead=instead)
    if not only_verify:
        yield read_agents_table(top, ROLES, user=user, instead=instead)
    for contract in contracts:
        for _, reading in table_readings(contract, top, user=user, instead=instead):
            yield reading


class RepositoryTrust(NamedTuple):
    """The trust of this user in one repository's file."""

    repository: str
    file: RepositoryFile
    review: SettingsReview


def look_at_trust(root: Path, at: str | None = None) -> RepositoryTrust:
    """Return what the checkout's file, or that of a commit, asks for; raise `UsageError` if there is none."""
    file = _file_of(root, at)
    if file is None:
        where = "this repository" if at is None else f"commit {at}"
        raise UsageError(f"there is no {NAME} in {where}", next_step="there is nothing to trust")
    return RepositoryTrust(identity_of(root).path, file, review_settings(root, instead=lambda: file))


def trust_file(found: RepositoryTrust, *, clock: Clock = system_clock) -> None:
    """Record trust in exactly the content that was shown."""
    record_trust(found.file, clock=clock)


def revoke_trust(root: Path, *, clock: Clock = system_clock) -> tuple[str, ...]:
    """Revoke every trust in files of this repository; return their hashes."""
    return record_revoked(root, clock=clock)


def _file_of(root: Path, at: str | None) -> RepositoryFile | None:
    if at is None:
        return checkout_file(root)
    repository = Repository.open(root)
    commit = repository.commit(at)
    shadow = Shadow.open(state_of(repository) / "git", repository)
    return file_at(repository, shadow, commit, repository.tree_of(commit))


def file_at(repository: Repository, shadow: Shadow, commit: str | None, tree: str) -> RepositoryFile | None:
    """Return the file of a commit, or None if it has none."""
    content = shadow.read(tree, NAME)
    root = repository.top or repository.common_dir
    return None if content is None else RepositoryFile(root, content, commit)
