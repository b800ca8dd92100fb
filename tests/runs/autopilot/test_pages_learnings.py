"""learnings.md begins anew with each run, and every entry is a rule that stands for itself."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.phase_record import HumanVerdict
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.vocabulary import HumanWord
from fairwitness.kit.markdown import Markdown
from fairwitness.runs.autopilot.learnings import (
    ENTRIES,
    HEADER,
    failure_entry,
    fresh_learnings,
    learnings_with,
    repair_entry,
    verdict_entry,
)
from runs.autopilot.written import NOW, PHASE, phase
from runs.feature.markdown_reader import HOSTILE, seen
from support.fixtures import value_of

MORTEM = PostMortem.model_validate(
    value_of("003/post-mortem.json") | {"prevention_rule": "Check each prompt by itself."}
)


def _debugged(number: int) -> Markdown:
    return repair_entry(str(number), MORTEM.root_cause, "Wait.")


@pytest.mark.req("A8")
def test_what_a_run_learns_for_people_and_planners() -> None:
    found = HumanVerdict(verdict=HumanWord.ISSUES_FOUND, timestamp=NOW, issues=("it blinks", "no date"))
    text = fresh_learnings()
    for entry in (
        failure_entry(MORTEM),
        verdict_entry(PHASE, HumanVerdict(verdict=HumanWord.PASS, timestamp=NOW, issues=())),
        verdict_entry(PHASE, found),
        repair_entry("5", MORTEM.root_cause, "Drop the cache first."),
    ):
        text = learnings_with(text, entry)
    assert text == snapshot("""\
# Learnings (current run)

### Phase 5 failure -- acceptance_criteria_unmet
**Prevention rule:** Check each prompt by itself.
**Context:** Phase 5 (Execution Trace and Observability) ended in `acceptance_criteria_unmet`, seen by its step verify. Recorded: 2026-02-09T16:45:00Z.
**Cause:** Verifier found 2 of 5 acceptance criteria not met after 3 debug attempts.

### Human Verdict: Phase 5 -- PASS (confidence calibration)
Phase 5 (Line numbers) was put to a person, who found nothing wrong.
**Calibration:** A phase like this one can be settled without a person; be surer next time.
**Recorded:** 2026-02-09T16:45:00Z

### Human Verdict: Phase 5 -- ISSUES_FOUND (confidence calibration)
Phase 5 (Line numbers) was put to a person, who found: it blinks; no date.
**Calibration:** Check phases like this one more strictly, above all for: it blinks; no date.
**Recorded:** 2026-02-09T16:45:00Z

### Phase 5 repaired -- acceptance_criteria_unmet
**Prevention rule:** Drop the cache first.
**Context:** A debugger repaired it. Recorded: 2026-02-09T15:30:00Z.
**Cause:** Verifier found 2 of 5 acceptance criteria not met after 3 debug attempts.
""")  # an entry keeps its context in one line  # noqa: E501


@pytest.mark.req("A8")
def test_every_verdict_has_its_lesson() -> None:
    said = [
        verdict_entry(PHASE, HumanVerdict(verdict=word, timestamp=NOW, issues=issues)).split("\n")[1:]
        for word, issues in ((HumanWord.PASS, ("slow",)), (HumanWord.FAIL, ()), (HumanWord.FAIL, ("it blinks",)))
    ]
    assert said == snapshot(
        [
            [
                "Phase 5 (Line numbers) was put to a person, who found nothing wrong, but noted: slow.",
                "**Calibration:** A phase like this one can be settled without a person; be surer next time.",
                "**Recorded:** 2026-02-09T16:45:00Z",
            ],
            [
                "Phase 5 (Line numbers) was put to a person, who did not pass it, and named no issue.",
                "**Calibration:** Check phases like this one more strictly.",
                "**Recorded:** 2026-02-09T16:45:00Z",
            ],
            [
                "Phase 5 (Line numbers) was put to a person, who found: it blinks.",
                "**Calibration:** Check phases like this one more strictly, above all for: it blinks.",
                "**Recorded:** 2026-02-09T16:45:00Z",
            ],
        ]
    )


@pytest.mark.req("A8")
def test_a_run_begins_with_nothing_learned() -> None:
    assert fresh_learnings() == f"{HEADER}\n"


@pytest.mark.req("A8")
def test_an_entry_stands_once_and_the_oldest_make_room() -> None:
    entry = failure_entry(MORTEM)
    once = learnings_with(fresh_learnings(), entry)
    assert learnings_with(once, entry) == once
    assert learnings_with("", entry) == once
    text = once
    for number in range(ENTRIES):
        text = learnings_with(text, _debugged(number))
    assert text.count("\n### ") == ENTRIES
    assert "Phase 5 failure" not in text
    assert text.startswith(f"{HEADER}\n\n### Phase 0 repaired")


@pytest.mark.req("A8")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_an_entry_of_its_own(text: str) -> None:
    cause = MORTEM.root_cause.model_copy(update={"description": text})
    mortem = MORTEM.model_copy(update={"prevention_rule": text, "phase_name": text, "root_cause": cause})
    verdict = HumanVerdict(verdict=HumanWord.FAIL, timestamp=NOW, issues=()).model_copy(update={"issues": (text, text)})
    page = fresh_learnings()
    for entry in (
        failure_entry(mortem),
        verdict_entry(phase(text), verdict),
        repair_entry("5", cause, text),
    ):
        page = learnings_with(page, entry)
    assert seen(page).headings == (
        HEADER,
        "### Phase 5 failure -- acceptance_criteria_unmet",
        "### Human Verdict: Phase 5 -- FAIL (confidence calibration)",
        "### Phase 5 repaired -- acceptance_criteria_unmet",
    )
