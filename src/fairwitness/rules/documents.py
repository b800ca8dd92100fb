"""The semantic checks that need one document only, by the kind of document."""

from fairwitness.contracts.common.completion import CompletionDocument
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.contracts.feature.review import ReviewReturn, ReviewVerdict
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.dag import dag_problems
from fairwitness.rules.plan import plan_problems, task_problems
from fairwitness.rules.reports import completion_problems, implementation_problems, verification_problems
from fairwitness.rules.review import review_problems, verdict_problems


def document_problems(document: object) -> tuple[Problem, ...]:
    """Everything wrong inside one document that its schema cannot say; nothing for kinds without such rules."""
    match document:
        case PlanOutput():
            return plan_problems(document)
        case TaskDocument():
            return task_problems(document)
        case ImplementationReport():
            return implementation_problems(document)
        case VerificationReport():
            return verification_problems(document)
        case CompletionDocument():
            return completion_problems(document.completion)
        case ReviewVerdict():
            return verdict_problems(document)
        case ReviewReturn():
            return review_problems(document)
        case Dag():
            return dag_problems(document)
        case CaptainReturn(dag=Dag() as dag):
            return tuple(problem.model_copy(update={"where": ("dag", *problem.where)}) for problem in dag_problems(dag))
        case _:
            return ()
