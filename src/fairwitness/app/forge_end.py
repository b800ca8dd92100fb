"""How a forge run stands or ended, in at most ten lines: what a person reads in the morning."""

from collections import Counter
from pathlib import Path

from fairwitness.app.answering import question_of
from fairwitness.app.forge_run import ForgeRoom, opened_forge
from fairwitness.app.text import safe_lines
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.errors import FairWitnessError
from fairwitness.git.repository import Repository
from fairwitness.rules.dag import is_exhausted
from fairwitness.runs.dispatch.account import ENDED
from fairwitness.runs.forge.plan_files import broken_locks

_LINES = 10
_SHOWN = 3


def forge_end_lines(root: Path, run_id: str) -> list[str]:
    """The run's last word, after the line that says how it ended; nothing where its repository is not."""
    try:
        Repository.open(root)
    except FairWitnessError:
        return []  # a ledger may be looked at wherever it was copied to
    waiting = question_of(root, run_id)
    with opened_forge(root, run_id) as context:
        lines = _about_the_graph(context) if context.log.course().is_approved else []
        lines += _about_agents(context)
    if waiting is not None:
        options = "|".join(option.id for option in waiting.question.options)
        shown = waiting.question.context.splitlines()[: max(2, _LINES - len(lines) - 2)]
        lines = [
            f"WAITS FOR YOU: {waiting.question.question}",
            *shown,
            f"fairwitness answer {run_id} {options}",
            *lines,
        ]
    return [safe for line in lines[:_LINES] for safe in safe_lines(line)]


def _about_the_graph(context: ForgeRoom) -> list[str]:
    log, target = context.log, context.log.begun().options.target
    nodes = log.run().nodes
    lines = []
    if context.repository.ref(f"refs/heads/{target}") is not None and any(
        node.status is NodeState.MERGED for node in nodes.values()
    ):
        lines.append(f"branch    {target}: git merge {target}")
    for name in [name for name, node in nodes.items() if is_exhausted(node)][:_SHOWN]:
        lines.append(f"failed    {name}: {nodes[name].lastError or 'no reason is known'}: fairwitness retry {name}")
    disputed = [event.data["nodeId"] for event in _events(context, "walkthrough.disputed")]
    if disputed:
        lines.append(f"disputed  {', '.join(dict.fromkeys(disputed))}: its worker told what the harness did not see")
    for cr_id, request in log.course().requests.items():
        lines.append(
            f"request   {cr_id} of {request.emitted_by} is {request.status.value}: fairwitness cr show {cr_id}"
        )
    broken = broken_locks(log, context.files, context.layout)
    if broken:
        lines.append(f"changed   {', '.join(broken[:_SHOWN])}: sealed; the run went by what was approved")
    return lines


def _about_agents(context: ForgeRoom) -> list[str]:
    ended = context.log.ledger.observations(context.log.run_id, ENDED)
    if not ended:
        return []
    roles = Counter(str(row.detail["role"]) for row in ended)
    usage = [row.detail["outcome"].get("usage") or {} for row in ended]
    tokens = sum((each.get("tokens_in") or 0) + (each.get("tokens_out") or 0) for each in usage)
    told = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    calls = "1 call" if len(ended) == 1 else f"{len(ended)} calls"
    return [f"agents    {calls}, {tokens:,} tokens: {told}"]


def _events(context: ForgeRoom, kind: str) -> list[Envelope]:
    return [envelope for envelope in context.log.ledger.events(context.log.run_id) if envelope.type == kind]
