"""The trust of this user in the `fairwitness.toml` of a repository, by repository and by the file's SHA-256.

Trust is recorded in the user's state directory, which a repository cannot bring and sandboxed commands cannot write.
All worktrees of a repository share it. A repository that was deleted and made again at the same path is another one.
Where nobody can be asked, `FAIRWITNESS_TRUST` names the hashes that are trusted in this process.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import NotReady, UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.text import visible
from fairwitness.kit.user_state import remember, remembered
from fairwitness.rules.repository_settings import HeldSetting, WithoutTrust

NAME = "fairwitness.toml"
VARIABLE = "FAIRWITNESS_TRUST"
_FILE = "trust.jsonl"
_HASH = re.compile(r"[0-9a-f]{64}")


class RepositoryFolder(NamedTuple):
    """A repository on this machine: the real path of its git directory, and the directory's inode."""

    path: str
    inode: int


class RepositoryFile(NamedTuple):
    """The content of a repository's `fairwitness.toml`: of the checkout, or of a commit."""

    root: Path
    content: bytes
    commit: str | None = None

    @property
    def sha256(self) -> str:
        """The hash by which the file is trusted."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def command(self) -> str:
        """The command that shows the file's settings and asks whether they are trusted."""
        return "fairwitness trust" if self.commit is None else f"fairwitness trust --at {self.commit[:12]}"

    @property
    def place(self) -> str:
        """The file, as a sentence names it."""
        return NAME if self.commit is None else f"{NAME} of {self.commit[:12]}"


def identity_of(root: Path) -> RepositoryFolder:
    """Return the identity of the repository of a checkout, or of the folder itself if it is in none."""
    try:
        place = Repository.open(root).common_dir
    except UsageError:
        place = root
    real = Path(os.path.realpath(place))
    return RepositoryFolder(str(real), real.stat().st_ino)


def is_trusted(file: RepositoryFile) -> bool:
    """Return whether this user trusts the file in its repository."""
    return file.sha256 in _named_hashes() or _last_word(identity_of(file.root), file.sha256) is True


def refuse_revoked(root: Path, sha256: str) -> None:
    """Raise `NotReady` if a file that a run began with is no longer trusted."""
    if sha256 not in _named_hashes() and _last_word(identity_of(root), sha256) is False:
        raise NotReady(
            f"you revoked your trust in the {NAME} that this run began with; "
            "trust it again (fairwitness trust), or begin a new run",
            next_step="fairwitness trust",
        )


def record_trust(file: RepositoryFile, *, clock: Clock = system_clock) -> None:
    """Record that this user trusts the file in its repository."""
    remember(_FILE, {**_key(identity_of(file.root), file.sha256), "trusted": True, "at": spell(clock())})


def record_revoked(root: Path, *, clock: Clock = system_clock) -> tuple[str, ...]:
    """Revoke every trust in files of the repository; return their hashes."""
    identity = identity_of(root)
    latest = {
        str(record["sha256"]): record["trusted"] is True
        for record in remembered(_FILE)
        if _is_of(record, identity) and "sha256" in record and "trusted" in record
    }
    revoked = tuple(sha256 for sha256, trusted in latest.items() if trusted)
    for sha256 in revoked:
        remember(_FILE, {**_key(identity, sha256), "trusted": False, "at": spell(clock())})
    return revoked


def listed(held: Sequence[HeldSetting]) -> str:
    """Return the names of settings for a sentence."""
    return ", ".join(visible(name) for name in dict.fromkeys(setting.name for setting in held))


def left_out_note(file: RepositoryFile, held: Sequence[HeldSetting]) -> str:
    """Return the sentence about settings that are not in force, with the command that asks for trust."""
    return f"not in force until you trust {file.place}: {listed(held)}; to look at them: {file.command}"


def refuse_needed(file: RepositoryFile | None, held: Sequence[HeldSetting]) -> None:
    """Raise `NotReady` if a setting is held back that the result depends on."""
    needed = [setting for setting in held if setting.trust.without is WithoutTrust.NEEDED]
    if file is not None and needed:
        raise NotReady(
            f"{file.place} sets {listed(needed)}, which only counts after you have trusted the file",
            next_step=f"{file.command} (where nobody can be asked: {VARIABLE}={file.sha256})",
        )


def _named_hashes() -> frozenset[str]:
    said = os.environ.get(VARIABLE, "").replace(",", " ").split()
    wrong = next((word for word in said if _HASH.fullmatch(word) is None), None)
    if wrong is not None:
        raise UsageError(
            f"{VARIABLE} holds {visible(wrong)!r}, which is not a SHA-256",
            next_step="set it to the hash that fairwitness trust shows",
        )
    return frozenset(said)


def _last_word(identity: RepositoryFolder, sha256: str) -> bool | None:
    """Return whether the file was last trusted or revoked in this repository; None if it never was."""
    records = [one for one in remembered(_FILE) if _is_of(one, identity) and one.get("sha256") == sha256]
    return records[-1].get("trusted") is True if records else None


def _key(identity: RepositoryFolder, sha256: str) -> dict[str, object]:
    return {"repository": identity.path, "inode": identity.inode, "sha256": sha256}


def _is_of(record: dict[str, object], identity: RepositoryFolder) -> bool:
    return (record.get("repository"), record.get("inode")) == identity
