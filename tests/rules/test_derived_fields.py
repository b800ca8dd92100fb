"""What follows from an answer is filled in where it is missing; what an agent wrote is for its contract to judge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.contracts.catalog import catalog
from fairwitness.rules.derived_fields import derived_fields, fill, null_fields, with_derived

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["🔴", "after", "gap", "task"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["agent_output", "payload", "tasks", "findings", "dag", "nodes", "risk", "wave", "issues"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("P2")
@given(
    st.sampled_from(sorted(catalog())),
    st.dictionaries(st.sampled_from(["agent_output", "tasks", "dag", "fixes"]), _JSON),
)
def test_an_answer_of_any_shape_is_taken_and_nothing_in_it_is_lost(contract: str, answer: dict[str, Any]) -> None:
    filled = with_derived(contract, answer)
    assert set(answer) <= set(filled)
    assert with_derived(contract, filled) == filled


def _payload(**values: Any) -> dict[str, Any]:
    return {"agent_output": {"payload": values}, "completion": {"status": "DONE"}}


@pytest.mark.req("P2")
def test_a_plan_has_the_colour_of_its_riskiest_task_and_the_number_of_its_tasks() -> None:
    tasks = [{"id": "task-01", "risk": "🟡"}, {"id": "task-02", "risk": "🔴"}, {"id": "task-03", "risk": "purple"}]
    filled = with_derived("plan-output", _payload(tasks=tasks))
    payload = filled["agent_output"]["payload"]
    assert (payload["total_tasks"], payload["overall_risk_summary"]) == (3, "🔴")
    assert {task["agent"] for task in payload["tasks"]} == {"implementer"}
    assert filled["completion"] == {
        "status": "DONE",
        "risk_level": "🔴",
        "findings_count": 0,
        "severity": None,
        "evidence_summary": None,
    }
    assert with_derived("plan-output", _payload(tasks=[]))["completion"]["risk_level"] == "🟢"


@pytest.mark.req("P2")
def test_a_colour_that_a_signature_does_not_allow_is_dropped_and_a_wrong_count_is_kept() -> None:
    said = _payload(findings=[{}, {}])
    said["completion"] |= {"risk_level": "🟢", "findings_count": 7}
    completion = with_derived("research-output", said)["completion"]
    assert (completion["risk_level"], completion["findings_count"]) == (None, 7)


@pytest.mark.parametrize(
    ("findings", "regressions", "gate"),
    [
        ([("after", True), ("baseline", False)], [], (1, 1, 0, "passed")),
        ([("after", True), ("after", False)], [], (2, 1, 1, "failed")),
        ([("after", True)], [{"check_name": "tests"}], (1, 1, 0, "failed")),
    ],
)
def test_a_verifier_s_counts_follow_from_its_findings(
    findings: list[tuple[str, bool]], regressions: list[dict[str, str]], gate: tuple[int, int, int, str]
) -> None:
    listed = [{"phase": phase, "passed": passed} for phase, passed in findings]
    filled = with_derived("verification-report", _payload(findings=listed, regressions=regressions))
    assert tuple(filled["agent_output"]["payload"]["evidence_gate"].values()) == gate


def test_counts_of_an_audit_a_phase_plan_and_a_graph() -> None:
    audit = with_derived(
        "autopilot-self-audit-return",
        {
            "audit_results": [{"requirements_checked": [{"status": "pass"}, {"status": "gap"}]}],
            "aggregate": {"gap_details": []},
        },
    )["aggregate"]
    assert (audit["total_requirements_checked"], audit["passed_on_first_check"], audit["gaps_found"]) == (2, 1, 1)
    plan = with_derived("autopilot-phase-plan", {"tasks": [{"wave": 1}, {"wave": 2}, {"wave": "x"}]})
    assert (plan["plans_created"], plan["waves"], plan["total_tasks"]) == (1, 2, 3)
    dag = with_derived("forge-captain-return", {"dag": {"nodes": [{"type": "task"}, {"type": "refinery"}]}})["dag"]
    assert dag["metadata"] == {"totalTasks": 1, "totalRefineries": 1}
    assert {node["status"] for node in dag["nodes"]} == {"PENDING"}


@pytest.mark.req("F3", "F9")
@pytest.mark.parametrize(("place", "name"), [("dag", "nodes"), ("overlay", "addedNodes")])
def test_the_nodes_of_a_graph_follow_from_its_tasks_and_the_rest_are_refineries(place: str, name: str) -> None:
    tasks = [
        {"id": "task-001", "type": 1, "dependencies": [], "writes": ["src/a.py"]},
        {"id": "task-002", "type": "task", "dependencies": ["task-001"]},
        {"id": "task-003", "type": 3, "dependencies": ["task-002"]},
        {"id": "refinery-002", "type": "refinery"},
        {"id": ["no", "name"]},
    ]
    drawn = [{"id": "refinery-001", "dependencies": ["task-003"]}, {"id": "task-003", "agentType": 2}, "no node"]
    filled = with_derived("forge-captain-return", {"tasks": tasks, place: {name: drawn}})
    *nodes, last = [node for node in filled[place][name] if node != "no node"]
    assert [(node["id"], node["type"], node["agentType"], node["dependencies"]) for node in nodes] == [
        ("refinery-001", "refinery", "refinery", ["task-003"]),
        ("task-003", "task", 2, ["task-002"]),  # what the captain wrote is kept, and its rule refuses it
        ("task-001", "task", 1, []),
        ("task-002", "task", 2, ["task-001"]),
    ]
    assert (last["type"], last["agentType"], last["dependencies"]) == ("refinery", "refinery", [])
    assert [node.get("metadata") for node in nodes] == [None, None, {"writes": ["src/a.py"]}, None]
    assert {node["status"] for node in nodes} == {"PENDING"}


def test_a_graph_that_is_no_list_is_left_for_its_contract_to_refuse() -> None:
    tasks = [{"id": "task-001", "type": 1, "dependencies": []}]
    filled = with_derived("forge-captain-return", {"tasks": tasks, "dag": {"nodes": "none"}, "overlay": {}})
    assert filled["dag"]["nodes"] == "none"
    assert [node["id"] for node in filled["overlay"]["addedNodes"]] == ["task-001"]


def test_what_is_left_out_on_purpose_stays_out() -> None:
    rejected = with_derived("forge-captain-return", {"rejected": "not worth it", "dag": None})
    assert rejected == {"rejected": "not worth it", "dag": None}


def test_a_refinery_s_requests_by_tool_and_its_repairs_are_part_of_its_answer() -> None:
    fixes = [{"path": "a.py", "reason": "names"}]
    filled = with_derived("forge-refinery-return", {"fixes": fixes, "walkthrough": {}})
    assert filled["change_requests"] == []
    assert filled["walkthrough"]["files_changed"] == fixes


def test_every_derived_field_is_one_that_its_contract_has() -> None:
    assert {name for name in catalog() if derived_fields(name)} >= {"plan-output", "verification-report"}
    assert null_fields("intake-return") == ()
    assert null_fields("verification-report") == ("completion.risk_level",)


def test_a_path_through_something_else_is_skipped() -> None:
    answer: dict[str, Any] = {"a": [1], "b": 2, "c": {}}
    for way in ("a.x", "b.x", "a[].x", "c.d[].x", "e[].x", "e.f"):
        fill(answer, way, 0, only_missing=False)
    assert answer == {"a": [1], "b": 2, "c": {}}
