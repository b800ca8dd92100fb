"""A job for tests: a role, a brief and a worktree, with tools of their own and everything that happens kept."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.agents.base import AgentJob, AnswerForm, Endpoint
from fairwitness.agents.roles import ROLES
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Happening, Kind
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.sandbox.runner import Runner
from fairwitness.sandbox.scripted import ScriptedRunner

GOOD = {
    "recommendation": "proceed",
    "concerns": ["none that blocks"],
    "independent_evidence": [],
    "verifier_agreement": True,
    "verifier_missed": [],
    "scope_creep": [],
    "missing_requirements": [],
    "notes": "fine",
}
"""A judge's answer that fits."""


@dataclass
class Kept:
    """Everything that was told."""

    happenings: list[Happening] = field(default_factory=list)

    def texts(self, kind: Kind) -> list[str]:
        return [one.text for one in self.happenings if one.kind is kind]


def job(
    worktree: Path,
    *,
    role: Role = Role.JUDGE,
    prompt: str = "Judge it.",
    wall_s: float = 20,
    turns: int = 20,
    scope: Scope | None = None,
    runner: Runner | None = None,
    endpoint: Endpoint | None = None,
    kept: Kept | None = None,
    schema: dict[str, Any] | None = None,
) -> AgentJob:
    """A job with sensible everything; commands are answered by nobody unless a runner is given."""
    spec = ROLES[role]
    chosen = scope or Scope()
    ours = runner or ScriptedRunner((), tier=SandboxTier.NONE)
    assert spec.answer is not None
    return AgentJob(
        spec=spec,
        brief=Brief(
            dispatch_id="d-1", run_id="2026-02-26T14:30:00Z", role=role, instance=role.value, task=prompt, scope=chosen
        ),
        prompt=prompt,
        form=AnswerForm(spec.answer, schema or {"type": "object"}),
        worktree=worktree,
        limits=DispatchLimits(wall_s=wall_s, turns=turns),
        tools=Toolbox(role=role, scope=chosen, worktree=worktree, runner=ours),
        runner=ours,
        endpoint=endpoint,
        on_happening=(kept or Kept()).happenings.append,
        began=time.monotonic(),
    )
