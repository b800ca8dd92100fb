"""The evidence bundle shows what the ledger holds: nothing more, nothing milder, and what is missing by name."""

from datetime import date

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Confidence, Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.errors import EventsBroken, LedgerTampered
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.confidence import AT_MOST, confidence_facts, grade
from fairwitness.rules.evidence_worth import RowWorth
from fairwitness.runs.feature.bundle import assemble
from fairwitness.runs.feature.bundle_page import COLUMNS, HEADINGS, MEANS, bundle_page
from fairwitness.runs.feature.ledger_queries import dispatches, evaluations
from fairwitness.runs.feature.metrics_pages import post_mortem_page
from rules.build import facts as looked_up
from rules.build import row, tally
from rules.build import task as ordinary_task
from runs.feature.documents import finding, review
from runs.feature.ledger_rows import (
    RUN,
    STARTED,
    WHOLE,
    answered,
    called,
    check,
    evaluated,
    good_run,
    review_of,
    reviewed,
    task_of,
    tell,
)
from runs.feature.markdown_reader import HOSTILE, seen

POLICY = Policy()


def _seen(page: str) -> tuple[str, ...]:
    rendered = seen(page)
    assert all(len(set(rows)) == 1 for rows in rendered.tables)
    return rendered.headings


@pytest.mark.req("P10")
def test_the_bundle_of_a_good_run(ledger: Ledger) -> None:
    facts = good_run(ledger, review(finding("correctness", "Minor", title="An odd | name")))
    answered(ledger)
    called(ledger, "d-1", usage={"source": "gateway", "tokens_in": 900, "tokens_out": 100, "cost_micros": 12_500})
    called(ledger, "d-2", usage={"source": "not reported"}, step="step-3", agent="designer", instance="designer")
    evaluated(ledger, "no criteria")
    tell(ledger, ("degraded", {"kind": "single_model", "detail": "all by model-a"}))
    facts = facts.model_copy(update={"degradations": (Degradation.SINGLE_MODEL,)})
    bundle = assemble(ledger, RUN, facts, POLICY)
    assert bundle.confidence == grade(confidence_facts(facts, POLICY))
    assert bundle.head == ledger.head(RUN)
    page = bundle_page(bundle).replace(bundle.head.hash, "sha256:HEAD")
    assert page == snapshot("""\
# Evidence bundle: expiry

Run `2026-02-26T14:30:00Z`, autonomous, from commit `abc1234`.

Assembled by Fair Witness from its ledger: executed checks, things it saw, and claims of agents, called so.

## 1. Confidence

**Medium**: it may be committed; read the reasons and skim the change.

- at most Medium: the run was degraded: single model

## 2. Verification

| Task | Verified | Risk | Size | Iteration | Counted | Passed | Holds | Failed | Needs a person | Regressed | Red before too | No evidence | Not heard | Claims |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| `task-01` | yes | 🟡 (planned 🟢) | Standard | 1 | 3 of 2 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
| `task-02` | yes | 🟢 | Standard | 1 | 3 of 2 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
| `whole` (the whole change) | yes | 🟡 (planned 🟢) | Standard | 1 | 3 of 2 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |

No regression is on record.

## 3. Review

Verdicts are claims of agents; gates count them, and one blocker is never outvoted.

**Code review, round 1**: all approve.

| Perspective | security | architecture | correctness | Findings | Earlier findings |
| --- | --- | --- | --- | --- | --- |
| security-sentinel | approve | approve | approve (Minor) | 1 | – |
| architecture-guardian | approve | approve | approve | 0 | – |
| pragmatic-verifier | approve | approve | approve | 0 | – |

No evidence: no verdict about the design is on record.

## 4. Rollback

Everything back to where the run began: `fairwitness rollback 2026-02-26T14:30:00Z`

By hand, once it is committed and on its branch: `git revert --no-commit pipeline-baseline-2026-02-26T14-30-00Z..HEAD`

## 5. Blast radius

2 files: 0 🔴, 1 🟡, 1 🟢. Regressions: 0.

| File | Risk | Change | Tasks | To be committed |
| --- | --- | --- | --- | --- |
| `src/a.py` | 🟡 | modified | `task-01` | yes |
| `docs/b.md` | 🟢 | added | `task-02` | yes |

## 6. Known issues

| Severity | Issue | By | Kind |
| --- | --- | --- | --- |
| Minor | correctness: F-1: An odd \\| name | security-sentinel, code review, round 1 | claim |

## 7. Telemetry

2 dispatches, 40s together: 2 DONE, 0 NEEDS_REVISION, 0 ERROR, 0 TIMEOUT.

Tokens: 900 in, 100 out, counted for 1 of 2 dispatches; the others are not known.

Cost: 0.012500 USD, known for 1 of 2 dispatches.

Models: `model-a`. Refused calls: 0.

| Slowest step | Took |
| --- | --- |
| `step-1` | 20s |
| `step-3` | 20s |

## 8. Evaluations

1 evaluation; what agents say of documents is a claim.

| Evaluator | Usefulness | Clarity |
| --- | --- | --- |
| `implementer` | 4.0 | 5.0 |

| Least useful | Usefulness | Clarity |
| --- | --- | --- |
| `tasks/task-01.yaml` | 4.0 | 5.0 |

| Document | Not found in it |
| --- | --- |
| tasks/task-01.yaml | no criteria |

## Degradations and approvals

| Degradation | Detail | Confidence at most |
| --- | --- | --- |
| `single_model` | all by model-a | Medium |

| Question | Answer | By | auto_selected | Mode | When | In words |
| --- | --- | --- | --- | --- | --- | --- |
| `gate-post-research` | `proceed` | fairwitness | **true**: nobody was asked | autonomous | 2026-02-26T14:40:00Z | – |

## The ledger

All of the above stands in the run's chain of 21 links, which ended in:

`sha256:HEAD`

`fairwitness ledger verify` checks every row and link; link 21 must have this hash.

## Next

- read the change: `git diff pipeline-baseline-2026-02-26T14-30-00Z feature/expiry`
- the whole run on one page: `fairwitness report 2026-02-26T14:30:00Z`
- whether the evidence is as it was written: `fairwitness ledger verify`
- whether the same facts lead to the same decisions: `fairwitness replay 2026-02-26T14:30:00Z`
- undo it: `fairwitness rollback 2026-02-26T14:30:00Z`
""")  # a table has as many columns as it has  # noqa: E501
    assert bundle_page(assemble(ledger, RUN, facts, POLICY)) == bundle_page(bundle)


@pytest.mark.req("P10")
def test_a_run_without_evidence_says_so_in_every_part(ledger: Ledger) -> None:
    tell(ledger, STARTED)
    page = bundle_page(assemble(ledger, RUN, looked_up(), POLICY))
    assert _seen(page) == ("# Evidence bundle: expiry", *HEADINGS)
    for said in (
        "**Low**",
        "No evidence: no task of this run was checked.",
        "No evidence: the tree to be committed was never checked as a whole.",
        "No evidence: no verdict about the design is on record.",
        "No evidence: no verdict about the code is on record.",
        "No evidence: no changed file is on record.",
        "0 dispatches",
        "Cost: not known for any dispatch.",
        "Models: not reported.",
        "No approval is on record.",
        "not committed by itself",
    ):
        assert said in page, said
    assert page.endswith(f"- undo it: `fairwitness rollback {RUN}`\n")


@pytest.mark.req("P10", "P9")
def test_failures_and_regressions_are_counted_and_named(ledger: Ledger) -> None:
    tell(ledger, STARTED, ("task_reverted", {"task": "task-01", "files": ["src/a.py"]}))
    for name in ("tests", "lint"):
        check(ledger, "task-01", f"baseline-{name}", baseline=True, round_=0, passed=name == "tests")
        check(ledger, "task-01", name, passed=False)
    check(ledger, "task-09", "tests")
    bundle = assemble(ledger, RUN, looked_up(tasks=(task_of(ledger, "task-01", risk="🔴"),)), POLICY)
    (task,) = bundle.tasks
    assert (task.is_verified, task.regressions, task.red_before_too) == (False, ("tests",), ("lint",))
    assert (task.size.value, task.reverts) == ("Large", 1)
    assert [(each.name, each.rows, each.passed) for each in bundle.elsewhere] == [("task-09", 1, 1)]
    assert bundle.confidence.level is Confidence.LOW
    page = bundle_page(bundle)
    assert "- regressed: task-01: tests" in page
    assert "| `task-01` | **no** | 🔴 | Large | 1 | 0 of 3 | 0 | 0 | 0 | 0 | 1 | 1 | 0 | 0 | 0 |" in page
    assert "| `task-09` | 1 | 1 |" in page
    assert "| not rated | task-01 is not verified | the gates | evidence |" in page


@pytest.mark.req("P10", "P7")
def test_every_round_of_a_review_stands_and_the_last_leaves_its_issues(ledger: Ledger) -> None:
    first = finding("security", "Critical", id="F-1")
    facts = good_run(ledger, review(first))
    earlier = [{"id": "F-1", "resolution": "addressed"}]
    reviewed(ledger, review(finding("security", "Major", id="F-7"), round=2, earlier_findings=earlier))
    facts = facts.model_copy(update={"code_review": review_of(ledger, ReviewScope.CODE, 2)})
    bundle = assemble(ledger, RUN, facts, POLICY)
    assert [(each.scope.value, each.number) for each in bundle.rounds] == [("code", 1), ("code", 2)]
    assert [(each.severity, each.what) for each in bundle.issues] == [
        (Severity.MAJOR, "security: F-7: Tokens never rotate")
    ]
    page = bundle_page(bundle)
    assert "| security-sentinel | needs_revision (Critical) | approve | approve | 1 | – |" in page
    assert "| security-sentinel | needs_revision (Major) | approve | approve | 1 | F-1 addressed |" in page
    assert "**nothing filed** | **nothing filed** | **nothing filed** | not on record" in page


@pytest.mark.req("P10", "P7")
def test_a_verdict_whose_findings_are_gone_is_an_issue_all_the_same(ledger: Ledger) -> None:
    tell(ledger, STARTED)
    reviewed(ledger, review(finding("security", "Blocker")), body={"answer": {"findings": []}})
    (issue,) = assemble(ledger, RUN, looked_up(), POLICY).issues
    assert (issue.severity, issue.is_claim) == (Severity.BLOCKER, True)
    assert issue.what == "security: blocker, and no finding on record says why"


@pytest.mark.req("P10", "P5", "P17")
def test_answers_degradations_and_what_still_waits_are_told(ledger: Ledger) -> None:
    tell(
        ledger,
        STARTED,
        (
            "pushback_recorded",
            {"step": "step-0", "concerns": 2, "worst": "Major", "selected_option": "proceed", "auto_selected": True},
        ),
        ("approval_requested", {"gate_id": "gate-post-planning", "options": ["approve", "abort"]}),
        ("budget_exhausted", {"what": "tokens", "cap": 10, "used": 12}),
        ("dispatch_started", {"dispatch_id": "d-9", "step": "step-1", "agent": "researcher", "instance": "patterns"}),
        ("committed", {"commit": "fed9876", "rollback_command": "git revert fed9876"}),
    )
    answered(ledger, mode="interactive", auto_selected=False, actor="ada", user_response_raw="yes | go\n## Next")
    page = bundle_page(assemble(ledger, RUN, looked_up(degradations=tuple(Degradation)), POLICY))
    assert _seen(page) == ("# Evidence bundle: expiry", *HEADINGS)
    for kind in Degradation:
        assert f"| `{kind.value}` | no event tells it | {AT_MOST[kind].value} |" in page
    for said in (
        "| `gate-post-research` | `proceed` | ada | false | interactive |",
        "yes \\| go ## Next |",
        "Still waiting for an answer: `gate-post-planning`.",
        "| Major | 2 concerns at step-0; proceed was selected by itself | pushback | claim |",
        "the cap of tokens was reached: 12 of 10",
        "Begun and not ended: `d-9`.",
        "By hand, as recorded with the commit: `git revert fed9876`",
    ):
        assert said in page, said


@pytest.mark.req("P10")
@pytest.mark.parametrize("hostile", HOSTILE[:10])
def test_hostile_words_in_the_ledger_change_no_bundle(ledger: Ledger, hostile: str) -> None:
    text = hostile.encode(errors="replace").decode().replace("\0", "")
    tell(ledger, STARTED, ("degraded", {"kind": "single_model", "detail": text}))
    reviewed(ledger, review(finding("security", "Major", id=text, title=text), summary=text))
    answered(ledger, mode="interactive", auto_selected=False, actor=text, user_response_raw=text)
    called(ledger, "d-1", usage=None, notes=text, step=text, instance=text)
    evaluated(ledger, text)
    page = bundle_page(assemble(ledger, RUN, looked_up(), POLICY))
    assert _seen(page) == ("# Evidence bundle: expiry", *HEADINGS)
    state = assemble(ledger, RUN, looked_up(), POLICY).state
    _post_mortem(ledger, state)


def _post_mortem(ledger: Ledger, state: FeatureState) -> str:
    rows = dispatches(ledger.database, RUN)
    page = post_mortem_page(state, rows, evaluations(ledger.database, RUN), day=date(2026, 2, 26))
    assert len(_seen(page)) == 7
    return page


@pytest.mark.req("P10", "P13")
def test_a_post_mortem_tells_what_was_slow_twice_or_wrong(ledger: Ledger) -> None:
    tell(
        ledger,
        STARTED,
        ("step_started", {"step": "step-5"}),
        ("step_started", {"step": "step-5"}),
        ("replan_started", {"iteration": 1, "failing": ["task-01"]}),
        ("task_reverted", {"task": "task-01", "files": ["src/a.py"]}),
        ("run_finished", {"outcome": "halted", "confidence": None, "reason": "a blocker"}),
    )
    called(ledger, "d-1", usage=None, status="TIMEOUT", retry_count=1, notes="timed_out: slow")
    evaluated(ledger, "no criteria")
    assert _post_mortem(ledger, assemble(ledger, RUN, looked_up(), POLICY).state) == snapshot("""\
# Post-mortem of expiry, 2026-02-26

Run `2026-02-26T14:30:00Z`. It ended as `halted`: a blocker

## What was done again

- `step-5` was begun 2 times
- iteration 1 replanned `task-01`
- `task-01` was reverted 1 time

| Role | Instance | Step | Retries |
| --- | --- | --- | --- |
| researcher | patterns | `step-1` | 1 |

## What failed

| Step | Role | Instance | Began | Took | Status | Call | Retries | Notes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| `step-1` | researcher | patterns | 2026-02-26T14:31:00Z | 20s | TIMEOUT | 1 | 1 | timed_out: slow |

## What the run went on without

Nothing: no degradation is on record.

## Time

1 call, 20s together: 0 DONE, 0 NEEDS_REVISION, 0 ERROR, 1 TIMEOUT.

| Slowest step | Took |
| --- | --- |
| `step-1` | 20s |

## Evaluations

1 evaluation; what agents say of documents is a claim.

| Evaluator | Usefulness | Clarity |
| --- | --- | --- |
| `implementer` | 4.0 | 5.0 |

| Least useful | Usefulness | Clarity |
| --- | --- | --- |
| `tasks/task-01.yaml` | 4.0 | 5.0 |

| Document | Not found in it |
| --- | --- |
| tasks/task-01.yaml | no criteria |

## Instructions

No change to instructions was proposed.
""")


@pytest.mark.req("P10")
def test_facts_that_the_ledger_does_not_hold_make_no_bundle(ledger: Ledger) -> None:
    tell(ledger, STARTED)
    made_up = ordinary_task("task-01", after=tally(row("tests", id=77)), baseline=tally())
    with pytest.raises(LedgerTampered, match="check 77"):
        assemble(ledger, RUN, looked_up(tasks=(made_up,)), POLICY)
    check(ledger, WHOLE, "tests", passed=False)
    real = task_of(ledger, WHOLE)
    (failed,) = real.after.rows
    painted = real.model_copy(update={"after": tally(failed.model_copy(update={"passed": True}))})
    with pytest.raises(LedgerTampered):
        assemble(ledger, RUN, looked_up(whole=painted), POLICY)


@pytest.mark.req("P10")
def test_a_run_without_events_has_no_bundle(ledger: Ledger) -> None:
    with pytest.raises(EventsBroken):
        assemble(ledger, RUN, looked_up(), POLICY)


def test_every_worth_of_a_check_stands_in_one_column_and_every_level_has_its_meaning() -> None:
    counted = [standing for _, kinds in COLUMNS for standing in kinds]
    assert sorted(counted) == sorted(RowWorth)
    assert set(MEANS) == set(Confidence)
