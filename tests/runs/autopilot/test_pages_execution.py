"""EXECUTION-LOG.md keeps apart what was seen, what the executor claims and what the check after it found."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.returns import TaskEvidence
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, TaskCriterion, TaskCriterionStatus
from fairwitness.runs.autopilot.pages_phase import LoggedTask, execution_page
from runs.autopilot.written import COMMIT, PHASE, mini_verifier, phase
from runs.feature.markdown_reader import HOSTILE, seen

DONE = LoggedTask(
    id="05-01",
    description="Carry the line in the token",
    status=TaskStatus.COMPLETED,
    commit=COMMIT,
    files=("src/token.py", "tests/test_token.py"),
    evidence=TaskEvidence(
        task_id="05-01",
        criteria_met=("tokens carry lines -- src/token.py:12",),
        commands_run=("pytest -q -> 14 passed",),
    ),
    confidence=9,
    check=mini_verifier(),
    debug_attempts=0,
    duration_seconds=95.4,
)
BROKEN = LoggedTask(
    id="05-02",
    description="Drop the cache",
    status=TaskStatus.FAILED,
    reason="No file is left (`test ! -e cache/a.bin`): it ended with fail",
    commit=None,
    files=(),
    evidence=TaskEvidence(task_id="05-02", criteria_met=(), commands_run=()),
    confidence=None,
    check=mini_verifier(
        **{
            "task_id": "05-02",
            "pass": False,
            "concerns": [],
            "criteria_results": [
                {
                    "criterion": "No file is left",
                    "status": "fail",
                    "evidence": "cache/a.bin -- still there",
                    "command": "test ! -e cache/a.bin",
                    "command_output": "",
                }
            ],
        }
    ),
    debug_attempts=2,
)


@pytest.mark.req("A6")
def test_an_execution_log_for_people() -> None:
    unchecked = LoggedTask(
        id="05-03",
        description="Tell the users",
        status=TaskStatus.NEEDS_REVIEW,
        commit=None,
        files=(),
        evidence=None,
        confidence=None,
        check=None,
        debug_attempts=0,
    )
    assert execution_page(PHASE, (DONE, BROKEN, unchecked), ("the cache was a folder",)) == snapshot("""\
# Execution log of phase 5: Line numbers

Written by Fair Witness. Status, commit and files are what it saw itself.

Evidence and confidence are claims of the executor; the mini-verification is another agent's claim.

1 of 3 tasks completed.

| Task | Status | Commit | Mini-verification | Debug attempts | Took |
| --- | --- | --- | --- | --- | --- |
| `05-01` | COMPLETED | `abc1234` | PASS | 0 | 1m 35s |
| `05-02` | **FAILED** | none | **FAIL** | 2 | not known |
| `05-03` | **NEEDS_REVIEW** | none | **NOT RUN** | 0 | not known |

## Tasks

### Task 05-01: Carry the line in the token

- **Status:** COMPLETED
- **Commit SHA:** `abc1234`
- **Files modified:** `src/token.py`, `tests/test_token.py`
- **Evidence:** (claims of the executor)
  - met: tokens carry lines -- src/token.py:12
  - ran: pytest -q -> 14 passed
- **Confidence:** 9.0 of 10
- **Mini-Verification:**
  - **Result:** PASS
  - **Criteria checked:** 1
  - **Criteria passed:** 1
  - **Failures:** None
  - **Concerns:**
    - the cache is untested
  - **Debug attempts:** 0

### Task 05-02: Drop the cache

- **Status:** FAILED
- **Why:** No file is left (`test ! -e cache/a.bin`): it ended with fail
- **Commit SHA:** none
- **Files modified:** none
- **Evidence:** (claims of the executor)
  - no criterion is claimed to be met
  - no command is claimed to have been run
- **Confidence:** not said
- **Mini-Verification:**
  - **Result:** **FAIL**
  - **Criteria checked:** 1
  - **Criteria passed:** 0
  - **Failures:**
    - No file is left
      (`test ! -e cache/a.bin` said: –; seen: cache/a.bin -- still there)
  - **Debug attempts:** 2

### Task 05-03: Tell the users

- **Status:** NEEDS_REVIEW
- **Commit SHA:** none
- **Files modified:** none
- **Evidence:** none was given
- **Confidence:** not said
- **Mini-Verification:**
  - **Result:** **NOT RUN**
  - **Debug attempts:** 0

## Deviations from the plan

- the cache was a folder
""")


def test_a_log_without_a_task_says_so() -> None:
    page = execution_page(PHASE, (), ())
    assert "No task was carried out." in page
    assert "None were reported." in page


@pytest.mark.req("A6")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_claim_becomes_a_part_of_the_log(text: str) -> None:
    failed = TaskCriterion.model_construct(
        criterion=text, status=TaskCriterionStatus.FAIL, evidence=text, command=text, command_output=text
    )
    check = MiniVerifierReturn.model_construct(
        task_id="05-01", pass_=False, criteria_results=(failed,), concerns=(text,) * 301, commands_run=(text,)
    )
    evidence = TaskEvidence.model_construct(task_id="05-01", criteria_met=(text,), commands_run=(text,))
    task = DONE.model_copy(update={"description": text, "evidence": evidence, "check": check})
    rendered = seen(execution_page(phase(text), (task, DONE), (text,)))
    assert [heading.partition(":")[0] for heading in rendered.headings] == [
        "# Execution log of phase 5",
        "## Tasks",
        "### Task 05-01",
        "### Task 05-01",
        "## Deviations from the plan",
    ]
    assert rendered.tables == ((6, 6, 6),)
