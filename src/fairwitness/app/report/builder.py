"""Builds the HTML report of a run: reads the ledger, verifies its chain, and writes one file."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairwitness.app.report.model import (
    ApprovalAnswer,
    Contradiction,
    Decision,
    Difference,
    DiffRow,
    FileDiff,
    GateEvaluation,
    JudgedCriterion,
    Opinion,
    ReportedCall,
    ReportFacts,
    ReviewAnswer,
    SubjectResult,
    TaskAttempt,
    Visit,
)
from fairwitness.app.report.page import MARK, LedgerFindings, outcome_of, page
from fairwitness.app.report.raw_evidence import GateFact, dicts, gate_fact, gates_in_decisions, mapping
from fairwitness.app.report.sections import task_states
from fairwitness.app.repository import state_in
from fairwitness.app.views.agent_usage import CANCELLED, ENDED, STARTED, CallRow, usage_by_role
from fairwitness.app.views.checks import MOST, read_checks
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.gates import run_gates
from fairwitness.app.views.ledger import known_run, open_ledger
from fairwitness.app.views.run import RunView
from fairwitness.contracts.common.decisions import Graded
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.facts import FeatureFacts
from fairwitness.db.base import ReadQuery
from fairwitness.errors import BadDocument, EventsBroken, FairWitnessError, NotStored, StoreError, UsageError
from fairwitness.git.changes import FileChange, diff
from fairwitness.git.ledger_heads import kept_heads
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.kit import files, front_matter, yaml_text
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.summary_event import SummaryEvent
from fairwitness.ledger.verify import verify_here
from fairwitness.rules.confidence import confidence_facts, grade
from fairwitness.verify.shown_command import shown_command

_PAGE = 5000
_LARGEST_TEXT = 50_000_000
_LARGEST_DOCUMENT = 1 << 20

_EVENTS = (
    "SELECT event_id, seq, timestamp, workflow, run_id, phase, task, attempt, type, version, data FROM events "
    "WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
)
_SAID = """
SELECT DISTINCT k.id, k.task_id, k.agent, k.instance, c.round, k.body FROM claims k
JOIN check_sources s ON s.claim_id = k.id JOIN anvil_checks c ON c.id = s.check_id
WHERE k.run_id = ? AND c.phase = 'review' ORDER BY k.id"""
_CALLS = """
SELECT step, agent, instance, started_at, completed_at, status, dispatch_count, retry_count, notes
FROM pipeline_telemetry WHERE run_id = ? ORDER BY id DESC LIMIT ?"""
_ANSWERS = """
SELECT gate_id, timestamp, mode, selected_option, auto_selected, actor, user_response_raw
FROM approvals WHERE run_id = ? ORDER BY id"""
_SEEN = "SELECT key, task_id, kind, subject, detail, observed_at FROM observations WHERE run_id = ? ORDER BY id"
_HEAD = "SELECT seq, hash FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1"


def read_facts(read: ReadQuery, run_id: str) -> ReportFacts:
    """Return the facts of a run from the ledger."""
    facts = ReportFacts(run_id)
    for event in _events(read, run_id):
        _apply(facts, event)
    facts.checks = read_checks(read, run_id)
    ((every,),) = read("SELECT COUNT(*) FROM anvil_checks WHERE run_id = ?", (run_id,))
    facts.left_out = every - len(facts.checks)
    for _, task, agent, instance, round_, body in read(_SAID, (run_id,)):
        facts.said.append(ReviewAnswer(task, agent, instance, round_, _review_in(_parsed(body))))
    facts.calls = [ReportedCall(*row) for row in reversed(read(_CALLS, (run_id, MOST)))]
    facts.answers = [ApprovalAnswer(*row) for row in read(_ANSWERS, (run_id,))]
    seen: dict[str, list[Seen]] = {}
    calls: list[CallRow] = []
    for key, about, kind, subject, detail, at in read(_SEEN, (run_id,)):
        if kind in OBSERVED:
            seen.setdefault(kind, []).append(Seen(key, about, _parsed(detail), at))
        elif kind in CALLS:
            calls.append(CallRow(kind, subject, _parsed(detail)))
    _add_usage(facts, calls)
    _add_observations(facts, seen)
    for links, head in read(_HEAD, (run_id,)):
        facts.links, facts.head = links, head
    return facts


class Seen(NamedTuple):
    """An observation of the run."""

    key: str
    task: str | None
    detail: dict[str, Any]
    at: str


OBSERVED = frozenset(
    (
        *("order", "decision", "verified", "criteria", "discrepancy", "dispute", "attempt", "graph", "document"),
        *("execution", "judgement", "rating", "said", "request"),
    )
)
"""The kinds of observations that a report shows."""
CALLS = frozenset((STARTED, CANCELLED, ENDED))


def _add_observations(facts: ReportFacts, seen: dict[str, list[Seen]]) -> None:
    for one in seen.get("order", ()):
        facts.order = mapping(one.detail.get("order"))
    recorded = [_decision(one) for one in seen.get("decision", ())]
    facts.decisions = recorded or facts.decisions
    for one in seen.get("verified", ()):
        proof = SubjectResult(
            one.detail.get("answer") == "open", _texts(one.detail, "missing"), _texts(one.detail, "notes")
        )
        facts.proofs[one.task or ""] = proof
    for one in (*seen.get("discrepancy", ()), *seen.get("dispute", ())):
        task, attempt = _place(one)
        facts.contradictions += [Contradiction(task, attempt, found) for found in _texts(one.detail, "found")]
    if facts.workflow == "forge":
        _add_forge(facts, seen)
    elif facts.workflow == "autopilot":
        _add_autopilot(facts, seen)
    else:
        facts.criteria += sorted(_judged_criteria(facts, seen), key=lambda one: one.about)
    base = str(facts.order.get("base_commit") or (facts.feature.feature.base if facts.feature is not None else ""))
    if base and facts.head_commit:
        facts.differences.append(Difference("The result", base, facts.head_commit))
    if facts.feature is not None:
        states = task_states(facts)
        last = {one.task: one for one in seen.get("attempt", ()) if one.task and states.get(one.task) != "merged"}
        for task, one in last.items():
            ends = (str(one.detail.get("base") or ""), str(one.detail.get("head") or ""))
            title = f"Refused: {task}, attempt {_round(one)}; not part of the result"
            facts.differences.append(Difference(title, *ends, is_result=False))


def _round(one: Seen) -> int:
    number = one.key.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _place(one: Seen) -> tuple[str, str]:
    """Return the second and the third part of a key, such as task and attempt."""
    _, second, third = [*one.key.split(":"), "", ""][:3]
    return second, third


def _texts(detail: dict[str, Any], name: str) -> tuple[str, ...]:
    values = detail.get(name)
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _judged_criteria(facts: ReportFacts, seen: dict[str, list[Seen]]) -> Iterator[JudgedCriterion]:
    """Yield the criteria of tasks by their names in the ledger, as their last attempts were judged."""
    rows = {(check.task, check.name): check for check in facts.checks if check.phase == "after"}
    for task, one in {one.task or "": one for one in seen.get("criteria", ())}.items():
        for judged in dicts(one.detail.get("judged")):
            name, met = str(judged.get("check")), judged.get("met")
            row = rows.get((task, name))
            result = "not judged" if met is None else "met" if met is True else "unmet"
            command = shown_command(row.command) if row is not None and row.command else ""
            said = command or str(judged.get("text") or "")
            yield JudgedCriterion(task, name, result, said, row.execution if row is not None else None)


def _add_forge(facts: ReportFacts, seen: dict[str, list[Seen]]) -> None:
    """Add what the documents of a forge run ask for, and its change requests."""
    plans = [mapping(one.detail.get("documents")).items() for one in seen.get("graph", ())]
    judged = {(one.about, one.text): one for one in _judged_criteria(facts, seen)}
    late = [(one.key.partition(":")[2], one.detail.get("text")) for one in seen.get("document", ())]
    for task, text in (*(item for plan in plans for item in plan), *late):
        document = _document(str(text), front_matter.parse)
        facts.titles[task] = str(document.get("title") or "")
        for number, criterion in enumerate(_texts(document, "acceptance_criteria"), start=1):
            known = judged.get((task, f"ac-{number}"), JudgedCriterion(task, criterion, "not judged"))
            facts.criteria.append(known._replace(text=criterion))
    for one in seen.get("request", ()):
        told = one.detail
        words = f"{told.get('title')}. {told.get('reason')}"
        facts.statements.append(
            Opinion(str(told.get("id")), str(told.get("emitted_by")), "asks for a change of the plan", words)
        )


def _add_autopilot(facts: ReportFacts, seen: dict[str, list[Seen]]) -> None:
    """Add the criteria of the roadmap with their last executions, and the judgements of each phase."""
    ran: dict[tuple[str, str], Seen] = {}
    for one in seen.get("execution", ()):
        step, _, phase = _place(one)[0].partition("-")
        if step in ("verify", "rate"):
            ran[phase.partition("-")[0], str(mapping(one.detail.get("document")).get("criterion"))] = one
    verdicts = {_place(one)[0]: one for one in seen.get("said", ())}
    for part in dicts(mapping(facts.order.get("roadmap")).get("phases")):
        number = str(part.get("id"))
        name = f"phase {number}"
        facts.titles[name] = str(part.get("name") or "")
        for asked in dicts(part.get("criteria")):
            text, command = str(asked.get("text")), str(asked.get("command") or "")
            found = ran.get((number, text))
            if found is not None:
                is_met = mapping(found.detail.get("document")).get("assessment") == "pass"
                criterion = JudgedCriterion(
                    name, text, "met" if is_met else "unmet", command, found.detail.get("execution")
                )
            elif not command and number in verdicts:
                said = verdicts[number].detail
                result = "met" if said.get("verdict") == "pass" else "unmet"
                criterion = JudgedCriterion(name, text, result, f"decided by {said.get('actor')}")
            else:
                criterion = JudgedCriterion(name, text, "not run", command)
            facts.criteria.append(criterion)
    for one in seen.get("judgement", ()):
        told = mapping(one.detail.get("document"))
        words = " ".join([str(told.get("notes") or ""), *_texts(told, "concerns")])
        facts.statements.append(_statement(one, "judge", str(told.get("recommendation")), words))
    for one in seen.get("rating", ()):
        told = mapping(mapping(one.detail.get("document")).get("said"))
        score = f"{told.get('alignment_score')} of 10"
        facts.statements.append(_statement(one, "rater", score, str(told.get("aggregate_justification") or "")))
    for one in verdicts.values():
        who, verdict = str(one.detail.get("actor")), str(one.detail.get("verdict"))
        facts.statements.append(_statement(one, who, verdict, "; ".join(_texts(one.detail, "issues"))))
    facts.statements.sort(key=lambda said: said.about)


def _statement(one: Seen, who: str, verdict: str, words: str) -> Opinion:
    phase, _, number = _place(one)[0].partition("-")
    return Opinion(f"phase {phase}{f', pass {number}' if number else ''}", who, verdict, words)


def _events(read: ReadQuery, run_id: str) -> Iterator[SummaryEvent]:
    after = 0
    while rows := read(_EVENTS, (run_id, after, _PAGE)):
        for row in rows:
            yield SummaryEvent._make((*row[:-1], _parsed(row[-1])))
        after = rows[-1][1]


def _apply(facts: ReportFacts, event: SummaryEvent) -> None:
    facts.workflow, facts.events = event.workflow, event.seq
    if event.workflow == "feature":
        facts.feature = facts.feature or FeatureView(facts.run_id, clock=lambda: facts.last_moment)
        facts.feature.apply_event(event)
    else:
        facts.graph = facts.graph or RunView(facts.run_id)
        facts.graph.apply_event(event)
    try:
        _keep(facts, event, event.data)
    except (KeyError, TypeError, ValueError):
        raise EventsBroken(
            f"run {facts.run_id}: event {event.seq} is malformed", next_step="fairwitness ledger verify"
        ) from None


def _keep(facts: ReportFacts, event: SummaryEvent, data: dict[str, Any]) -> None:
    match event.type:
        case "step_started" if event.workflow == "feature":
            facts.visits.append(Visit(str(data["step"]), event.timestamp))
        case "step_finished":
            _end_visit(facts, str(data["step"]), event, str(data["outcome"]), data.get("reason"))
        case "phase_started":
            facts.visits.append(Visit(f"phase {event.phase}", event.timestamp))
        case "phase_completed" | "phase_failed" | "human_verdict_recorded":
            word = event.type.removeprefix("phase_") if event.type != "human_verdict_recorded" else data["verdict"]
            _end_visit(facts, f"phase {event.phase}", event, str(word), data.get("reason"))
        case "task.started":
            name, number = str(data["nodeId"]), int(data["attemptId"])
            facts.attempts[name, number] = TaskAttempt(name, number, str(data["branch"]), str(data["agent"]))
            if event.workflow != "feature":
                facts.visits.append(Visit(f"{name}, attempt {number}", event.timestamp))
        case "task.verified":
            _attempt_is(facts, data, "verified", tree=str(data["tree"]))
        case "node.changed" if data["newStatus"] in ("MERGED", "FAILED", "STALE"):
            word = {"MERGED": "merged", "STALE": "lost"}.get(data["newStatus"], "failed")
            _attempt_is(facts, data, word, reason=data.get("reason"))
            if event.workflow == "forge":
                _end_visit(facts, f"{data['nodeId']}, attempt {data['attemptId']}", event, word, data.get("reason"))
        case "gate_evaluated":
            facts.asked.append(
                GateEvaluation(
                    event.timestamp,
                    str(data["gate"]),
                    event.task,
                    data["open"] is True,
                    int(data["count"]),
                    int(data["threshold"]),
                    ", ".join(map(str, data["missing"])),
                )
            )
        case "merge.finished":
            facts.head_commit = str(data["tip"])
            facts.landed.append((facts.head_commit, tuple(map(str, data["landed"]))))
        case "rollback_completed":
            facts.head_commit = str(data["rollback_to"])
            while facts.landed and facts.landed[-1][0] != facts.head_commit:
                facts.taken_back.update(facts.landed.pop()[1])
        case "committed":
            facts.head_commit = str(data["commit"])
        case "artifact_written":
            facts.documents[str(data["path"])] = str(data["sha256"])
        case "decided":
            facts.decisions.append(
                Decision(int(data["number"]), str(data["kind"]), str(data["reason"]), event.timestamp, {}, {})
            )
        case _:
            pass


def _end_visit(facts: ReportFacts, name: str, event: SummaryEvent, outcome: str, reason: str | None) -> None:
    for visit in reversed(facts.visits):
        if visit.name == name:
            visit.finished, visit.outcome, visit.reason = event.timestamp, outcome, reason
            return
    if event.workflow == "feature":
        raise ValueError("a step ended that was never begun")


def _attempt_is(
    facts: ReportFacts, data: dict[str, Any], word: str, *, tree: str | None = None, reason: str | None = None
) -> None:
    name = str(data["nodeId"])
    number = int(data.get("attemptId") or max((n for task, n in facts.attempts if task == name), default=0))
    attempt = facts.attempts.get((name, number))
    if attempt is not None:
        attempt.word, attempt.tree, attempt.reason = word, tree or attempt.tree, reason or attempt.reason


def _decision(one: Seen) -> Decision:
    decision, facts = mapping(one.detail.get("decision")), mapping(one.detail.get("facts"))
    reason = str(decision.get("reason", "no reason is on record"))
    return Decision(_round(one), str(decision.get("kind", "unknown")), reason, one.at, decision, facts)


def _add_usage(facts: ReportFacts, calls: list[CallRow]) -> None:
    """Add what the calls of agents used; a run that has not ended may still be at work on its last ones."""
    view = facts.feature or facts.graph
    facts.used = usage_by_role(calls, is_worked_on=view is not None and not view.is_over)
    outcomes = [mapping(call.detail.get("outcome")) for call in calls]
    facts.models = tuple(sorted({str(outcome["model"]) for outcome in outcomes if outcome.get("model")}))


def _review_in(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a reviewer in a claim: the claim itself, or the answer of a dispatch."""
    for candidate in (body, *body.values()):
        if isinstance(candidate, dict) and isinstance(candidate.get("findings"), list):
            return candidate
    return body


def _document(text: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the fields of a document; empty if it cannot be read."""
    try:
        return mapping(parse(text))
    except BadDocument:
        return {}


def _parsed(text: str) -> dict[str, Any]:
    """Return the mapping in a JSON column; empty if it is none, or larger than Fair Witness writes."""
    if len(text) > _LARGEST_TEXT:
        return {}
    try:
        return mapping(json.loads(text))
    except ValueError:
        return {}


FOLDER = "reports"
_LOOK = 1024
_LARGEST_PAGE = 256 << 20


class WrittenReport(NamedTuple):
    """A report that was written."""

    path: Path
    run_id: str
    outcome: str
    is_sound: bool
    """Whether the ledger is intact; if not, the report begins with that."""
    bytes: int


def write_report(root: Path, wanted: str, *, out: Path | None = None, force: bool = False) -> WrittenReport:
    """Write the report of a run; a file that is not a report is replaced only with `force`."""
    ledger = open_ledger(root)
    try:
        run_id = known_run(ledger, wanted)
        facts, checked = read_run(ledger, root, run_id)
    finally:
        ledger.close()
    content = page(facts, checked).encode()
    folder, name = _target(root, run_id, out)
    if not force:
        _refuse_other(folder, name)
    files.replace_file(folder, name, content)
    return WrittenReport(folder / name, run_id, outcome_of(facts), not checked.tampering, len(content))


def read_run(ledger: Ledger, root: Path, run_id: str) -> tuple[ReportFacts, LedgerFindings]:
    """Return the facts of a run, and what verifying the ledger found."""
    facts = ledger.database.look(lambda read: read_facts(read, run_id))
    _add_documents(facts, root)
    _add_differences(facts, root)
    kept = kept_heads(root).get(run_ref(run_id))
    heads = [Head(facts.links, facts.head), *([Head(kept.links, kept.hash)] if kept is not None else [])]
    tampering = tuple(str(finding) for finding in verify_here(ledger.database, run_id, heads))
    gates = gates_in_decisions(facts) or _gates_now(ledger, run_id)
    return facts, LedgerFindings(gates, tampering, _graded(facts))


def _add_documents(facts: ReportFacts, root: Path) -> None:
    """Add titles and criteria from the task documents of a feature run, if they still have their recorded hash."""
    for path, digest in facts.documents.items():
        folder, _, name = path.rpartition("/")
        if not folder.endswith("/tasks") or not name.endswith(".yaml"):
            continue
        try:
            content = files.read_plain(root, path, limit=_LARGEST_DOCUMENT)
        except StoreError:
            continue
        if digest == f"sha256:{hashlib.sha256(content).hexdigest()}":
            task = mapping(_document(content.decode(errors="replace"), yaml_text.parse).get("task"))
            facts.titles[name.removesuffix(".yaml")] = str(task.get("title") or "")
            texts = {f"ac-{number}": str(text) for number, text in enumerate(_texts(task, "acceptance_criteria"), 1)}
            facts.criteria = [
                one._replace(text=texts.get(one.text, one.text)) if one.about == name.removesuffix(".yaml") else one
                for one in facts.criteria
            ]


def _add_differences(facts: ReportFacts, root: Path) -> None:
    """Add the files of every difference whose commits the repository holds."""
    try:
        repository = Repository.open(root)
    except FairWitnessError:
        return  # a ledger may be read without its repository
    with TemporaryDirectory() as folder:
        objects = repository.throwaway(Path(folder))
        for difference in facts.differences:
            try:
                changes = diff(objects, objects.tree_of(difference.base), objects.tree_of(difference.head))
                files_ = [_changed_file(objects, change) for change in changes]
                difference.files = tuple(sorted(files_, key=lambda file: file.change == "added"))
            except FairWitnessError:
                continue  # the page says which commits are missing


_CHANGES = {"A": "added", "M": "modified", "D": "removed", "T": "type changed"}
_CONTEXT = 3


def _changed_file(objects: Objects, change: FileChange) -> FileDiff:
    rows: list[DiffRow] = []
    old: list[str] = []
    if change.status == "M" and change.old_entry is not None and change.hunks:
        old = objects.blob(change.old_entry.id).decode(errors="replace").removesuffix("\n").split("\n")
    done = shift = 0  # the last old line shown, and the added minus the removed lines so far
    for hunk in change.hunks:
        first = hunk.removed[0].number if hunk.removed else hunk.added[0].number - shift
        if old:
            rows += _context(old, done, first)
        rows += [DiffRow("-", *line) for line in hunk.removed]
        rows += [DiffRow("+", *line) for line in hunk.added]
        done, shift = first + len(hunk.removed) - 1, shift + len(hunk.added) - len(hunk.removed)
    rows += [DiffRow(" ", at, old[at - 1]) for at in range(done + 1, len(old) + 1)[:_CONTEXT]]
    word = "binary file" if change.is_binary else _CHANGES[change.status]
    if change.renamed_from is not None:
        word = f"renamed from {change.renamed_from}"
    return FileDiff(change.path, word, len(change.added), len(change.removed), tuple(rows))


def _context(old: list[str], done: int, first: int) -> Iterator[DiffRow]:
    """Return the unchanged lines around a gap between two hunks, and a row with the sign `@` for the others."""
    gap = range(done + 1, first)
    after = gap[:_CONTEXT] if done else gap[:0]
    before = gap[len(after) :][-_CONTEXT:]
    yield from (DiffRow(" ", at, old[at - 1]) for at in after)
    if len(gap) > len(after) + len(before):
        yield DiffRow("@", first - len(before), "")
    yield from (DiffRow(" ", at, old[at - 1]) for at in before)


def _gates_now(ledger: Ledger, run_id: str) -> list[GateFact]:
    """Return the current results of the gates, for a run without recorded decisions."""
    return [gate_fact(view.answer.plain())._replace(about=view.task) for view in run_gates(ledger, run_id)]


def _graded(facts: ReportFacts) -> Graded | None:
    """Return the confidence that the facts of the last decision allow, with reasons."""
    if not facts.decisions or not facts.decisions[-1].facts:
        return None
    try:
        last = FeatureFacts.model_validate_json(json.dumps(facts.decisions[-1].facts))
        policy = Policy.model_validate_json(json.dumps(facts.order.get("policy") or {}))
    except ValidationError:
        return None
    return grade(confidence_facts(last, policy))


def _target(root: Path, run_id: str, out: Path | None) -> tuple[Path, str]:
    """Return the folder and the file name of the report."""
    if out is None:
        return state_in(root), f"{FOLDER}/{run_ref(run_id)}.html"
    given = out if out.is_absolute() else Path.cwd() / out
    if given.is_dir():
        raise UsageError(f"{given} is a folder", next_step="name the file to write")
    if not given.parent.is_dir():
        raise UsageError(f"there is no folder {given.parent}", next_step="create it first")
    return given.parent, given.name


def _refuse_other(folder: Path, name: str) -> None:
    try:
        present = files.read_plain(folder, name, limit=_LARGEST_PAGE)
    except NotStored:
        return
    except StoreError as error:
        raise UsageError(f"{folder / name} is not a report: {error.what}", next_step="choose another name") from error
    if MARK.encode() not in present[:_LOOK]:
        raise UsageError(
            f"{folder / name} is not a report and was not replaced", next_step="choose another name, or --force"
        )
