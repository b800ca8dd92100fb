"""Answers an agent that asks before it acts: yes to what its role may do, once; no to everything else."""

from collections.abc import Mapping
from typing import Any

from assay.agents.backends.acp.understanding import Relative, Unclear, understand
from assay.agents.backends.acp.updates import Updates
from assay.agents.base import Job
from assay.contracts.agents.profile import AgentProfile
from assay.contracts.common.tools import Refused, ToolCall

CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}
_YES, _NO = "allow_once", "reject_once"


class Permissions:
    """Decides for one session."""

    def __init__(self, profile: AgentProfile, job: Job, updates: Updates, relative: Relative) -> None:
        self._profile, self._job, self._updates, self._relative = profile, job, updates, relative

    def decide(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to `session/request_permission`."""
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
        meant = understand(self._profile, call, self._relative)
        if isinstance(meant, Unclear):
            # no tool has such a name, so this is refused whatever the role has, and the refusal is kept
            self._job.tools.judge(ToolCall(tool=f"{meant.name} (unclear)"), target=meant.why)
            return False
        if meant.is_submission:
            return True
        # every part is judged, so that every refusal is on record
        return not [answer for answer in map(self._job.tools.judge, meant.calls) if isinstance(answer, Refused)]


def _selected(option: Any) -> Mapping[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}
