"""Change requests of a forge run: recorded once, decided once, and applied completely or not at all.

A request is in the ledger as it was emitted; events say what became of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.documents import ChangeRequest, ChangeRequestStatus
from fairwitness.contracts.forge.events import (
    ChangeRequestApproved,
    ChangeRequestEmitted,
    ChangeRequestRejected,
    OverlayApplied,
    OverlayRefused,
)
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.errors import BadDocument, UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.json_text import render
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible_lines
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.record import Record
from fairwitness.rules.change_requests import RequestDecision, extension_problems, next_number, verdict_problem
from fairwitness.rules.graph_run import MOVING
from fairwitness.runs.forge.log import DOCUMENT, SPEC, ForgeLog, document_of
from fairwitness.runs.forge.storage_checks import storage_problems
from fairwitness.runs.graph.log import OVERLAY
from fairwitness.store.artifacts import Store, join
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.store.seal import seal

REQUEST = "request"
DECIDING: frozenset[str] = frozenset({"cr.approved", "cr.rejected", "overlay.applied", "overlay.refused"})
"""The events that say what became of a request."""


class RequestState(NamedTuple):
    """The current state of a request."""

    request: ChangeRequest
    reason: str | None = None
    """Why it was rejected."""
    refused: tuple[tuple[str, ...], ...] = ()
    """The problems of each answer of the captain that could not be applied."""

    def after(self, envelope: Envelope) -> "RequestState":
        """Return the state after an event about this request."""
        data = envelope.data
        match envelope.type:
            case "cr.approved":
                return self._decided(ChangeRequestStatus.APPROVED, data["actor"], envelope.timestamp)
            case "cr.rejected":
                decided = self._decided(ChangeRequestStatus.REJECTED, data["actor"], envelope.timestamp)
                return decided._replace(reason=data["reason"])
            case "overlay.applied":
                return self._replace(request=self.request.model_copy(update={"status": ChangeRequestStatus.APPLIED}))
            case _:
                return self._replace(refused=(*self.refused, tuple(data["problems"])))

    def _decided(self, status: ChangeRequestStatus, actor: str, when: str) -> "RequestState":
        update = {"status": status, "decided_by": actor, "decided_at": when}
        return self._replace(request=self.request.model_copy(update=update))


def request_states(log: ForgeLog) -> dict[str, RequestState]:
    """Return every request of the run with its state, oldest first."""
    return _read_requests(log)[1]


def _read_requests(log: ForgeLog) -> tuple[int, dict[str, RequestState]]:
    """Return the number of the run's last event, and the requests after it."""
    seq, events = 0, []
    for envelope in log.ledger.events(log.run_id):
        seq = envelope.seq
        if envelope.type in DECIDING:
            events.append(envelope)
    rows = log.ledger.observations(log.run_id, REQUEST)
    found = {row.subject: RequestState(recorded(ChangeRequest, row)) for row in rows}
    for envelope in events:
        cr_id = envelope.data["crId"]
        if cr_id in found:  # a graph that was planned elsewhere may grow without a request
            found[cr_id] = found[cr_id].after(envelope)
    return seq, found


def find_request(log: ForgeLog, cr_id: str) -> tuple[int, RequestState]:
    """Return the state of a request, and the number of the last event it is based on."""
    seq, found = _read_requests(log)
    if cr_id not in found:
        raise UsageError(
            f"run {log.run_id} has no change request {cr_id!r}", next_step=f"fairwitness cr list {log.run_id}"
        )
    return seq, found[cr_id]


def request_state(log: ForgeLog, cr_id: str) -> RequestState:
    """Return the state of a request; `UsageError` if there is none with that id."""
    return find_request(log, cr_id)[1]


def request_of(log: ForgeLog, cr_id: str) -> ChangeRequest:
    """Return a request with its status and who decided it when."""
    return request_state(log, cr_id).request


def requests_of(log: ForgeLog) -> tuple[ChangeRequest, ...]:
    """Return all requests, oldest first."""
    return tuple(state.request for state in request_states(log).values())


SPECS = "specs"
HARNESS = "fairwitness"
"""The actor that rejects a request without a usable answer."""
ENDED = frozenset({ChangeRequestStatus.REJECTED, ChangeRequestStatus.APPLIED})


def emit(log: ForgeLog, node: str, attempt: int, requests: Sequence[ChangeRequest]) -> tuple[str, ...]:
    """Record the requests of an attempt and number them within the run; repeating it finds the same requests."""
    if not requests:
        return ()
    now = spell(log.clock())

    def write(record: Record) -> tuple[str, ...]:
        known = {row.key: row.subject for row in record.observations(REQUEST)}
        taken = [*known.values(), *(row.subject for row in record.observations(OVERLAY))]
        names = []
        for place, request in enumerate(requests, start=1):
            key = f"{REQUEST}:{node}:{attempt}:{place}"
            if key not in known:
                emitted = _emitted(request, next_number(taken), node, now)
                taken.append(emitted.id)
                record.observation(log.observation(key, REQUEST, emitted.id, emitted.plain(), now))
                event = ChangeRequestEmitted(
                    crId=emitted.id, emittedBy=node, affectedTasks=emitted.affected_tasks, title=emitted.title
                )
                log.put_events(record, (event,), now)
                known[key] = emitted.id
            names.append(known[key])
        return tuple(names)

    emitted = log.ledger.record(log.run_id, write)
    killpoint("forge.requested")
    return emitted


def _emitted(request: ChangeRequest, cr_id: str, node: str, now: str) -> ChangeRequest:
    """Return the request with the harness's own number, time and status instead of the agent's."""
    return request.model_copy(
        update={
            "id": cr_id,
            "emitted_by": node,
            "emitted_at": now,
            "status": ChangeRequestStatus.PENDING,
            "decided_by": None,
            "decided_at": None,
            "body": _writable(request.body),
        }
    )


def _writable(body: str) -> str:
    """Return the body with invalid characters spelled out, so that the request is not lost."""
    try:
        document_of({"body": body})
    except BadDocument:
        return visible_lines(body.replace("\r\n", "\n"))
    return body


def decide(log: ForgeLog, cr_id: str, verdict: RequestDecision, actor: str, reason: str | None = None) -> None:
    """Approve or reject a request; repeating the same decision by the same actor changes nothing."""
    if verdict is RequestDecision.REJECT and not (reason or "").strip():
        raise UsageError(f"{cr_id} cannot be rejected without a reason", next_step="give a reason")
    while True:
        seq, state = find_request(log, cr_id)
        if _is_said(state, verdict, actor, reason):
            return
        _refuse(log, state, verdict, actor, is_refused=bool(state.refused))
        if verdict is RequestDecision.APPLY:
            raise UsageError(
                f"{cr_id} is applied only by the captain's additions", next_step=f"fairwitness resume {log.run_id}"
            )
        if _written(log, _Outcome((_event(cr_id, verdict, actor, reason),)), DECIDING, after=seq):
            return


def _event(cr_id: str, verdict: RequestDecision, actor: str, reason: str | None) -> EventData:
    if verdict is RequestDecision.REJECT:
        return ChangeRequestRejected(crId=cr_id, actor=actor, reason=reason or "")
    return ChangeRequestApproved(crId=cr_id, actor=actor)


def _is_said(state: RequestState, verdict: RequestDecision, actor: str, reason: str | None) -> bool:
    if state.request.decided_by != actor:
        return False
    if verdict is RequestDecision.REJECT:
        return state.request.status is ChangeRequestStatus.REJECTED and state.reason == reason
    return verdict is RequestDecision.APPROVE and state.request.status is ChangeRequestStatus.APPROVED


def _refuse(log: ForgeLog, state: RequestState, verdict: RequestDecision, actor: str, *, is_refused: bool) -> None:
    request = state.request
    problem = verdict_problem(
        request.status, verdict, actor=actor, emitted_by=request.emitted_by, is_refused=is_refused
    )
    if problem is not None:
        raise UsageError(f"{request.id}: {problem}", next_step=f"fairwitness cr show {request.id} {log.run_id}")


def give_up(log: ForgeLog, cr_id: str, reason: str) -> None:
    """Reject a request without a usable answer; one that has ended is left alone."""
    while True:
        seq, state = find_request(log, cr_id)
        if state.request.status in ENDED:
            return
        rejected = ChangeRequestRejected(crId=cr_id, actor=HARNESS, reason=reason)
        if _written(log, _Outcome((rejected,)), DECIDING, after=seq):
            return


class _Outcome(NamedTuple):
    """What is recorded with a decision."""

    events: tuple[EventData, ...]
    seen: tuple[Observation, ...] = ()
    problems: tuple[Problem, ...] = ()


def _written(log: ForgeLog, outcome: _Outcome, types: frozenset[str], *, after: int) -> bool:
    """Write the outcome in one record, unless an event of these types came first."""
    now = spell(log.clock())

    def write(record: Record) -> bool:
        if record.has_event(after=after, types=types):
            return False
        for each in outcome.seen:
            record.observation(each)
        log.put_events(record, outcome.events, now)
        return True

    is_written = log.ledger.record(log.run_id, write)
    if is_written:
        killpoint("forge.decided")
    return is_written


def unfit(log: ForgeLog, cr_id: str, answer: CaptainReturn) -> tuple[Problem, ...]:
    """Return why an answer of the captain does not fit the plan as it is now; nothing is recorded."""
    if answer.rejected is not None:
        return ()
    now = spell(log.clock())
    return tuple(_problems(log, _dated(log, answer, cr_id, now), cr_id, log.specs(), now))


def extend(log: ForgeLog, cr_id: str, answer: CaptainReturn, actor: str) -> tuple[Problem, ...]:
    """Apply what the captain adds completely, or return why it does not fit; an ended request stays unchanged.

    If the run moved meanwhile, the answer is judged again before it is written.
    """
    while True:
        seq, state = find_request(log, cr_id)
        if state.request.status in ENDED:
            return ()
        outcome = _outcome(log, state, answer, actor)
        if _written(log, outcome, MOVING | DECIDING, after=seq):
            return outcome.problems


def _outcome(log: ForgeLog, state: RequestState, answer: CaptainReturn, actor: str) -> _Outcome:
    cr_id, is_pending = state.request.id, state.request.status is ChangeRequestStatus.PENDING
    if answer.rejected is not None:
        # after an approval: the captain found nothing to apply
        _refuse(log, state, RequestDecision.REJECT, actor, is_refused=True)
        return _Outcome((ChangeRequestRejected(crId=cr_id, actor=actor, reason=answer.rejected),))
    _refuse(log, state, RequestDecision.APPROVE if is_pending else RequestDecision.APPLY, actor, is_refused=False)
    now, sealed = spell(log.clock()), log.specs()
    added = _dated(log, answer, cr_id, now)
    problems = tuple(_problems(log, added, cr_id, sealed, now))
    if problems:
        texts = tuple(f"{spell_path(each.where)}: expected {each.expected}; found {each.found}" for each in problems)
        return _Outcome((OverlayRefused(crId=cr_id, problems=texts),), problems=problems)
    overlay = added.overlay
    assert overlay is not None
    names = tuple(node.id for node in overlay.addedNodes)
    applied = OverlayApplied(crId=cr_id, addedNodes=names, addedEdges=len(overlay.addedEdges))
    before = (ChangeRequestApproved(crId=cr_id, actor=actor),) if is_pending else ()
    seen = [log.observation(f"{OVERLAY}:{cr_id}", OVERLAY, cr_id, overlay.plain(), now)]
    for task in added.tasks:
        text = document_of(task.plain())
        seen.append(log.observation(f"{DOCUMENT}:{task.id}", DOCUMENT, task.id, {"text": text}, now))
    for spec in added.specs:
        if spec.name not in sealed:
            detail = {"body": spec.body, "crId": cr_id, "replaces": spec.replaces}
            seen.append(log.observation(f"{SPEC}:{spec.name}", SPEC, spec.name, detail, now))
    return _Outcome((*before, applied), tuple(seen))


def _dated(log: ForgeLog, answer: CaptainReturn, cr_id: str, now: str) -> CaptainReturn:
    """Return the answer with the request id and the time set by the harness.

    Overlays are ordered by time, so none may be dated before the last one, whatever the clock says.
    """
    if answer.overlay is None:
        return answer
    before = (str(row.detail["appliedAt"]) for row in log.ledger.observations(log.run_id, OVERLAY))
    overlay = answer.overlay.model_copy(update={"crId": cr_id, "appliedAt": max((now, *before), key=instant)})
    return answer.model_copy(update={"overlay": overlay})


def _problems(
    log: ForgeLog, added: CaptainReturn, cr_id: str, sealed: Mapping[str, str], now: str
) -> Iterator[Problem]:
    run, (_, dag) = log.run(), log.effective()
    if run.is_over:
        yield Problem(where=(), expected="a run that is under way", found="one that has ended")
    status = DagStatus(runId=log.run_id, updatedAt=now, nodes=run.nodes)
    yield from extension_problems(added, cr_id, dag, status, sealed)
    yield from storage_problems(
        ForgeLayout(log.run_id),
        added.specs,
        added.tasks,
        added.nodes,
        ("overlay", "addedNodes"),
        specs_taken=sealed,
        nodes_taken=run.nodes,
    )


def write_files(log: ForgeLog, store: Store, layout: ForgeLayout) -> None:
    """Write the files of the requests; files that are up to date are left alone."""
    for request in requests_of(log):
        _put(store, layout.change_request(request.id), document_of(request.plain()))
    for row in log.ledger.observations(log.run_id, OVERLAY):
        _put(store, layout.dag_overlay(row.subject), render(row.detail))
    for row in log.ledger.observations(log.run_id, DOCUMENT):
        _put(store, layout.task(row.subject), str(row.detail["text"]))
    _write_specs(log, store, layout)
    killpoint("forge.requests.written")


def _write_specs(log: ForgeLog, store: Store, layout: ForgeLayout) -> None:
    """Write the specs that requests added, locked in a folder of their own; the plan's specs stay locked."""
    folders: dict[str, dict[str, str]] = {}
    for row in log.ledger.observations(log.run_id, SPEC):
        above = layout.dag_overlay(str(row.detail["crId"])).rpartition("/")[0]
        folders.setdefault(join(above, SPECS), {})[f"{row.subject}.md"] = str(row.detail["body"])
    for folder, specs in folders.items():
        lock = store.lock_of(folder)
        assert lock is not None
        if not store.exists(lock):
            for name, body in specs.items():
                _put(store, join(folder, name), body)
            seal(store, folder)


def _put(store: Store, path: str, text: str) -> None:
    content = text.encode()
    if not store.exists(path) or store.get(path) != content:
        store.put(path, content)
