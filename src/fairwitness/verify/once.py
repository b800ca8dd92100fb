"""A question that is asked once, whatever came of it: for commands that somebody else chose, and that are not retried.

The harness asks again what gave no evidence. Here the row that says so stands, also for whoever goes on after a kill.
"""

from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.verify.harness import Harness
from fairwitness.verify.question import Question


def ask_once(harness: Harness, question: Question) -> Ran:
    """The answer to a question; one that gave no evidence before a kill is not asked again."""
    own = (harness.subject.task_id, question.tree, harness.subject.name, question.purpose)
    for seen in reversed(harness.ledger.observations(harness.run_id, "run", subject=question.spec.id)):
        asked = (seen.task_id, seen.tree, seen.detail.get("subject"), seen.detail.get("purpose"))
        if asked == own and "reason" in seen.detail:
            return Ran(
                check=question.spec.id,
                evidence=Evidence.NONE,
                reason=str(seen.detail["reason"]),
                assessment=None,
                execution=harness.ledger.execution_id(harness.run_id, seen.key),
            )
    return harness.run(question)
