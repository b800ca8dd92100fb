"""The envelope every event travels in; what is inside is typed by the workflow's own closed union."""

from typing import Annotated, Any

from pydantic import Field

from assay.contracts.common.base import Contract, Maybe, Positive, Timestamp
from assay.contracts.common.ids import PhaseId, RunId, SafeName
from assay.contracts.common.words import Workflow

EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length=64)]


class Envelope(Contract):
    """One append-only record: `seq` counts from 1 within its run, without gaps."""

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
