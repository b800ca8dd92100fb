"""The union of all autopilot events, discriminated by the event name."""

from typing import Annotated, get_args

from pydantic import Field

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.events_audit import AuditEvent
from fairwitness.contracts.autopilot.events_phase import PhaseEvent
from fairwitness.contracts.autopilot.events_quality import QualityEvent
from fairwitness.contracts.autopilot.events_run import RunEvent

AutopilotEvent = Annotated[RunEvent | PhaseEvent | AuditEvent | QualityEvent, Field(discriminator="event")]

EVENT_CLASSES: tuple[type[AutopilotEventBase], ...] = get_args(get_args(AutopilotEvent)[0])


def _name(event: type[AutopilotEventBase]) -> str:
    name: str = get_args(event.model_fields["event"].annotation)[0]
    return name


AUTOPILOT_EVENT_TYPES: tuple[str, ...] = tuple(_name(event) for event in EVENT_CLASSES)
