"""Schema 3, `spec-output`: requirements and how each is to be proven."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text, Texts
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.pushback import PushbackLog


class Priority(StrEnum):
    """How binding a requirement is."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class TestMethod(StrEnum):
    """How an acceptance criterion is shown to hold."""

    __test__ = False  # the name begins with Test, but it is no test class

    INSPECTION = "inspection"
    DEMONSTRATION = "demonstration"
    TEST = "test"
    ANALYSIS = "analysis"


class ArchitectureDirection(AgentDocument):
    """One architectural direction that was considered."""

    id: Text
    name: Text
    summary: Text


class CommonRequirement(AgentDocument):
    """A requirement that holds whatever direction is taken."""

    id: Text
    text: Text
    priority: Priority


class SubRequirement(AgentDocument):
    """A part of a functional requirement."""

    id: Text
    text: Text


class FunctionalRequirement(AgentDocument):
    """A functional requirement."""

    id: Text
    text: Text
    sub_requirements: Maybe[tuple[SubRequirement, ...]] = None


class AcceptanceCriterion(AgentDocument):
    """A criterion that must be proven before the feature is done."""

    id: Text
    text: Text
    test_method: TestMethod


class EdgeCase(AgentDocument):
    """A condition that is easily missed; what happens then may be said in one text or in parts."""

    id: Text
    text: Maybe[Text] = None
    condition: Maybe[Text] = None
    expected_behavior: Maybe[Text] = None
    severity_if_missed: Maybe[Severity] = None


class SpecPayload(AgentDocument):
    """The specification."""

    feature_name: Text
    directions: Annotated[
        tuple[ArchitectureDirection, ...], Field(min_length=1), AfterValidator(unique_ids("direction"))
    ]
    common_requirements: Annotated[
        tuple[CommonRequirement, ...], Field(min_length=1), AfterValidator(unique_ids("requirement"))
    ]
    functional_requirements: Annotated[
        tuple[FunctionalRequirement, ...], Field(min_length=1), AfterValidator(unique_ids("requirement"))
    ]
    acceptance_criteria: Annotated[
        tuple[AcceptanceCriterion, ...], Field(min_length=1), AfterValidator(unique_ids("criterion"))
    ]
    edge_cases: Maybe[tuple[EdgeCase, ...]] = None
    constraints: Maybe[Texts] = None
    pushback_log: Maybe[PushbackLog] = None


class SpecOutput(SignedDocument[SpecPayload]):
    """Schema 3: `spec-output.yaml`."""

    signer = FeatureAgent.SPEC
