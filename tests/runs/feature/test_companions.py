"""What people read says what the documents say, in a shape that no document can change."""

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import Dispatch
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity, worst_verdict
from fairwitness.contracts.feature.design import DesignOutput
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.plan import PlannedTask, PlanOutput, TaskDocument
from fairwitness.contracts.feature.review import Category, ReviewReturn, ReviewVerdict
from fairwitness.contracts.feature.spec import SpecOutput
from fairwitness.kit.documents import Format, read
from fairwitness.rules.review import VERDICT_OF, verdict_problems
from fairwitness.runs.feature.companions import (
    HEADINGS,
    design_page,
    feature_page,
    findings_page,
    plan_page,
    review_verdict,
    steps_of,
    verdict_page,
)
from fairwitness.runs.feature.metrics_pages import calls, run_log_page, seconds, slowest_steps, statuses
from runs.feature.documents import design, finding, plan, planned, review, spec, task
from runs.feature.markdown_reader import HOSTILE, seen
from support.strategies import documents

DAY = date(2026, 2, 26)
FEATURE_PARTS = ("Directions", "Common requirements", "Functional requirements", "Acceptance criteria", "Edge cases")
generated = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def _ours(page: str, level: str = "## ") -> tuple[str, ...]:
    return tuple(heading for heading in seen(page).headings if heading.startswith(level))


@pytest.mark.req("P6")
def test_a_specification_for_people() -> None:
    assert feature_page(spec(constraints=["Python 3.11"])) == snapshot("""\
# Feature: Token expiry

Rendered by Fair Witness from `spec-output.yaml`, which is what the spec agent returned: claims, not evidence.

It is done

## Directions

- **A** **Clock**: Compare times.

## Common requirements

- **CR-1** (must) No new dependency.

## Functional requirements

- **FR-1** A token expires.

## Acceptance criteria

- **AC-1** (shown by test) An old token is refused.

## Edge cases

None were named.

## Constraints

- Python 3.11

## Concerns

The document has no pushback log, so nothing is known of concerns.
""")


@pytest.mark.req("P6")
def test_a_design_for_people() -> None:
    deviation = {"id": "DR-1", "spec_requirement": "FR-1", "deviation": "No zone.", "rationale": "UTC only."}
    page = design_page(design(deviation_records=[deviation], x_note="kept"))
    assert page == snapshot("""\
# Design

Rendered by Fair Witness from `design-output.yaml`, which is what the designer returned: claims, not evidence.

It is done

## Architecture

One function, one caller.

## Decisions

| Decision | Title | Risk | Confidence |
| --- | --- | --- | --- |
| `D-1` | Compare in UTC | 🟡 | not said |

### Decision D-1: Compare in UTC

Risk 🟡, confidence not said.

Zones lie.

| Rejected | Why | How sure |
| --- | --- | --- |
| Local time | It jumps. | High |

## Deviations from the specification

- **DR-1** leaves `FR-1`: No zone.
  - Why: UTC only.

## Besides

Fields that no schema knows; nothing is decided by them.

> ```text
> x_note: kept
> ```
""")


@pytest.mark.req("P6", "P8")
def test_a_plan_for_people_says_where_it_contradicts_its_tasks() -> None:
    documents = {"task-01": task("task-01"), "task-02": task("task-02", "task-01", size="Large")}
    assert plan_page(plan(), documents) == snapshot("""\
# Plan

Rendered by Fair Witness from `plan-output.yaml` and `tasks/`, which is what the planner returned: claims, not evidence.

It is done

2 tasks, highest risk 🟢.

## Tasks

| Task | Title | Risk | Size | Waits for | Role |
| --- | --- | --- | --- | --- | --- |
| `task-01` | Do task-01 | 🟢 | Standard | – | implementer |
| `task-02` | Do task-02 | 🟢 | Standard | `task-01` | implementer |

## Order

1. `task-01`
2. `task-02`

## Waves

Hints of the planner: what binds is what a task waits for.

| Wave | Tasks | At a time |
| --- | --- | --- |
| `wave-1` | `task-01` | 4 |
| `wave-2` | `task-02` | 4 |

## Problems

| Where | Level | Expected | Found |
| --- | --- | --- | --- |
| `plan-output.yaml: agent_output.payload.tasks[1].size` | error | the same as in the task document, Large | Standard |

## Pre-mortem

The planner named no way in which this could fail.

## Assumptions

None were named.

## Task by task

### Task task-01: Do task-01

Risk 🟢, size Standard, waits for nothing.

Write it.

Accepted when:

- **ac-1** It works.

| File | Risk |
| --- | --- |
| `src/a.py` | 🟢 |

Reads `design-output.yaml#payload.decisions[id='D-1']`, `spec-output.yaml#payload.functional_requirements[id='FR-1']`.

### Task task-02: Do task-02

Risk 🟢, size Large, waits for `task-01`.

Write it.

Accepted when:

- **ac-1** It works.

| File | Risk |
| --- | --- |
| `src/a.py` | 🟢 |

Reads `design-output.yaml#payload.decisions[id='D-1']`, `spec-output.yaml#payload.functional_requirements[id='FR-1']`.
""")


@pytest.mark.req("P6")
def test_a_task_without_its_document_is_not_passed_over() -> None:
    page = plan_page(plan(), {"task-01": task("task-01"), "task-09": task("task-09")})
    assert "### Task task-02\n\nThere is no document for this task." in page
    assert "### Task task-09: Do task-09" in page


def test_the_order_follows_from_dependencies_and_names_what_never_begins() -> None:
    listed = [
        PlannedTask.model_validate(each)
        for each in (
            planned("task-03", "task-01", "task-02"),
            planned("task-01"),
            planned("task-02", "task-01"),
            planned("task-04", "task-05"),
            planned("task-05", "task-04"),
            planned("task-06", "task-77"),
        )
    ]
    steps, never = steps_of(listed)
    assert steps == (("task-01",), ("task-02",), ("task-03",))
    assert never == ("task-04", "task-05", "task-06")


@pytest.mark.req("P7")
def test_findings_for_people() -> None:
    said = review(
        finding("security", "Minor", id="F-2", title="Odd name"),
        finding("security", "Critical"),
        round=2,
        earlier_findings=[{"id": "F-0", "resolution": "partly", "note": "half | of it"}],
    )
    assert findings_page(said) == snapshot("""\
# Review of the code: security-sentinel, round 2

Rendered by Fair Witness from what the reviewer returned: claims, not evidence. The verdict follows by rule.

Looked at all of it.

## Verdict

Overall: **needs_revision**

| Category | Verdict | Findings |
| --- | --- | --- |
| security | **needs_revision** | 2 |
| architecture | approve | 0 |
| correctness | approve | 0 |

## Security

### Critical F-1: Tokens never rotate

- Found: A leaked one stays valid.
- In: `src/a.py`
- Do: Rotate them.
- Rests on: src/a.py:41

### Minor F-2: Odd name

- Found: A leaked one stays valid.
- In: `src/a.py`
- Do: Rotate them.
- Rests on: src/a.py:41

## Architecture

Looked at, and called clean.

## Correctness

Looked at, and called clean.

## Earlier findings

| Finding | What became of it | Note |
| --- | --- | --- |
| F-0 | partly | half \\| of it |

## Limits

The reviewer named no limit of its review.
""")


@pytest.mark.req("P7")
@pytest.mark.parametrize("category", Category)
@pytest.mark.parametrize("severity", Severity)
def test_no_verdict_is_milder_than_a_finding(category: Category, severity: Severity) -> None:
    said = review(finding(category.value, severity.value), clean_categories=[each.value for each in Category])
    verdict = ReviewVerdict.model_validate(read(verdict_page(said).encode(), Format.YAML).value)
    assert verdict == review_verdict(said)
    assert getattr(verdict.verdicts, category.value) is VERDICT_OF[severity]
    assert verdict.overall is VERDICT_OF[severity]
    page = findings_page(said)
    assert f"Overall: **{VERDICT_OF[severity].value}**" in page
    assert "The reviewer also called this category clean; the findings stand." in page


@pytest.mark.req("P7")
@given(documents(ReviewReturn))
@generated
def test_every_review_gives_a_verdict_that_the_rules_accept(plain: Any) -> None:
    said = ReviewReturn.model_validate(plain)
    verdict = review_verdict(said)
    assert verdict_problems(verdict) == ()
    assert verdict.overall is worst_verdict(
        (CategoryVerdict.APPROVE, *(VERDICT_OF[each.severity] for each in said.findings))
    )
    assert read(verdict_page(said).encode(), Format.YAML).value == verdict.plain()


def test_every_category_has_its_part() -> None:
    assert set(HEADINGS) == set(Category)
    page = findings_page(review(clean_categories=["security"]))
    assert page.count("Looked at, and called clean.") == 1
    assert page.count("No finding, and no word that it was looked at.") == 2


@pytest.mark.req("P6")
@given(documents(SpecOutput))
@generated
def test_no_specification_forges_a_part_of_its_page(plain: Any) -> None:
    document = SpecOutput.model_validate(plain)
    page = feature_page(document)
    besides = ("## Besides",) if document.agent_output.payload.model_extra else ()
    assert _ours(page) == (*(f"## {part}" for part in FEATURE_PARTS), "## Constraints", "## Concerns", *besides)
    assert page == feature_page(document.model_copy(deep=True))


@pytest.mark.req("P6")
@given(documents(DesignOutput))
@generated
def test_no_design_forges_a_part_of_its_page(plain: Any) -> None:
    document = DesignOutput.model_validate(plain)
    headings = seen(design_page(document)).headings
    assert sum(each.startswith("### Decision ") for each in headings) == len(document.agent_output.payload.decisions)
    assert [each for each in headings if each.startswith("# ")] == ["# Design"]
    assert len(set(_ours(design_page(document)))) == len(_ours(design_page(document)))


@pytest.mark.req("P6")
@given(documents(PlanOutput), st.lists(documents(TaskDocument), max_size=2))
@generated
def test_no_plan_forges_a_part_of_its_page(plain: Any, tasks: list[Any]) -> None:
    document = PlanOutput.model_validate(plain)
    parts = ("Tasks", "Order", "Waves", "Problems", "Pre-mortem", "Assumptions", "Task by task")
    besides = ("## Besides",) if document.agent_output.payload.model_extra else ()
    own = {each.task.id: each for each in map(TaskDocument.model_validate, tasks)}
    page = plan_page(document, own)
    assert _ours(page) == (*(f"## {part}" for part in parts), *besides)
    assert all(len(set(rows)) == 1 for rows in seen(page).tables)


@pytest.mark.req("P7")
@given(documents(ReviewReturn))
@generated
def test_no_reviewer_forges_a_part_of_its_page(plain: Any) -> None:
    said = ReviewReturn.model_validate(plain)
    page = findings_page(said)
    assert _ours(page) == ("## Verdict", *HEADINGS.values(), "## Earlier findings", "## Limits")
    assert sum(each.startswith("### ") for each in seen(page).headings) == len(said.findings)


@pytest.mark.req("P6", "P7")
@pytest.mark.parametrize("hostile", HOSTILE[:10])
def test_hostile_words_change_no_page(hostile: str) -> None:
    text = hostile.encode(errors="replace").decode()
    concern = {"severity": "Major", "title": text, "description": text, "recommendation": text}
    log = {
        "concerns_identified": 1,
        "mode": "autonomous",
        "auto_selected": True,
        "selected_option": "proceed",
        "concerns": [concern],
    }
    page = feature_page(spec(feature_name=text, constraints=[text], pushback_log=log, edge_cases=[{"id": text}]))
    assert _ours(page) == (*(f"## {part}" for part in FEATURE_PARTS), "## Constraints", "## Concerns")
    assert seen(page).tables == ((4, 4),)
    words = {"title": text, "description": text, "recommendation": text, "evidence": [text], "artifacts": [text]}
    page = findings_page(review(finding("security", "Major", **words)))
    assert _ours(page) == ("## Verdict", *HEADINGS.values(), "## Earlier findings", "## Limits")


def _call(step: str, began: str, ended: str, status: str = "DONE", **differs: Any) -> Dispatch:
    ordinary: dict[str, Any] = {
        "run_id": "2026-02-26T14:30:00Z",
        "step": step,
        "agent": "researcher",
        "instance": "patterns",
        "started_at": f"2026-02-26T{began}Z",
        "completed_at": f"2026-02-26T{ended}Z",
        "status": status,
        "dispatch_count": 1,
        "retry_count": 0,
    }
    return Dispatch.model_validate(ordinary | differs)


ROWS = (
    _call("step-1", "14:31:00", "14:31:20", notes="agent cassette; a | b\n## Totals"),
    _call("step-3", "14:32:00", "14:34:20", "TIMEOUT", retry_count=1),
    _call("step-1", "14:35:00", "14:34:00"),
)


@pytest.mark.req("P13")
def test_the_run_log_of_a_day() -> None:
    assert run_log_page(ROWS, run_id="2026-02-26T14:30:00Z", day=DAY) == snapshot("""\
# Run log of 2026-02-26

Run `2026-02-26T14:30:00Z`. Every row is one call of an agent, written by Fair Witness when the call ended.

## Totals

3 calls, 2m 40s together: 2 DONE, 0 NEEDS_REVISION, 0 ERROR, 1 TIMEOUT.

## Calls

| Step | Role | Instance | Began | Took | Status | Call | Retries | Notes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| `step-1` | researcher | patterns | 2026-02-26T14:31:00Z | 20s | DONE | 1 | 0 | agent cassette; a \\| b ## Totals |
| `step-3` | researcher | patterns | 2026-02-26T14:32:00Z | 2m 20s | TIMEOUT | 1 | 1 | – |
| `step-1` | researcher | patterns | 2026-02-26T14:35:00Z | 0.0s | DONE | 1 | 0 | – |
""")


@pytest.mark.req("P13")
def test_every_status_is_counted_and_a_clock_that_went_back_costs_nothing() -> None:
    assert all(status.value in statuses(()) for status in DispatchStatus)
    assert slowest_steps(ROWS) == (("step-3", 140.0), ("step-1", 20.0))
    assert seconds(ROWS[2]) == 0.0
    assert calls(()) == "No call of an agent is on record."
