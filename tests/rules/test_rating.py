"""Rating: what the harness ran outweighs what the rater says, and nothing makes a score better than it was given."""
# the sentences of the tables stay whole

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.rating import RatingReturn, band_of
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.rules.integrity_evidence import has_place
from fairwitness.rules.rating import CONTRADICTED, UNSHOWN, settle
from fairwitness.rules.scores import mean_score
from support.strategies import documents

GENERATED = settings(max_examples=100)
SHOWN, UNSEEN = "src/token.py:12 -- line: int", "I looked at it"
UNCLAIMED: Any = object()


def execution(assessment: Assessment = Assessment.PASS, command: str = "run 1") -> ExecutionResult:
    code = {Assessment.PASS: 0, Assessment.FAIL: 1}.get(assessment)
    return ExecutionResult(
        criterion="criterion",
        command=command,
        exit_code=code,
        stdout_truncated="x" * 400 if assessment is Assessment.PASS else "",
        stderr_truncated="y" * 400,
        duration_ms=900,
        sandbox_violation=assessment is Assessment.VIOLATION,
        assessment=assessment,
    )


def item(
    score: float = 9.6, *, number: int = 1, evidence: str = SHOWN, claimed: int | None = UNCLAIMED
) -> dict[str, Any]:
    command = f"run {number}"
    plain: dict[str, Any] = {
        "criterion": f"Criterion {number}",
        "score": score,
        "max_score": 10.0,
        "verification_command": command,
        "command_output": "all is well",
        "evidence": evidence,
        "justification": "It does what it should.",
    }
    if claimed is not UNCLAIMED:
        plain["execution_result"] = {"command": command, "exit_code": claimed, "output": "all is well"}
    return plain


def rating(*items: dict[str, Any], score: float | None = None, **differs: Any) -> RatingReturn:
    own = mean_score([each["score"] for each in items]) if score is None else score
    plain = {
        "alignment_score": own,
        "scorecard": list(items),
        "aggregate_justification": "Most of it is there.",
        "side_effects": [],
        "commands_run": ["ls -> src"],
        "score_band": band_of(own).value,
    }
    return RatingReturn.model_validate(plain | differs)


@pytest.mark.req("A20", "X1")
def test_what_a_criterion_is_worth_by_its_run_its_claim_and_its_evidence() -> None:
    claims = {"nothing": UNCLAIMED, "exit 0": 0, "exit 1": 1, "no end": None}
    table = {
        f"{end}, claimed {claim}": tuple(
            settle(rating(item(evidence=evidence, claimed=code)), runs).score for evidence in (SHOWN, UNSEEN)
        )
        for end, runs in {
            **{each.value: [execution(each)] for each in Assessment},
            "another command": [execution(command="run 2")],
            "not run": [],
        }.items()
        for claim, code in claims.items()
    }
    assert table == snapshot(
        {
            "pass, claimed nothing": (9.6, 6.9),
            "pass, claimed exit 0": (9.6, 6.9),
            "pass, claimed exit 1": (4.9, 4.9),
            "pass, claimed no end": (4.9, 4.9),
            "fail, claimed nothing": (4.9, 4.9),
            "fail, claimed exit 0": (4.9, 4.9),
            "fail, claimed exit 1": (4.9, 4.9),
            "fail, claimed no end": (4.9, 4.9),
            "timeout, claimed nothing": (4.9, 4.9),
            "timeout, claimed exit 0": (4.9, 4.9),
            "timeout, claimed exit 1": (4.9, 4.9),
            "timeout, claimed no end": (4.9, 4.9),
            "violation, claimed nothing": (4.9, 4.9),
            "violation, claimed exit 0": (4.9, 4.9),
            "violation, claimed exit 1": (4.9, 4.9),
            "violation, claimed no end": (4.9, 4.9),
            "lost, claimed nothing": (4.9, 4.9),
            "lost, claimed exit 0": (4.9, 4.9),
            "lost, claimed exit 1": (4.9, 4.9),
            "lost, claimed no end": (4.9, 4.9),
            "another command, claimed nothing": (4.9, 4.9),
            "another command, claimed exit 0": (4.9, 4.9),
            "another command, claimed exit 1": (4.9, 4.9),
            "another command, claimed no end": (4.9, 4.9),
            "not run, claimed nothing": (4.9, 4.9),
            "not run, claimed exit 0": (4.9, 4.9),
            "not run, claimed exit 1": (4.9, 4.9),
            "not run, claimed no end": (4.9, 4.9),
        }
    )


@pytest.mark.req("A20")
def test_an_honest_rating_stands_and_shows_the_runs_of_the_harness() -> None:
    said = rating(item(9.4, claimed=0), item(8.7, number=2))
    settled = settle(said, [execution(), execution(command="run  2")])
    assert (settled.score, settled.discrepancies) == (9.0, ())
    assert [each.score for each in settled.rating.scorecard] == [9.4, 8.7]
    shown = settled.rating.scorecard[0]
    assert shown.execution_result is not None
    assert (shown.command_output, shown.execution_result.output) == ("x" * 200, "x" * 200)
    assert (shown.evidence, shown.justification) == (SHOWN, "It does what it should.")
    assert settled.rating.alignment_score == 9.0


@pytest.mark.req("A20", "X1")
def test_every_lie_is_told_and_the_score_is_the_mean_rounded_down() -> None:
    said = rating(
        item(9.9, claimed=0),
        item(9.9, number=2),
        item(9.9, number=3, evidence=UNSEEN),
        item(3.2, number=4, claimed=0),
        item(9.9, number=5),
        score=9.9,
        commands_run=["run 1 -> passed", "run 2 -> exit code 1", "run 3 -> ok"],
    )
    runs = [
        execution(Assessment.FAIL),
        execution(Assessment.TIMEOUT, "run 2"),
        execution(command="run 3"),
        execution(Assessment.VIOLATION, "run 4"),
    ]
    settled = settle(said, runs)
    assert [each.score for each in settled.rating.scorecard] == [4.9, 4.9, 6.9, 3.2, 4.9]
    assert (settled.score, settled.rating.score_band.value) == (4.9, "major_failures")
    assert settled.rating.scorecard[4].execution_result is None
    assert settled.discrepancies == snapshot(
        (
            "“Criterion 1”: its command is said to have ended with exit code 0; it ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            "“Criterion 2” is given 9.9; its command ended with timeout when the harness ran it",
            "“Criterion 4”: its command is said to have ended with exit code 0; it ended with violation when the harness ran it",  # noqa: E501
            "“Criterion 5”: its command was not run by the harness",
            "the score is given as 9.9, and the mean of its scorecard is 8.5",
            "“run 1” is said to have passed; it ended with fail (exit code 1) when the harness ran it",
            "“run 2” is said to have ended with exit code 1; it ended with timeout when the harness ran it",
        )
    )


@pytest.mark.req("A20")
def test_a_rater_that_is_stricter_than_its_scorecard_is_believed() -> None:
    settled = settle(rating(item(9.6, claimed=0), score=7.5), [execution()])
    assert (settled.score, settled.discrepancies) == (7.5, ())
    assert settled.rating.scorecard[0].score == 9.6


def test_fields_that_nobody_knows_are_kept() -> None:
    settled = settle(rating(item() | {"x_note": "kept"}, x_more=1), [execution()])
    assert settled.rating.plain()["x_more"] == 1
    assert settled.rating.scorecard[0].plain()["x_note"] == "kept"


def runs_of(said: RatingReturn, ends: list[Assessment | None]) -> list[ExecutionResult]:
    """A run for each item, at its place; None is the run of something else."""
    return [
        execution(end or Assessment.PASS, each.verification_command if end else "another command")
        for each, end in zip(said.scorecard, ends, strict=False)
    ]


@pytest.mark.req("A20", "X1")
@GENERATED
@given(documents(RatingReturn), st.lists(st.none() | st.sampled_from(Assessment), max_size=4))
def test_any_rating_settles_and_none_for_the_better(plain: Any, ends: list[Assessment | None]) -> None:
    said = RatingReturn.model_validate(plain)
    runs = runs_of(said, ends)
    settled = settle(said, runs)
    before, after = said.scorecard, settled.rating.scorecard
    assert settled.score == settled.rating.alignment_score <= said.alignment_score
    assert settled.score <= mean_score([each.score for each in after])
    assert settled.rating.score_band is band_of(settled.score)
    assert [each.criterion for each in after] == [each.criterion for each in before]
    assert len(set(settled.discrepancies)) == len(settled.discrepancies)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new.score <= old.score
        passed = place < len(runs) and ends[place] is Assessment.PASS
        assert passed or new.score <= CONTRADICTED < 5.0
        assert has_place(old.evidence) or new.score <= UNSHOWN < 7.0
        claim = old.execution_result
        if passed and has_place(old.evidence) and (claim is None or claim.exit_code == 0):
            assert new.score == old.score
    again = settle(settled.rating, runs)
    assert (again.score, again.rating) == (settled.score, settled.rating), "settled is settled"


@GENERATED
@given(documents(RatingReturn), st.data())
def test_a_run_that_does_not_pass_never_helps(plain: Any, data: st.DataObject) -> None:
    said = RatingReturn.model_validate(plain)
    good = [execution(command=each.verification_command) for each in said.scorecard]
    place = data.draw(st.integers(0, len(good) - 1))
    end = data.draw(st.sampled_from([each for each in Assessment if each is not Assessment.PASS]))
    worse = [*good[:place], execution(end, good[place].command), *good[place + 1 :]]
    assert settle(said, worse).score <= settle(said, good).score
