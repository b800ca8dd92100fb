"""What a whole feature run costs beside its agents and its checks, and how much an implementer is given to read."""

import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.feature import feature_context, order_of
from fairwitness.app.state import state_of
from fairwitness.git.repository import Repository
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import plan_of, task_of

OWN_GOAL_S, DISPATCHES = 2.0, 26
READ_GOAL = 1 / 5
Span = tuple[float, float]


def run() -> bool:
    """Plays the demo and tells where its time went."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-") as folder:
        place = Path(folder) / "demo"
        command = [str(Path(sys.executable).with_name("fairwitness")), "demo", "--dir", str(place), "--jsonl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"bench: the demo ended with {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return False
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        met = _own_time(events)
        return _reading(place / "till", str(events[0]["run_id"])) and met


def _own_time(events: list[dict[str, Any]]) -> bool:
    first = next(event for event in events if event["type"] == "decided")
    whole = _at(events[-1]) - _at(first)
    checks = _covered(_checking(events))
    agents = sum(event["type"] == "dispatch_finished" for event in events) - 2  # the last two are the program's own
    own = whole - checks
    per: float = own / agents
    goal = OWN_GOAL_S / DISPATCHES
    verdict = "met" if per <= goal else "MISSED"
    print(f"\nthe demo: {agents} dispatches  (baseline: its checks, {checks:.1f} s of {whole:.1f} s)")
    print(f"  {own / checks:6.2f}x  everything else: {own:.2f} s, {per * 1000:.0f} ms a dispatch")
    print(f"          {per * DISPATCHES:.2f} s for {DISPATCHES} dispatches   goal <= {OWN_GOAL_S:.1f} s: {verdict}")
    return per <= goal


def _checking(events: list[dict[str, Any]]) -> list[Span]:
    """When the harness proved something: attempts, criteria, merges, and the whole change."""
    spans: list[Span] = []
    since: dict[str, float] = {}
    for event in events:
        kind, data = event["type"], event["data"]
        id_ = str(data.get("dispatch_id", ""))
        task = str(event.get("task") or data.get("nodeId") or "")
        if kind == "dispatch_finished" and id_.startswith(("step-5-", "step-6-")):
            since[task] = _at(event)
        elif task in since and _ends_a_proof(kind, id_, data):
            spans.append((since.pop(task), _at(event)))
        elif kind == "merge.started" or (kind == "dispatch_started" and "evidence-bundle" in id_):
            since[kind[:5]] = _at(event)
        elif kind == "merge.finished":
            spans.append((since.pop("merge"), _at(event)))
        elif kind == "head_recorded":
            spans.append((since.pop("dispa"), _at(event)))
    return spans


def _ends_a_proof(kind: str, dispatch_id: str, data: dict[str, Any]) -> bool:
    """What comes after the checks, and after the criteria."""
    asks = kind == "dispatch_started" and dispatch_id.startswith("step-6-")
    return asks or kind == "task.verified" or data.get("newStatus") == "FAILED"


def _covered(spans: list[Span]) -> float:
    """The length of time in which at least one was under way."""
    total, reached = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def _reading(root: Path, run_id: str) -> bool:
    repository = Repository.open(root)
    ledger = Ledger.open_file(state_of(repository) / "evidence.db")
    try:
        order, _ = order_of(ledger, run_id)
        context = feature_context(repository, ledger, run_id, order)
        return _ratios(context)
    finally:
        ledger.close()


def _ratios(context: FeatureContext) -> bool:
    plan = plan_of(context)
    assert plan is not None
    tasks = [task.id for task in plan.agent_output.payload.tasks]
    layout = context.layout
    documents = [
        context.get(path) or b"" for path in (layout.spec, layout.design, layout.plan, *map(layout.task, tasks))
    ]
    whole = sum(map(len, documents))
    print(f"\nwhat an implementer is given to read  (baseline: the documents themselves, {whole} bytes)")
    briefs = FeatureBriefs(context)
    ratios = []
    for task in tasks:
        brief = briefs.implementer(f"bench-{task}", task_of(context, task), before=())
        ratios.append(sum(len(box.text.encode()) for box in brief.inputs) / whole)
        print(f"  {ratios[-1]:6.2f}x  {task}")
    met = max(ratios) <= READ_GOAL
    print(f"          goal <= {READ_GOAL:.2f}: {'met' if met else 'MISSED'}")
    return met
