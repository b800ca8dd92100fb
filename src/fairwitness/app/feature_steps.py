"""The steps of the feature pipeline as people look at them, and the calls of each."""

from collections.abc import Mapping
from datetime import datetime

STEPS: Mapping[str, str] = {
    "step-0": "setup",
    "step-1": "research",
    "step-1a": "research gate",
    "step-2": "specification",
    "step-3": "design",
    "step-3b": "design review",
    "step-4": "plan",
    "step-4a": "plan gate",
    "step-5": "implement",
    "step-6": "verify",
    "step-7": "code review",
    "step-8": "knowledge",
    "step-8b": "evidence",
    "step-9": "commit",
}
"""The pipeline in plain words, in its order; a test holds it equal to what the rules know."""
HARNESS = "orchestrator"
"""Whose calls no agent answers, but this program itself."""

_OUTCOMES = {"advanced": "done", "skipped": "skipped", "revised": "revised", "failed": "failed"}


class CallLook:
    """One call of an agent; without a status it is under way."""

    __slots__ = ("agent", "instance", "life", "since", "status", "step", "task", "tokens")

    def __init__(self, step: str, agent: str, instance: str, since: str, task: str | None, life: int) -> None:
        self.step, self.agent, self.instance = step, agent, instance
        self.since, self.task, self.life = since, task, life
        self.status: str | None = None
        self.tokens = 0


class StepLook:
    """One step of the pipeline, over all its visits."""

    def __init__(self, step: str, name: str) -> None:
        self.step, self.name = step, name
        self.visits = self.revised = 0
        """How often it was begun, and how often it sent the work back."""
        self.started: str | None = None
        self.finished: str | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.calls: dict[str, CallLook] = {}
        """Of its present visit, by what each is about; a second try takes the place of the first."""
        self.tokens = 0
        """Of all its visits."""

    @property
    def state(self) -> str:
        """waiting, running, done, skipped, revised or failed."""
        if not self.visits:
            return "waiting"
        return "running" if self.outcome is None else _OUTCOMES.get(self.outcome, self.outcome)

    @property
    def agents(self) -> list[CallLook]:
        """Its calls of agents; what the program does itself is told by the same events, and is none."""
        return [call for call in self.calls.values() if call.agent != HARNESS]

    @property
    def answered(self) -> int:
        """How many of its agents have brought an answer that could be used."""
        return sum(call.status in ("DONE", "NEEDS_REVISION") for call in self.agents)

    def seconds(self, now: datetime) -> float:
        """How long its present visit took, or has taken so far."""
        if self.started is None:
            return 0.0
        until = now if self.finished is None else datetime.fromisoformat(self.finished)
        return max(0.0, (until - datetime.fromisoformat(self.started)).total_seconds())
