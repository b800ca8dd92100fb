"""What a person decided, and what was seen on the screens, stands on its page as it was said."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.context_map import DiscussContext
from fairwitness.contracts.autopilot.visual import RegressionStatus, VisualAssessment, VisualBugReport
from fairwitness.runs.autopilot.pages_judgement import ASSESSMENTS, REGRESSIONS, visual_bugs_page
from fairwitness.runs.autopilot.pages_phase import Discussion, context_page
from runs.autopilot.written import PHASE, phase
from runs.feature.markdown_reader import HOSTILE, seen
from support.fixtures import value_of

[TALKED] = DiscussContext.model_validate(value_of("003/filled-discuss-context.json")).phases.values()
DISCUSSION = Discussion(
    boundary="Tokens know where they stand.",
    talked=TALKED,
    specific_ideas=("like the lexer of the old tool",),
    deferred_ideas=(),
)
BUGS = VisualBugReport.model_validate(value_of("003/filled-visual-bug-report.json"))


@pytest.mark.req("A6")
def test_what_was_decided_for_people_and_planners() -> None:
    assert context_page(PHASE, DISCUSSION) == snapshot("""\
# Context of phase 5: Line numbers

**Gathered:** 2026-02-11T09:30:00Z

**Status:** ready for planning, 1 of 2 questions answered

## Phase Boundary

Tokens know where they stand.

## Implementation Decisions

### duplicates

- What happens to a row that is there already? (edge_case): keep the newer

### dates

Nothing was decided.

## Left to the agents

- dates: Which date format wins?

## Specific Ideas

- like the lexer of the old tool

## Deferred Ideas

None: the conversation stayed within the phase.
""")


@pytest.mark.req("A6")
def test_a_question_without_an_answer_is_left_to_the_agents() -> None:
    open_question = TALKED.questions[0].model_copy(update={"answer": None, "answered_at": None})
    silent = TALKED.model_copy(update={"questions": (open_question,)})
    page = context_page(PHASE, DISCUSSION.model_copy(update={"talked": silent}))
    assert "Nothing was decided." in page
    assert f"- {open_question.area}: {open_question.question}" in page
    nothing = TALKED.model_copy(update={"questions": (), "gray_areas_discussed": ()})
    assert "No area was talked about." in context_page(PHASE, DISCUSSION.model_copy(update={"talked": nothing}))


@pytest.mark.req("A6")
def test_visual_bugs_for_people() -> None:
    assert visual_bugs_page(PHASE, BUGS) == snapshot("""\
# Visual bugs of phase 5: Line numbers

5 routes looked at until 2026-02-12T12:00:00Z: 3 look right, 2 have issues, 0 could not be seen.

Against the baseline: `new_issues` (there are issues that the baseline did not have).

What an agent saw on a picture is a claim; the pictures are kept.

2 visual issues found across 5 routes

| Route | Result | Issues | Screenshot |
| --- | --- | --- | --- |
| `/dashboard` | **issues found** | 1 | `.planning/screenshots/dashboard-20260212T120000Z.png` |

## Route `/dashboard`

Taken at 2026-02-12T12:00:00Z, 1280 by 720 pixels.

| Severity | Kind | What is wrong | Where | Suggested fix |
| --- | --- | --- | --- | --- |
| major | layout | Button overlaps sidebar at 1280px width | top-right quadrant, approximately 200px from top | Check CSS flex layout in sidebar component |
""")  # a row is as long as what was said  # noqa: E501
    none = BUGS.model_copy(update={"screenshots": ()})
    assert "No screenshot is on record." in visual_bugs_page(PHASE, none)


def test_every_word_of_the_pages_is_explained() -> None:
    assert set(REGRESSIONS) == set(RegressionStatus)
    assert set(ASSESSMENTS) == set(VisualAssessment)


@pytest.mark.req("A6")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_a_part_of_a_page(text: str) -> None:
    question = TALKED.questions[0].model_copy(update={"question": text, "area": text, "answer": text})
    left = question.model_copy(update={"answer": None})
    talked = TALKED.model_copy(update={"gray_areas_discussed": (text,), "questions": (question, left)})
    discussion = DISCUSSION.model_copy(
        update={"boundary": text, "talked": talked, "specific_ideas": (text,), "deferred_ideas": (text,)}
    )
    headings = seen(context_page(phase(text), discussion)).headings
    assert [each for each in headings if each.startswith("## ")] == [
        "## Phase Boundary",
        "## Implementation Decisions",
        "## Left to the agents",
        "## Specific Ideas",
        "## Deferred Ideas",
    ]
    assert len(headings) == 7
    shots = tuple(
        shot.model_copy(
            update={
                "route": f"/{text}",
                "analysis": shot.analysis.model_copy(
                    update={
                        "issues": tuple(
                            issue.model_copy(update=dict.fromkeys(("description", "location", "suggested_fix"), text))
                            for issue in shot.analysis.issues
                        )
                    }
                ),
            }
        )
        for shot in BUGS.screenshots
    )
    plain = seen(visual_bugs_page(PHASE, BUGS))
    rendered = seen(visual_bugs_page(phase(text), BUGS.model_copy(update={"screenshots": shots, "summary": text})))
    assert rendered.tables == plain.tables
    assert len(rendered.headings) == len(plain.headings)
