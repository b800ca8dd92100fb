"""The learnings of a run: kept in its ledger, and written to `learnings.md` for the agents of later phases.

The file belongs to one run: its beginning empties it once. What others add to it meanwhile, such as a debug session
beside the run, stays; what the run itself learned is put back wherever it is missing.
"""

from fairwitness.contracts.common.base import Contract, Text
from fairwitness.errors import StoreError
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.markdown import Markdown
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.pages_learnings import ENTRIES, HEADER, fresh_learnings, learnings_with
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot

LEARNING, EMPTIED = "learning", "learnings-emptied"
_LIMIT = 1 << 20


class Learning(Contract):
    """One entry, as it stands in the file."""

    entry: Text


class _Emptied(Contract):
    """That the file was emptied for this run."""

    path: Text


class Learnings:
    """What one run has learned."""

    def __init__(self, log: AutopilotLog, files: Store) -> None:
        self._log, self._files = log, files

    def begin(self) -> None:
        """Empties the file, once in a run; after that it only puts back what is missing."""
        if self._log.kept(EMPTIED, _Emptied) is None:
            self._put(fresh_learnings())
            self._log.keep(EMPTIED, EMPTIED, autopilot.LEARNINGS, _Emptied(path=autopilot.LEARNINGS))
        self._mend()

    def add(self, name: str, entry: Markdown) -> None:
        """Adds an entry; under one name there is one, and what was said first stands."""
        self._log.keep(f"{LEARNING}:{name}", LEARNING, name, Learning(entry=entry))
        self._mend()

    def text(self) -> str:
        """What the agents of later phases read: the file, and if it cannot be read, what the run itself learned."""
        found = self._read()
        return self._with_own(fresh_learnings()) if found is None else found

    def _mend(self) -> None:
        found = self._read()
        wanted = self._with_own(fresh_learnings() if found is None else found)
        if wanted != found:
            self._put(wanted)

    def _with_own(self, text: str) -> str:
        for learned in self._log.all_kept(LEARNING, Learning)[-ENTRIES:]:
            if learned.entry not in text:
                text = learnings_with(text, Markdown(learned.entry))
        return text

    def _read(self) -> str | None:
        """The file as far as it is one of ours; None for one that is missing, damaged or of another kind."""
        try:
            text = self._files.get(autopilot.LEARNINGS, limit=_LIMIT).decode()
        except (StoreError, UnicodeDecodeError):
            return None
        return text if text.startswith(HEADER) else None

    def _put(self, text: str) -> None:
        self._files.put(autopilot.LEARNINGS, text.encode())
        killpoint("autopilot.learnings")
