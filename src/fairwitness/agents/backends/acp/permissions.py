"""Answers permission requests of an agent: allows once what its role may do, and refuses everything else."""

import json
from collections.abc import Mapping
from typing import Any

from fairwitness.agents.backends.acp.tool_calls import MakeRelative, UnclearCall, interpret_call
from fairwitness.agents.backends.acp.updates import Updates
from fairwitness.agents.base import AgentJob
from fairwitness.contracts.agents.dispatch import Denial, Layer
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.tools import ToolRefusal
from fairwitness.kit.text import visible

CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}
_YES, _NO = "allow_once", "reject_once"
_TARGET = 2_000


class Permissions:
    """Decides the permission requests of one session."""

    def __init__(self, profile: AgentProfile, job: AgentJob, updates: Updates, relative: MakeRelative) -> None:
        self._profile, self._job, self._updates, self._relative = profile, job, updates, relative

    def decide(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to `session/request_permission`."""
        told = params.get("toolCall")
        call = self._updates.call(told if isinstance(told, Mapping) else {})
        offered = params.get("options")
        options = {
            option.get("kind"): option.get("optionId")
            for option in reversed(offered if isinstance(offered, list) else [])
            if isinstance(option, Mapping) and isinstance(option.get("optionId"), str)
        }
        if self._is_allowed(call):
            if _YES in options:
                return _selected(options[_YES])
            self._updates.note("it offers no way to allow this just once, so it is refused")
        return _selected(options[_NO]) if _NO in options else CANCELLED

    def _is_allowed(self, call: Mapping[str, Any]) -> bool:
        meant = interpret_call(self._profile, call, self._relative)
        if isinstance(meant, UnclearCall):
            self._job.tools.deny(unclear_denial(meant.name, _told(call), meant.why))
            return False
        if meant.is_submission:
            return True
        # check every part, so that every refusal is recorded
        return not [answer for answer in map(self._job.tools.judge, meant.calls) if isinstance(answer, ToolRefusal)]


def unclear_denial(name: str, target: str, why: str) -> Denial:
    """Return the denial of an unclear call, under the agent's name of the tool."""
    tool, reason = visible(name).strip() or "(no name)", visible(why)
    return Denial(layer=Layer.DECISION, tool=tool, target=visible(target), reason=reason)


def _told(call: Mapping[str, Any]) -> str:
    """Return what a call reports beside its name."""
    told = {name: call[name] for name in ("rawInput", "kind", "locations") if call.get(name)}
    return json.dumps(told, ensure_ascii=False, default=str)[:_TARGET] if told else ""


def _selected(option: Any) -> Mapping[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}
