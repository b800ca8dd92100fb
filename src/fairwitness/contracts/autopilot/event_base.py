"""The envelope of every autopilot event.

Older logs have quality flag events without `details`: `phase_id` and the fields of `details` are at the top level. Such
an event is accepted, and is written in the envelope from then on.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.base import Contract, Maybe, Timestamp
from fairwitness.contracts.common.ids import PhaseId
from fairwitness.contracts.common.problems import expect


def _phase_in(details: object) -> Any:
    return details.get("phase_id") if isinstance(details, Mapping) else getattr(details, "phase_id", None)


class AutopilotEventBase(Contract):
    """The fields of every event; if only the details name the phase, `phase` is copied from them."""

    timestamp: Timestamp
    phase: Maybe[PhaseId] = None
    step: Maybe[StepName] = None
    event: str
    details: Contract

    @model_validator(mode="before")
    @classmethod
    def _one_envelope(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        said = dict(data)
        if "phase_id" in said:
            phase = said.pop("phase_id")
            if said.setdefault("phase", phase) != phase:
                raise PydanticCustomError("one_phase", "the same phase in phase and phase_id")
        if "details" not in said:
            said["details"] = {key: said.pop(key) for key in tuple(said) if key not in cls.model_fields}
        named = _phase_in(said["details"])
        if said.get("phase") is None and named is not None:
            said["phase"] = named
        return said

    @model_validator(mode="after")
    def _one_phase(self) -> Self:
        named = _phase_in(self.details)
        expect(self, named is None or named == self.phase, "the same phase in phase and details.phase_id", "phase")
        return self
