"""What the runs of a repository have learned, as every surface shows it, and how a person takes something out."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.status import state_in
from fairwitness.errors import UsageError
from fairwitness.runs.feature.memory import FILE, Memory, judge_entry
from fairwitness.store.artifacts import Store


@dataclass(frozen=True, slots=True)
class Known:
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


def known_in(root: Path) -> tuple[Known, ...]:
    """Everything that is remembered, the newest first; nothing is made."""
    return tuple(
        Known(
            type=entry.type.value,
            key=entry.key,
            value=entry.value,
            run_id=entry.run_id,
            grounds=tuple(ground.value for ground in judge_entry(entry.key, entry.value).grounds),
        )
        for entry in reversed(_memory(root).entries())
    )


def forget(root: Path, key: str) -> Known:
    """Takes out what stands under a key, and answers what it was; `UsageError` if there is nothing."""
    known = {entry.key: entry for entry in known_in(root)}
    if key not in known or not _memory(root).forget(key):
        raise UsageError(f"nothing is known under {key!r}", next_step="fairwitness knowledge list")
    return known[key]


def _memory(root: Path) -> Memory:
    return Memory(Store(state_in(root)))
