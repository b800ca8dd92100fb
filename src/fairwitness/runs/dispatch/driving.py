"""From the parts of a dispatch to the driver's outcome: its tools, its way to a model, and what was counted on it."""

import asyncio
import time
from typing import NamedTuple

from fairwitness.agents.base import Form, Job, Tell
from fairwitness.agents.driver import Cut, drive
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import (
    Brief,
    Denial,
    EnforcementTier,
    Happening,
    Kind,
    Outcome,
    OutcomeStatus,
    Usage,
)
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.runs.dispatch.account import limits_of
from fairwitness.runs.dispatch.model import Connection, DispatchDeps
from fairwitness.runs.dispatch.transcript import Transcript

_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_NOTHING = Usage(tokens_in=0, tokens_out=0, tokens_cached=0, cost_micros=0, turns=0)
"""Known, and not merely not reported: nobody was asked anything."""


class JobParts(NamedTuple):
    """What the job is made of, before there is a way to its model."""

    spec: RoleSpec
    brief: Brief
    prompt: str
    form: Form
    tools: Toolbox
    transcript: Transcript


def toolbox(brief: Brief, deps: DispatchDeps, transcript: Transcript) -> Toolbox:
    """The tools of a role; what is refused stands in the transcript at once."""
    began, told = time.monotonic(), _telling(deps, transcript)

    def denied(denial: Denial) -> None:
        ms = max(0, int((time.monotonic() - began) * 1000))
        text = f"{denial.target}: {denial.reason}"
        told(Happening(kind=Kind.DENIED, ms=ms, text=text, tool=denial.tool, ok=False))

    return Toolbox(
        role=brief.role,
        scope=brief.scope,
        worktree=deps.worktree,
        runner=deps.runner,
        surroundings=deps.surroundings,
        sources=deps.sources,
        git=deps.git,
        denied=denied,
    )


def _telling(deps: DispatchDeps, transcript: Transcript) -> Tell:
    """Into the transcript, and to whoever is watching."""

    def tell(happening: Happening) -> None:
        transcript.tell(happening)
        if deps.watcher is not None:
            deps.watcher(happening)

    return tell


async def driven(
    deps: DispatchDeps, parts: JobParts, connection: Connection, *, stop: asyncio.Event | None, cut: Cut
) -> Outcome:
    """The driver's outcome, with what was counted nearest to the model."""
    if deps.probe.tier in _WEAK and deps.runner.tier is not SandboxTier.NAMESPACES:
        problem = (
            f"{deps.probe.name} acts by itself (tier {deps.probe.tier.value}), and the sandbox here "
            f"({deps.runner.tier.value}) cannot hold it to its role"
        )
        return unasked(OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED, problem)
    job = Job(
        spec=parts.spec,
        brief=parts.brief,
        prompt=parts.prompt,
        form=parts.form,
        worktree=deps.worktree,
        limits=limits_of(parts.spec),
        tools=parts.tools,
        runner=deps.runner,
        endpoint=connection.endpoint,
        tell=_telling(deps, parts.transcript),
        began=time.monotonic(),
    )
    outcome = await drive(deps.backend, job, stop=stop, cut=cut)
    used = connection.used()
    return outcome if used is None else outcome.model_copy(update={"usage": used})


def unasked(status: OutcomeStatus, cause: ErrorCause | None, problem: str) -> Outcome:
    """The outcome of a dispatch in which nobody was asked anything."""
    return Outcome(status=status, raw_text="", problems=(problem,), asked=0, usage=_NOTHING, cause=cause, duration_ms=0)
