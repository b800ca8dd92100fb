"""The envelope of every event; its content is typed by the workflow's own union of events."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from fairwitness.contracts.common.base import Contract, Maybe, Positive, Timestamp
from fairwitness.contracts.common.ids import PhaseId, RunId, SafeName
from fairwitness.contracts.common.vocabulary import Workflow

EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length=64)]


def _type_is_required(schema: dict[str, Any]) -> None:
    schema["required"] = ["type", *schema.get("required", ())]


class EventData(Contract):
    """The content of an envelope; documents must state the `type`."""

    model_config = ConfigDict(json_schema_extra=_type_is_required)


class Envelope(Contract):
    """One event record of an append-only log; `seq` counts from 1 within its run, without gaps."""

    event_id: SafeName
    seq: Positive
    timestamp: Timestamp
    workflow: Workflow
    run_id: RunId
    phase: Maybe[PhaseId] = None
    task: Maybe[SafeName] = None
    attempt: Maybe[Positive] = None
    type: EventType
    version: Positive
    data: dict[str, Any]
