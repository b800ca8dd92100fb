"""Fields of an answer that follow from its other fields, so that no agent is asked for them.

An agent that counts makes mistakes, and an agent that must write what it cannot know invents it. A field that the agent
writes all the same is kept and checked as before; only what a signature fixes to null is set in any case.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.vocabulary import RISKS
from fairwitness.contracts.feature.document import SIGNATURES, Presence, SignedDocument

Derive = Callable[[Mapping[str, Any]], Any]

_PAYLOAD = "agent_output.payload"
_GATE = f"{_PAYLOAD}.evidence_gate"
_OF_SIGNATURE = ("severity", "risk_level", "evidence_summary")


def null_fields(contract: str) -> tuple[str, ...]:
    """Return the fields of a signed document that its signature fixes to null.

    >>> null_fields("research-output"), null_fields("intake-return")
    (('completion.severity', 'completion.risk_level', 'completion.evidence_summary'), ())
    """
    shape = entry_of(contract).shape
    if not (isinstance(shape, type) and issubclass(shape, SignedDocument)):
        return ()
    signature = SIGNATURES[shape.signer]
    return tuple(f"completion.{name}" for name in _OF_SIGNATURE if getattr(signature, name) is Presence.NULL)


def derived_fields(contract: str) -> tuple[str, ...]:
    """Return the fields that follow from others."""
    return tuple(_table(contract))


def with_derived(contract: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with these fields; an answer of another shape is returned as it is, for its contract to refuse.

    >>> with_derived("autopilot-plan-checker-return", {"issues": [{"severity": "warning"}]})
    {'issues': [{'severity': 'warning'}], 'blocker_count': 0, 'warning_count': 1}
    """
    whole = copy.deepcopy(dict(answer))
    if contract == _CAPTAIN:
        _add_task_nodes(whole)
    for way, derive in _table(contract).items():
        fill(whole, way, derive(whole), only_missing=True)
    if contract in _BY_TOOL:
        whole.setdefault(_BY_TOOL[contract], [])
    for way in null_fields(contract):
        fill(whole, way, None, only_missing=False)
    return whole


def fill(answer: dict[str, Any], way: str, value: Any, *, only_missing: bool) -> None:
    """Set a field, or the field of each entry of a list (`tasks[].status`).

    A path that leads through something else is skipped.

    The innermost object on the way is made if it is missing, but none at the top: it may be left out on purpose.

    >>> answer = {"tasks": [{"id": 1}, {"id": 2, "status": "x"}], "a": {}}
    >>> fill(answer, "tasks[].status", "PENDING", only_missing=True)
    >>> fill(answer, "a.b.c", 3, only_missing=True); fill(answer, "d.e", 4, only_missing=True); answer
    {'tasks': [{'id': 1, 'status': 'PENDING'}, {'id': 2, 'status': 'x'}], 'a': {'b': {'c': 3}}}
    """
    *parents, last = way.split(".")
    for place in _places(answer, parents, is_top=True):
        if not (only_missing and last in place):
            place[last] = copy.deepcopy(value)


def _places(value: Any, way: list[str], *, is_top: bool = False) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    if not way:
        yield value
        return
    step, rest = way[0], way[1:]
    if step.endswith("[]"):
        entries = value.get(step.removesuffix("[]"))
        for entry in entries if isinstance(entries, list) else ():
            yield from _places(entry, rest)
    elif rest or is_top:
        yield from _places(value.get(step), rest)
    else:
        yield from _places(value.setdefault(step, {}), rest)


def _entries(answer: Mapping[str, Any], way: str) -> list[dict[str, Any]]:
    """Return the objects of a list; none if there is no such list."""
    value: Any = answer
    for step in way.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _count(way: str, **having: Any) -> Derive:
    """Count the objects of a list that have these values."""

    def count(answer: Mapping[str, Any]) -> int:
        return sum(having.items() <= entry.items() for entry in _entries(answer, way))

    return count


def _riskiest(way: str) -> Derive:
    colours = [risk.value for risk in RISKS]

    def riskiest(answer: Mapping[str, Any]) -> str:
        found = [entry["risk"] for entry in _entries(answer, way) if entry.get("risk") in colours]
        return max(found, key=colours.index, default=colours[0])

    return riskiest


def _always(value: Any) -> Derive:
    return lambda _answer: value


def _last_wave(answer: Mapping[str, Any]) -> int:
    waves = [entry.get("wave") for entry in _entries(answer, "tasks")]
    return max((wave for wave in waves if isinstance(wave, int)), default=1)


def _audited(**having: Any) -> Derive:
    def count(answer: Mapping[str, Any]) -> int:
        return sum(_count("requirements_checked", **having)(phase) for phase in _entries(answer, "audit_results"))

    return count


def _gate_status(answer: Mapping[str, Any]) -> str:
    after = _count(f"{_PAYLOAD}.findings", phase="after", passed=False)(answer)
    return "failed" if after or _entries(answer, f"{_PAYLOAD}.regressions") else "passed"


def _fixes(answer: Mapping[str, Any]) -> Any:
    return answer.get("fixes", [])


_CAPTAIN = "forge-captain-return"


def _add_task_nodes(answer: dict[str, Any]) -> None:
    """Complete the graph of a captain's answer: the nodes of tasks follow from the tasks."""
    tasks = {task["id"]: task for task in _entries(answer, "tasks") if isinstance(task.get("id"), str)}
    for place, name in (("dag", "nodes"), ("overlay", "addedNodes")):
        graph = answer.get(place)
        if not isinstance(graph, dict) or not isinstance(graph.setdefault(name, []), list):
            continue
        written = [_with_task(node, tasks) for node in graph[name]]
        known = {node.get("id") for node in written if isinstance(node, dict)}
        graph[name] = [*written, *(_task_node(task) for key, task in tasks.items() if key not in known)]


def _with_task(node: Any, tasks: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a node with what follows from its task; what the captain wrote is kept."""
    name = node.get("id") if isinstance(node, dict) else None
    return {**_task_node(tasks[name]), **node} if isinstance(name, str) and name in tasks else node


def _task_node(task: Mapping[str, Any]) -> dict[str, Any]:
    kind = task.get("type")
    node = {
        "id": task["id"],
        "type": "refinery" if kind == "refinery" else "task",
        "agentType": _NORMAL_WORK if kind == "task" else kind,
        "dependencies": copy.deepcopy(task.get("dependencies", [])),
    }
    return node if task.get("writes") is None else {**node, "metadata": {"writes": copy.deepcopy(task["writes"])}}


_NORMAL_WORK = 2
_TASKS = f"{_PAYLOAD}.tasks"
_AFTER = f"{_PAYLOAD}.findings"
_DERIVED: Mapping[str, Mapping[str, Derive]] = {
    "design-output": {"completion.risk_level": _riskiest(f"{_PAYLOAD}.decisions")},
    # An implementer need not repeat the baseline that it was given; null claims nothing.
    "implementation-report": {
        f"{_PAYLOAD}.baseline.build_exit_code": _always(None),
        f"{_PAYLOAD}.baseline.test_summary": _always(None),
    },
    "plan-output": {
        f"{_PAYLOAD}.total_tasks": _count(_TASKS),
        f"{_PAYLOAD}.overall_risk_summary": _riskiest(_TASKS),
        f"{_TASKS}[].agent": _always("implementer"),
        "completion.risk_level": _riskiest(_TASKS),
    },
    "verification-report": {
        f"{_GATE}.total_checks": _count(_AFTER, phase="after"),
        f"{_GATE}.passed": _count(_AFTER, phase="after", passed=True),
        f"{_GATE}.failed": _count(_AFTER, phase="after", passed=False),
        f"{_GATE}.gate_status": _gate_status,
    },
    "autopilot-phase-plan": {
        "plans_created": _always(1),
        "waves": _last_wave,
        "total_tasks": _count("tasks"),
    },
    "autopilot-plan-checker-return": {
        "blocker_count": _count("issues", severity="blocker"),
        "warning_count": _count("issues", severity="warning"),
    },
    "autopilot-self-audit-return": {
        "aggregate.total_requirements_checked": _audited(),
        "aggregate.passed_on_first_check": _audited(status="pass"),
        "aggregate.gaps_found": _audited(status="gap"),
    },
    "autopilot-rating-return": {"scorecard[].max_score": _always(10.0)},
    _CAPTAIN: {
        "tasks[].status": _always("PENDING"),
        "tasks[].branch": _always(None),
        "tasks[].attemptId": _always(None),
        # nodes of tasks follow from the tasks; what is left are refineries
        "dag.nodes[].type": _always("refinery"),
        "dag.nodes[].agentType": _always("refinery"),
        "dag.nodes[].status": _always("PENDING"),
        "dag.metadata.totalTasks": _count("dag.nodes", type="task"),
        "dag.metadata.totalRefineries": _count("dag.nodes", type="refinery"),
        "overlay.addedNodes[].type": _always("refinery"),
        "overlay.addedNodes[].agentType": _always("refinery"),
        "overlay.addedNodes[].status": _always("PENDING"),
    },
    "forge-refinery-return": {
        "change_requests[].status": _always("pending"),
        "walkthrough.files_changed": _fixes,
    },
}


_BY_TOOL: Mapping[str, str] = {"forge-refinery-return": "change_requests"}
"""A list that an agent fills with a tool, if it has it."""


def _table(contract: str) -> Mapping[str, Derive]:
    table = _DERIVED.get(contract, {})
    if not null_fields(contract):
        return table
    return {**table, "completion.findings_count": _count(f"{_PAYLOAD}.findings")}
