"""The whole change of a run: proven from its base to what would be committed, bundled with its evidence, committed.

Each part can be begun again after a crash: it finds what it did, and does the rest.
"""

import threading

from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.feature.events import Committed
from fairwitness.contracts.verify.report import Side, Subject
from fairwitness.errors import UsageError
from fairwitness.git.ledger_heads import KeptHead, keep_head
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.dispatch.account import ENDED
from fairwitness.runs.feature.bundle import assemble
from fairwitness.runs.feature.bundle_page import bundle_page
from fairwitness.runs.feature.committing import commit, subject_of
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import facts_of
from fairwitness.runs.feature.facts_tasks import WHOLE
from fairwitness.runs.feature.rolling_back import commands_of
from fairwitness.runs.feature.tasks import changed_files, plan_of
from fairwitness.runs.shared.ledger_heads import record_head
from fairwitness.verify.subject import VerifyDeps, prove

_WRITTEN = "artifact_written"


def prove_whole(context: FeatureContext, parts: VerifyDeps, tip: str, stop: threading.Event) -> None:
    """Runs the checks on everything, from what the run began with to what would be committed."""
    life = context.state().resumed
    sides = [
        Side(ref=commit[:12], commit=commit, tree=context.repository.tree_of(commit))
        for commit in (context.order.base_commit, tip)
    ]
    if sides[0].tree == sides[1].tree:
        return
    prove(parts, context.run_id, Subject(task_id=WHOLE, round=life + 1), base=sides[0], head=sides[1], stop=stop)
    key = f"{WHOLE}:{life}"
    if context.ledger.observation(context.run_id, key) is None:
        files = changed_files(context.shadow.diff(sides[0].tree, sides[1].tree))
        detail: dict[str, object] = {
            "round": life + 1,
            "tree": sides[1].tree,
            "commit": tip,
            "files": [file.plain() for file in files],
        }
        context.write(lambda record: record.observation(context.seen(key, WHOLE, WHOLE, detail, tree=sides[1].tree)))
        killpoint("feature.whole")


def write_bundle(context: FeatureContext) -> None:
    """The evidence bundle, over a head of the ledger that git keeps."""
    begun, headed, written = (_last(context, kind) for kind in ("dispatch_started", "head_recorded", _WRITTEN))
    if written > begun:
        return  # one that was killed came as far as this; written again it would name another head
    top = context.repository.top or context.repository.common_dir
    if headed < begun:
        record_head(context.ledger, top, context.run_id, Workflow.FEATURE, timestamp=context.now())
    else:  # it was noted, and whether it was kept nobody knows
        head = context.ledger.head(context.run_id)
        keep_head(top, context.run_id, KeptHead(head.links, head.hash))
    killpoint("feature.headed")
    bundle = assemble(context.ledger, context.run_id, facts_of(context), context.order.policy)
    context.put(context.layout.evidence_bundle, bundle_page(bundle))


def _last(context: FeatureContext, kind: str) -> int:
    """The number of the last event of a kind; the beginning of the call at hand is the last of its kind."""
    event = context.ledger.last_event(context.run_id, kind)
    return 0 if event is None else event.seq


def commit_whole(context: FeatureContext, tip: str) -> None:
    """Commits what was proven, and nothing else, with the bundle that tells of it."""
    proven = context.ledger.observations(context.run_id, WHOLE)
    if not proven or proven[-1].detail["commit"] != tip:
        raise UsageError("the target is not what was proven", next_step=f"fairwitness resume {context.run_id}")
    bundle = context.state().artifacts.get(context.layout.evidence_bundle)
    if bundle is None:
        raise UsageError("there is no evidence bundle to be named", next_step=f"fairwitness resume {context.run_id}")
    base, tree = (context.repository.tree_of(commit) for commit in (context.order.base_commit, tip))
    files = tuple(change.path for change in context.shadow.diff(base, tree))
    landed = commit(
        context,
        tip,
        subject=subject_of(context.order.request.strip().splitlines()[0], files),
        body=_body(context),
        bundle_sha256=bundle.removeprefix("sha256:"),
        assisted_by=_assisted(context),
    )
    if context.state().commit is None:
        context.tell(Committed(commit=landed.commit, rollback_command=commands_of(context)))
        killpoint("feature.committed")


def _body(context: FeatureContext) -> str:
    """What was done, task by task, as it was merged."""
    plan = plan_of(context)
    merged = context.state().tasks
    tasks = () if plan is None else plan.agent_output.payload.tasks
    return "\n".join(f"- {task.title}" for task in tasks if task.id in merged and merged[task.id].merged)


def _assisted(context: FeatureContext) -> tuple[str, ...]:
    """Every model that answered, as far as anybody said."""
    rows = context.ledger.observations(context.run_id, ENDED)
    models = (row.detail["outcome"].get("model") for row in rows)
    return tuple(dict.fromkeys(str(model) for model in models if model))
