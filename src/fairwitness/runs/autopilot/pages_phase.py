"""What the first steps of a phase and its end leave: RESEARCH.md, TRIAGE.json, the post-mortem, HANDOFF.md."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from fairwitness.contracts.autopilot.checks import expect
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.returns import ResearcherReturn
from fairwitness.contracts.autopilot.trace import TraceSpan
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.contracts.common.base import Contract, Timestamp
from fairwitness.contracts.common.ids import AutopilotRunId, Commit, PhaseId, RelPath, SafeName
from fairwitness.errors import BadDocument
from fairwitness.kit import front_matter
from fairwitness.kit.documents import Format, read
from fairwitness.kit.json_text import render_line
from fairwitness.kit.markdown import Markdown, code, counted, items, page, prose, texts
from fairwitness.runs.autopilot.wording import json_file, readable, title


def research_page(phase: RoadmapPhase, research: ResearcherReturn) -> str:
    """`RESEARCH.md`: what a plan of the phase has to know."""
    return page(_research(phase, research), whole="the researcher's return")


def _research(phase: RoadmapPhase, research: ResearcherReturn) -> Iterator[Markdown]:
    yield title("Research", phase)
    yield Markdown("Rendered by Fair Witness from what the researcher returned: claims, not evidence.")
    yield Markdown("## Recommended approach")
    yield prose(research.recommended_approach)
    yield Markdown("## Findings")
    yield texts(research.key_findings, "None.")
    yield Markdown("## Risks")
    yield texts(research.risks, "None were named.")
    yield Markdown("## Open questions")
    yield texts(research.open_questions, "None: the researcher says the code and the roadmap answer everything.")


def triage_file(triage: Triage) -> str:
    """`TRIAGE.json`: how much of the phase is there already, and which way it goes."""
    return json_file(triage.plain())


def post_mortem_file(post_mortem: PostMortem) -> str:
    """`phase-<N>-postmortem.json`: why a phase failed."""
    return json_file(post_mortem.plain())


def trace_file(spans: tuple[TraceSpan, ...]) -> str:
    """`<step>-trace.jsonl`, and in the order they ran all steps' spans as `TRACE.jsonl`: one action a line."""
    return "".join(f"{render_line(readable(span.plain()))}\n" for span in spans)


class Handoff(Contract):
    """What a phase that ran out of room leaves to its next run: the head of `HANDOFF.md`."""

    phase_id: PhaseId
    run_id: AutopilotRunId
    written: Timestamp
    checkpoint_sha: Commit
    tasks_completed: tuple[SafeName, ...]
    tasks_remaining: Annotated[tuple[SafeName, ...], Field(min_length=1)]
    files: tuple[RelPath, ...]

    @model_validator(mode="after")
    def _no_task_is_both(self) -> Self:
        both = set(self.tasks_completed) & set(self.tasks_remaining)
        expect(self, not both, "tasks that are not completed", "tasks_remaining")
        return self


def handoff_page(phase: RoadmapPhase, handoff: Handoff) -> str:
    """`HANDOFF.md`: its head is read by the next run, the rest by people."""
    return front_matter.render({**handoff.plain(), "body": "\n" + page(_handoff(phase, handoff), whole="its head")})


def _handoff(phase: RoadmapPhase, handoff: Handoff) -> Iterator[Markdown]:
    done, left = handoff.tasks_completed, handoff.tasks_remaining
    yield title("Handoff", phase)
    yield Markdown(
        f"The phase stopped at commit {code(handoff.checkpoint_sha)} with {len(done)} of "
        f"{counted(len(done) + len(left), 'task')} done. The next run carries out only what remains."
    )
    for heading, names, otherwise in (
        ("## Tasks that remain", left, ""),
        ("## Tasks that are done", done, "None."),
        ("## Files touched so far", handoff.files, "None."),
    ):
        yield Markdown(heading)
        yield items([Markdown(f"- {code(name)}") for name in names], otherwise)


def read_handoff(text: str) -> Handoff | None:
    """The handoff of a page, or None if the page is not one of ours: then the whole phase is run again."""
    try:
        head = read(text.encode(errors="replace"), Format.MARKDOWN).value
        return Handoff.model_validate({key: value for key, value in head.items() if key != front_matter.BODY})
    except (BadDocument, ValidationError):
        return None
