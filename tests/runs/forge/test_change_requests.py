"""Change requests in a real ledger: numbered once, decided once by others, and overlays go in whole or not at all."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.documents import ChangeRequest, ForgeTask
from fairwitness.contracts.forge.events import ForgeRunStarted, RunFailed
from fairwitness.contracts.forge.returns import CaptainReturn, SpecFile
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgePlan
from fairwitness.contracts.graph.orders import AttemptOrder, GraphOptions
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.errors import Immutable, UsageError
from fairwitness.kit.documents import Format, read
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import verify
from fairwitness.rules import graph_events
from fairwitness.rules.change_requests import RequestDecision
from fairwitness.runs.forge.change_requests import (
    decide,
    emit,
    extend,
    give_up,
    request_of,
    request_state,
    requests_of,
    write_files,
)
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.store.seal import broken_seals

RUN = "run-1"
MOMENT = "2026-02-26T14:30:00Z"
ADA = "Ada <ada@example.org>"
BODY = "## Description\nWhat.\n## Impact Assessment\nLittle.\n## Proposed Resolution\nAdd it.\n"
TASK_BODY = "## Description\nWhat.\n## Context\nWhy.\n## Instructions\nHow.\n"
WAITS = {"task-01": [], "task-02": [], "refinery-01": ["task-01", "task-02"], "task-03": ["refinery-01"]}


class Ticking:
    """A clock that goes on a second each time; at a given time it is asked, something else happens first."""

    def __init__(self) -> None:
        self._seconds = count()
        self._asked, self._until = 0, 0
        self._happens: Callable[[], None] | None = None

    def __call__(self) -> datetime:
        self._asked += 1
        if self._asked == self._until and self._happens is not None:
            self._happens()
        return datetime(2026, 2, 26, 14, 30, tzinfo=UTC) + timedelta(seconds=next(self._seconds))

    def at(self, number: int, happens: Callable[[], None]) -> None:
        """When it is asked the `number`th time from now."""
        self._until, self._happens = self._asked + number, happens


def node(name: str, *others: str) -> dict[str, Any]:
    kind = "refinery" if name.startswith("refinery") else "task"
    agent: int | str = "refinery" if kind == "refinery" else 2
    return {"id": name, "type": kind, "agentType": agent, "dependencies": list(others), "status": "PENDING"}


def task(name: str, *others: str, body: str = TASK_BODY) -> dict[str, Any]:
    return {
        "id": name,
        "title": f"The part {name}",
        "type": "task",
        "dependencies": list(others),
        "acceptance_criteria": ["It is there."],
        "estimated_complexity": "small",
        "status": "PENDING",
        "branch": None,
        "attemptId": None,
        "body": body,
    }


def plan() -> ForgePlan:
    metadata = {"createdAt": MOMENT, "createdBy": "captain", "totalTasks": 3, "totalRefineries": 1}
    nodes = [node(name, *others) for name, others in WAITS.items()]
    return ForgePlan(
        specs=(SpecFile(name="api", body="As it is.\n"),),
        tasks=tuple(
            ForgeTask.model_validate(task(name, *others)) for name, others in WAITS.items() if name.startswith("task")
        ),
        dag=Dag.model_validate({"version": 1, "runId": RUN, "nodes": nodes, "metadata": metadata}),
    )


def order() -> ForgeOrder:
    return ForgeOrder(
        request="Fill the catalogue.",
        slug="catalogue",
        mode=ApprovalMode.AUTONOMOUS,
        base_commit="a" * 40,
        options=GraphOptions(target="fairwitness/target"),
        verify=VerifySettings(),
        settings_hash="sha256:" + "0" * 64,
        started_by=ADA,
    )


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def log(tmp_path: Path, clock: Ticking) -> Iterator[ForgeLog]:
    """A run whose plan is sealed and whose graph is being carried out."""
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    log = ForgeLog(ledger, RUN, clock=clock)
    log.create(order(), repo_url="file:///here", model="scripted")
    log.propose(plan())
    log.seal(plan(), ADA)
    log.write(lambda _now: (ForgeRunStarted(),))
    yield log
    ledger.close()


def start(log: ForgeLog, name: str) -> None:
    """An attempt at a node begins."""
    _, dag = log.effective()
    (found,) = (each for each in dag.nodes if each.id == name)
    said = AttemptOrder(run_id=RUN, node=name, attempt=1, branch="fairwitness/b", target="fairwitness/target")
    log.write(lambda now: graph_events.started(log.run().nodes[name], found, said, now))


def request(title: str = "A part is missing", **differs: Any) -> ChangeRequest:
    ordinary: dict[str, Any] = {
        "id": "cr-001",
        "title": title,
        "emitted_by": "somebody",
        "emitted_at": "1999-01-01T00:00:00Z",
        "status": "pending",
        "reason": "Two parts do not meet.",
        "affected_tasks": ["task-03"],
        "suggested_changes": "Add a part between them.",
        "body": BODY,
    }
    return ChangeRequest.model_validate(ordinary | differs)


def answer(
    *nodes: tuple[str, ...],
    edges: tuple[tuple[str, str], ...] = (),
    specs: tuple[tuple[str, str], ...] = (),
    body: str = TASK_BODY,
    **differs: Any,
) -> CaptainReturn:
    """What a captain adds: nodes with what each waits for, and edges."""
    waits = {name: [*others, *(one for one, end in edges if end == name)] for name, *others in nodes}
    ordinary: dict[str, Any] = {
        "specs": [{"name": name, "body": text} for name, text in specs],
        "tasks": [task(name, *waits[name], body=body) for name, *_ in nodes],
        "overlay": {
            "crId": "cr-999",
            "appliedAt": "1999-01-01T00:00:00Z",
            "addedNodes": [node(*each) for each in nodes],
            "addedEdges": [{"from": one, "to": end} for one, end in edges],
        },
        "assumptions": [],
        "open_questions": [],
    }
    return CaptainReturn.model_validate(ordinary | differs)


def rejecting(reason: str = "It is there already.") -> CaptainReturn:
    return CaptainReturn(specs=(), tasks=(), rejected=reason, assumptions=(), open_questions=())


FITTING = answer(("task-04", "task-01"), edges=(("task-04", "task-03"),), specs=(("more", "New.\n"),))


def told(log: ForgeLog) -> list[str]:
    """What happened about requests, in short."""
    about = ("cr.", "overlay.")
    events = [event for event in log.ledger.events(RUN) if event.type.startswith(about)]
    return [f"{event.type} {event.data['crId']}" for event in events]


def applied_nothing(log: ForgeLog) -> bool:
    kinds = ("overlay", "document", "spec")
    return not any(log.ledger.observations(RUN, kind) for kind in kinds) and len(log.run().nodes) == len(WAITS)


@pytest.mark.req("F4", "F9")
def test_a_request_is_recorded_once_with_the_number_and_the_words_of_the_harness(log: ForgeLog) -> None:
    said = [request(id="cr-007", decided_by="me", decided_at=MOMENT), request("Another", id="cr-008")]
    assert emit(log, "refinery-01", 1, said) == ("cr-001", "cr-002")
    assert emit(log, "refinery-01", 1, said) == ("cr-001", "cr-002")  # as after a kill
    assert emit(log, "refinery-01", 2, said[:1]) == ("cr-003",)
    assert emit(log, "refinery-01", 3, ()) == ()
    assert told(log) == ["cr.emitted cr-001", "cr.emitted cr-002", "cr.emitted cr-003"]
    first, second, _ = requests_of(log)
    assert (first.id, first.emitted_by, first.status, first.decided_by) == ("cr-001", "refinery-01", "pending", None)
    assert first.emitted_at.startswith("2026-02-26T14:30:")  # by the harness's clock
    assert (second.title, second.body) == ("Another", BODY)
    assert log.ledger.last_event(RUN, "cr.emitted").data["title"] == first.title  # type: ignore[union-attr]  # told above
    assert log.run().requests.keys() == {"cr-001", "cr-002", "cr-003"}
    assert verify(log.ledger.database, RUN) == []


@pytest.mark.req("F4")
def test_numbers_go_round_those_of_overlays_that_nobody_asked_for(log: ForgeLog) -> None:
    overlay = FITTING.overlay
    assert overlay is not None
    assert log.grow(overlay) == ()  # cr-999
    assert emit(log, "refinery-01", 1, [request()]) == ("cr-1000",)


@pytest.mark.req("F4", "F9")
def test_refineries_that_emit_at_the_same_time_get_numbers_of_their_own(log: ForgeLog, tmp_path: Path) -> None:
    def many(name: str) -> list[str]:
        ledger = Ledger.open_file(tmp_path / "evidence.db")
        try:
            mine = ForgeLog(ledger, RUN)
            return [cr for attempt in range(1, 9) for cr in emit(mine, name, attempt, [request(), request("Two")])]
        finally:
            ledger.close()

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(many, ["refinery-01", "refinery-02", "refinery-03"]))
    numbers = [cr for result in results for cr in result]
    assert sorted(numbers) == [f"cr-{number:03d}" for number in range(1, 49)]
    assert [each.id for each in requests_of(log)] == sorted(numbers)
    for name, result in zip(("refinery-01", "refinery-02", "refinery-03"), results, strict=True):
        assert {request_of(log, cr).emitted_by for cr in result} == {name}


def test_what_no_document_may_hold_is_spelled_out_and_the_request_is_not_lost(log: ForgeLog, tmp_path: Path) -> None:
    emit(log, "refinery-01", 1, [request(body=BODY.replace("\n", "\r\n").replace("Little", "\x1b[2JLittle"))])
    assert request_of(log, "cr-001").body == BODY.replace("Little", "\\x1b[2JLittle")
    write_files(log, Store(tmp_path), ForgeLayout(RUN))


@pytest.mark.req("F4")
def test_a_person_moves_a_request_out_of_pending_once(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request(), request("Two")])
    decide(log, "cr-001", RequestDecision.APPROVE, ADA)
    decide(log, "cr-001", RequestDecision.APPROVE, ADA)  # as after a kill
    decide(log, "cr-002", RequestDecision.REJECT, ADA, "Too much.")
    decide(log, "cr-002", RequestDecision.REJECT, ADA, "Too much.")
    assert told(log)[2:] == ["cr.approved cr-001", "cr.rejected cr-002"]
    first, second = requests_of(log)
    approved = next(event for event in log.ledger.events(RUN) if event.type == "cr.approved")
    assert (first.status, first.decided_by, first.decided_at) == ("approved", ADA, approved.timestamp)
    assert (second.status, second.decided_by) == ("rejected", ADA)
    assert request_state(log, "cr-002").reason == "Too much."
    assert log.run().requests.keys() == {"cr-001"}


@pytest.mark.req("F4")
@pytest.mark.parametrize(
    ("cr_id", "verdict", "actor", "reason", "words"),
    [
        ("cr-001", RequestDecision.APPROVE, "refinery-01", None, "refinery-01 emitted the request"),
        ("cr-001", RequestDecision.REJECT, " Refinery-01", "no", "emitted the request and cannot decide"),
        ("cr-001", RequestDecision.REJECT, ADA, " ", "without a reason"),
        ("cr-001", RequestDecision.APPLY, ADA, None, "the request is pending"),
        ("cr-002", RequestDecision.APPROVE, "Bob", None, "the request is approved"),
        ("cr-002", RequestDecision.REJECT, ADA, "no", "the request is approved"),
        ("cr-002", RequestDecision.APPLY, ADA, None, "applied only by the captain's additions"),
        ("cr-003", RequestDecision.APPROVE, ADA, None, "the request is rejected"),
        ("cr-003", RequestDecision.REJECT, ADA, "another reason", "the request is rejected"),
        ("cr-009", RequestDecision.APPROVE, ADA, None, "no change request 'cr-009'"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_is_written(
    log: ForgeLog, cr_id: str, verdict: RequestDecision, actor: str, reason: str | None, words: str
) -> None:
    emit(log, "refinery-01", 1, [request(), request("Two"), request("Three")])
    decide(log, "cr-002", RequestDecision.APPROVE, ADA)
    decide(log, "cr-003", RequestDecision.REJECT, ADA, "no")
    before = told(log)
    with pytest.raises(UsageError, match=words):
        decide(log, cr_id, verdict, actor, reason)
    assert told(log) == before


@pytest.mark.req("F4")
def test_of_two_who_decide_at_the_same_time_the_second_is_told(log: ForgeLog, clock: Ticking) -> None:
    emit(log, "refinery-01", 1, [request()])
    clock.at(1, partial(decide, ForgeLog(log.ledger, RUN), "cr-001", RequestDecision.REJECT, "Bob", "no"))
    with pytest.raises(UsageError, match="the request is rejected"):
        decide(log, "cr-001", RequestDecision.APPROVE, ADA)
    assert told(log)[1:] == ["cr.rejected cr-001"]


@pytest.mark.req("F4", "F5", "F9")
def test_what_the_captain_adds_goes_in_whole_while_others_work(log: ForgeLog) -> None:
    start(log, "task-01")
    emit(log, "refinery-01", 1, [request()])
    records = log.ledger.head(RUN).links
    assert extend(log, "cr-001", FITTING, "captain") == ()
    assert extend(log, "cr-001", FITTING, "captain") == ()  # as after a kill
    assert log.ledger.head(RUN).links == records + 1
    assert told(log) == ["cr.emitted cr-001", "cr.approved cr-001", "overlay.applied cr-001"]
    found = request_of(log, "cr-001")
    assert (found.status, found.decided_by) == ("applied", "captain")
    _, dag = log.effective()
    assert {each.id: each.dependencies for each in dag.nodes}["task-03"] == ("refinery-01", "task-04")
    assert log.run().nodes["task-04"].status == "PENDING"
    assert log.run().requests == {}
    assert read(log.document("task-04").encode(), Format.MARKDOWN).value["title"] == "The part task-04"
    assert log.specs() == {"api": "As it is.\n", "more": "New.\n"}
    (overlay,) = log.ledger.observations(RUN, "overlay")
    assert overlay.detail["crId"] == "cr-001"
    assert overlay.detail["appliedAt"] == overlay.observed_at
    assert verify(log.ledger.database, RUN) == []


@pytest.mark.req("F4")
def test_what_a_person_approved_stays_the_persons_word(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request()])
    decide(log, "cr-001", RequestDecision.APPROVE, ADA)
    assert extend(log, "cr-001", FITTING, "captain") == ()
    assert told(log)[1:] == ["cr.approved cr-001", "overlay.applied cr-001"]
    assert request_of(log, "cr-001").decided_by == ADA


@pytest.mark.req("F5", "F7")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (answer(("task-04",), edges=(("task-04", "task-99"),)), "expected a node of the graph or of this overlay"),
        (answer(("task-04", "task-99")), "found task-99"),
        (answer(("task-01",)), "addedNodes[0].id: expected an id that is not taken; found task-01"),
        (answer(("task-04", "task-03"), edges=(("task-04", "refinery-01"),)), "wait for each other in a ring"),
        (answer(("task-04",), edges=(("task-04", "task-02"),)), "expected a node that is PENDING"),
        (
            answer(("task-04",), specs=(("api", "Otherwise."),)),
            "expected a new name, since existing specifications are sealed; found api",
        ),
        (answer(("task-04",), specs=(("new", "1"), ("New", "2"))), "specs[1].name: expected a name that no other has"),
        (answer(("specs",)), "an id that the run does not use itself; found specs"),
        (answer(("task-04",), body=TASK_BODY + "\x1b[2J"), "tasks[0].body: expected text that a file can hold"),
        (answer(), "at least one node or edge"),
    ],
)
def test_what_does_not_fit_is_refused_whole_and_told_why(log: ForgeLog, said: CaptainReturn, words: str) -> None:
    start(log, "task-02")
    emit(log, "refinery-01", 1, [request()])
    problems = extend(log, "cr-001", said, "captain")
    assert problems
    assert told(log)[1:] == ["overlay.refused cr-001"]
    ((refused, *_),) = request_state(log, "cr-001").refused
    assert words in refused
    assert len(problems) == len(request_state(log, "cr-001").refused[0])
    assert request_of(log, "cr-001").status == "pending"
    assert applied_nothing(log)
    assert extend(log, "cr-001", FITTING, "captain") == ()  # he may try again


@pytest.mark.req("F5", "F9")
def test_a_whole_new_plan_is_no_answer_to_a_request(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request()])
    again = plan()
    said = CaptainReturn(specs=again.specs, tasks=again.tasks, dag=again.dag, assumptions=(), open_questions=())
    assert extend(log, "cr-001", said, "captain")
    assert "a whole new plan" in request_state(log, "cr-001").refused[0][0]
    assert applied_nothing(log)


@pytest.mark.req("F4", "F9")
def test_a_captain_may_turn_a_request_down(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request(), request("Two")])
    assert extend(log, "cr-001", rejecting(), "captain") == ()
    assert extend(log, "cr-001", rejecting(), "captain") == ()
    decide(log, "cr-002", RequestDecision.APPROVE, ADA)
    assert extend(log, "cr-002", rejecting(), "captain") == ()
    assert told(log)[2:] == ["cr.rejected cr-001", "cr.approved cr-002", "cr.rejected cr-002"]
    assert [each.decided_by for each in requests_of(log)] == ["captain", "captain"]
    assert request_state(log, "cr-001").reason == "It is there already."
    assert applied_nothing(log)


@pytest.mark.req("F4")
@pytest.mark.parametrize("said", [FITTING, rejecting()])
def test_whoever_emitted_a_request_cannot_answer_it_either(log: ForgeLog, said: CaptainReturn) -> None:
    emit(log, "captain", 1, [request(), request("Two")])
    decide(log, "cr-002", RequestDecision.APPROVE, ADA)
    for cr_id in ("cr-001", "cr-002"):
        with pytest.raises(UsageError, match="emitted the request and cannot decide about it"):
            extend(log, cr_id, said, "captain")
    assert applied_nothing(log)


@pytest.mark.req("F5")
@pytest.mark.parametrize("asked", [1, 2])
def test_a_node_that_starts_meanwhile_is_seen(log: ForgeLog, clock: Ticking, asked: int) -> None:
    emit(log, "refinery-01", 1, [request()])
    clock.at(asked, partial(start, ForgeLog(log.ledger, RUN), "task-03"))
    (problem,) = extend(log, "cr-001", FITTING, "captain")
    assert problem.found == "task-03, RUNNING"
    assert told(log)[1:] == ["overlay.refused cr-001"]
    assert applied_nothing(log)


@pytest.mark.req("F4", "F5")
def test_a_person_who_rejects_meanwhile_is_heard(log: ForgeLog, clock: Ticking) -> None:
    emit(log, "refinery-01", 1, [request()])
    clock.at(2, partial(decide, ForgeLog(log.ledger, RUN), "cr-001", RequestDecision.REJECT, ADA, "no"))
    assert extend(log, "cr-001", FITTING, "captain") == ()
    assert told(log)[1:] == ["cr.rejected cr-001"]
    assert applied_nothing(log)


@pytest.mark.req("F4")
def test_a_person_who_approves_meanwhile_is_the_one_who_did(log: ForgeLog, clock: Ticking) -> None:
    emit(log, "refinery-01", 1, [request()])
    clock.at(2, partial(decide, ForgeLog(log.ledger, RUN), "cr-001", RequestDecision.APPROVE, ADA))
    assert extend(log, "cr-001", FITTING, "captain") == ()
    assert told(log)[1:] == ["cr.approved cr-001", "overlay.applied cr-001"]
    assert request_of(log, "cr-001").decided_by == ADA


@pytest.mark.req("F5")
def test_overlays_keep_their_order_when_a_clock_is_set_back(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request(), request("Two")])
    assert extend(log, "cr-001", answer(("task-04",)), "captain") == ()
    yesterday = ForgeLog(log.ledger, RUN, clock=lambda: datetime(2026, 2, 25, tzinfo=UTC))
    assert extend(yesterday, "cr-002", answer(("task-05", "task-04")), "captain") == ()
    _, dag = ForgeLog(log.ledger, RUN).effective()
    assert [each.id for each in dag.nodes][-2:] == ["task-04", "task-05"]


@pytest.mark.req("F5")
def test_a_run_that_has_ended_grows_no_more(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request()])
    log.write(lambda _now: (RunFailed(reason="cancelled by Ada"),))
    (problem,) = extend(log, "cr-001", FITTING, "captain")
    assert problem.found == "one that has ended"
    assert applied_nothing(log)


@pytest.mark.req("F4")
def test_a_request_that_nothing_comes_of_is_given_up_once(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request(), request("Two"), request("Three")])
    decide(log, "cr-002", RequestDecision.APPROVE, ADA)
    assert extend(log, "cr-003", FITTING, "captain") == ()
    for cr_id in ("cr-001", "cr-001", "cr-002", "cr-003"):
        give_up(log, cr_id, "The captain found no answer.")
    assert [each.status for each in requests_of(log)] == ["rejected", "rejected", "applied"]
    assert [each.decided_by for each in requests_of(log)] == ["fairwitness", "fairwitness", "captain"]
    assert told(log).count("cr.rejected cr-001") == 1


@pytest.mark.req("F4")
def test_a_person_may_reject_what_was_approved_once_it_did_not_fit(log: ForgeLog) -> None:
    emit(log, "refinery-01", 1, [request()])
    decide(log, "cr-001", RequestDecision.APPROVE, ADA)
    assert extend(log, "cr-001", answer(), "captain")
    decide(log, "cr-001", RequestDecision.REJECT, ADA, "It cannot be done.")
    assert request_of(log, "cr-001").status == "rejected"


@pytest.mark.req("F4", "F5", "F7")
def test_files_are_written_from_the_ledger_and_again_nothing_changes(log: ForgeLog, tmp_path: Path) -> None:
    store, layout = Store(tmp_path / "repo"), ForgeLayout(RUN)
    store.put(layout.spec("api"), b"As it is.\n")
    store.create(layout.specs_lock, b"{}\n")  # nothing is added to what is sealed
    emit(log, "refinery-01", 1, [request()])
    write_files(log, store, layout)
    before = read(store.get(layout.change_request("cr-001")), Format.MARKDOWN).value
    assert ChangeRequest.model_validate(before) == request_of(log, "cr-001")
    assert extend(log, "cr-001", FITTING, "captain") == ()
    write_files(log, store, layout)
    after = read(store.get(layout.change_request("cr-001")), Format.MARKDOWN).value
    assert (after["status"], after["decided_by"]) == ("applied", "captain")
    assert read(store.get(layout.dag_overlay("cr-001")), Format.JSON).value["addedNodes"][0]["id"] == "task-04"
    assert store.get(layout.task("task-04")).decode() == log.document("task-04")
    added = f"{layout.change_requests}/cr-001/specs/more.md"
    assert store.get(added) == b"New.\n"
    with pytest.raises(Immutable):
        store.put(added, b"Otherwise.\n")
    assert broken_seals(store, f"{layout.change_requests}") == ()
    files = sorted(path for path in (tmp_path / "repo").rglob("*") if path.is_file())
    stamps = [path.stat().st_mtime_ns for path in files]
    write_files(log, store, layout)
    assert sorted(path for path in (tmp_path / "repo").rglob("*") if path.is_file()) == files
    assert [path.stat().st_mtime_ns for path in files] == stamps


@pytest.mark.req("F7")
def test_what_somebody_does_to_the_files_changes_nothing(log: ForgeLog, tmp_path: Path) -> None:
    store, layout = Store(tmp_path / "repo"), ForgeLayout(RUN)
    emit(log, "refinery-01", 1, [request()])
    assert extend(log, "cr-001", FITTING, "captain") == ()
    write_files(log, store, layout)
    spec = tmp_path / "repo" / layout.change_requests / "cr-001" / "specs" / "more.md"
    spec.write_text("Otherwise.\n")
    (tmp_path / "repo" / layout.change_request("cr-001")).write_text("approved!")
    write_files(log, store, layout)
    assert log.specs()["more"] == "New.\n"
    assert b"applied" in store.get(layout.change_request("cr-001"))
    assert broken_seals(store, layout.change_requests) == (f"{layout.change_requests}/cr-001/specs/more.md",)
