"""The common parts of all folds: reading a run's envelopes in order, upgrading old events, and typing them.

State is a fold over events. A fold returns the state, or the problem that stopped it; it never raises because of an
event's content. The three folds are `fold_feature`, `fold_autopilot` and `fold_forge`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Path, Problem
from fairwitness.contracts.common.vocabulary import Workflow

Data: TypeAlias = dict[str, Any]
Upcaster: TypeAlias = Callable[[Data], Data]
Upcasters: TypeAlias = Mapping[tuple[str, int], Upcaster]
"""Maps an event's type and version to the function that converts its data to the next version."""

UPCASTERS: Mapping[Workflow, Upcasters] = {Workflow.FEATURE: {}, Workflow.AUTOPILOT: {}, Workflow.FORGE: {}}
"""Empty: no event has changed its version yet."""

StateT = TypeVar("StateT")
EventT = TypeVar("EventT")


def fold(
    envelopes: Iterable[Envelope],
    onto: StateT | None,
    apply: Callable[[StateT | None, Envelope], StateT | Problem],
) -> StateT | Problem:
    """Return the state after all envelopes; continuing from an earlier state gives the same result as folding
    everything.
    """
    state = onto
    for envelope in envelopes:
        after = apply(state, envelope)
        if isinstance(after, Problem):
            return after
        state = after
    if state is None:
        return Problem(where=(), expected="at least one event", found="none")
    return state


def order_problem(envelope: Envelope, workflow: Workflow, *, last_seq: int, run_id: str | None) -> Problem | None:
    """Return what is wrong with an envelope's position in its stream: another workflow, another run, a gap, a
    repetition.

    >>> one = Envelope(event_id="e-9", seq=9, timestamp="2026-02-26T14:30:00Z", workflow="forge", run_id="run-7f2",
    ...                type="run.started", version=1, data={})
    >>> order_problem(one, Workflow.FORGE, last_seq=7, run_id="run-7f2").expected
    'the number after 7'
    """
    if envelope.workflow is not workflow:
        return at(envelope, ("workflow",), workflow.value, envelope.workflow.value)
    if run_id is not None and envelope.run_id != run_id:
        return at(envelope, ("run_id",), f"the run {run_id}", envelope.run_id)
    if envelope.seq != last_seq + 1:
        return at(envelope, ("seq",), f"the number after {last_seq}", str(envelope.seq))
    return None


def at(envelope: Envelope, where: Path, expected: str, found: str) -> Problem:
    """Return a problem located in one event of a stream."""
    return Problem(where=("events", envelope.seq, *where), expected=expected, found=found)


def current_version(event_type: str, upcasters: Upcasters) -> int:
    """Return the version that this code writes: one more than the last version that has an upcaster."""
    return max((version + 1 for known, version in upcasters if known == event_type), default=1)


def up_to_date(envelope: Envelope, upcasters: Upcasters) -> Data | Problem:
    """Return an event's data converted to the current version."""
    newest = current_version(envelope.type, upcasters)
    if envelope.version > newest:
        return at(envelope, ("version",), f"at most {newest}, which this program knows", str(envelope.version))
    data = dict(envelope.data)
    for version in range(envelope.version, newest):
        data = upcasters[envelope.type, version](data)
    return data


def typed(envelope: Envelope, value: Data, shape: TypeAdapter[EventT]) -> EventT | Problem:
    """Return the typed event, or a problem if the value matches no event."""
    try:
        return shape.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(part for part in first["loc"] if part != envelope.type)
        return at(envelope, ("data", *place), first["msg"], _short(first["input"]))


def next_event(
    envelope: Envelope,
    workflow: Workflow,
    shape: TypeAdapter[EventT],
    upcasters: Upcasters,
    *,
    last_seq: int,
    run_id: str | None,
) -> EventT | Problem:
    """Return the typed event of the next envelope in a stream, in the current version, or a problem."""
    misplaced = order_problem(envelope, workflow, last_seq=last_seq, run_id=run_id)
    if misplaced is not None:
        return misplaced
    data = up_to_date(envelope, upcasters)
    if isinstance(data, Problem):
        return data
    return typed(envelope, {**data, "type": envelope.type}, shape)


_SHOWN = 80


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
