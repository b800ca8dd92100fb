"""Pages about the work of a phase: research, triage, plan, execution log, trace, handoff, post-mortem, context."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from fairwitness.contracts.autopilot.context_map import DiscussedPhase, DiscussedQuestion
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.plan import PlanCriterion, PlanTask
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.returns import PlannerReturn, ResearcherReturn, TaskEvidence
from fairwitness.contracts.autopilot.trace import TraceSpan
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, TaskCriterionStatus
from fairwitness.contracts.autopilot.vocabulary import Grade
from fairwitness.contracts.common.base import Amount, Contract, Count, Maybe, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import AutopilotRunId, Commit, PhaseId, RelPath, SafeName
from fairwitness.contracts.common.problems import expect
from fairwitness.errors import BadDocument
from fairwitness.kit import front_matter
from fairwitness.kit.documents import Format, read
from fairwitness.kit.json_text import render_line
from fairwitness.kit.markdown import (
    PROSE,
    ROWS,
    Markdown,
    cell,
    code,
    counted,
    item,
    items,
    line,
    listed,
    page,
    prose,
    table,
    texts,
)
from fairwitness.kit.text import visible, visible_lines
from fairwitness.runs.autopilot.page_words import command_code, json_file, length, of_ten, readable, title
from fairwitness.store.layout import autopilot
from fairwitness.store.layout.autopilot import PhaseLayout


def research_page(phase: RoadmapPhase, research: ResearcherReturn) -> str:
    """Return `RESEARCH.md`: what a plan of the phase has to know."""
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
    """Return `TRIAGE.json`: how much of the phase exists, and which route it takes."""
    return json_file(triage.plain())


def post_mortem_file(post_mortem: PostMortem) -> str:
    """Return `phase-<N>-postmortem.json`: why a phase failed."""
    return json_file(post_mortem.plain())


def trace_file(spans: tuple[TraceSpan, ...]) -> str:
    """Return `<step>-trace.jsonl` or `TRACE.jsonl`, one action per line."""
    return "".join(f"{render_line(readable(span.plain()))}\n" for span in spans)


class Handoff(Contract):
    """The head of `HANDOFF.md`: what a phase that ran out of room leaves to the next run."""

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
    """Return `HANDOFF.md`: the next run reads its head, people read the rest."""
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
    """Return the head of a handoff page, or None if the page is not ours; then the whole phase runs again."""
    try:
        head = read(text.encode(errors="replace"), Format.MARKDOWN).value
        return Handoff.model_validate({key: value for key, value in head.items() if key != front_matter.BODY})
    except (BadDocument, ValidationError):
        return None


_ENTITY = re.compile(r"&(?=#?\w+;)")
_OURS = re.compile(r"<(?=/?(?:task|files|action|verify|done)\b)", re.IGNORECASE)
_TICKS = re.compile(r"`+")


def plan_page(
    phase: RoadmapPhase, requirements: Sequence[str], tasks: Sequence[PlanTask], planner: PlannerReturn
) -> str:
    """Return `PLAN.md`; the numbers are counted here, and shown beside the planner's if they differ."""
    return page(_plan(phase, requirements, tasks, planner), whole="the planner's return")


def _plan(
    phase: RoadmapPhase, requirements: Sequence[str], tasks: Sequence[PlanTask], planner: PlannerReturn
) -> Iterator[Markdown]:
    waves = sorted({task.wave for task in tasks})
    yield title("Plan", phase)
    yield Markdown("Rendered by Fair Witness from what the planner wrote.")
    yield Markdown("A task is done when the command of every criterion passes, not when an agent says so.")
    yield Markdown(
        f"{counted(len(tasks), 'task')} in {counted(len(waves), 'wave')}; the planner calls the phase "
        f"{planner.complexity.value}."
    )
    if (planner.total_tasks, planner.waves) != (len(tasks), len(waves)):
        yield Markdown(
            f"**The planner counted otherwise:** {counted(planner.total_tasks, 'task')} in "
            f"{counted(planner.waves, 'wave')}."
        )
    for wave in waves:
        yield Markdown(f"## Wave {wave}")
        for task in tasks:
            if task.wave == wave:
                yield Markdown(f"### Task {task.id}")
                if task.script is not None:
                    yield Markdown(f"Test script: {code(PhaseLayout(phase.id).test_script(task.id))}")
                yield task_element(task)
    yield Markdown("## Traceability")
    yield _traceability(requirements, tasks)
    yield Markdown("## Dependencies between plans")
    yield texts(planner.dependencies, "None.")
    yield Markdown("## Concerns of the planner")
    yield texts(planner.concerns, "None were named.")


def task_element(task: PlanTask) -> Markdown:
    """Return a task as an XML element in a code block; no text in it can end the element or the block."""
    lines = [
        f'<task id="{task.id}" type="{task.kind.value}" complexity="{task.complexity.value}">',
        *_element("files", [_inert(visible(file)) for file in task.files]),
        *_element("action", _inert(_limited(task.action)).split("\n")),
        *_element("verify", [_criterion_line(each) for each in task.criteria]),
        *_element("done", _inert(_limited(task.done)).split("\n")),
        "</task>",
    ]
    text = "\n".join(lines)
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return Markdown(f"{fence}xml\n{text}\n{fence}")


def _element(name: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"  <{name}>"
    yield from (f"    {each}".rstrip() for each in lines)
    yield f"  </{name}>"


def _criterion_line(each: PlanCriterion) -> str:
    words = _inert(_limited(" ".join(each.criterion.split())))
    # a command is never reformatted: line ends in it are spelled out
    command = _inert(visible(each.command.strip()))
    ticks = "`" * max([1, *(len(found) + 1 for found in _TICKS.findall(command))])
    padding = " " if len(ticks) > 1 else ""
    return f"- {words} -- verified by: {ticks}{padding}{command}{padding}{ticks}"


def _limited(text: str) -> str:
    whole = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    shown = visible_lines(whole[:PROSE])
    return shown if len(whole) <= PROSE else f"{shown} … ({len(text)} characters in all)"


def _inert(text: str) -> str:
    """Escape our own tags; only `&lt;` and `&amp;` need to be undone, so commands stay readable."""
    return _OURS.sub("&lt;", _ENTITY.sub("&amp;", text))


def _traceability(requirements: Sequence[str], tasks: Sequence[PlanTask]) -> Markdown:
    named = [requirement for task in tasks for requirement in task.requirements]
    strangers = [each for each in dict.fromkeys(named) if each not in requirements]
    rows = [
        (
            requirement,
            listed((task.id for task in tasks if requirement in task.requirements), "**no task**"),
            "yes" if requirement in requirements else "no, only the plan names it",
        )
        for requirement in (*dict.fromkeys(requirements), *strangers)
    ]
    return table(
        ("Requirement", "Tasks", "Of the phase"), rows, "The phase has no requirements, and the plan names none."
    )


class LoggedTask(Contract):
    """One task of the execution log; a task that was never checked has no `check`."""

    id: SafeName
    description: Text
    status: TaskStatus
    reason: Maybe[Text] = None
    """Why it failed."""
    commit: Commit | None
    files: tuple[RelPath, ...]
    evidence: TaskEvidence | None
    confidence: Grade | None
    check: MiniVerifierReturn | None
    debug_attempts: Count
    duration_seconds: Maybe[Amount] = None


def execution_page(phase: RoadmapPhase, tasks: Sequence[LoggedTask], deviations: Texts) -> str:
    """Return `EXECUTION-LOG.md`: what became of each task, what its executor claims, and its mini-verification."""
    return page(_execution_log(phase, tasks, deviations), whole="the run's events")


def _execution_log(phase: RoadmapPhase, tasks: Sequence[LoggedTask], deviations: Texts) -> Iterator[Markdown]:
    completed = sum(task.status is TaskStatus.COMPLETED for task in tasks)
    yield title("Execution log", phase)
    yield Markdown("Written by Fair Witness. Status, commit and files are what it saw itself.")
    yield Markdown(
        "Evidence and confidence are claims of the executor; the mini-verification is another agent's claim."
    )
    yield Markdown(f"{completed} of {counted(len(tasks), 'task')} completed.")
    yield table(
        ("Task", "Status", "Commit", "Mini-verification", "Debug attempts", "Took"),
        [
            (
                code(task.id),
                _task_status(task.status),
                code(task.commit) if task.commit is not None else "none",
                _check_result(task.check),
                str(task.debug_attempts),
                "not known" if task.duration_seconds is None else length(task.duration_seconds),
            )
            for task in tasks
        ],
        "No task was carried out.",
    )
    yield Markdown("## Tasks")
    for task in tasks[:ROWS]:
        yield Markdown(f"### Task {task.id}: {line(task.description)}")
        yield Markdown("\n".join(_task_lines(task)))
    yield Markdown("## Deviations from the plan")
    yield texts(deviations, "None were reported.")


def _task_status(status: TaskStatus) -> Markdown:
    word = status.value.upper()
    return Markdown(word if status is TaskStatus.COMPLETED else f"**{word}**")


def _check_result(check: MiniVerifierReturn | None) -> Markdown:
    if check is None:
        return Markdown("**NOT RUN**")
    return Markdown("PASS" if check.pass_ else "**FAIL**")


def _task_lines(task: LoggedTask) -> Iterator[str]:
    yield f"- **Status:** {task.status.value.upper()}"
    if task.reason is not None:
        yield f"- **Why:** {line(task.reason)}"
    yield f"- **Commit SHA:** {'none' if task.commit is None else code(task.commit)}"
    yield f"- **Files modified:** {listed(task.files, 'none')}"
    if task.evidence is None:
        yield "- **Evidence:** none was given"
    else:
        yield "- **Evidence:** (claims of the executor)"
        yield from _entries(task.evidence.criteria_met, "met: ", "no criterion is claimed to be met")
        yield from _entries(task.evidence.commands_run, "ran: ", "no command is claimed to have been run")
    yield f"- **Confidence:** {'not said' if task.confidence is None else of_ten(task.confidence)}"
    yield "- **Mini-Verification:**"
    yield f"  - **Result:** {_check_result(task.check)}"
    if task.check is not None:
        yield from _check_lines(task.check)
    yield f"  - **Debug attempts:** {task.debug_attempts}"


def _check_lines(check: MiniVerifierReturn) -> Iterator[str]:
    results = check.criteria_results
    failed = [result for result in results if result.status is TaskCriterionStatus.FAIL]
    yield f"  - **Criteria checked:** {len(results)}"
    yield f"  - **Criteria passed:** {len(results) - len(failed)}"
    if failed:
        yield "  - **Failures:**"
        for result in failed[:ROWS]:
            yield f"    - {line(result.criterion)}"
            said = f"{command_code(result.command)} said: {cell(result.command_output)}"
            yield f"      ({said}; seen: {cell(result.evidence)})"
    else:
        yield "  - **Failures:** None"
    if check.concerns:
        yield "  - **Concerns:**"
        yield from (f"  {entry}" for entry in _entries(check.concerns, "", ""))


def _entries(values: Sequence[str], label: str, otherwise: str) -> Iterator[str]:
    if not values:
        yield f"  - {otherwise}"
    yield from (f"  - {label}{line(value)}" for value in values[:ROWS])
    if len(values) > ROWS:
        yield f"  - … and {len(values) - ROWS} more"


class Discussion(Contract):
    """A conversation about a phase: its boundary, questions and answers, and further ideas."""

    boundary: Text
    """What the roadmap says the phase is about."""
    talked: DiscussedPhase
    specific_ideas: Texts
    deferred_ideas: Texts
    """Ideas that belong to other phases."""


def context_page(phase: RoadmapPhase, discussion: Discussion) -> str:
    """Return `CONTEXT.md`: a person's decisions before planning, which outrank an agent's assumptions."""
    return page(_context(phase, discussion), whole=f"`{autopilot.DISCUSS_CONTEXT}`")


def _context(phase: RoadmapPhase, discussion: Discussion) -> Iterator[Markdown]:
    talked = discussion.talked
    yield title("Context", phase)
    yield Markdown(f"**Gathered:** {talked.discussed_at}")
    yield Markdown(f"**Status:** {_context_status(talked)}")
    yield Markdown("## Phase Boundary")
    yield prose(discussion.boundary)
    yield Markdown("## Implementation Decisions")
    if not talked.gray_areas_discussed:
        yield Markdown("No area was talked about.")
    for area in dict.fromkeys(talked.gray_areas_discussed):
        yield Markdown(f"### {line(area)}")
        answered = [question for question in talked.questions if question.area == area and question.answer is not None]
        yield items([_decision(question) for question in answered], "Nothing was decided.")
    yield Markdown("## Left to the agents")
    left = tuple(f"{question.area}: {question.question}" for question in talked.questions if question.answer is None)
    yield texts(left, "Nothing: every question was answered.")
    yield Markdown("## Specific Ideas")
    yield texts(discussion.specific_ideas, "None: any usual way will do.")
    yield Markdown("## Deferred Ideas")
    yield texts(discussion.deferred_ideas, "None: the conversation stayed within the phase.")


def _context_status(talked: DiscussedPhase) -> str:
    answered = sum(question.answer is not None for question in talked.questions)
    return f"ready for planning, {answered} of {len(talked.questions)} questions answered"


def _decision(question: DiscussedQuestion) -> Markdown:
    return item(Markdown(f"{line(question.question)} ({question.category.value}):"), question.answer or "")
