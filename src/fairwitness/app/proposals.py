"""Changes of instruction files that a run proposed, as a person sees and applies them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.feature_run import opened_context
from fairwitness.app.looking import meant_run
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.runs.feature.instructions import apply, diff_of, proposals


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


def pending(root: Path, wanted: str) -> list[Proposal]:
    """What a run proposed and nobody applied."""
    with opened_context(root, meant_run(root, wanted)) as context:
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
    with opened_context(root, meant_run(root, wanted)) as context:
        waiting = proposals(context)
        if not 1 <= number <= len(waiting):
            raise UsageError(
                f"run {context.run_id} has no proposal {number}",
                next_step=f"fairwitness knowledge proposals {context.run_id}",
            )
        apply(context, waiting[number - 1], read_identity(context.repository).author)
        return waiting[number - 1].file_path
