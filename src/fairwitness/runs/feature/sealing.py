"""The whole change of a run: proven from its base to what would be committed, bundled with its evidence, committed.

Each part can be begun again after a crash: it finds what it did, and does the rest.
"""

import threading

from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.feature.events import Committed
from fairwitness.contracts.verify.report import Side, Subject
from fairwitness.errors import UsageError
from fairwitness.git.heads import KeptHead, keep_head
from fairwitness.kit.killpoints import reach
from fairwitness.runs.dispatch.account import ENDED
from fairwitness.runs.feature.bundle import assemble
from fairwitness.runs.feature.bundle_page import bundle_page
from fairwitness.runs.feature.committing import commit, subject_of
from fairwitness.runs.feature.facts import facts_of
from fairwitness.runs.feature.facts_tasks import WHOLE
from fairwitness.runs.feature.rolling_back import commands_of
from fairwitness.runs.feature.room import Room
from fairwitness.runs.feature.tasks import changed_files, plan_of
from fairwitness.runs.shared.ledger_heads import record_head
from fairwitness.verify.subject import Parts, prove

_WRITTEN = "artifact_written"


def prove_whole(room: Room, parts: Parts, tip: str, stop: threading.Event) -> None:
    """Runs the checks on everything, from what the run began with to what would be committed."""
    life = room.state().resumed
    sides = [
        Side(ref=commit[:12], commit=commit, tree=room.repository.tree_of(commit))
        for commit in (room.order.base_commit, tip)
    ]
    if sides[0].tree == sides[1].tree:
        return
    prove(parts, room.run_id, Subject(task_id=WHOLE, round=life + 1), base=sides[0], head=sides[1], stop=stop)
    key = f"{WHOLE}:{life}"
    if room.ledger.observation(room.run_id, key) is None:
        files = changed_files(room.shadow.diff(sides[0].tree, sides[1].tree))
        detail: dict[str, object] = {
            "round": life + 1,
            "tree": sides[1].tree,
            "commit": tip,
            "files": [file.plain() for file in files],
        }
        room.write(lambda record: record.observation(room.seen(key, WHOLE, WHOLE, detail, tree=sides[1].tree)))
        reach("feature.whole")


def write_bundle(room: Room) -> None:
    """The evidence bundle, over a head of the ledger that git keeps."""
    begun, headed, written = (_last(room, kind) for kind in ("dispatch_started", "head_recorded", _WRITTEN))
    if written > begun:
        return  # one that was killed came as far as this; written again it would name another head
    top = room.repository.top or room.repository.common_dir
    if headed < begun:
        record_head(room.ledger, top, room.run_id, Workflow.FEATURE, timestamp=room.now())
    else:  # it was noted, and whether it was kept nobody knows
        head = room.ledger.head(room.run_id)
        keep_head(top, room.run_id, KeptHead(head.links, head.hash))
    reach("feature.headed")
    bundle = assemble(room.ledger, room.run_id, facts_of(room), room.order.policy)
    room.put(room.layout.evidence_bundle, bundle_page(bundle))


def _last(room: Room, kind: str) -> int:
    """The number of the last event of a kind; the beginning of the call at hand is the last of its kind."""
    event = room.ledger.last_event(room.run_id, kind)
    return 0 if event is None else event.seq


def commit_whole(room: Room, tip: str) -> None:
    """Commits what was proven, and nothing else, with the bundle that tells of it."""
    proven = room.ledger.observations(room.run_id, WHOLE)
    if not proven or proven[-1].detail["commit"] != tip:
        raise UsageError("the target is not what was proven", next_step=f"fairwitness resume {room.run_id}")
    bundle = room.state().artifacts.get(room.layout.evidence_bundle)
    if bundle is None:
        raise UsageError("there is no evidence bundle to be named", next_step=f"fairwitness resume {room.run_id}")
    base, tree = (room.repository.tree_of(commit) for commit in (room.order.base_commit, tip))
    files = tuple(change.path for change in room.shadow.diff(base, tree))
    landed = commit(
        room,
        tip,
        subject=subject_of(room.order.request.strip().splitlines()[0], files),
        body=_body(room),
        bundle_sha256=bundle.removeprefix("sha256:"),
        assisted_by=_assisted(room),
    )
    if room.state().commit is None:
        room.tell(Committed(commit=landed.commit, rollback_command=commands_of(room)))
        reach("feature.committed")


def _body(room: Room) -> str:
    """What was done, task by task, as it was merged."""
    plan = plan_of(room)
    merged = room.state().tasks
    tasks = () if plan is None else plan.agent_output.payload.tasks
    return "\n".join(f"- {task.title}" for task in tasks if task.id in merged and merged[task.id].merged)


def _assisted(room: Room) -> tuple[str, ...]:
    """Every model that answered, as far as anybody said."""
    rows = room.ledger.observations(room.run_id, ENDED)
    models = (row.detail["outcome"].get("model") for row in rows)
    return tuple(dict.fromkeys(str(model) for model in models if model))
