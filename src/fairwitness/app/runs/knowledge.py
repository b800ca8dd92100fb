"""What runs learned about a repository: entries that can be removed, and proposed changes to instruction files."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.repository import state_in
from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.views.detail import FEATURE, resolve_run_at
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.runs.feature.instructions import apply, diff_of, proposals
from fairwitness.runs.feature.memory import FILE, Memory, judge_entry
from fairwitness.store.artifacts import Store


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change to an instruction file, with its diff."""

    number: int
    file: str
    change: str
    summary: str
    diff: str

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def pending_proposals(root: Path, wanted: str) -> list[Proposal]:
    """Return the proposals of a run that are not applied."""
    with open_feature_run(root, resolve_run_at(root, wanted, workflow=FEATURE)) as context:
        found = []
        for number, update in enumerate(proposals(context), start=1):
            try:
                diff = diff_of(context, update)
            except FairWitnessError as error:
                diff = f"(does not apply: {error.what})"
            found.append(Proposal(number, update.file_path, update.change_type.value, update.change_summary, diff))
        return found


def apply_proposal(root: Path, wanted: str, number: int) -> str:
    """Apply a proposal in the name of the person; return the path of the changed file."""
    with open_feature_run(root, resolve_run_at(root, wanted, workflow=FEATURE)) as context:
        waiting = proposals(context)
        if not 1 <= number <= len(waiting):
            raise UsageError(
                f"run {context.run_id} has no proposal {number}",
                next_step=f"fairwitness knowledge proposals {context.run_id}",
            )
        apply(context, waiting[number - 1], read_identity(context.repository).author)
        return waiting[number - 1].file_path


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """An entry of the knowledge; if it has grounds, the filter refuses it and no agent sees it."""

    type: str
    key: str
    value: str
    run_id: str
    grounds: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {**asdict(self), "grounds": list(self.grounds)}


def file_of(root: Path) -> Path:
    """Return the path of a repository's knowledge; the file need not exist."""
    return state_in(root) / FILE


def knowledge_in(root: Path) -> tuple[KnowledgeEntry, ...]:
    """Return all entries, the newest first; creates nothing."""
    return tuple(
        KnowledgeEntry(
            type=entry.type.value,
            key=entry.key,
            value=entry.value,
            run_id=entry.run_id,
            grounds=tuple(ground.value for ground in judge_entry(entry.key, entry.value).grounds),
        )
        for entry in reversed(_memory(root).entries())
    )


def forget(root: Path, key: str) -> KnowledgeEntry:
    """Remove the entry of a key and return it; raise `UsageError` if there is none."""
    known = {entry.key: entry for entry in knowledge_in(root)}
    if key not in known or not _memory(root).forget(key):
        raise UsageError(f"there is no knowledge entry {key!r}", next_step="fairwitness knowledge list")
    return known[key]


def _memory(root: Path) -> Memory:
    return Memory(Store(state_in(root), private=True))
