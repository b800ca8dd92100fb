"""Governed changes to instruction files: proposed by a run, written only after a person approves.

A proposal is a row of the ledger, stored with the old and the new content of the file. It is applied only while the
file still has the old content. The file is written before the second row, and a repeated call finds it.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.feature.knowledge import InstructionChange, InstructionUpdate
from fairwitness.errors import FairWitnessError, NotStored, StoreError, UsageError
from fairwitness.kit import files
from fairwitness.kit.json_text import render_line
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.record import Record
from fairwitness.rules.instructions import UpdateJudgement, judge_update, may_apply
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.memory import has_secret
from fairwitness.store.artifacts import content_hash

PROPOSED = "instruction-proposed"
REFUSED = "instruction-refused"
APPROVED = "instruction-approved"
APPLIED = "instruction-applied"
PROPOSER = FeatureAgent.KNOWLEDGE.value
_LIMIT = 1024 * 1024
_HUNK = re.compile(r"^@@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The current and the new text of a file; `after` is None if the patch does not fit."""

    before: str | None
    after: str | None


def propose(context: FeatureContext, updates: Iterable[InstructionUpdate]) -> None:
    """Record each proposal once. What the filter refuses is recorded as refused."""
    for update in updates:
        name = name_of(update)
        if context.ledger.observation(context.run_id, name) is not None:
            continue
        planned = _planned(context, update)
        judged = _judged(update, planned)
        grounds = [ground.value for ground in judged.grounds]
        if not judged.is_allowed or planned.after is None:
            _record(context, context.observation(name, REFUSED, update.file_path, {"grounds": grounds}, holds=False))
        else:
            detail: dict[str, object] = {
                "update": _plain(update),
                "before": None if planned.before is None else content_hash(planned.before.encode()),
                "after": content_hash(planned.after.encode()),
            }
            _record(context, context.observation(name, PROPOSED, update.file_path, detail), update, applied=False)
        killpoint("feature.instruction.proposed")


def proposals(context: FeatureContext) -> tuple[InstructionUpdate, ...]:
    """Return the proposals that are not applied, oldest first, including those that may never be applied."""
    return tuple(
        recorded(InstructionUpdate, seen, "update")
        for seen in context.ledger.observations(context.run_id, PROPOSED)
        if context.ledger.observation(context.run_id, f"{seen.key}:applied") is None
    )


def diff_of(context: FeatureContext, update: InstructionUpdate) -> str:
    """Return what an update would change in the checkout, as a unified diff; raise `UsageError` if it does not fit."""
    planned = _planned(context, update)
    if planned.after is None:
        raise UsageError(f"the patch for {update.file_path} does not fit the file", next_step="edit the file yourself")
    lines = difflib.unified_diff(
        _lines(planned.before or ""),
        _lines(planned.after),
        fromfile="/dev/null" if planned.before is None else f"a/{update.file_path}",
        tofile=f"b/{update.file_path}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split a text into lines as git does, so that a changed line end is visible as a change."""
    return text.removesuffix("\n").split("\n") if text else []


def apply(context: FeatureContext, update: InstructionUpdate, approved_by: str) -> None:
    """Write a proposed update into the checkout, once. Raise `UsageError` and write nothing if it is not allowed."""
    name = name_of(update)
    proposed = context.ledger.observation(context.run_id, name)
    if proposed is None or proposed.kind != PROPOSED:
        raise UsageError(f"run {context.run_id} did not propose this change of {update.file_path}")
    if context.ledger.observation(context.run_id, f"{name}:applied") is not None:
        return
    approved = context.ledger.observation(context.run_id, f"{name}:approved")
    if approved is None or not _is_written(context, update, proposed):
        planned = _planned(context, update)
        if planned.after is None or content_hash(planned.after.encode()) != proposed.detail["after"]:
            raise _moved(update)
        judged = _may_apply(context, update, planned, approved_by)
        if not judged.is_allowed:
            raise UsageError(
                f"{update.file_path} is not changed: {', '.join(ground.value for ground in judged.grounds)}",
                next_step="edit the file yourself if you want the change",
            )
        if approved is None:
            detail: dict[str, object] = {"approved_by": approved_by, "diff": diff_of(context, update)}
            seen = context.observation(f"{name}:approved", APPROVED, update.file_path, detail)
            _record(context, seen)
            killpoint("feature.instruction.approved")
        _write(context, update, proposed, planned.after)
        killpoint("feature.instruction.written")
    done = context.observation(f"{name}:applied", APPLIED, update.file_path, {"sha256": proposed.detail["after"]})
    _record(context, done, update, applied=True)
    killpoint("feature.instruction.applied")


def name_of(update: InstructionUpdate) -> str:
    """Return the key of a proposal; the same update has the same key."""
    digest = content_hash(render_line(_plain(update)).encode(errors="surrogatepass"))
    return f"instruction:{digest.removeprefix('sha256:')[:16]}"


def _plain(update: InstructionUpdate) -> dict[str, object]:
    """Return the update without fields that an agent added."""
    return {name: value for name, value in update.plain().items() if name in InstructionUpdate.model_fields}


def proposed_text(update: InstructionUpdate, old: str | None) -> str | None:
    """Return the new text of the file; None if the patch does not fit or changes nothing.

    For a new file or an append, the patch is the text itself. For a change it is a unified diff or the whole new text,
    for a removal a diff or the removed text. Hunks are located by their lines, which must occur exactly once.
    """
    patch = update.patch.replace("\r\n", "\n")
    if not patch.strip() or (old is None) != (update.change_type is InstructionChange.CREATE):
        return None
    new = _changed(update.change_type, old or "", patch if patch.endswith("\n") else f"{patch}\n")
    return None if new == old else new


def _changed(change: InstructionChange, old: str, patch: str) -> str | None:
    is_diff = _HUNK.search(patch) is not None
    match change:
        case InstructionChange.CREATE:
            return patch
        case InstructionChange.APPEND:
            return f"{old.rstrip()}\n\n{patch}" if old.strip() else patch
        case InstructionChange.MODIFY:
            return _patched(old, patch) if is_diff else patch
        case InstructionChange.DELETE if is_diff:
            return _patched(old, patch)
        case InstructionChange.DELETE:
            return old.replace(patch, "") if old.count(patch) == 1 else None


def _patched(old: str, patch: str) -> str | None:
    lines, done = old.split("\n"), 0
    for hunk in _HUNK.split(patch)[1:]:
        body = [line for line in hunk.removesuffix("\n").split("\n")[1:] if not line.startswith("\\")]
        if any(line[:1] not in ("", " ", "-", "+") for line in body):
            return None
        before = [line[1:] for line in body if line[:1] != "+"]
        after = [line[1:] for line in body if line[:1] != "-"]
        places = [place for place in range(done, len(lines)) if lines[place : place + len(before)] == before]
        if not before or len(places) != 1:
            return None
        lines[places[0] : places[0] + len(before)] = after
        done = places[0] + len(after)
    return "\n".join(lines)


def _planned(context: FeatureContext, update: InstructionUpdate) -> PlannedChange:
    """Return the file's current text and the new one; a file that is not plain text fits no patch."""
    try:
        before = context.files.get(update.file_path, limit=_LIMIT).decode()
    except NotStored:
        return PlannedChange(None, proposed_text(update, None))
    except (StoreError, UnicodeDecodeError):
        return PlannedChange(None, None)
    return PlannedChange(before, proposed_text(update, before))


def _judged(update: InstructionUpdate, planned: PlannedChange) -> UpdateJudgement:
    return judge_update(update, planned.before or "", planned.after, has_secret=_has_secret(update))


def _may_apply(
    context: FeatureContext, update: InstructionUpdate, planned: PlannedChange, approved_by: str
) -> UpdateJudgement:
    return may_apply(
        update,
        planned.before or "",
        planned.after,
        has_secret=_has_secret(update),
        mode=context.order.mode,
        proposer=PROPOSER,
        approved_by=approved_by,
    )


def _has_secret(update: InstructionUpdate) -> bool:
    return has_secret(update.patch) or has_secret(update.change_summary)


def _is_written(context: FeatureContext, update: InstructionUpdate, proposed: Observation) -> bool:
    """Return whether an approved change is in the file already, because a process died before it wrote the second
    row."""
    try:
        written = content_hash(context.files.get(update.file_path, limit=_LIMIT))
    except StoreError:
        return False
    return written == str(proposed.detail["after"])


def _write(context: FeatureContext, update: InstructionUpdate, proposed: Observation, after: str) -> None:
    def revised(old: bytes | None) -> bytes:
        if (None if old is None else content_hash(old)) != proposed.detail["before"]:
            raise _moved(update)
        return after.encode()

    files.revise_file(context.files.root, update.file_path, revised, limit=_LIMIT)


def _moved(update: InstructionUpdate) -> FairWitnessError:
    return UsageError(
        f"{update.file_path} is not what it was when the change was proposed", next_step="edit the file yourself"
    )


def _record(
    context: FeatureContext, seen: Observation, update: InstructionUpdate | None = None, *, applied: bool = False
) -> None:
    """Record an observation, and in the same record the row about an update."""

    def write(record: Record) -> None:
        record.observation(seen)
        if update is not None:
            record.instruction_update(update, agent=PROPOSER, applied=applied)

    context.write(write)
