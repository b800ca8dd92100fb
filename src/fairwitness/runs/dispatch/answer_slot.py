"""The slot of a dispatch: a file whose space is taken before the agent is called, and that keeps its answer until the
ledger has it.

A call is paid when its answer arrives. From then on a full disk, a kill or a power failure must not cause it to be made
again, so the answer is first written into space that was taken before the call. The next process that dispatches the
same call finds it there. The file goes when the ledger has the answer.
"""

import json
import zlib
from pathlib import Path
from typing import Any

from fairwitness.contracts.agents.dispatch import Brief, ChangedPath, Denial, DispatchOutcome
from fairwitness.errors import NotReady
from fairwitness.kit.disk_watch import ReservedFile
from fairwitness.kit.files import list_folder
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.audit import Audit
from fairwitness.store.artifacts import content_hash

FOLDER = "answers"
SIZE = 16 << 20
"""The space that is taken for one call: its answer and its transcript, compressed, with plenty to spare."""


def sweep_slots(state: Path, ledger: Ledger) -> None:
    """Remove the slots of dead processes, except answers that the ledger lacks: the next dispatch adopts them."""
    for entry in list_folder(state, FOLDER):
        file = ReservedFile.open(state, f"{FOLDER}/{entry.name}")
        if file is None:
            continue  # its process is alive
        run_id, dispatch_id = json.loads(zlib.decompress(file.parts[0]))["id"] if file.parts else ("", "")
        if file.parts and ledger.observation(run_id, f"dispatch:{dispatch_id}:ended") is None:
            file.close()
        else:
            file.remove()


class AnswerSlot:
    """The slot of one dispatch, held by this process until it is closed."""

    def __init__(self, file: ReservedFile, id_: list[str]) -> None:
        self._file, self._id = file, id_
        self.outcome: DispatchOutcome | None = None
        """The outcome that arrived."""
        self.transcript = b""
        self.tries = 0
        """The number of the try that it arrived in."""
        self.mark = ""
        """The mark of the worktree when it arrived."""
        self.audit: Audit | None = None
        """What the worktree was like after it, if that was still found out."""
        self._load()

    @classmethod
    def take(cls, state: Path, brief: Brief, *, size: int = SIZE) -> "AnswerSlot":
        """Take the space for an answer, or open the slot with the answer of a call that was interrupted.

        Raise `DiskRefused` if there is no room, before anything is paid.
        """
        id_ = [brief.run_id, brief.dispatch_id]
        name = content_hash(json.dumps(id_).encode()).removeprefix("sha256:")[:32]
        file = ReservedFile.open(state, f"{FOLDER}/{name}", size=size)
        if file is None:
            raise NotReady(
                f"another process is calling {brief.dispatch_id} of run {brief.run_id}",
                next_step="wait until it has ended",
            )
        return cls(file, id_)

    def arrived(self, outcome: DispatchOutcome, transcript: bytes, tries: int, mark: str) -> None:
        """Keep an answer that has arrived, with the mark of its worktree."""
        said = {"outcome": outcome.plain(), "transcript": transcript.decode()}
        self._add({"id": self._id, "tries": tries, "mark": mark, **said})
        self.outcome, self.transcript, self.tries, self.mark = outcome, transcript, tries, mark

    def audited(self, found: Audit) -> None:
        """Keep what the audit found, since the worktree may be gone when the answer is adopted."""
        self._add(
            {
                "changed": [each.plain() for each in found.changed],
                "denials": [each.plain() for each in found.denials],
                "byproducts": found.byproducts,
                "tree": found.tree,
            }
        )
        self.audit = found

    def forget(self) -> None:
        """Forget an answer that cannot be adopted, and take the space for the next."""
        self.outcome, self.audit = None, None
        self._file.clear(SIZE)

    def close(self, *, recorded: bool) -> None:
        """Give the slot back; it stays if it holds an answer that is not recorded."""
        if recorded:
            self._file.remove()
        else:
            self._file.close()

    def _add(self, part: dict[str, Any]) -> None:
        self._file.add(zlib.compress(json.dumps(part).encode()))

    def _load(self) -> None:
        parts = [json.loads(zlib.decompress(part)) for part in self._file.parts]
        if parts and parts[0]["id"] == self._id:
            said = parts[0]
            self.outcome, self.tries = DispatchOutcome.model_validate(said["outcome"]), said["tries"]
            self.transcript, self.mark = said["transcript"].encode(), said["mark"]
            if len(parts) > 1:
                found = parts[1]
                self.audit = Audit(
                    changed=tuple(ChangedPath.model_validate(each) for each in found["changed"]),
                    denials=tuple(Denial.model_validate(each) for each in found["denials"]),
                    byproducts=found["byproducts"],
                    tree=found["tree"],
                )
