"""The documents of a feature run in the order of its steps, with their writers and readers."""

from typing import NamedTuple

from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.tools import Role

FOLDER = "docs/feature/<slug>"
"""The folder of a run's documents."""
NINE: tuple[Role, ...] = tuple(Role(agent.value) for agent in FeatureAgent)
"""The roles of the published set; intake is part of the orchestrator's first step there."""


class FeatureDocument(NamedTuple):
    """A kind of document."""

    contract: str
    path: str | None
    """The path below the run's folder; None for text at the end of a call."""
    producers: tuple[Role, ...]
    consumers: tuple[Role, ...]
    what: str


DOCUMENTS: tuple[FeatureDocument, ...] = (
    FeatureDocument(
        "completion-contract",
        None,
        NINE,
        (Role.ORCHESTRATOR,),
        "how a call ended, in three words; part of every signed document",
    ),
    FeatureDocument(
        "research-output",
        "research/<focus>.yaml",
        (Role.RESEARCHER,),
        (Role.SPEC, Role.DESIGNER, Role.KNOWLEDGE),
        "facts about one side of the repository, each with its place",
    ),
    FeatureDocument(
        "spec-output",
        "spec-output.yaml",
        (Role.SPEC,),
        (Role.DESIGNER, Role.REVIEWER, Role.PLANNER, Role.IMPLEMENTER, Role.VERIFIER, Role.KNOWLEDGE),
        "requirements and the criteria by which each can be seen to fail",
    ),
    FeatureDocument(
        "design-output",
        "design-output.yaml",
        (Role.DESIGNER,),
        (Role.REVIEWER, Role.PLANNER, Role.IMPLEMENTER, Role.KNOWLEDGE),
        "decisions with what was decided against",
    ),
    FeatureDocument(
        "plan-output",
        "plan-output.yaml",
        (Role.PLANNER,),
        (Role.ORCHESTRATOR, Role.KNOWLEDGE),
        "tasks with their order and their risk",
    ),
    FeatureDocument(
        "task-schema",
        "tasks/<task-id>.yaml",
        (Role.PLANNER,),
        (Role.IMPLEMENTER, Role.VERIFIER),
        "one task and the sections it needs",
    ),
    FeatureDocument(
        "implementation-report",
        "implementation-reports/<task-id>.yaml",
        (Role.IMPLEMENTER,),
        (Role.VERIFIER, Role.KNOWLEDGE),
        "what an implementer did and saw; a claim",
    ),
    FeatureDocument(
        "verification-report",
        "verification-reports/<task-id>.yaml",
        (Role.VERIFIER,),
        (Role.ORCHESTRATOR, Role.REVIEWER, Role.KNOWLEDGE),
        "what a verifier found; compared with the evidence",
    ),
    FeatureDocument(
        "review-return",
        None,
        (Role.REVIEWER,),
        (Role.DESIGNER, Role.IMPLEMENTER, Role.ORCHESTRATOR),
        "a reviewer's findings, from which its verdict follows",
    ),
    FeatureDocument(
        "review-findings",
        "review-verdicts/<scope>-<perspective>.yaml",
        (Role.REVIEWER,),
        (Role.ORCHESTRATOR, Role.KNOWLEDGE),
        "the verdict on each category, which is that of its worst finding",
    ),
    FeatureDocument(
        "knowledge-output",
        "knowledge-output.yaml",
        (Role.KNOWLEDGE,),
        (),
        "what the run taught",
    ),
    FeatureDocument(
        "decision-log",
        "decisions.yaml",
        (Role.KNOWLEDGE,),
        (Role.KNOWLEDGE,),
        "decisions that later runs must know; it only grows",
    ),
)


def written_by(role: Role) -> tuple[FeatureDocument, ...]:
    """Return the documents that a role writes."""
    return tuple(each for each in DOCUMENTS if each.path is not None and role in each.producers)


def read_by(role: Role) -> tuple[FeatureDocument, ...]:
    """Return the documents that a role may read."""
    return tuple(each for each in DOCUMENTS if role in each.consumers)
