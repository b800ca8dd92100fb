"""What the runs of a repository have learned, as every surface shows it, and how a person takes something out."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.repository import state_in
from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.views.detail import resolve_run_at
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.runs.feature.instructions import apply, diff_of, proposals
from fairwitness.runs.feature.memory import FILE, Memory, judge_entry
from fairwitness.store.artifacts import Store


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change, and what it would do to the file."""

    number: int
    file: str
    change: str
    summary: str
    diff: str

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def pending_proposals(root: Path, wanted: str) -> list[Proposal]:
    """What a run proposed and nobody applied."""
    with open_feature_run(root, resolve_run_at(root, wanted)) as context:
        found = []
        for number, update in enumerate(proposals(context), start=1):
            try:
                diff = diff_of(context, update)
            except FairWitnessError as error:
                diff = f"(it does not fit: {error.what})"
            found.append(Proposal(number, update.file_path, update.change_type.value, update.change_summary, diff))
        return found


def apply_proposal(root: Path, wanted: str, number: int) -> str:
    """Applies one of them as the person of this repository; the file's path."""
    with open_feature_run(root, resolve_run_at(root, wanted)) as context:
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
    """One thing that was learned; with grounds it is shown to no agent, since the filter refuses it."""

    type: str
    key: str
    value: str
    run_id: str
    grounds: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """The entry as plain values."""
        return {**asdict(self), "grounds": list(self.grounds)}


def file_of(root: Path) -> Path:
    """Where a repository's knowledge is, or would be."""
    return state_in(root) / FILE


def knowledge_in(root: Path) -> tuple[KnowledgeEntry, ...]:
    """Everything that is remembered, the newest first; nothing is made."""
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
    """Takes out what stands under a key, and answers what it was; `UsageError` if there is nothing."""
    known = {entry.key: entry for entry in knowledge_in(root)}
    if key not in known or not _memory(root).forget(key):
        raise UsageError(f"nothing is known under {key!r}", next_step="fairwitness knowledge list")
    return known[key]


def _memory(root: Path) -> Memory:
    return Memory(Store(state_in(root)))
