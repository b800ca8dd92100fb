"""The feature pipeline's documents hold every constraint of their field tables, and the seeds' examples fit."""

from typing import Any

import pytest

from contracts.feature_constraints import rows
from fairwitness.contracts.common.completion import Completion, FeatureAgent
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.document import SIGNATURES, Presence, signature_refusals
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.contracts.feature.pushback import PushbackLog
from fairwitness.contracts.feature.research import ResearchOutput
from fairwitness.kit.documents import Format
from support.fixtures import DELETE, check_value, edited, value_of

ROWS = list(rows())


def _fields(value: Any, contract: str) -> list[str]:
    return [violation.field for violation in check_value(value, Format.YAML, contract)]


@pytest.mark.req("P1")
@pytest.mark.parametrize("contract", sorted({contract for _, contract, _, _ in ROWS}))
def test_every_row_of_a_field_table_refuses_what_it_forbids_and_names_the_field(contract: str) -> None:
    missed = []
    for file, row_contract, field, bad in ROWS:
        if row_contract != contract:
            continue
        named = _fields(edited(value_of(file), field, bad), contract)
        if field not in named:
            missed.append((field, "missing" if bad is DELETE else bad, named))
    assert missed == []


@pytest.mark.req("P1")
def test_the_field_tables_are_held_by_at_least_two_hundred_violations() -> None:
    assert len(ROWS) >= 200


@pytest.mark.req("P1")
def test_unknown_fields_of_an_agent_are_kept() -> None:
    value = value_of("000/plan-output.yaml")
    value["agent_output"]["payload"]["tasks"][0]["workflow_lane"] = "full"
    value["note"] = {"by": "a later version"}
    plan = PlanOutput.model_validate(value)
    assert plan.plain()["note"] == {"by": "a later version"}
    assert plan.plain()["agent_output"]["payload"]["tasks"][0]["workflow_lane"] == "full"


@pytest.mark.req("P1")
def test_an_unknown_major_version_is_a_warning_and_no_refusal() -> None:
    value = edited(value_of("000/research-output.yaml"), "agent_output.schema_version", "2.0")
    (violation,) = check_value(value, Format.YAML, "research-output", strict=True)
    assert (violation.level.value, violation.field, violation.line) == ("warning", "agent_output.schema_version", 7)
    assert ResearchOutput.model_validate(value).agent_output.schema_version == "2.0"


def test_a_later_minor_version_is_nothing_to_speak_of() -> None:
    value = edited(value_of("000/research-output.yaml"), "agent_output.schema_version", "1.9")
    assert check_value(value, Format.YAML, "research-output", strict=True) == ()


@pytest.mark.req("P2")
def test_every_agent_has_a_signature() -> None:
    assert set(SIGNATURES) == set(FeatureAgent)


def _completion(status: CompletionStatus, **changes: Any) -> Completion:
    plain = {
        "status": status,
        "summary": "done",
        "severity": None,
        "findings_count": 0,
        "risk_level": None,
        "output_paths": ["a.yaml"],
    }
    return Completion.model_validate({**plain, **changes})


COUNTS = {"total_checks": 1, "passed": 1, "failed": 0, "security_blockers": 0}
FILLED = {"severity": "Major", "risk_level": "🟡", "evidence_summary": COUNTS}


@pytest.mark.req("P2")
@pytest.mark.parametrize("agent", FeatureAgent)
@pytest.mark.parametrize("status", CompletionStatus)
def test_only_the_listed_agents_may_return_needs_revision(agent: FeatureAgent, status: CompletionStatus) -> None:
    risk = "🟢" if SIGNATURES[agent].risk_level is Presence.REQUIRED else None
    refused = [refusal.where for refusal in signature_refusals(agent, _completion(status, risk_level=risk))]
    may = status is not CompletionStatus.NEEDS_REVISION or agent in (FeatureAgent.PLANNER, FeatureAgent.VERIFIER)
    assert refused == ([] if may else [("status",)])


@pytest.mark.req("P2")
@pytest.mark.parametrize("agent", FeatureAgent)
@pytest.mark.parametrize("field", FILLED)
def test_conditional_completion_fields_follow_the_agents_row(agent: FeatureAgent, field: str) -> None:
    rule = getattr(SIGNATURES[agent], field)
    with_it = [
        refusal.where
        for refusal in signature_refusals(agent, _completion(CompletionStatus.DONE, **{field: FILLED[field]}))
    ]
    without = [refusal.where for refusal in signature_refusals(agent, _completion(CompletionStatus.DONE))]
    assert ((field,) in with_it) == (rule is Presence.NULL)
    assert ((field,) in without) == (rule is Presence.REQUIRED)


@pytest.mark.req("P2")
def test_a_document_signed_by_another_agent_is_refused_at_the_agent() -> None:
    value = edited(value_of("000/research-output.yaml"), "agent_output.agent", "planner")
    assert "agent_output.agent" in _fields(value, "research-output")


@pytest.mark.req("P2")
def test_a_status_the_agent_may_not_give_is_refused_at_the_status() -> None:
    value = edited(value_of("000/research-output.yaml"), "completion.status", "NEEDS_REVISION")
    assert _fields(value, "research-output") == ["completion.status"]


@pytest.mark.req("P1")
def test_designers_risk_level_is_read_though_its_table_wants_null() -> None:
    """Seed 000's design example breaks its own table; the example won, so both are read."""
    value = value_of("000/design-output.yaml")
    assert value["completion"]["risk_level"] == "🟡"
    assert _fields(value, "design-output") == []
    assert _fields(edited(value, "completion.risk_level", None), "design-output") == []


@pytest.mark.req("P1")
def test_the_baseline_method_is_read_with_the_time_in_either_spelling() -> None:
    """Seed 000 writes ':' into a tag, which git refuses; the sanitised spelling won, the other is read."""
    value = value_of("000/verification-report.yaml")
    path = "agent_output.payload.baseline_cross_check.method"
    safe = edited(value, path, "git show pipeline-baseline-2026-02-26T14-30-00Z:src/auth/handler.ts")
    assert path not in _fields(safe, "verification-report")


@pytest.mark.req("P1")
def test_review_verdicts_keyed_by_model_are_read_like_those_keyed_by_perspective() -> None:
    """Seed 000's knowledge example keys verdicts by model; perspectives won for what we write, both are read."""
    value = value_of("000/knowledge-output.yaml")
    review = value["agent_output"]["payload"]["evidence_bundle"]["review_summary"]["design_review"]
    assert "gpt-5.3-codex" in review["verdicts"]
    review["verdicts"] = {"security-sentinel": "approve"}
    assert _fields(value, "knowledge-output") == []


@pytest.mark.req("P1")
@pytest.mark.parametrize(("before", "after"), [(1, False), ("true", False), (True, 0), (False, False)])
def test_a_regression_is_true_before_and_false_after(before: Any, after: Any) -> None:
    value = value_of("000/verification-report.yaml")
    regression = {"check_name": "tests", "baseline_result": before, "after_result": after, "detail": "two fail now"}
    value["agent_output"]["payload"]["regressions"] = [regression]
    named = _fields(value, "verification-report")
    assert any(field.startswith("agent_output.payload.regressions[0].") for field in named)


@pytest.mark.req("P3")
@pytest.mark.parametrize(
    ("changes", "field"),
    [({"concerns_identified": 2}, "concerns_identified"), ({"mode": "interactive"}, "auto_selected")],
)
def test_a_pushback_log_that_contradicts_itself_is_refused(changes: dict[str, Any], field: str) -> None:
    log = {
        "concerns_identified": 1,
        "mode": "autonomous",
        "auto_selected": True,
        "selected_option": "proceed",
        "concerns": [
            {"severity": "Major", "title": "Twice", "description": "It exists already.", "recommendation": "Reuse it."}
        ],
    }
    value = value_of("000/spec-output.yaml")
    value["agent_output"]["payload"]["pushback_log"] = log
    assert _fields(value, "spec-output") == []
    value["agent_output"]["payload"]["pushback_log"] = {**log, **changes}
    assert _fields(value, "spec-output") == [f"agent_output.payload.pushback_log.{field}"]
    assert PushbackLog.model_validate(log).concerns[0].title == "Twice"


@pytest.mark.req("P10")
@pytest.mark.parametrize(
    ("path", "fits"),
    [
        (".github/instructions/tests.md", True),
        (".github/copilot-instructions.md", True),
        (".github/workflows/ci.yml", False),
        (".github/instructions/../../x", False),
        ("README.md", False),
    ],
)
def test_instruction_updates_name_only_governed_files(path: str, fits: bool) -> None:
    value = value_of("000/knowledge-output.yaml")
    update = {"file_path": path, "change_type": "append", "change_summary": "one more rule", "patch": "+ a line"}
    value["agent_output"]["payload"]["instruction_updates"] = [update]
    where = "agent_output.payload.instruction_updates[0].file_path"
    assert _fields(value, "knowledge-output") == ([] if fits else [where])
