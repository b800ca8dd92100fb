"""What the first steps of a phase and its end leave says what the returns say, and is read again."""

import pytest
from inline_snapshot import snapshot
from pydantic import ValidationError

from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.returns import ResearcherReturn
from fairwitness.contracts.autopilot.trace import TraceSpan
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.kit.documents import Format, read
from fairwitness.runs.autopilot.page_words import json_file, length, milliseconds, minutes, of_ten, percent, tokens
from fairwitness.runs.autopilot.pages_phase import (
    Handoff,
    handoff_page,
    post_mortem_file,
    read_handoff,
    research_page,
    trace_file,
    triage_file,
)
from runs.autopilot.written import COMMIT, NOW, PHASE, RUN, phase, researcher
from runs.feature.markdown_reader import HOSTILE, seen
from support.fixtures import value_of

HANDOFF = Handoff(
    phase_id="5",
    run_id=RUN,
    written=NOW,
    checkpoint_sha=COMMIT,
    tasks_completed=("05-01",),
    tasks_remaining=("05-02", "05-03"),
    files=("src/token.py",),
)


@pytest.mark.req("A6")
def test_research_for_people() -> None:
    assert research_page(PHASE, researcher()) == snapshot("""\
# Research of phase 5: Line numbers

Rendered by Fair Witness from what the researcher returned: claims, not evidence.

## Recommended approach

Carry the line in the token and leave the order alone.

## Findings

- the parser keeps no line numbers
- two callers rely on its order
- there is no test for CRLF

## Risks

- the cache holds old tokens

## Open questions

- may the cache be dropped?
""")


@pytest.mark.req("A6")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_a_researcher_writes_becomes_a_part_of_the_page(text: str) -> None:
    said = ResearcherReturn.model_construct(
        key_findings=(text, text), recommended_approach=text, risks=(text,), open_questions=(text,)
    )
    assert seen(research_page(phase(text), said)).headings[1:] == (
        "## Recommended approach",
        "## Findings",
        "## Risks",
        "## Open questions",
    )


@pytest.mark.req("A6", "A7")
@pytest.mark.parametrize("text", ["fine", "a\0b", "\x1b[2J", "\u2028"])
def test_what_is_kept_as_json_is_read_again_by_its_contract(text: str) -> None:
    triage = Triage.model_validate(value_of("003/filled-triage.json") | {"note": f"x{text}"})
    mortem = PostMortem.model_validate(value_of("003/post-mortem.json") | {"prevention_rule": f"x{text}"})
    span = TraceSpan.model_validate(value_of("003/trace-span.json") | {"input_summary": text})
    kept = text.replace("\0", "\ufffd")
    again = Triage.model_validate(read(triage_file(triage).encode(), Format.JSON).value)
    assert again == triage.model_copy(update={"note": f"x{kept}"})
    same = PostMortem.model_validate(read(post_mortem_file(mortem).encode(), Format.JSON).value)
    assert same == mortem.model_copy(update={"prevention_rule": f"x{kept}"})
    lines = read(trace_file((span, span)).encode(), Format.JSONL).value
    assert [TraceSpan.model_validate(line) for line in lines] == [span.model_copy(update={"input_summary": kept})] * 2
    assert all(sign.isprintable() or sign == "\n" for sign in triage_file(triage) + post_mortem_file(mortem))


def test_half_a_sign_does_not_make_a_file_unreadable() -> None:
    assert read(json_file({"a": ["x\ud800"]}).encode(), Format.JSON).value == {"a": ["x\ufffd"]}


def test_a_phase_without_actions_has_an_empty_trace() -> None:
    assert trace_file(()) == ""


@pytest.mark.req("A6")
def test_a_handoff_for_people_and_for_the_next_run() -> None:
    page = handoff_page(PHASE, HANDOFF)
    assert page == snapshot("""\
---
phase_id: "5"
run_id: run-2026-02-09-143052
written: '2026-02-09T16:45:00Z'
checkpoint_sha: abc1234
tasks_completed:
- 05-01
tasks_remaining:
- 05-02
- 05-03
files:
- src/token.py
---

# Handoff of phase 5: Line numbers

The phase stopped at commit `abc1234` with 1 of 3 tasks done. The next run carries out only what remains.

## Tasks that remain

- `05-02`
- `05-03`

## Tasks that are done

- `05-01`

## Files touched so far

- `src/token.py`
""")
    assert read_handoff(page) == HANDOFF


@pytest.mark.req("A6")
@pytest.mark.parametrize("text", ["", "# Handoff", "---\nphase_id: '5'\n---\n", "---\n- a\n---\n", "\ud800"])
def test_a_page_that_is_no_handoff_hands_nothing_over(text: str) -> None:
    assert read_handoff(text) is None


def test_a_handoff_leaves_something_to_do_and_says_each_task_once() -> None:
    with pytest.raises(ValidationError):
        Handoff.model_validate(HANDOFF.plain() | {"tasks_remaining": []})
    with pytest.raises(ValidationError, match="not completed"):
        Handoff.model_validate(HANDOFF.plain() | {"tasks_completed": ["05-02"]})


def test_no_number_is_too_large_to_be_shown() -> None:
    assert [length(1e300), minutes(1e308), milliseconds(10**400)] == ["more than 1000 days"] * 3


def test_numbers_come_with_their_words() -> None:
    assert [of_ten(8.2), of_ten(9), of_ten(9.25), minutes(25), milliseconds(1234)] == snapshot(
        ["8.2 of 10", "9.0 of 10", "9.25 of 10", "25m 0s", "1.2s"]
    )
    assert [percent(0.6667), tokens(1), tokens(110_000)] == snapshot(["66.7 %", "1 token", "110,000 tokens"])
