"""Walkthroughs: what the agent of an attempt says about its work, compared with what the harness saw.

A walkthrough is a claim. It is recorded once, with the files that really changed, and has a file of its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.evidence import Observation, Phase
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.documents import Walkthrough, WalkthroughStatus
from fairwitness.contracts.forge.events import LowConfidence, PotentialConflict, WalkthroughDisputed, WalkthroughWritten
from fairwitness.contracts.forge.returns import RefineryReturn, WorkerReturn
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart
from fairwitness.contracts.verify.results import Evidence
from fairwitness.errors import BadDocument, RowRefused
from fairwitness.git.call import failed
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible_lines
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.claims import SeenAttempt, differences, is_doubtful, trace_of
from fairwitness.rules.evidence_worth import latest, proof_of
from fairwitness.runs.dispatch.audit import is_cache
from fairwitness.runs.forge.log import ForgeLog, document_of
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

WALKTHROUGH, DISPUTE = "walkthrough", "dispute"


class KeptWalkthrough(NamedTuple):
    """A recorded walkthrough with what is known about it."""

    attempt: int
    said: Walkthrough
    changed: tuple[str, ...]
    """The files that really changed."""
    disputed: tuple[str, ...]
    """Where it differs from what the harness saw."""

    @property
    def text(self) -> str:
        """The document, and what is disputed, as other agents see it."""
        document = readable(self.said)
        if not self.disputed:
            return document
        listed = "\n".join(f"- {each}" for each in self.disputed)
        return f"{document.rstrip()}\n\nThe harness saw something else:\n{listed}\n"


def keep_walkthrough(
    log: ForgeLog,
    store: Store,
    layout: ForgeLayout,
    order: AttemptOrder,
    walkthrough: Walkthrough,
    changed: Iterable[str],
    fixes: Iterable[str] = (),
) -> None:
    """Write the file of an attempt and record it, once; resolving a conflict leaves no walkthrough.

    `fixes` are the files that a refinery says it mended beside its conflicts.
    """
    if order.conflict is not None:
        return
    path = layout.walkthrough(order.node, order.attempt)
    store.create(path, readable(walkthrough).encode())
    killpoint("forge.walkthrough.stored")
    files = sorted(set(changed))
    detail = {
        "attempt": order.attempt,
        "document": walkthrough.plain(),
        "changed": files,
        "path": path,
        "fixes": [*fixes],
    }
    events = _walkthrough_events(log, order, walkthrough, files, path)
    record_once(log, _key(order.node, order.attempt), WALKTHROUGH, order.node, detail, events)
    killpoint("forge.walkthrough")


def _walkthrough_events(
    log: ForgeLog, order: AttemptOrder, said: Walkthrough, changed: Collection[str], path: str
) -> Iterator[EventData]:
    yield WalkthroughWritten(
        nodeId=order.node, attemptId=order.attempt, status=said.status, confidence=said.confidence, path=path
    )
    if is_doubtful(said):
        yield LowConfidence(nodeId=order.node, confidence=said.confidence)
    for name, status in log.run().nodes.items():
        if name == order.node or status.status is not NodeState.RUNNING:
            continue
        other = _kept(log, name, status.currentAttempt)
        shared = sorted(set(changed) & set(other.changed)) if other is not None else []
        if shared:
            yield PotentialConflict(nodeId=order.node, otherNodeId=name, files=tuple(shared))


def readable(walkthrough: Walkthrough) -> str:
    """Return the document as a file; characters that no file may contain are spelled out."""
    try:
        return document_of(walkthrough.plain())
    except BadDocument:
        body = visible_lines(walkthrough.body.replace("\r\n", "\n"))
        return document_of(walkthrough.model_copy(update={"body": body}).plain())


class SeenAttempts:
    """What the harness sees of attempts, to be compared with what their agents say."""

    def __init__(self, repository: Repository, shadow: Shadow) -> None:
        self._repository, self._shadow = repository, shadow

    def tree_in(self, folder: Path, prepared: AttemptStart) -> str:
        """Return the tree of the worktree of an attempt."""
        return self._shadow.take(folder, self._repository.tree_of(prepared.start)).tree

    def seen(
        self,
        said: Walkthrough,
        prepared: AttemptStart,
        tree: str,
        *,
        fixes: Collection[str] = (),
        red: Collection[str] = (),
    ) -> SeenAttempt:
        """Return what is to be compared with a walkthrough.

        `fixes` are the files that a refinery says it mended, `red` the checks that failed on the tree.
        """
        changes = self._shadow.diff(self._repository.tree_of(prepared.start), tree)
        traces = {trace for test in said.tests or () if (trace := trace_of(test.name)) is not None}
        return SeenAttempt(
            changed=[each.path for each in changes if not is_cache(each.path)],
            settled=(*prepared.conflicts, *fixes),
            red=red,
            absent=frozenset(self._absent(tree, traces)),
        )

    def _absent(self, tree: str, words: Collection[str]) -> Iterator[str]:
        """Yield the words that no file has in it, and that are the name of no file or folder."""
        paths = self._shadow.entries(tree) if words else ()
        names = {part.partition(".")[0] for path in paths for part in path.split("/")}
        for word in words:
            if word not in names:
                answer = self._shadow.git.ask("grep", "-q", "-w", "-F", "-e", word, tree)
                if answer.code > 1:
                    raise failed("grep", self._shadow.git.path, answer)
                if answer.code == 1:
                    yield word

    def objections(self, prepared: AttemptStart, tree: str, answer: WorkerReturn | RefineryReturn) -> tuple[str, ...]:
        """Return what the harness contradicts in the walkthrough of an answer; the agent is then asked again."""
        said = answer.walkthrough
        fixes = [each.path for each in answer.fixes] if isinstance(answer, RefineryReturn) else ()
        if said.status is not WalkthroughStatus.COMPLETED:
            return ()  # it says itself that it is not done
        return differences(said, self.seen(said, prepared, tree, fixes=fixes))


def dispute(log: ForgeLog, order: AttemptOrder, seen: SeenAttempt) -> tuple[str, ...]:
    """Record once where a walkthrough differs from what was seen, and return it."""
    said = None if order.conflict is not None else walkthrough_of(log, order.node, order.attempt)
    found = () if said is None else differences(said, seen)
    if found:
        key = f"{DISPUTE}:{order.node}:{order.attempt}"
        event = WalkthroughDisputed(nodeId=order.node, attemptId=order.attempt, differences=found)
        record_once(log, key, DISPUTE, order.node, {"attempt": order.attempt, "found": list(found)}, (event,))
        killpoint("forge.disputed")
    return found


def red_checks(ledger: Ledger, run_id: str, task: str, round_: int) -> frozenset[str]:
    """Return the names of the project's checks that failed on the tree of a round; criteria are judged elsewhere."""
    rows = latest(ledger.tally(run_id, task, Phase.AFTER, round_).rows)
    names = {row.check_name for row in rows if proof_of(row) is Evidence.FAILED}
    return frozenset(name for name in names if not name.startswith("ac-"))


def walkthrough_of(log: ForgeLog, node: str, attempt: int) -> Walkthrough | None:
    """Return the walkthrough of an attempt, or None."""
    kept = _kept(log, node, attempt)
    return None if kept is None else kept.said


def fixes_of(log: ForgeLog, node: str, attempt: int) -> tuple[str, ...]:
    """Return the files that a refinery says it mended."""
    row = log.ledger.observation(log.run_id, _key(node, attempt))
    return () if row is None else tuple(map(str, row.detail.get("fixes", ())))


def last_walkthrough(log: ForgeLog, node: str) -> KeptWalkthrough | None:
    """Return the last walkthrough of a node, or None."""
    rows = [row for row in log.ledger.observations(log.run_id, WALKTHROUGH) if row.subject == node]
    return _read(log, max(rows, key=lambda row: int(row.detail["attempt"]))) if rows else None


def _kept(log: ForgeLog, node: str, attempt: int) -> KeptWalkthrough | None:
    row = log.ledger.observation(log.run_id, _key(node, attempt))
    return None if row is None else _read(log, row)


def _read(log: ForgeLog, row: Observation) -> KeptWalkthrough:
    attempt = int(row.detail["attempt"])
    doubted = log.ledger.observation(log.run_id, f"{DISPUTE}:{row.subject}:{attempt}")
    return KeptWalkthrough(
        attempt,
        recorded(Walkthrough, row, "document"),
        tuple(row.detail["changed"]),
        () if doubted is None else tuple(doubted.detail["found"]),
    )


def _key(node: str, attempt: int) -> str:
    return f"{WALKTHROUGH}:{node}:{attempt}"


def record_once(
    log: ForgeLog,
    key: str,
    kind: str,
    subject: str,
    detail: Mapping[str, object],
    events: Iterable[EventData],
) -> bool:
    """Write an observation and its events in one record; return False if the key exists."""
    if log.ledger.observation(log.run_id, key) is not None:
        return False
    written, now = tuple(events), spell(log.clock())

    def write(record: Record) -> None:
        record.observation(log.observation(key, kind, subject, detail, now))
        log.put_events(record, written, now)

    try:
        log.ledger.record(log.run_id, write)
    except RowRefused:
        if log.ledger.observation(log.run_id, key) is None:
            raise
        return False  # another process was first
    return True
