"""What runs have learned about a repository, kept for later runs in `.fairwitness/knowledge.yaml`.

The state folder is inside the repository but not part of its commits, so learning never makes a checkout dirty; a
person who wants the file in git can add it. Anybody can edit the file, so its content passes the filter again when it
is read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from fairwitness.contracts.common.base import Contract, OneLine, Text
from fairwitness.contracts.common.ids import FeatureRunId
from fairwitness.contracts.feature.knowledge import KnowledgeType
from fairwitness.errors import BadDocument, UsageError
from fairwitness.kit import files, yaml_text
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.redaction import redact
from fairwitness.rules.instructions import UpdateJudgement, judge_memory
from fairwitness.store.artifacts import Store

FILE = "knowledge.yaml"
MOST_ENTRIES = 200
MOST_BYTES = 64 * 1024
_READ_LIMIT = 1024 * 1024


class MemoryEntry(Contract):
    """One thing that a run learned."""

    type: KnowledgeType
    key: OneLine
    value: Text
    run_id: FeatureRunId


class _Remembered(Contract):
    """The content of the file, the oldest entry first."""

    knowledge: tuple[MemoryEntry, ...]


def has_secret(text: str) -> bool:
    """Return whether a text contains a secret."""
    return redact(text) != text


def judge_entry(key: str, value: str) -> UpdateJudgement:
    """Return whether an entry may be remembered, and the grounds against it."""
    return judge_memory(key, value, has_secret=has_secret(value) or has_secret(f"{key}: {value}"))


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a repository; `store` is its state folder."""

    store: Store

    def entries(self) -> tuple[MemoryEntry, ...]:
        """Return all entries, the oldest first; raise `UsageError` if the file cannot be read."""
        if not self.store.exists(FILE):
            return ()
        return self._read(self.store.get(FILE, limit=_READ_LIMIT))

    def remember(self, learned: Sequence[MemoryEntry]) -> None:
        """Add entries. An entry with the same key is replaced, and the oldest ones beyond the limits are dropped.

        Raise `UsageError` and write nothing if an entry does not pass the filter.
        """
        for entry in learned:
            judged = judge_entry(entry.key, entry.value)
            if not judged.is_allowed:
                raise UsageError(f"{entry.key[:80]!r} may not be remembered: {', '.join(judged.grounds)}")
        if learned:
            self._revise(lambda known: _with(known, learned))

    def forget(self, key: str) -> bool:
        """Remove an entry; return whether it existed."""
        found: list[MemoryEntry] = []

        def without(known: tuple[MemoryEntry, ...]) -> tuple[MemoryEntry, ...]:
            found[:] = [entry for entry in known if entry.key == key]
            return tuple(entry for entry in known if entry.key != key)

        if self.store.exists(FILE):
            self._revise(without)
        return bool(found)

    def boxed(self) -> tuple[str, ...]:
        """Return what later briefs show as data, the newest first, without entries that the filter refuses today."""
        return tuple(
            f"{entry.type.value} {entry.key}: {entry.value} (learned in run {entry.run_id})"
            for entry in reversed(self.entries())
            if judge_entry(entry.key, entry.value).is_allowed
        )

    def _revise(self, change: Callable[[tuple[MemoryEntry, ...]], tuple[MemoryEntry, ...]]) -> None:
        def revised(old: bytes | None) -> bytes:
            known = self._read(old) if old is not None else ()
            changed = change(known)
            return old if old is not None and changed == known else _rendered(changed)

        files.revise_file(self.store.root, FILE, revised, limit=_READ_LIMIT)
        killpoint("feature.memory")

    def _read(self, data: bytes) -> tuple[MemoryEntry, ...]:
        try:
            return _Remembered.model_validate(yaml_text.parse(data.decode())).knowledge
        except (BadDocument, ValidationError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.store.root / FILE} is not what Fair Witness wrote: {str(error).splitlines()[0]}",
                next_step="mend the file, or delete it: nothing else depends on it",
            ) from error


def _with(known: Iterable[MemoryEntry], learned: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
    """Return the entries with the new ones added; existing ones keep their place, so that a repeated call changes
    nothing."""
    entries = list(known)
    for entry in learned:
        if entry not in entries:
            entries = [*(each for each in entries if each.key != entry.key), entry]
    entries = entries[-MOST_ENTRIES:]
    sizes = [len(_rendered((entry,))) for entry in entries]
    while sum(sizes) > MOST_BYTES:
        del entries[0], sizes[0]
    return tuple(entries)


def _rendered(entries: tuple[MemoryEntry, ...]) -> bytes:
    return yaml_text.render(_Remembered(knowledge=entries).plain()).encode()
