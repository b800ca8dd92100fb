"""The result of a feature or forge run, or its open question, in at most ten lines."""

from collections import Counter
from pathlib import Path

from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.app.text import safe_lines
from fairwitness.app.views.feature import HARNESS, STEPS
from fairwitness.app.views.inbox import pending_question
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.feature.events import FeatureRunOutcome
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.errors import FairWitnessError
from fairwitness.git.repository import Repository
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.gates import task_rows
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import DECISION, facts_behind
from fairwitness.runs.feature.questions import open_question
from fairwitness.runs.feature.tasks import FIX_NODE
from fairwitness.runs.forge.plan_files import broken_locks

_LINES = 10
_WORDS = {
    FeatureRunOutcome.COMMITTED: "COMMITTED",
    FeatureRunOutcome.LOW_CONFIDENCE: "NOT COMMITTED",
    FeatureRunOutcome.ABANDONED: "ENDED BY YOU",
    FeatureRunOutcome.HALTED: "HALTED",
    FeatureRunOutcome.ERROR: "FAILED",
    FeatureRunOutcome.OUT_OF_BUDGET: "OUT OF BUDGET",
}


def feature_end_lines(root: Path, run_id: str) -> list[str]:
    """Return the result of a feature run, or its open question."""
    with open_feature_run(root, run_id) as context:
        state = context.state()
        lines = _ended(context, state) if state.ending is not None else _open(context, state)
    return [safe for line in lines[:_LINES] for safe in safe_lines(line)]


def _open(context: FeatureContext, state: FeatureState) -> list[str]:
    question = open_question(context)
    if question is None:
        step = state.current_step or "its beginning"
        return [f"{context.run_id} stands at {STEPS.get(step, step)}"]
    options = " | ".join(option.id for option in question.options)
    return [
        f"WAITS FOR YOU: {question.question}",
        *question.context.splitlines()[: _LINES - 3],
        f"fairwitness answer {context.run_id} {options}",
    ]


def _ended(context: FeatureContext, state: FeatureState) -> list[str]:
    ending = state.ending
    assert ending is not None
    confidence = f", confidence {ending.confidence.value}" if ending.confidence else ""
    lines = [f"{_WORDS[ending.outcome]}{confidence}: {context.order.slug}"]
    if ending.outcome is FeatureRunOutcome.COMMITTED and state.commit is not None:
        lines.append(f"commit    {state.commit[:12]}  {_branches(context, state.commit)}")
    else:
        lines += [f"because   {part}" for part in ending.reason.split("; ")[:3]]
    if context.layout.evidence_bundle in state.artifacts:
        lines.append(f"bundle    {context.layout.evidence_bundle}")
    if state.rollback_command is not None:
        lines.append(f"undo      {state.rollback_command}")
    elif context.repository.ref(f"refs/heads/{context.order.target}") is not None:
        lines.append(f"branch    {context.order.target} holds what was proven")
    return [*lines, *_evidence(context, state)]


def _branches(context: FeatureContext, commit: str) -> str:
    asked = ("for-each-ref", "--format=%(refname:short)", "--points-at", commit, "refs/heads/")
    names = context.repository.git.run(*asked).decode(errors="replace").split()
    return f"on {', '.join(names)}" if names else ""


def _evidence(context: FeatureContext, state: FeatureState) -> list[str]:
    tasks = {name: task for name, task in state.tasks.items() if name != FIX_NODE}
    merged = sum(task.merged is not None for task in tasks.values())
    lines = [f"tasks     {merged} of {len(tasks)} merged"] if tasks else []
    rows = context.ledger.observations(context.run_id, DECISION)
    whole = facts_behind(rows[-1]).whole if rows else None
    if whole is not None:
        rows_of_all = task_rows(whole)
        passed = sum(each.passes for each in rows_of_all)
        lines.append(f"checks    {passed} of {len(rows_of_all)} passed on the whole change, run by Fair Witness")
    if state.reviews:
        last = max(review.round for review in state.reviews if review.scope is state.reviews[-1].scope)
        here = [each for each in state.reviews if each.scope is state.reviews[-1].scope and each.round == last]
        approving = sum(all(verdict.value == "approve" for verdict in each.verdicts.values()) for each in here)
        lines.append(f"review    {approving} of {len(here)} approve")
    calls = [dispatch for dispatch in state.dispatches.values() if dispatch.agent.value != HARNESS]
    tokens = sum(dispatch.tokens for dispatch in calls)
    lines.append(f"agents    {len(calls)} calls, {tokens:,} tokens")
    lines += [f"less      {each.kind.value}: {each.detail}" for each in state.degradations[:2]]
    return lines


_SHOWN = 3


def forge_end_lines(root: Path, run_id: str) -> list[str]:
    """Return the details of a forge run, printed after its status; none if the repository is not there."""
    try:
        Repository.open(root)
    except FairWitnessError:
        return []  # a ledger may be read without its repository
    waiting = pending_question(root, run_id)
    with open_forge_run(root, run_id) as context:
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


def _about_the_graph(context: ForgeRunRecord) -> list[str]:
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


def _about_agents(context: ForgeRunRecord) -> list[str]:
    ended = context.log.ledger.observations(context.log.run_id, ENDED)
    if not ended:
        return []
    roles = Counter(str(row.detail["role"]) for row in ended)
    usage = [row.detail["outcome"].get("usage") or {} for row in ended]
    tokens = sum((each.get("tokens_in") or 0) + (each.get("tokens_out") or 0) for each in usage)
    text = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    calls = "1 call" if len(ended) == 1 else f"{len(ended)} calls"
    return [f"agents    {calls}, {tokens:,} tokens: {text}"]


def _events(context: ForgeRunRecord, kind: str) -> list[Envelope]:
    return [envelope for envelope in context.log.ledger.events(context.log.run_id) if envelope.type == kind]
