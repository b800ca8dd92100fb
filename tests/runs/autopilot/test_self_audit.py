"""The self-audit counts what it is shown, fixes gaps in at most two cycles, and believes a fix once it was seen."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.autopilot.audit import AuditOutcome, GapDetail, SelfAuditReturn
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.roadmap import Roadmap
from fairwitness.errors import UsageError
from fairwitness.rules.fold_phase import autopilot_event
from fairwitness.runs.autopilot.self_audit import UNNAMED, SelfAudit
from runs.autopilot.logbook import Dead, Life, Logbook, MortalLedger, order, roadmap_phase

SHOWN = "src/a.py:12 -- def total"
PHASES = ("5",)


def requirement(name: str, gap: str | None = None, evidence: str = SHOWN, size: str = "small") -> dict[str, Any]:
    return {
        "requirement_id": name,
        "expected": "it is there",
        "actual_found": "something",
        "file_line_evidence": evidence,
        "status": "pass" if gap is None else "gap",
        "gap_description": gap,
        "fix_complexity": None if gap is None else size,
    }


def answer(*requirements: Mapping[str, Any], phase: str = "5", advice: str | None = None) -> SelfAuditReturn:
    gaps = [each for each in requirements if each["status"] == "gap"]
    details = [
        {
            "requirement_id": each["requirement_id"],
            "phase_id": phase,
            "gap_description": each["gap_description"],
            "fix_complexity": each["fix_complexity"],
            "suggested_fix": advice,
        }
        for each in gaps
        if advice is not None
    ]
    return SelfAuditReturn.model_validate(
        {
            "audit_results": [{"phase_id": phase, "requirements_checked": list(requirements)}],
            "aggregate": {
                "total_requirements_checked": len(requirements),
                "passed_on_first_check": len(requirements) - len(gaps),
                "gaps_found": len(gaps),
                "gap_details": details,
            },
        }
    )


GOOD = answer(requirement("REQ-01"), requirement("REQ-02"))
ONE_GAP = answer(requirement("REQ-01"), requirement("REQ-02", "no test covers it"), advice="add one")
TWO_GAPS = answer(requirement("REQ-01", "it rounds"), requirement("REQ-02", "no test covers it", size="large"))


class Agents:
    """An auditor with prepared answers, and somebody who fixes gaps with prepared commits."""

    def __init__(self, answers: Sequence[SelfAuditReturn | str], commits: Sequence[str | None] = ()) -> None:
        self.answers, self.commits = answers, commits
        self.asked: list[int] = []
        self.fixes: list[tuple[int, GapDetail]] = []

    async def audit(self, number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        self.asked.append(number)
        return self.answers[number - 1]

    async def fix(self, number: int, gap: GapDetail) -> str | None:
        self.fixes.append((number, gap))
        return self.commits[number - 1]

    def run(self, logbook: Logbook, phases: tuple[str, ...] = PHASES) -> AuditOutcome:
        return asyncio.run(SelfAudit(logbook.log, self.audit, self.fix, phases).run())


@pytest.fixture
def logbook(tmp_path: Path) -> Logbook:
    logbook = Logbook.create(tmp_path / "run")
    logbook.passes("5")
    return logbook


def counts(outcome: AuditOutcome) -> tuple[int, int, int, int, int, int]:
    """Total, passed at once, found, fixed, left, cycles."""
    return (
        outcome.total_requirements_checked,
        outcome.passed_on_first_check,
        outcome.gaps_found,
        outcome.gaps_fixed,
        outcome.gaps_remaining,
        outcome.audit_cycles,
    )


def told(logbook: Logbook) -> list[str]:
    return [kind.removeprefix("self_audit_") for kind in logbook.events() if kind.startswith("self_audit_")]


def last(logbook: Logbook, kind: str) -> Any:
    envelope = logbook.log.ledger.last_event(logbook.log.run_id, kind)
    assert envelope is not None
    opened = autopilot_event(envelope)
    assert isinstance(opened, tuple)
    return opened[0].details


@pytest.mark.req("A10", "A5")
def test_an_audit_without_a_gap_is_over_after_one_look(logbook: Logbook) -> None:
    agents = Agents([GOOD])
    assert counts(agents.run(logbook)) == (2, 2, 0, 0, 0, 0)
    assert told(logbook) == ["started", "completed"]
    started = last(logbook, "self_audit_started")
    assert (started.phases_to_audit, started.spec_path) == (("5",), "SPEC.md")
    assert logbook.log.state().state.event_log[-1].event == "self_audit_completed"


@pytest.mark.req("A10", "A5")
def test_a_fix_counts_once_it_was_looked_at_again(logbook: Logbook) -> None:
    agents = Agents([ONE_GAP, GOOD], ["abc1234"])
    outcome = agents.run(logbook)
    assert counts(outcome) == (2, 1, 1, 1, 0, 1)
    assert outcome.fix_commits == ("abc1234",)
    assert told(logbook) == ["started", "gap_found", "gap_fixed", "completed"]
    found, fixed = last(logbook, "self_audit_gap_found"), last(logbook, "self_audit_gap_fixed")
    assert (found.requirement_id, found.phase_id, found.gap_description) == ("REQ-02", "5", "no test covers it")
    assert (fixed.requirement_id, fixed.fix_commit, fixed.re_verified) == ("REQ-02", "abc1234", True)
    assert agents.asked == [1, 2]
    assert [(number, gap.suggested_fix) for number, gap in agents.fixes] == [(1, "add one")]


@pytest.mark.req("A10")
def test_there_are_at_most_two_cycles(logbook: Logbook) -> None:
    agents = Agents([ONE_GAP] * 5, ["abc1234", "def5678", "aaa1111"])
    outcome = agents.run(logbook)
    assert counts(outcome) == (2, 1, 1, 0, 1, 2)
    assert (agents.asked, [number for number, _ in agents.fixes]) == ([1, 2, 3], [1, 2])
    assert [each.requirement_id for each in outcome.remaining_gap_details] == ["REQ-02"]
    assert told(logbook) == ["started", "gap_found", "completed"]


@pytest.mark.req("A10")
def test_where_no_fix_landed_nobody_is_asked_again(logbook: Logbook) -> None:
    agents = Agents([ONE_GAP], [None])
    assert counts(agents.run(logbook)) == (2, 1, 1, 0, 1, 1)
    assert agents.asked == [1]


@pytest.mark.req("A10")
def test_one_commit_may_close_two_gaps(logbook: Logbook) -> None:
    outcome = Agents([TWO_GAPS, GOOD], ["abc1234", None]).run(logbook)
    assert counts(outcome) == (2, 0, 2, 2, 0, 1)
    assert last(logbook, "self_audit_gap_fixed").fix_commit == "abc1234"


@pytest.mark.req("A10")
def test_what_a_fix_broke_is_a_gap_too(logbook: Logbook) -> None:
    broken = answer(requirement("REQ-01", "it rounds now"), requirement("REQ-02"))
    agents = Agents([ONE_GAP, broken, broken], ["abc1234", "def5678"])
    outcome = agents.run(logbook)
    assert counts(outcome) == (2, 0, 2, 1, 1, 2)
    assert [each.requirement_id for each in outcome.remaining_gap_details] == ["REQ-01"]
    assert told(logbook) == ["started", "gap_found", "gap_fixed", "gap_found", "completed"]


@pytest.mark.req("A10")
@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (answer(requirement("REQ-01")), "the audit does not say whether it is met"),
        (answer(requirement("REQ-01"), requirement("REQ-02"), phase="6"), "the audit does not say whether it is met"),
        (
            answer(requirement("REQ-01"), requirement("REQ-02", evidence="I looked everywhere")),
            "it is called met, but no line of a file shows it: I looked everywhere",
        ),
        (
            answer(requirement("REQ-01"), requirement("REQ-02"), requirement("req-02 ", "it is not")),
            "it is not",
        ),
    ],
)
def test_what_is_left_out_or_not_shown_is_a_gap(logbook: Logbook, returned: SelfAuditReturn, why: str) -> None:
    outcome = Agents([returned] * 3, [None, None]).run(logbook)
    assert outcome.remaining_gap_details[-1].requirement_id == "REQ-02"
    assert outcome.remaining_gap_details[-1].description == why
    assert told(logbook).count("gap_found") == outcome.gaps_found


@pytest.mark.req("A10")
def test_what_was_left_out_is_looked_at_again_and_nobody_fixes_it(logbook: Logbook) -> None:
    agents = Agents([answer(requirement("REQ-01")), GOOD])
    assert counts(agents.run(logbook)) == (2, 2, 0, 0, 0, 1)
    assert (agents.asked, agents.fixes) == ([1, 2], [])
    assert told(logbook) == ["started", "completed"]


@pytest.mark.req("A10")
def test_a_gap_that_vanishes_although_nothing_was_changed_stays_a_gap(logbook: Logbook) -> None:
    half = answer(requirement("REQ-02", "no test covers it"))
    outcome = Agents([half, GOOD], [None, None]).run(logbook)
    assert [each.requirement_id for each in outcome.remaining_gap_details] == ["REQ-02"]
    assert "gap_fixed" not in told(logbook)


@pytest.mark.req("A10")
def test_requirements_that_nobody_asked_for_count_for_nothing(logbook: Logbook) -> None:
    more = answer(requirement("REQ-01"), requirement("REQ-02"), requirement("REQ-99", "more is better"))
    assert counts(Agents([more]).run(logbook)) == (2, 2, 0, 0, 0, 0)


@pytest.mark.req("A10")
def test_a_phase_without_a_list_is_held_against_what_was_looked_at(logbook: Logbook) -> None:
    outcome = Agents([answer(requirement("total"), requirement("tax", "none"), phase="6")], [None]).run(logbook, ("6",))
    assert counts(outcome) == (2, 1, 1, 0, 1, 1)


@pytest.mark.req("A10")
def test_an_audit_that_did_not_happen_leaves_every_requirement_open(logbook: Logbook) -> None:
    agents = Agents(["it timed out", " "])
    outcome = agents.run(logbook)
    assert counts(outcome) == (2, 0, 2, 0, 2, 0)
    assert {each.description for each in outcome.remaining_gap_details} == {"not checked: it timed out"}
    unnamed = agents.run(logbook, ("7",))
    assert [each.requirement_id for each in unnamed.remaining_gap_details] == [UNNAMED]
    assert unnamed.remaining_gap_details[0].description == "not checked: it says nothing"
    assert agents.fixes == []


@pytest.mark.req("A10")
def test_a_fix_that_nobody_looked_at_closes_nothing(logbook: Logbook) -> None:
    outcome = Agents([ONE_GAP, "it timed out"], ["abc1234"]).run(logbook)
    assert counts(outcome) == (2, 1, 1, 0, 1, 1)
    assert outcome.remaining_gap_details[0].description == (
        "no test covers it; its fix was not looked at: it timed out"
    )
    assert "gap_fixed" not in told(logbook)


@pytest.mark.req("A10")
def test_asked_again_the_same_outcome_is_given_and_nobody_is_sent_out(logbook: Logbook) -> None:
    agents = Agents([ONE_GAP, GOOD], ["abc1234"])
    outcome, events = agents.run(logbook), logbook.events()
    idle = Agents([])
    assert idle.run(Logbook.open(logbook.root)) == outcome
    assert (idle.asked, logbook.events()) == ([], events)


@pytest.mark.req("A10")
def test_killed_between_any_two_writes_the_audit_goes_on(tmp_path: Path) -> None:
    answers, commits = [TWO_GAPS, ONE_GAP, GOOD], ["abc1234", "def5678", "aaa1111"]
    whole = Logbook.create(tmp_path / "whole")
    whole.passes("5")
    outcome = Agents(answers, commits).run(whole)
    assert counts(outcome) == (2, 0, 2, 2, 0, 2)
    deaths = 0
    for left in range(100):
        place = Logbook.create(tmp_path / f"killed-{left}")
        place.passes("5")
        living = place.log.ledger
        place.log.ledger = MortalLedger(living, Life(left))
        try:
            Agents(answers, commits).run(place)
        except Dead:
            deaths += 1
        else:
            break
        agents = Agents(answers, commits)
        place.log.ledger = living
        assert agents.run(place) == outcome
        assert told(place) == told(whole)
        place.close()
    assert deaths == 8  # begun, three answers, three fixes, the outcome


@pytest.mark.req("A10")
def test_another_set_of_phases_is_another_audit(logbook: Logbook) -> None:
    agents = Agents([GOOD, answer(requirement("x"), phase="6")])
    agents.run(logbook)
    agents.run(logbook, ("6",))
    assert agents.asked == [1, 2]
    assert told(logbook).count("completed") == 2


def test_a_phase_that_the_run_does_not_take_up_is_not_audited(tmp_path: Path) -> None:
    phases = (roadmap_phase("5"), roadmap_phase("6"))
    said: AutopilotOrder = order(roadmap=Roadmap(phases=phases), phases=("5",))
    logbook = Logbook.create(tmp_path / "run", roadmap=said.roadmap, phases=said.phases)
    for phases_ in (("5", "6"), ()):
        with pytest.raises(UsageError, match="cannot be audited"):
            Agents([]).run(logbook, phases_)
    assert logbook.events() == ["run_started"]
