"""The judge's report keeps its divergence and its own evidence in sight; the scorecard says what was really run."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.facts import PathItem, PathProblems
from fairwitness.contracts.autopilot.rating import ScoreBand
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, Recommendation
from fairwitness.runs.autopilot.page_words import CATEGORIES, RECOMMENDS
from fairwitness.runs.autopilot.pages_judgement import (
    BANDS,
    DIVERGENCE,
    OWN_EVIDENCE,
    ConfidenceDiagnostic,
    RemediationCycle,
    confidence_page,
    diagnostic_status,
    judge_page,
    scorecard_page,
)
from runs.autopilot.written import PHASE, content_verifier, executed, judge, phase, rating, verifier
from runs.feature.markdown_reader import HOSTILE, seen

VAGUE = PathItem(file="src/token.py", deficiency="improve the code", impact="better")
DOUBTED = ConfidenceDiagnostic(
    score=8.2,
    threshold=9.0,
    force_incomplete=True,
    judge=judge(),
    verifier=verifier(),
    rating=rating(),
    usable=(
        PathItem(
            file="src/token.py",
            deficiency="Line 12: `line` is never set for the last token",
            impact="resolves 1 of 2 concerns",
        ),
    ),
    refused=(PathProblems(item=VAGUE, problems=("the deficiency is vague",)),),
    cycles=(
        RemediationCycle(number=0, score=7.9, changes=(), remaining=("no test for CRLF",)),
        RemediationCycle(number=1, score=8.2, changes=("a test for CRLF",), remaining=()),
        RemediationCycle(number=2, score=None, changes=("src/token.py",), remaining=()),
    ),
)


@pytest.mark.req("A6")
def test_a_judge_report_for_people() -> None:
    page = judge_page(PHASE, judge(), content_verifier())
    assert page == snapshot("""\
# Judge report of phase 5: Line numbers

Rendered by Fair Witness from what the judge returned: an opinion with its evidence, never a score.

Recommendation: **proceed** (the phase does what it should).

## Concerns

- no test for CRLF

## Independent evidence

- src/token.py:12 -- the field exists

## Divergence from the verifier

The judge says that it agrees.

The verifier says pass, the judge says proceed: the same direction.

What the verifier missed, as the judge has it:

Nothing.

## Scope creep

The judge saw nothing beyond the requirements.

## Missing requirements

The judge misses none.

## How the judge came to it

Sound work with one thin spot.
""")
    assert DIVERGENCE in page
    assert OWN_EVIDENCE in page


@pytest.mark.req("A6")
def test_a_judge_who_differs_is_heard_and_one_without_evidence_is_shown() -> None:
    differs = judge(
        recommendation="rollback",
        verifier_agreement=False,
        verifier_missed=["the cache is never dropped"],
        scope_creep=["a new logger"],
        missing_requirements=["REQ-02"],
        notes="First.\nSecond.",
    )
    page = judge_page(PHASE, differs, content_verifier())
    assert page[page.index(DIVERGENCE) :] == snapshot("""\
## Divergence from the verifier

The judge says that it **does not agree**.

The verifier says pass, the judge says rollback: **opposite directions**.

What the verifier missed, as the judge has it:

- the cache is never dropped

## Scope creep

- a new logger

## Missing requirements

- REQ-02

## How the judge came to it

> First.
> Second.
""")
    nodding = judge_page(PHASE, judge(independent_evidence=[]), None)
    assert "**None:** the judge names nothing that it looked at or ran itself." in nodding
    assert "**Agreement without evidence of its own counts for nothing.**" in nodding
    assert "No return of a verifier is on record." in nodding


@pytest.mark.req("A6", "A15")
def test_a_scorecard_for_people() -> None:
    ran = executed(criterion="criterion text from plan", command="grep -c 'pattern' file.md", duration_ms=12)
    items = list(rating().scorecard)
    other = rating(
        scorecard=[
            items[0].plain() | {"execution_result": None},
            items[1].plain() | {"criterion": "another criterion"},
        ]
    )
    assert scorecard_page(PHASE, other, (ran,)) == snapshot("""\
# Scorecard of phase 5: Line numbers

**7.3 of 10**, acceptable: most criteria are met; there are real deficiencies.

The rater saw only the criteria and the change. Its scores are opinions.

The column *Run by Fair Witness* shows the real results of its commands.

| # | Criterion | Score | Run by Fair Witness |
| --- | --- | --- | --- |
| 1 | criterion text from plan | 8.2 of 10 | VERIFIED |
| 2 | another criterion | 6.5 of 10 | **not run** |

## Why this score

Explanation of weighted aggregate computation and deductions from 10.0

## Criteria

### 1. criterion text from plan

- Score: 8.2 of 10
- Command: `grep -c 'pattern' file.md`
- Printed, as the rater has it: first 200 chars of command output
- Run by Fair Witness: VERIFIED, exit code 0, 12 ms: 14 passed
- Evidence: file:line -- what was found
- Why: Why this score: what earned points, what lost points

### 2. another criterion

- Score: 6.5 of 10
- Command: `grep -c 'pattern' file.md`
- Printed, as the rater has it: first 200 chars of command output
- Run by Fair Witness: **no**, so the score rests on the rater's word
- The rater says it ran `npm test 2>&1` with exit code 0: All 42 tests passed
- Evidence: file:line -- what was found
- Why: Why this score: what earned points, what lost points

## Tests

2 of 3 tasks have tests of their own; 11 of 12 assertions held.

## Side effects

- description of any side effects found

## Commands the rater says it ran

- command -> result
""")
    assert "The rater says nothing about tests." in scorecard_page(PHASE, rating(test_coverage=None), ())


@pytest.mark.req("A13")
def test_a_confidence_diagnostic_for_people() -> None:
    assert confidence_page(PHASE, DOUBTED) == snapshot("""\
# Confidence diagnostic of phase 5: Line numbers

- **Score:** 8.2 of 10, by the rater
- **Threshold:** 9.0 of 10
- **Status:** `force_incomplete`

## Judge Concerns

- no test for CRLF

## Acceptance Criteria Status

| Criterion | Status | Evidence | Gap, as the rater has it |
| --- | --- | --- | --- |
| All tests pass | verified | npm test -- 42 passed | not rated |
| Build succeeds | **failed** | src/app.ts:3 -- missing import | not rated |
| criterion text from plan | **not settled** | file:line -- what was found | 6.5 of 10: Why this score: what earned points, what lost points |

## Automated Check Results

| Check | Result | Details |
| --- | --- | --- |
| compile | pass | 0 errors |
| lint | n/a (no command or check decides it) | nothing was said |
| build | **fail** | module not found |
| tests | pass | 42 passed |

## Path to 9.0/10

1. **`src/token.py`**: Line 12: `line` is never set for the last token → resolves 1 of 2 concerns

Too vague to act on, and not counted:

- `src/token.py`: improve the code (the deficiency is vague)

## Remediation History

| Cycle | Score | Changes Made | Remaining Issues |
| --- | --- | --- | --- |
| 0 (initial) | 7.9 of 10 | none | no test for CRLF |
| 1 | 8.2 of 10 | a test for CRLF | none |
| 2 | not rated | src/token.py | none |
""")  # a row is as long as what was said  # noqa: E501


@pytest.mark.req("A13")
def test_a_diagnostic_of_a_phase_that_nobody_looked_at() -> None:
    silent = DOUBTED.model_copy(
        update={"judge": None, "verifier": None, "rating": None, "usable": (), "refused": (), "cycles": ()}
    )
    page = confidence_page(PHASE, silent)
    for said in (
        "No judge was heard.",
        "No verifier was heard.",
        "No criterion was looked at.",
        "No way up was named.",
    ):
        assert said in page
    assert "Remediation History" not in page


@pytest.mark.req("A13")
def test_a_criterion_that_was_said_twice_counts_by_the_worse_word() -> None:
    twice = [{"criterion": "x", "status": status, "evidence": status} for status in ("failed", "verified")]
    page = confidence_page(PHASE, DOUBTED.model_copy(update={"verifier": verifier(criteria_results=twice)}))
    assert "| x | **failed** | failed | not rated |" in page
    assert "| criterion text from plan | **not settled** | file:line -- what was found | 6.5 of 10:" in page


@pytest.mark.req("A13")
def test_how_a_doubted_phase_goes_on() -> None:
    passed = {"force_incomplete": False, "threshold": 7.0}
    assert [
        diagnostic_status(DOUBTED),
        diagnostic_status(DOUBTED.model_copy(update={"force_incomplete": False})),
        diagnostic_status(DOUBTED.model_copy(update=passed)),
        diagnostic_status(DOUBTED.model_copy(update=passed | {"cycles": DOUBTED.cycles[:1]})),
        diagnostic_status(DOUBTED.model_copy(update=passed | {"cycles": ()})),
    ] == snapshot(["force_incomplete", "below_threshold", "remediated_to_8.2", "passed", "passed"])


def test_every_word_that_is_shown_is_explained() -> None:
    assert set(BANDS) == set(ScoreBand)
    assert set(RECOMMENDS) == set(Recommendation)
    assert set(CATEGORIES) == set(FailureCategory)


@pytest.mark.req("A6", "A13")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_opinion_becomes_a_part_of_a_page(text: str) -> None:
    said = judge().model_copy(
        update={
            "concerns": (text,),
            "independent_evidence": (text,),
            "verifier_missed": (text,),
            "scope_creep": (text,),
            "missing_requirements": (text,),
            "notes": text,
        }
    )
    assert seen(judge_page(phase(text), said, verifier())).headings[1:] == (
        "## Concerns",
        "## Independent evidence",
        "## Divergence from the verifier",
        "## Scope creep",
        "## Missing requirements",
        "## How the judge came to it",
    )
    texts = ("criterion", "verification_command", "command_output", "evidence", "justification")
    items = tuple(
        item.model_copy(
            update=dict.fromkeys(texts, text)
            | {
                "execution_result": item.execution_result
                and item.execution_result.model_copy(update={"command": text, "output": text})
            }
        )
        for item in rating().scorecard
    )
    card = rating().model_copy(
        update={"scorecard": items, "aggregate_justification": text, "side_effects": (text,), "commands_run": (text,)}
    )
    ran = executed().model_copy(update={"criterion": text, "command": text, "stdout_truncated": text})
    rendered = seen(scorecard_page(phase(text), card, (ran,)))
    assert [each.partition(".")[0] for each in rendered.headings[1:]] == [
        "## Why this score",
        "## Criteria",
        "### 1",
        "### 2",
        "## Tests",
        "## Side effects",
        "## Commands the rater says it ran",
    ]
    assert rendered.tables == ((4, 4, 4),)
    item = VAGUE.model_copy(update={"deficiency": text, "impact": text})
    refused = PathProblems(item=VAGUE, problems=("x",)).model_copy(update={"item": item, "problems": (text,)})
    cycle = RemediationCycle(number=0, score=7.9, changes=(), remaining=()).model_copy(update={"changes": (text, text)})
    doubted = DOUBTED.model_copy(
        update={"judge": said, "rating": card, "usable": (item, item), "refused": (refused,), "cycles": (cycle,)}
    )
    shown = seen(confidence_page(phase(text), doubted))
    assert shown.headings[1:] == (
        "## Judge Concerns",
        "## Acceptance Criteria Status",
        "## Automated Check Results",
        "## Path to 9.0/10",
        "## Remediation History",
    )
    assert [rows[0] for rows in shown.tables] == [4, 3, 4]
