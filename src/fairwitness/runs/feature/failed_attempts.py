"""What the next attempt, and the planner, are told about an attempt that failed, from the ledger and the repository."""

from typing import Any

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.state import AttemptState
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.git.call import GitFailed
from fairwitness.rules.evidence_worth import ValuedRow
from fairwitness.rules.retry_material import FailureCause, Material, causes_of
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import RecordedAttempt, recorded_attempt
from fairwitness.runs.shared.criteria import CRITERIA
from fairwitness.runs.shared.retry_sections import (
    change_between,
    changed_since,
    failed_subject,
    failed_texts,
    listed,
    proof_rows,
    retry_sections,
)
from fairwitness.verify.failed_checks import CheckText, shorten, spelled


class FailedAttempt:
    """One attempt at a task that was not merged."""

    def __init__(self, context: FeatureContext, task: str, number: int) -> None:
        self._context, self._task, self._number = context, task, number
        self._done: RecordedAttempt | None = recorded_attempt(context, task, number)

    def sections(self, *, base: str | None = None, conflicts: str = "") -> tuple[PromptSection, ...]:
        """Return the material that the table asks for.

        `base` is the commit that the next attempt starts from, `conflicts` the text of the conflicts in it.
        """
        rows, judged = self._rows(), self._judged()
        causes: tuple[FailureCause, ...] = (FailureCause.MERGE,)
        if self._subject()[0] == self._task:
            causes = causes_of(
                rows,
                unmet=any(each["met"] is False for each in judged),
                unjudged=any(each["met"] is None for each in judged),
            )
        if conflicts:
            causes = (*causes, FailureCause.CONFLICT)
        return retry_sections(
            causes,
            {
                Material.CHECKS: lambda: spelled(self._texts(rows)),
                Material.CRITERIA: lambda: listed(self._criteria()),
                Material.VERIFIER: self._verifier,
                Material.DIFF: self._diff,
                Material.HISTORY: lambda: listed(self._history()),
                Material.SINCE: lambda: self._since(base),
                Material.CONFLICT: lambda: conflicts,
            },
        )

    def _rows(self) -> tuple[ValuedRow, ...]:
        return proof_rows(self._context.ledger, self._context.run_id, *self._subject())

    def _subject(self) -> tuple[str, int]:
        reason = next((each.reason for each in self._attempts() if each.attempt == self._number), None) or ""
        return failed_subject(self._context.ledger, self._context.run_id, self._task, self._number, reason)

    def _attempts(self) -> tuple[AttemptState, ...]:
        known = self._context.state().tasks.get(self._task)
        return () if known is None else tuple(known.attempts)

    def failing(self) -> dict[str, str]:
        """Return why checks of the attempt failed: the first failing test, or the reason of an unmet criterion."""
        judged = {
            str(each["check"]): shorten(" ".join(str(each["text"]).split()))
            for each in self._judged()
            if each["met"] is not True and str(each["text"]).strip()
        }
        return judged | {text.name: text.reason for text in reversed(self._texts(self._rows())) if text.reason}

    def _texts(self, rows: tuple[ValuedRow, ...]) -> tuple[CheckText, ...]:
        context = self._context
        return failed_texts(context.ledger, context.kept, context.run_id, self._subject()[0], rows)

    def _judged(self) -> list[dict[str, Any]]:
        found = self._conclusion()
        return [] if found is None else list(found["judged"])

    def _criteria(self) -> tuple[str, ...]:
        found = self._conclusion()
        return () if found is None else tuple(map(str, found["missing"]))

    def _conclusion(self) -> dict[str, Any] | None:
        subject = VerifySubject(task_id=self._task, round=self._number)
        found = self._context.ledger.observation(self._context.run_id, f"{CRITERIA}:{subject.name}")
        return None if found is None else found.detail

    def _verifier(self) -> str:
        """Return the verifier's own summary; its report in the feature folder has that of the harness."""
        ledger, run_id = self._context.ledger, self._context.run_id
        call = f"{Step.VERIFY.value}-{self._number}-{self._task}-"
        own = [row.subject for row in ledger.observations(run_id, ENDED) if row.subject.startswith(call)]
        done = ended(ledger, run_id, own[-1]) if own else None
        report = None if done is None else done.answer(VerificationReport)
        return "" if report is None else report.completion.summary

    def _diff(self) -> str:
        if self._done is None:
            return ""
        try:
            base = self._context.repository.tree_of(self._done.base)
        except GitFailed:
            base = self._done.base
        return change_between(self._context.shadow, base, self._done.tree)

    def _history(self) -> tuple[str, ...]:
        return tuple(f"attempt {each.attempt}: {each.reason}" for each in self._attempts() if each.reason)

    def _since(self, base: str | None) -> str:
        before = None if self._done is None else self._done.base
        return changed_since(self._context.repository, self._context.shadow, before, base)
