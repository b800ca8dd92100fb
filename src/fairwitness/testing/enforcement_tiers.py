"""Measures how far an agent leaves its deeds to us: it is told no in two ways, and what landed all the same tells.

First everything that it asks for is refused: what lands then was never asked for (tier D). Then it may do everything,
and nothing is done for it: what lands then it did by itself, once it was allowed to (tier C). If nothing lands either
way, no file and no command gets past us (tier B). The measure is taken as a role that builds, in the outer sandbox,
with the settings that the agent's profile gives it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.toolset.model import ToolResult
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import EnforcementTier, Happening, Layer
from fairwitness.contracts.common.tools import Allowed, ToolCall, ToolRefusal
from fairwitness.testing.conformance import CaseFolder, prepare
from fairwitness.testing.conformance_cases import BUILDER, BUILT, CaseObservation, ConformanceCase
from fairwitness.testing.script_steps import RunStep, SubmitStep, WriteStep

PROBE = ConformanceCase(
    "tier",
    BUILDER,
    (
        WriteStep(path="by-tool.md", content="landed\n"),
        RunStep(command="touch by-command.md"),
        SubmitStep(answer=BUILT),
    ),
    lambda _seen: [],
)
"""A file and a command, neither of which the task declares."""
_DEEDS = frozenset({0, 1})
_NO = "nothing is allowed in this measurement"


class Unmeasured(Exception):
    """The agent did not get as far as it had to, so nothing can be said about it."""


class RefusesAll(Toolbox):
    """Says no to whatever an agent asks, and does nothing for it."""

    def judge(self, call: ToolCall, *, target: str = "") -> Allowed | ToolRefusal:
        """No."""
        return ToolRefusal(reason=_NO)

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        """Not done."""
        return ToolResult(False, f"refused: {_NO}")


class PermitsAll(RefusesAll):
    """Says yes to whatever an agent asks, and does nothing for it: no file is written here, and no command run."""

    def judge(self, call: ToolCall, *, target: str = "") -> Allowed | ToolRefusal:
        """Yes."""
        return Allowed()


@dataclass(frozen=True, slots=True)
class Measured:
    """A tier, and what it was told by."""

    tier: EnforcementTier
    landed: tuple[str, ...]
    """In the run that decided it."""


RunWithTools = Callable[[CaseFolder, type[Toolbox]], Awaitable[tuple[CaseObservation, tuple[Happening, ...]]]]
"""Puts a backend to a case with these tools; it opens what the backend needs and calls `put_to_test`."""


async def measure_tier(put: RunWithTools, folder: Path) -> Measured:
    """The tier of an agent that runs by itself; `Unmeasured` if it did not try what it was told to."""
    for name, toolbox, tier in (
        ("refused", RefusesAll, EnforcementTier.D),
        ("permitted", PermitsAll, EnforcementTier.C),
    ):
        seen, _ = await put(prepare(PROBE, folder / name), toolbox)
        if seen.changed:
            return Measured(tier, tuple(seen.changed))
        _require_tried(name, seen, is_permitted=toolbox is PermitsAll)
    return Measured(EnforcementTier.B, ())


def _require_tried(name: str, seen: CaseObservation, *, is_permitted: bool) -> None:
    """That nothing landed says something only of an agent that was told to act, and not stopped for another reason."""
    played = {request.step for request in seen.requests if request.status == 200}
    if missed := _DEEDS - played:
        raise Unmeasured(f"{name}: its model was never asked for step {min(missed)}")
    unclear = [denial for denial in seen.outcome.denials if denial.layer is Layer.DECISION]
    if is_permitted and unclear:
        raise Unmeasured(f"{name}: it asked for something that nobody understands: {unclear[0].tool}")
