"""Paper runs as files: every decision with the facts it was taken from.

A run's own file is for people: number, step, kind and reason of each decision. Decisions and facts stand by their hash
in a file that all runs share, since most of what they hold is the same.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fairwitness.contracts.common.evidence import Observation
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import DECISION, facts_behind, read

REPLAYS = Path(__file__).parents[1] / "fixtures" / "replays"
PARTS = "parts"
_REF = "part"
_LARGE = 80
"""Letters from which on something is written only once."""

Kept = dict[str, Any]
"""A run: its policy, and its decisions with their facts."""


def kept_of(context: FeatureContext) -> Kept:
    """A run that was played."""
    rows = sorted(context.ledger.observations(context.run_id, DECISION), key=_number)
    return {"policy": context.order.policy.plain(), "decisions": [_decision(row) for row in rows]}


def _decision(row: Observation) -> dict[str, Any]:
    step, decision = facts_behind(row).step, read(row)
    return {
        "number": _number(row),
        "step": None if step is None else step.value,
        "kind": decision.kind,
        "reason": decision.reason,
        "decision": row.detail["decision"],
        "facts": row.detail["facts"],
    }


def _number(row: Observation) -> int:
    return int(row.key.removeprefix(f"{DECISION}:"))


def write_all(runs: Mapping[str, Kept]) -> None:
    """Keeps these runs and no others; whoever calls this has looked at what changed."""
    REPLAYS.mkdir(parents=True, exist_ok=True)
    for old in REPLAYS.glob("*.json"):
        old.unlink()
    parts: dict[str, Any] = {}
    for name, kept in runs.items():
        policy = _line(_packed(kept["policy"], parts))
        decisions = ",\n".join(
            _line(
                {key: _packed(value, parts) if key in ("decision", "facts") else value for key, value in each.items()}
            )
            for each in kept["decisions"]
        )
        _put(name, f'{{"policy":{policy},\n"decisions":[\n{decisions}\n]}}\n')
    _put(PARTS, "{\n" + ",\n".join(f'"{key}":{_line(parts[key])}' for key in sorted(parts)) + "\n}\n")


def _put(name: str, text: str) -> None:
    (REPLAYS / f"{name}.json").write_text(text, encoding="utf-8")


def names() -> list[str]:
    """The runs that are kept."""
    return sorted(path.stem for path in REPLAYS.glob("*.json") if path.stem != PARTS)


def load(name: str) -> Kept:
    """A run that was kept."""
    kept: Kept = _read(name)
    return {key: _unpacked(value) for key, value in kept.items()}


@cache
def _read(name: str) -> Any:
    return json.loads((REPLAYS / f"{name}.json").read_text(encoding="utf-8"))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _packed(value: Any, parts: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        value = {key: _packed(each, parts) for key, each in value.items()}
    elif isinstance(value, list):
        value = [_packed(each, parts) for each in value]
    text = _line(value)
    if len(text) < _LARGE:
        return value
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    parts[key] = value
    return {_REF: key}


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_REF}:
            return _unpacked(_read(PARTS)[value[_REF]])
        return {key: _unpacked(each) for key, each in value.items()}
    return [_unpacked(each) for each in value] if isinstance(value, list) else value
