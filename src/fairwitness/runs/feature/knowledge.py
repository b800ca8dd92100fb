"""Step 8: store what a run learned, log its decisions, propose instruction changes, and write its metrics.

Nothing here blocks a run. A part that fails is recorded in the ledger and the other parts go on; only a ledger that
cannot be trusted or written stops everything.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import TypeVar

from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.feature.events import ArtifactWritten
from fairwitness.contracts.feature.knowledge import (
    DecisionLog,
    DecisionLogEntry,
    KnowledgeOutput,
    KnowledgePayload,
    KnowledgeUpdate,
    StoredVia,
)
from fairwitness.errors import (
    BadDocument,
    DatabaseUnusable,
    EventsBroken,
    FairWitnessError,
    LedgerTampered,
    RowRefused,
    UsageError,
    is_machine_fault,
)
from fairwitness.kit import yaml_text
from fairwitness.kit.json_text import render_line
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.redaction import knowing, redact
from fairwitness.kit.text import visible, visible_lines
from fairwitness.rules.instructions import Objection
from fairwitness.runs.dispatch.transcript import cleaned, keep
from fairwitness.runs.feature import instructions, ledger_queries
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.memory import Memory, MemoryEntry, has_secret, judge_entry
from fairwitness.runs.feature.metrics_pages import post_mortem_page, run_log_page
from fairwitness.store.artifacts import content_hash

T = TypeVar("T")

FAILED = "knowledge-failed"
REMEMBERED = "knowledge-remembered"
REFUSED = "knowledge-refused"
WITHHELD = "[not kept: it held a secret]"
_BROKEN = (DatabaseUnusable, EventsBroken, LedgerTampered, RowRefused)


def learn(context: FeatureContext, output: KnowledgeOutput | None) -> None:
    """Do everything for the end of a run; `output` is None if the agent failed. A repeated call does nothing twice."""
    if output is not None:
        payload = output.agent_output.payload
        updates = tuple(map(_judged, payload.knowledge_updates))
        decisions = payload.decision_log_entries or ()
        entries = tuple(entry for entry in decisions if not has_secret(f"{entry.title}\n{entry.rationale}"))
        _part(context, "memory", lambda: _remember(context, updates))
        logged = _part(context, "decisions", lambda: _log(context, entries, refused=len(decisions) - len(entries)))
        _part(context, "instructions", lambda: instructions.propose(context, payload.instruction_updates or ()))
        _part(
            context,
            "document",
            lambda: _store(context, output, payload, updates, entries if logged is None else logged),
        )
    _part(context, "run-log", lambda: _write_run_log(context))
    _part(context, "post-mortem", lambda: _write_post_mortem(context))


def _part(context: FeatureContext, name: str, work: Callable[[], T]) -> T | None:
    """Run one part, or record why it failed."""
    try:
        return work()
    except _BROKEN:
        raise
    except (FairWitnessError, ValueError) as error:  # ValueError: a text that no file can hold
        if is_machine_fault(error):
            raise
        what = cleaned(str(error) or type(error).__name__)
        _note(context, context.observation(f"knowledge:{name}:failed", FAILED, name, {"what": what}, holds=False))
        return None


def _note(context: FeatureContext, seen: Observation) -> None:
    """Record an observation once."""
    if context.ledger.observation(context.run_id, seen.key) is None:
        context.write(lambda record: record.observation(seen))
        killpoint("feature.knowledge.noted")


def _judged(update: KnowledgeUpdate) -> KnowledgeUpdate:
    """Return an update as it is stored: one that the filter refuses is marked as rejected and shows no secret."""
    key = " ".join(update.key.split())
    judged = judge_entry(key, update.value)
    if judged.is_allowed:
        return update.model_copy(update={"key": key})
    value = WITHHELD if Objection.SECRET in judged.grounds else visible_lines(update.value)
    return update.model_copy(update={"key": visible(redact(key)), "value": value, "stored_via": StoredVia.REJECTED})


def _remember(context: FeatureContext, updates: Sequence[KnowledgeUpdate]) -> None:
    """Remember the updates once, so that what a person removed meanwhile stays removed."""
    learned = [
        MemoryEntry(type=update.type, key=update.key, value=update.value, run_id=context.run_id)
        for update in updates
        if update.stored_via is StoredVia.STORE_MEMORY
    ]
    rejected = [update.key for update in updates if update.stored_via is StoredVia.REJECTED]
    told = render_line([entry.plain() for entry in learned]).encode(errors="surrogatepass")
    key = f"knowledge:memory:{content_hash(told).removeprefix('sha256:')[:16]}"
    if context.ledger.observation(context.run_id, key) is not None:
        return
    Memory(context.kept).remember(learned)
    detail: dict[str, object] = {"remembered": [entry.key for entry in learned], "rejected": rejected}
    _note(context, context.observation(key, REMEMBERED, "memory", detail))


def _log(context: FeatureContext, entries: Sequence[DecisionLogEntry], *, refused: int) -> tuple[DecisionLogEntry, ...]:
    """Add the decisions that the log lacks, under the next ids; return the entries with their ids in the log."""
    if refused:
        detail: dict[str, object] = {"entries": refused, "grounds": [Objection.SECRET.value]}
        _note(context, context.observation("knowledge:decisions:refused", REFUSED, "decisions", detail, holds=False))
    path = context.layout.decisions
    old = context.files.get(path).decode() if context.files.exists(path) else _archived_log(context)
    known = _read_log(path, old)
    logged = {_said(entry): entry for entry in known}
    last = max((int(entry.id.removeprefix("DL-")) for entry in known), default=0)
    added: list[DecisionLogEntry] = []
    for entry in entries:
        if _said(entry) not in logged:
            last += 1
            logged[_said(entry)] = numbered = DecisionLogEntry(
                id=f"DL-{last:03}", title=entry.title, rationale=entry.rationale, confidence=entry.confidence
            )
            added.append(numbered)
    if known or added:
        _grow(context, path, _extended(path, old, known, added))
    return tuple({entry.id: entry for entry in (logged[_said(each)] for each in entries)}.values())


def _archived_log(context: FeatureContext) -> str:
    """Return the longest log that earlier runs of this feature left; each run continued the one before."""
    name = context.layout.decisions.rpartition("/")[2]
    paths = [f"{folder}/{name}" for folder in context.files.folders(f"{context.layout.folder}/archive")]
    logs = [(path, context.files.get(path).decode()) for path in paths if context.files.exists(path)]
    return max(((len(_read_log(path, text)), text) for path, text in logs), default=(0, ""))[1]


def _said(entry: DecisionLogEntry) -> tuple[str, str, str]:
    """Return what identifies a decision, whatever its number."""
    return entry.title.strip(), entry.rationale.strip(), entry.confidence.value


def _read_log(path: str, text: str) -> tuple[DecisionLogEntry, ...]:
    if not text:
        return ()
    try:
        return DecisionLog.model_validate(yaml_text.parse(text)).decisions
    except (BadDocument, ValueError) as error:
        raise _foreign_log(path) from error


def _extended(path: str, old: str, known: Sequence[DecisionLogEntry], added: Sequence[DecisionLogEntry]) -> str:
    """Return the log with entries appended, the bytes before them unchanged."""
    if not added:
        return old
    block = yaml_text.render([entry.plain() for entry in added])
    start = old if old.endswith("\n") else f"{old}\n" if old else "decisions:\n"
    for margin in ("", "  ", "    "):
        text = start + "".join(f"{margin if line.strip() else ''}{line}" for line in block.splitlines(keepends=True))
        try:
            if _read_log(path, text) == (*known, *added):
                return text
        except UsageError:
            continue
    raise _foreign_log(path)


def _foreign_log(path: str) -> UsageError:
    return UsageError(f"{path} is not a log that can be added to", next_step="mend the file")


def _grow(context: FeatureContext, path: str, text: str) -> None:
    digest = keep(context.kept, text.encode())
    context.files.grow(path, text.encode())
    killpoint("feature.decisions")
    if context.state().artifacts.get(path) != digest:
        context.write_event(ArtifactWritten(path=path, sha256=digest))


def _store(
    context: FeatureContext,
    output: KnowledgeOutput,
    payload: KnowledgePayload,
    updates: Sequence[KnowledgeUpdate],
    entries: Sequence[DecisionLogEntry],
) -> None:
    """Store `knowledge-output.yaml`: the agent's document with the real fate of its parts, redacted."""
    change: dict[str, object] = {"knowledge_updates": tuple(updates)}
    if payload.decision_log_entries is not None:
        change["decision_log_entries"] = tuple(entries)
    kept = payload.model_copy(update=change)
    whole = output.model_copy(update={"agent_output": output.agent_output.model_copy(update={"payload": kept})})
    document = KnowledgeOutput.model_validate(knowing().redact_all(whole.plain()))
    yaml_text.parse(yaml_text.render(document.plain()))  # do not store what cannot be read again
    context.put_document(context.layout.knowledge, document)


def _write_run_log(context: FeatureContext) -> None:
    day = _day(context)
    rows = ledger_queries.dispatches(context.ledger.database, context.run_id)
    context.put(context.layout.run_log(day), run_log_page(rows, run_id=context.run_id, day=day))


def _write_post_mortem(context: FeatureContext) -> None:
    day, database = _day(context), context.ledger.database
    rows = ledger_queries.dispatches(database, context.run_id)
    said = ledger_queries.evaluations(database, context.run_id)
    context.put(context.layout.post_mortem(day), post_mortem_page(context.state(), rows, said, day=day))


def _day(context: FeatureContext) -> date:
    """Return the day on which the run began, which does not depend on when this is called."""
    return instant(context.state().started_at).date()
