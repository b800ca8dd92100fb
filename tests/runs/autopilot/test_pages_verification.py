"""VERIFICATION.md shows evidence apart from claims, and its head is never milder than the page below it."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.verification import VerifierReturn
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.kit.documents import Format, read
from fairwitness.runs.autopilot.pages_judgement import (
    ASSESSED,
    VerificationHead,
    read_verification_head,
    verification_page,
)
from runs.autopilot.written import COMMIT, NOW, RUN, SEEN, content_verifier, executed, phase, verifier
from runs.feature.markdown_reader import HOSTILE, seen

TIMEOUT = executed(exit_code=None, stdout_truncated="", assessment="timeout", duration_ms=60_000)
SECTIONS = (
    "## Sandbox Execution Results",
    "## Automated checks",
    "## Acceptance criteria",
    "## Failures",
    "## Scope creep",
    "## Visual tests",
    "## What only a person could settle",
    "## Commands the verifier says it ran",
)


def _page(said: VerifierReturn, *ran: ExecutionResult, passed: bool = True, name: str = "Line numbers") -> str:
    return verification_page(phase(name), said, ran, run_id=RUN, commit=COMMIT, at=NOW, passed=passed, checks=SEEN)


def _body(page: str) -> str:
    return str(read(page.encode(), Format.MARKDOWN).value["body"])


@pytest.mark.req("A6", "A15")
def test_a_verification_for_people() -> None:
    failed = executed(
        criterion="Build succeeds",
        command="npm run build 2>&1 | tail",
        exit_code=1,
        stdout_truncated="",
        stderr_truncated="Error: Module not found",
        assessment="fail",
        duration_ms=900,
    )
    assert _page(verifier(), executed(), failed, TIMEOUT) == snapshot("""\
---
phase: "5"
run_id: run-2026-02-09-143052
commit: abc1234
verified: '2026-02-09T16:45:00Z'
pass: false
---

# Verification of phase 5: Line numbers

**Not passed** at commit `abc1234`, 2026-02-09T16:45:00Z.

The verifier says **fail**. It did not hear the executor; what it says is a claim.

## Sandbox Execution Results

Run by Fair Witness itself, inside its bounds: this is evidence.

| Criterion | Command | Exit Code | Output (truncated) | Assessment | Took |
| --- | --- | --- | --- | --- | --- |
| Tokens carry lines | `pytest -q 2>&1` | 0 | 14 passed | VERIFIED | 1m 1s |
| Build succeeds | npm run build 2>\\&1 \\| tail | 1 | stderr: Error: Module not found | **FAILED** | 900 ms |
| Tokens carry lines | `pytest -q 2>&1` | none | it printed nothing | **TIMEOUT** | 1m 0s |

A command that timed out, broke its bounds or was lost has shown nothing; it counts as missing.

## Automated checks

Run by Fair Witness itself: compile: pass; tests: pass; lint: **fail**; build: n/a (no command or check decides it).

As the verifier has them:

| Check | Result | Details |
| --- | --- | --- |
| compile | pass | 0 errors |
| lint | n/a (no command or check decides it) | nothing was said |
| build | **fail** | module not found |
| tests | pass | 42 passed |

## Acceptance criteria

| Criterion | Status | Evidence, as the verifier has it |
| --- | --- | --- |
| All tests pass | verified | npm test -- 42 passed |
| Build succeeds | **failed** | src/app.ts:3 -- missing import |

## Failures

| Failure | Category |
| --- | --- |
| the build fails | `build_failure` (the build fails) |

## Scope creep

The verifier saw nothing that no requirement asks for.

## Visual tests

3 of 5 routes looked right.

| Route | Kind | Severity | What is wrong |
| --- | --- | --- | --- |
| `/dashboard` | layout | major | Button overlaps sidebar at 1280px width |

- `.planning/screenshots/home-20260212.png`
- `.planning/screenshots/dashboard-20260212.png`

## What only a person could settle

How sure the verifier is without a person: 5.0 of 10.

| Criterion | Tried | Why it did not suffice |
| --- | --- | --- |
| The page feels right | screenshot of /dashboard | taste cannot be measured |

## Commands the verifier says it ran

- npm test -> 0
- npm run build -> 1

| Criterion | Command | Exit Code | Output | Assessment |
| --- | --- | --- | --- | --- |
| All tests pass | `npm test 2>&1` | 0 | All 42 tests passed | pass |
| Build succeeds | `npm run build 2>&1` | 1 | Error: Module not found: ./missing.ts | fail |
""")


@pytest.mark.req("A6", "A15")
def test_a_verification_that_passed() -> None:
    assert _page(content_verifier(), executed()) == snapshot("""\
---
phase: "5"
run_id: run-2026-02-09-143052
commit: abc1234
verified: '2026-02-09T16:45:00Z'
pass: true
---

# Verification of phase 5: Line numbers

**Passed** at commit `abc1234`, 2026-02-09T16:45:00Z.

The verifier says pass. It did not hear the executor; what it says is a claim.

## Sandbox Execution Results

Run by Fair Witness itself, inside its bounds: this is evidence.

| Criterion | Command | Exit Code | Output (truncated) | Assessment | Took |
| --- | --- | --- | --- | --- | --- |
| Tokens carry lines | `pytest -q 2>&1` | 0 | 14 passed | VERIFIED | 1m 1s |

## Automated checks

Run by Fair Witness itself: compile: pass; tests: pass; lint: **fail**; build: n/a (no command or check decides it).

As the verifier has them:

| Check | Result | Details |
| --- | --- | --- |
| compile | pass | 0 errors |
| lint | pass | 0 errors |
| build | n/a (no command or check decides it) | nothing was said |
| tests | **not reported** | the verifier says nothing about it |

## Acceptance criteria

| Criterion | Status | Evidence, as the verifier has it |
| --- | --- | --- |
| Tokens carry lines | verified | src/token.py:12 |

## Failures

The verifier names none.

## Scope creep

The verifier saw nothing that no requirement asks for.

## Commands the verifier says it ran

- pytest -q -> 14 passed

It reports no result of a command for a single criterion.
""")


@pytest.mark.req("A6")
def test_the_head_says_pass_only_if_everything_does() -> None:
    good, bad = content_verifier(), verifier()
    heads = {
        name: read_verification_head(page)
        for name, page in {
            "all of it": _page(good, executed()),
            "the rules say no": _page(good, executed(), passed=False),
            "the verifier says no": _page(bad, executed()),
            "nothing was run": _page(good),
            "a command did not end": _page(good, executed(), TIMEOUT),
            "a command failed": _page(good, executed(exit_code=1, assessment="fail")),
        }.items()
    }
    assert {name: head is not None and head.pass_ for name, head in heads.items()} == snapshot(
        {
            "all of it": True,
            "the rules say no": False,
            "the verifier says no": False,
            "nothing was run": False,
            "a command did not end": False,
            "a command failed": False,
        }
    )
    assert "No evidence: Fair Witness ran no command for this phase." in _page(good)


@pytest.mark.req("A6")
def test_a_verification_covers_one_commit_of_one_phase_in_one_run() -> None:
    head = read_verification_head(_page(content_verifier(), executed()))
    assert head == VerificationHead.model_validate(
        {"phase": "5", "run_id": RUN, "commit": COMMIT, "verified": NOW, "pass": True}
    )
    assert head.covers(phase="5", run_id=RUN, commit=COMMIT)
    assert not head.covers(phase="6", run_id=RUN, commit=COMMIT)
    assert not head.covers(phase="5", run_id="run-2026-02-10-143052", commit=COMMIT)
    assert not head.covers(phase="5", run_id=RUN, commit="def5678")
    assert not head.model_copy(update={"pass_": False}).covers(phase="5", run_id=RUN, commit=COMMIT)


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    "text",
    ["", "# Verification\n\nverified: yes", "---\nverified: 2026-02-09T16:45:00Z\npass: true\n---\n", "---\na\n---"],
)
def test_a_head_that_is_not_ours_verifies_nothing(text: str) -> None:
    assert read_verification_head(text) is None


@pytest.mark.req("A15")
def test_every_assessment_has_its_word() -> None:
    assert {key.value: str(word) for key, word in ASSESSED.items()} == snapshot(
        {
            "pass": "VERIFIED",
            "fail": "**FAILED**",
            "timeout": "**TIMEOUT**",
            "violation": "**VIOLATION**",
            "lost": "**LOST**",
        }
    )
    assert set(ASSESSED) == set(Assessment)


@pytest.mark.req("A6")
def test_a_visual_test_without_a_browser_claims_nothing() -> None:
    said = verifier(
        visual_test_results={
            "routes_tested": 0,
            "routes_passed": 0,
            "issues_found": [],
            "screenshots": [],
            "infrastructure_available": False,
        },
        autonomous_confidence=None,
        failure_categories=[],
    )
    page = _page(said, executed())
    assert "There was nothing to look with" in page
    assert "How sure the verifier is without a person: not said." in page
    assert "| the build fails | **not classified** |" in page


@pytest.mark.req("A6", "A15")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_verifier_or_of_a_command_becomes_a_part_of_the_page(text: str) -> None:
    plain = verifier()
    said = plain.model_copy(
        update={
            "criteria_results": tuple(
                each.model_copy(update={"criterion": text, "evidence": text}) for each in plain.criteria_results
            ),
            "automated_checks": plain.automated_checks.model_copy(
                update={"lint": plain.automated_checks.lint.model_copy(update={"detail": text}), "tests": None}
            ),
            "commands_run": (text, text),
            "failures": (text,),
            "scope_creep": (text,),
            "execution_results": tuple(
                each.model_copy(update={"criterion": text, "command": text, "output": text})
                for each in plain.execution_results or ()
            ),
            "deferral_evidence": tuple(
                each.model_copy(update={"criterion": text, "methods_attempted": (text,), "why_insufficient": text})
                for each in plain.deferral_evidence or ()
            ),
        }
    )
    ran = executed().model_copy(
        update={"criterion": text, "command": text, "stdout_truncated": text[:500], "stderr_truncated": text[:500]}
    )
    page = _page(said, ran, name=text)
    rendered = seen(_body(page))
    assert rendered.headings[1:] == SECTIONS
    assert [rows[0] for rows in rendered.tables] == [6, 3, 3, 2, 4, 3, 5]
    assert all(len(set(rows)) == 1 for rows in rendered.tables)
    head = read_verification_head(page)
    assert head is not None
    assert not head.pass_
