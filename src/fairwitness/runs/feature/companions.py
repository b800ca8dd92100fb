"""The pages that people read, rendered from the documents of agents: `feature.md`, `design.md`, `plan.md` and
reviews."""

from collections.abc import Iterator, Mapping, Sequence

from fairwitness.contracts.common.base import AgentDocument
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import SEVERITIES, CategoryVerdict
from fairwitness.contracts.feature.design import DesignDecision, DesignOutput, DesignPayload
from fairwitness.contracts.feature.plan import PlannedTask, PlanOutput, PlanPayload, Task, TaskDocument
from fairwitness.contracts.feature.pushback import PushbackLog
from fairwitness.contracts.feature.review import Category, ReviewFinding, ReviewReturn, ReviewVerdict
from fairwitness.contracts.feature.spec import EdgeCase, FunctionalRequirement, SpecOutput, SpecPayload
from fairwitness.kit.documents import Format, render
from fairwitness.kit.markdown import (
    Markdown,
    cell,
    code,
    counted,
    fenced,
    item,
    items,
    line,
    listed,
    page,
    prose,
    table,
    texts,
)
from fairwitness.rules.feature_plan import plan_against_tasks, plan_problems, task_problems
from fairwitness.rules.review import category_verdict, verdict_of

SPEC_FILE = "spec-output.yaml"
DESIGN_FILE = "design-output.yaml"

NOT_SAID = "not said"


def feature_page(spec: SpecOutput) -> str:
    """Return `feature.md`."""
    return page(_feature(spec.agent_output.payload, spec.completion.summary), whole=f"`{SPEC_FILE}`")


def rendered_from(file: str, role: str) -> Markdown:
    """Return the line under each title that says where the text comes from."""
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
    """Return `design.md`, with one section for each part of the document."""
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
    """Indent a list entry below the one before it."""
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
    """Yield the fields of a document that its schema does not know."""
    more = {name: value for name, value in payload.plain().items() if name in (payload.model_extra or {})}
    if more:
        yield Markdown("## Besides")
        yield Markdown("Fields that no schema knows; nothing is decided by them.")
        yield fenced(render(more, Format.YAML))


PLAN_FILE = "plan-output.yaml"


def plan_page(plan: PlanOutput, tasks: Mapping[str, TaskDocument]) -> str:
    """Return `plan.md`; `tasks` are the task documents by id."""
    return page(_plan(plan, tasks), whole=f"`{PLAN_FILE}` and `tasks/`")


def _plan(plan: PlanOutput, documents: Mapping[str, TaskDocument]) -> Iterator[Markdown]:
    payload = plan.agent_output.payload
    yield Markdown("# Plan")
    yield rendered_from(f"{PLAN_FILE}` and `tasks/", "planner")
    yield line(plan.completion.summary)
    yield Markdown(f"{counted(payload.total_tasks, 'task')}, highest risk {payload.overall_risk_summary.value}.")
    yield Markdown("## Tasks")
    yield table(
        ("Task", "Title", "Risk", "Size", "Waits for", "Role"),
        [
            (code(each.id), each.title, each.risk.value, each.size.value, listed(each.depends_on), each.agent.value)
            for each in payload.tasks
        ],
        "None.",
    )
    yield Markdown("## Order")
    yield from _order(payload.tasks)
    yield Markdown("## Waves")
    yield Markdown("Hints of the planner: what binds is what a task waits for.")
    yield table(
        ("Wave", "Tasks", "At a time"),
        [(code(each.id), listed(each.tasks), str(each.max_concurrent)) for each in payload.waves],
        "None.",
    )
    yield Markdown("## Problems")
    yield _problems(plan, documents)
    yield from _premortem(payload)
    yield Markdown("## Task by task")
    named = [each.id for each in payload.tasks]
    for task_id in (*named, *(each for each in sorted(documents) if each not in named)):
        yield from _task(task_id, documents.get(task_id))
    yield from beyond(payload)


def steps_of(tasks: Sequence[PlannedTask]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the tasks that can start together, step by step, and those that never can: in a cycle, or waiting for
    an unknown task."""
    steps: list[tuple[str, ...]] = []
    waiting = {each.id: set(each.depends_on) for each in tasks}
    done: set[str] = set()
    while ready := tuple(task_id for task_id, others in waiting.items() if others <= done):
        steps.append(ready)
        done.update(ready)
        waiting = {task_id: others for task_id, others in waiting.items() if task_id not in done}
    return tuple(steps), tuple(waiting)


def _order(tasks: Sequence[PlannedTask]) -> Iterator[Markdown]:
    steps, never = steps_of(tasks)
    yield items(
        [Markdown(f"{number}. {listed(step)}") for number, step in enumerate(steps, start=1)], "None can begin."
    )
    if never:
        yield Markdown(f"Can never begin: {listed(never)}.")


def _problems(plan: PlanOutput, documents: Mapping[str, TaskDocument]) -> Markdown:
    found: list[tuple[str, Problem]] = [(PLAN_FILE, each) for each in plan_problems(plan)]
    found += [(PLAN_FILE, each) for each in plan_against_tasks(plan, documents)]
    for task_id in sorted(documents):
        found += [(f"tasks/{task_id}.yaml", each) for each in task_problems(documents[task_id])]
    return table(
        ("Where", "Level", "Expected", "Found"),
        [
            (code(f"{file}: {spell_path(each.where)}"), each.level.value, each.expected, each.found)
            for file, each in found
        ],
        "The rules find nothing wrong.",
    )


def _premortem(payload: PlanPayload) -> Iterator[Markdown]:
    yield Markdown("## Pre-mortem")
    yield table(
        ("Task", "Scenario", "Likelihood", "Impact", "Mitigation"),
        [
            (code(each.task), each.scenario, each.likelihood.value, each.impact.value, each.mitigation)
            for each in payload.pre_mortem or ()
        ],
        "The planner named no way in which this could fail.",
    )
    yield Markdown("## Assumptions")
    yield texts(payload.key_assumptions or (), "None were named.")


def _task(task_id: str, document: TaskDocument | None) -> Iterator[Markdown]:
    if document is None:
        yield Markdown(f"### Task {line(task_id)}")
        yield Markdown("There is no document for this task.")
        return
    task = document.task
    yield Markdown(f"### Task {line(task_id)}: {line(task.title)}")
    yield Markdown(f"Risk {task.risk.value}, size {task.size.value}, waits for {listed(task.depends_on, 'nothing')}.")
    yield prose(task.description)
    yield Markdown("Accepted when:")
    yield items(
        [item(Markdown(f"**ac-{number}**"), each) for number, each in enumerate(task.acceptance_criteria, start=1)],
        "nothing was named",
    )
    yield from _context(task)


def _context(task: Task) -> Iterator[Markdown]:
    context = task.relevant_context
    yield table(
        ("File", "Risk"),
        [(code(each.path), each.risk.value) for each in context.files_to_modify or ()],
        "It names no file.",
    )
    yield Markdown(f"Reads {listed((*context.design_sections, *context.spec_requirements))}.")


HEADINGS: dict[Category, str] = {
    Category.SECURITY: "## Security",
    Category.ARCHITECTURE: "## Architecture",
    Category.CORRECTNESS: "## Correctness",
}


def review_verdict(review: ReviewReturn) -> ReviewVerdict:
    """Return the verdict derived from the findings (schema 9), so that it cannot be milder than they are."""
    return verdict_of(review)


def verdict_page(review: ReviewReturn) -> str:
    """Return `review-verdicts/<scope>-<perspective>.yaml`."""
    return render(review_verdict(review).plain(), Format.YAML)


def findings_page(review: ReviewReturn) -> str:
    """Return `review-findings/<scope>-<perspective>.md`."""
    return page(_findings(review), whole="the reviewer's answer in the ledger")


def _findings(review: ReviewReturn) -> Iterator[Markdown]:
    verdict = review_verdict(review)
    yield Markdown(f"# Review of the {review.scope.value}: {review.reviewer_perspective.value}, round {review.round}")
    yield Markdown(
        "Rendered by Fair Witness from what the reviewer returned: claims, not evidence. The verdict follows by rule."
    )
    yield line(review.summary)
    yield Markdown("## Verdict")
    yield Markdown(f"Overall: **{verdict.overall.value}**")
    yield table(
        ("Category", "Verdict", "Findings"),
        [
            (
                each.value,
                _shown(category_verdict(review, each)),
                str(len(_of(review, each))),
            )
            for each in Category
        ],
        "None.",
    )
    for category in Category:
        yield Markdown(HEADINGS[category])
        yield from _category(review, category)
    yield from _earlier(review)
    yield Markdown("## Limits")
    yield texts(review.known_limits or (), "The reviewer named no limit of its review.")


def _shown(verdict: CategoryVerdict) -> Markdown:
    return Markdown(verdict.value if verdict is CategoryVerdict.APPROVE else f"**{verdict.value}**")


def _of(review: ReviewReturn, category: Category) -> list[ReviewFinding]:
    """Return a category's findings, the worst first."""
    found = [each for each in review.findings if each.category is category]
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def _category(review: ReviewReturn, category: Category) -> Iterator[Markdown]:
    found = _of(review, category)
    for finding in found:
        yield Markdown(f"### {finding.severity.value} {line(finding.id, 80)}: {line(finding.title)}")
        yield items(
            [
                item(Markdown("Found:"), finding.description),
                Markdown(f"- In: {listed(finding.artifacts)}"),
                item(Markdown("Do:"), finding.recommendation),
                *(item(Markdown("Rests on:"), each) for each in finding.evidence),
            ],
            "",
        )
    if found:
        if category in review.clean_categories:
            yield Markdown("The reviewer also called this category clean; the findings stand.")
    elif category in review.clean_categories:
        yield Markdown("Looked at, and called clean.")
    else:
        yield Markdown("No finding, and no word that it was looked at.")


def _earlier(review: ReviewReturn) -> Iterator[Markdown]:
    yield Markdown("## Earlier findings")
    yield table(
        ("Finding", "What became of it", "Note"),
        [(cell(each.id), each.resolution.value, each.note or "") for each in review.earlier_findings or ()],
        "The reviewer says nothing of an earlier round.",
    )
