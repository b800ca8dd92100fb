"""`feature.md` and `design.md`: what people read, rendered from the documents that machines read."""

from collections.abc import Iterator

from fairwitness.contracts.common.base import AgentDocument
from fairwitness.contracts.feature.design import DesignDecision, DesignOutput, DesignPayload
from fairwitness.contracts.feature.pushback import PushbackLog
from fairwitness.contracts.feature.spec import EdgeCase, FunctionalRequirement, SpecOutput, SpecPayload
from fairwitness.kit.documents import Format, render
from fairwitness.kit.markdown import (
    Markdown,
    code,
    fenced,
    item,
    items,
    line,
    page,
    prose,
    table,
    texts,
)

SPEC_FILE = "spec-output.yaml"
DESIGN_FILE = "design-output.yaml"

NOT_SAID = "not said"


def feature_page(spec: SpecOutput) -> str:
    """`feature.md`."""
    return page(_feature(spec.agent_output.payload, spec.completion.summary), whole=f"`{SPEC_FILE}`")


def rendered_from(file: str, role: str) -> Markdown:
    """The line under every title that says whose words these are."""
    return Markdown(f"Rendered by Fair Witness from `{file}`, which is what the {role} returned: claims, not evidence.")


def _feature(payload: SpecPayload, summary: str) -> Iterator[Markdown]:
    yield Markdown(f"# Feature: {line(payload.feature_name)}")
    yield rendered_from(SPEC_FILE, "spec agent")
    yield line(summary)
    yield Markdown("## Directions")
    yield items(
        [item(Markdown(f"{_id(each.id)} {_bold(each.name)}:"), each.summary) for each in payload.directions], "None."
    )
    yield Markdown("## Common requirements")
    yield items(
        [item(Markdown(f"{_id(each.id)} ({each.priority.value})"), each.text) for each in payload.common_requirements],
        "None.",
    )
    yield Markdown("## Functional requirements")
    yield items([_functional(each) for each in payload.functional_requirements], "None.")
    yield Markdown("## Acceptance criteria")
    yield items(
        [
            item(Markdown(f"{_id(each.id)} (shown by {each.test_method.value})"), each.text)
            for each in payload.acceptance_criteria
        ],
        "None.",
    )
    yield Markdown("## Edge cases")
    yield items([_edge_case(each) for each in payload.edge_cases or ()], "None were named.")
    yield Markdown("## Constraints")
    yield texts(payload.constraints or (), "None were named.")
    yield Markdown("## Concerns")
    yield from _concerns(payload.pushback_log)
    yield from beyond(payload)


def _id(name: str) -> Markdown:
    return Markdown(f"**{line(name, 80)}**")


def _bold(text: str) -> Markdown:
    return Markdown(f"**{line(text)}**")


def _functional(requirement: FunctionalRequirement) -> Markdown:
    parts = [item(_id(requirement.id), requirement.text)]
    for part in requirement.sub_requirements or ():
        parts.append(_inside(item(_id(part.id), part.text)))
    return Markdown("\n".join(parts))


def _edge_case(case: EdgeCase) -> Markdown:
    severity = case.severity_if_missed.value if case.severity_if_missed else NOT_SAID
    said = [
        f"{label}{text}"
        for label, text in (("", case.text), ("When: ", case.condition), ("Then: ", case.expected_behavior))
        if text is not None
    ]
    return item(Markdown(f"{_id(case.id)} (if missed: {severity})"), "\n".join(said))


def _concerns(log: PushbackLog | None) -> Iterator[Markdown]:
    if log is None:
        yield Markdown("The document has no pushback log, so nothing is known of concerns.")
        return
    how = "selected by itself, nobody was asked" if log.auto_selected else "selected"
    yield Markdown(
        f"{log.concerns_identified} raised; `{log.selected_option.value}` was {how} ({log.mode.value} mode)."
    )
    yield table(
        ("Severity", "Concern", "Description", "Recommendation"),
        [(each.severity.value, each.title, each.description, each.recommendation) for each in log.concerns],
        "No concern was raised.",
    )


def design_page(design: DesignOutput) -> str:
    """`design.md`: one part for each part of the document, so that the two match."""
    return page(_design(design.agent_output.payload, design.completion.summary), whole=f"`{DESIGN_FILE}`")


def _design(payload: DesignPayload, summary: str) -> Iterator[Markdown]:
    yield Markdown("# Design")
    yield rendered_from(DESIGN_FILE, "designer")
    yield line(summary)
    yield Markdown("## Architecture")
    yield prose(payload.architecture)
    yield Markdown("## Decisions")
    yield table(
        ("Decision", "Title", "Risk", "Confidence"),
        [(code(each.id), each.title, each.risk.value, _confidence(each)) for each in payload.decisions],
        "None.",
    )
    for decision in payload.decisions:
        yield from _decision(decision)
    yield Markdown("## Deviations from the specification")
    yield items(
        [
            Markdown(
                "\n".join(
                    (
                        item(Markdown(f"{_id(each.id)} leaves {code(each.spec_requirement)}:"), each.deviation),
                        _inside(item(Markdown("Why:"), each.rationale)),
                    )
                )
            )
            for each in payload.deviation_records or ()
        ],
        "None were declared.",
    )
    if payload.agent_inventory is not None:
        yield Markdown("## Agents of the design")
        yield fenced(render([each.plain() for each in payload.agent_inventory], Format.YAML))
    if payload.pipeline_steps is not None:
        yield Markdown("## Steps of the design")
        yield fenced(render([each.plain() for each in payload.pipeline_steps], Format.YAML))
    yield from beyond(payload)


def _confidence(decision: DesignDecision) -> str:
    return decision.confidence.value if decision.confidence is not None else NOT_SAID


def _inside(entry: Markdown) -> Markdown:
    """An entry of a list inside the entry before it."""
    return Markdown("\n".join(f"  {each}".rstrip() for each in entry.split("\n")))


def _decision(decision: DesignDecision) -> Iterator[Markdown]:
    yield Markdown(f"### Decision {line(decision.id, 80)}: {line(decision.title)}")
    yield Markdown(f"Risk {decision.risk.value}, confidence {_confidence(decision)}.")
    yield prose(decision.rationale)
    yield table(
        ("Rejected", "Why", "How sure"),
        [(each.name, each.reason, each.confidence.value) for each in decision.alternatives_rejected],
        "Nothing was rejected for it.",
    )


def beyond(payload: AgentDocument) -> Iterator[Markdown]:
    """What a document says besides what its schema knows."""
    more = {name: value for name, value in payload.plain().items() if name in (payload.model_extra or {})}
    if more:
        yield Markdown("## Besides")
        yield Markdown("Fields that no schema knows; nothing is decided by them.")
        yield fenced(render(more, Format.YAML))
