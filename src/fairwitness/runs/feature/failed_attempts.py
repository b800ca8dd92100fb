"""What the next attempt, and the planner, are told about an attempt that failed, from the ledger and the repository."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.git.call import GitFailed
from fairwitness.rules.evidence_worth import ValuedRow
from fairwitness.rules.retry_material import FailureCause, Material, causes_of, material_for
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import RecordedAttempt, recorded_attempt
from fairwitness.runs.shared.criteria import CRITERIA
from fairwitness.runs.shared.failed_proof import GONE, change_section, checks_section, failed_texts, proof_rows
from fairwitness.runs.shared.sections import change_text, list_section, text_section
from fairwitness.verify.failed_checks import CheckText, shorten

_SINCE: Final = 40
"""How many files are named that other tasks changed."""


class FailedAttempt:
    """One attempt at a task that was not merged."""

    def __init__(self, context: FeatureContext, task: str, number: int) -> None:
        self._context, self._task, self._number = context, task, number
        self._done: RecordedAttempt | None = recorded_attempt(context, task, number)

    def sections(self, *, base: str | None = None, conflicts: tuple[str, ...] = ()) -> tuple[PromptSection, ...]:
        """Return the material that the table asks for; `base` is the commit that the next attempt starts from."""
        rows, judged = self._rows(), self._judged()
        causes = causes_of(
            rows,
            unmet=any(each["met"] is False for each in judged),
            unjudged=any(each["met"] is None for each in judged),
        )
        if conflicts:
            causes = (*causes, FailureCause.CONFLICT)
        made: Mapping[Material, Callable[[], tuple[PromptSection, ...]]] = {
            Material.CHECKS: lambda: checks_section(self._texts(rows)),
            Material.CRITERIA: lambda: list_section("Criteria that the last attempt did not meet", self._criteria()),
            Material.VERIFIER: lambda: text_section("What the verifier said about it", self._verifier()),
            Material.DIFF: lambda: change_section(self._diff()),
            Material.HISTORY: lambda: list_section("Earlier attempts", self._history()),
            Material.SINCE: lambda: list_section("Files that other tasks changed since then", self._since(base)),
            Material.CONFLICT: lambda: list_section("Files in conflict, with conflict markers", conflicts),
        }
        return tuple(section for material in material_for(causes) for section in made[material]())

    def _rows(self) -> tuple[ValuedRow, ...]:
        return proof_rows(self._context.ledger, self._context.run_id, self._task, self._number)

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
        return failed_texts(context.ledger, context.kept, context.run_id, self._task, rows)

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
            return change_text(self._context.shadow, self._context.repository.tree_of(self._done.base), self._done.tree)
        except GitFailed:
            return GONE

    def _history(self) -> tuple[str, ...]:
        known = self._context.state().tasks.get(self._task)
        return tuple(
            f"attempt {each.attempt}: {each.reason}" for each in (known.attempts if known else ()) if each.reason
        )

    def _since(self, base: str | None) -> tuple[str, ...]:
        if base is None or self._done is None or base == self._done.base:
            return ()
        tree_of = self._context.repository.tree_of
        try:
            paths = [file.path for file in self._context.shadow.diff(tree_of(self._done.base), tree_of(base))]
        except GitFailed:
            return ()
        more = [f"and {len(paths) - _SINCE} more"] if len(paths) > _SINCE else []
        return (*paths[:_SINCE], *more)
