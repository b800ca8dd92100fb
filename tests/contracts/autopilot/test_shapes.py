"""What the autopilot shapes mean: defaults, older spellings, bands, and examples that break their own rules."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from contracts.autopilot.seed003 import load, parse, spoilt
from fairwitness.contracts.autopilot.breaker import BreakerConfig
from fairwitness.contracts.autopilot.context_map import ContextSufficiency
from fairwitness.contracts.autopilot.metrics import CostConstants, MetricsFile
from fairwitness.contracts.autopilot.phase_record import DocumentStep, RateStep, VerifyStep
from fairwitness.contracts.autopilot.rating import ScoreBand, band_of
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.visual import ScreenshotAnalysis, VisualConfig
from fairwitness.contracts.autopilot.vocabulary import CheckWord, FailureCategory, Tally


@pytest.mark.req("A1")
def test_the_older_spelling_of_a_phase_key_is_read_as_the_bare_id() -> None:
    assert list(load("filled-state-legacy.json")["phases"]) == ["phase_6.1"]
    state = parse("filled-state-legacy.json")
    assert list(state.phases) == ["6.1"]
    assert list(state.plain()["phases"]) == ["6.1"]


@pytest.mark.req("A1")
def test_a_phase_recorded_under_both_spellings_is_refused() -> None:
    document = load("filled-state.json")
    document["phases"]["phase_7"] = document["phases"]["7"]
    with pytest.raises(ValidationError, match="one record per phase"):
        State.model_validate(document)


def test_a_phase_key_that_is_no_text_is_refused() -> None:
    document = load("filled-state.json")
    document["phases"][7] = document["phases"].pop("7")
    with pytest.raises(ValidationError) as refused:
        State.model_validate(document)
    assert refused.value.errors()[0]["loc"][:2] == ("phases", 7)


@pytest.mark.req("A13")
def test_the_seeds_own_state_breaks_its_threshold_and_is_read_all_the_same() -> None:
    """Completed at 8.2 where 9 is asked, no remediation, no diagnostic: the example is stale and the threshold wins.

    That a score suffices is a decision of `rules`; the shape reads both the stale example and the one that obeys.
    """
    stale = parse("filled-state-legacy.json")
    phase = stale.phases["6.1"]
    assert (phase.status, phase.steps.rate.alignment_score, stale.meta.pass_threshold) == ("completed", 8.2, 9)
    assert (phase.remediation_cycles, phase.diagnostic_path, phase.force_incomplete) == (0, None, False)
    obeying = parse("filled-state.json").phases["6.1"]
    assert (obeying.steps.rate.alignment_score, obeying.remediation_cycles, obeying.force_incomplete) == (8.2, 2, True)
    assert obeying.diagnostic_path is not None


@pytest.mark.req("A10")
def test_the_seeds_own_audit_details_one_gap_of_two_and_is_read_all_the_same() -> None:
    aggregate = parse("self-audit-return.json").aggregate
    assert (aggregate.gaps_found, len(aggregate.gap_details)) == (2, 1)


@pytest.mark.req("A1")
def test_the_state_is_read_without_what_later_sections_added() -> None:
    phase = parse("filled-state-legacy.json").phases["6.1"]
    assert (phase.score_history, phase.quality_exhausted, phase.gaps_exhausted) == ((), False, False)
    assert parse("filled-state-legacy.json").meta.deferral_confidence is None


def test_the_settings_default_to_the_seeds_values() -> None:
    for shape, file in (
        (BreakerConfig, "breaker-config.json"),
        (CostConstants, "cost-constants.json"),
        (ContextSufficiency, "context-sufficiency.json"),
    ):
        (wrapper,) = load(file)
        assert shape.model_validate({wrapper: {}}) == shape.model_validate(load(file))
        with pytest.raises(ValidationError):
            shape.model_validate({})


@pytest.mark.req("A18")
def test_visual_testing_needs_four_fields_and_defaults_the_rest() -> None:
    least = {
        "enabled": True,
        "launch_command": "npm run dev",
        "base_url": "http://localhost:3000",
        "routes": [{"path": "/", "name": "home"}],
    }
    read = VisualConfig.model_validate({"visual_testing": least}).visual_testing
    assert (read.framework, read.launch_wait_ms, read.screenshot_dir) == ("playwright", 5000, ".planning/screenshots")
    assert (read.viewport.width, read.viewport.height, read.headless, read.routes[0].wait_ms) == (1280, 720, True, 2000)


@pytest.mark.req("A18")
def test_a_screenshot_that_could_not_be_taken_has_no_issues_to_count() -> None:
    read = ScreenshotAnalysis.model_validate({"issues_found": 0, "issues": [], "overall_assessment": "error"})
    assert read.overall_assessment == "error"


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("lowest", "highest", "band"),
    [
        (9.5, 10.0, ScoreBand.EXCELLENCE),
        (8.0, 9.4, ScoreBand.GOOD),
        (7.0, 7.9, ScoreBand.ACCEPTABLE),
        (5.0, 6.9, ScoreBand.SIGNIFICANT_GAPS),
        (3.0, 4.9, ScoreBand.MAJOR_FAILURES),
        (0.0, 2.9, ScoreBand.NOT_IMPLEMENTED),
    ],
)
def test_a_score_falls_into_the_band_of_the_table(lowest: float, highest: float, band: ScoreBand) -> None:
    assert band_of(lowest) is band_of(highest) is band


@pytest.mark.req("A20")
def test_a_whole_score_needs_its_decimal() -> None:
    document, _ = spoilt("filled-rating-return.json", "alignment_score", 8.0)
    document["score_band"] = "good"
    read = type(parse("filled-rating-return.json"))
    assert read.model_validate(document).alignment_score == 8.0
    with pytest.raises(ValidationError, match="an integer is refused"):
        read.model_validate(document | {"alignment_score": 8})


@pytest.mark.req("A7")
def test_there_are_ten_failure_categories() -> None:
    assert len(FailureCategory) == 10


@pytest.mark.req("A9")
def test_the_metrics_file_is_a_bare_array_with_one_entry_per_run() -> None:
    entry = load("metrics.json")[0]
    assert MetricsFile.model_validate([]).plain() == []
    with pytest.raises(ValidationError, match="one entry per run"):
        MetricsFile.model_validate([entry, entry])


def test_nothing_attempted_is_no_success() -> None:
    entry = load("metrics.json")[0] | dict.fromkeys(("phases_attempted", "phases_succeeded", "phases_failed"), 0)
    assert MetricsFile.model_validate([entry | {"success_rate": 0.0}]).root[0].success_rate == 0
    with pytest.raises(ValidationError, match="success_rate"):
        MetricsFile.model_validate([entry | {"success_rate": 1.0}])


@pytest.mark.parametrize("value", [True, False, "n/a"])
def test_a_check_went_well_or_badly_or_was_not_there(value: object) -> None:
    assert TypeAdapter(CheckWord).validate_python(value) == value


@pytest.mark.parametrize("value", [1, 0, "true", None, "N/A"])
def test_a_check_has_no_other_words(value: object) -> None:
    word: TypeAdapter[Any] = TypeAdapter(CheckWord)
    with pytest.raises(ValidationError, match='true, false or "n/a"'):
        word.validate_python(value)


@pytest.mark.parametrize(
    ("value", "fits"), [("0/0", True), ("2/3", True), ("4/3", False), ("2", False), ("-1/3", False)]
)
def test_a_tally_does_not_exceed_its_total(value: str, fits: bool) -> None:
    tally: TypeAdapter[Any] = TypeAdapter(Tally)
    if fits:
        assert tally.validate_python(value) == value
    else:
        with pytest.raises(ValidationError):
            tally.validate_python(value)


@pytest.mark.req("A1")
def test_a_step_in_progress_owes_nothing_yet() -> None:
    assert DocumentStep.model_validate({"status": "in_progress"}).plain() == {"status": "in_progress"}
    assert VerifyStep.model_validate({"status": "in_progress"}).automated is None
    assert RateStep.model_validate({"status": "skipped"}).alignment_score is None


@pytest.mark.req("A3")
def test_tasks_of_one_wave_never_name_the_same_file() -> None:
    plan = load("filled-phase-plan.json") | {"waves": 1}
    first, second = plan["tasks"]
    second["wave"] = 1
    read = type(parse("filled-phase-plan.json"))
    with pytest.raises(ValidationError, match="no file in two tasks of one wave"):
        read.model_validate(plan)
    second["files"].remove("src/token.py")
    assert len(read.model_validate(plan).tasks) == 2
    first["files"].append("src/token.py")  # twice in one task is said twice and no more
    assert len(read.model_validate(plan).tasks) == 2


@pytest.mark.req("A17")
def test_sections_of_a_session_may_stand_among_others_but_not_in_code() -> None:
    session = load("filled-debug-session.md")
    read = type(parse("filled-debug-session.md"))
    assert read.model_validate(session | {"body": "## Preface\n" + session["body"] + "## Notes\n"})
    fenced = session["body"].replace("## Evidence", "```\n## Evidence\n```")
    with pytest.raises(ValidationError, match="Evidence"):
        read.model_validate(session | {"body": fenced})
