"""Asks a run for every gate that its events name."""

import json
from pathlib import Path
from typing import Any

from cli.runner import fairwitness_many

_NAMING = ("gate", "gate_id", "crId")
"""The fields of events that name a gate."""


def named_gates(events: list[dict[str, Any]]) -> set[str]:
    """Every gate that events name, and the gate of every phase that they tell about."""
    named = {str(event["data"][field]) for event in events for field in _NAMING if event["data"].get(field)}
    phases = {f"phase:{event['phase']}" for event in events if event["type"].startswith("phase_")}
    return named | phases


def assert_gates_are_explained(root: Path) -> dict[str, dict[str, Any]]:
    """Ask for each gate that the events of the latest run name, and return the answers by name."""
    (told,) = fairwitness_many([("events", "last", "--json")], root)
    events = json.loads(told.stdout)
    names, run_id = sorted(named_gates(events)), events[0]["run_id"]
    assert names
    asked = [("gate", "explain", run_id, name, "--json") for name in names]
    answers = {}
    for name, done in zip(names, fairwitness_many(asked, root), strict=True):
        assert done.returncode in (0, 1), (name, done.stderr)
        answers[name] = json.loads(done.stdout)
        assert (answers[name]["answer"] == "open") is (done.returncode == 0)
    (listed,) = fairwitness_many([("ledger", "gates", run_id, "--json")], root)
    assert {answer["name"] for answer in answers.values()} <= {gate["name"] for gate in json.loads(listed.stdout)}
    return answers
