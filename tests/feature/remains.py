"""What a feature run leaves behind: what of it is the same at every run, and what must not be there any more.

Nothing is left out of the comparison but what differs between two runs that nobody killed; each rule says why.
"""

import contextlib
import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dag.remains import _is_held, git
from fairwitness.app.views.ledger import verify_ledgers
from fairwitness.git.quarantine import PREFIX
from fairwitness.git.reachability import lost
from fairwitness.git.repository import Repository
from fairwitness.runs.dispatch.budget_account import ENDED, STARTED

TABLES = (
    *("anvil_checks", "pipeline_telemetry", "artifact_evaluations", "instruction_updates", "executions"),
    *("observations", "claims", "approvals", "check_sources", "events"),
)
"""Every table that rows are written to; the chain has one link per record and says nothing of its own."""

PASSING: Mapping[str, frozenset[str]] = {
    "numbers that a row or a record was given": frozenset(
        {
            *("id", "seq", "event_id", "check_id", "execution_id", "observation_id", "claim_id", "execution"),
            *("evidence", "lastEventId", "lastEventSeq"),
        }
    ),
    "moments": frozenset({"ts", "started_at", "completed_at", "observed_at", "claimed_at", "timestamp", "createdAt"}),
    "how long and how much": frozenset(
        {"duration_ms", "wall_ms", "cpu_ms", "setup_ms", "peak_memory", "peak_processes", "spending"}
    ),
    "digests over the random name of the folder in which the tools were built": frozenset(
        {"env_digest", "env_sha256", "policy_sha256"}
    ),
    "numbers that the disk gave to a file": frozenset({"dotgit"}),
    "digests over moments and numbers that are rows themselves": frozenset({"head", "result", "transcript"}),
    "what a killed try had used is counted, and how often it was begun": frozenset({"tokens", "tries", "rows"}),
}
_PASSING = frozenset[str]().union(*PASSING.values())
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_ID = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{12})\b")
_KEPT = re.compile(r"sha256:[0-9a-f]{64}")
_SAID: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/try-[a-z0-9_]+/"), "/try/"),  # the tools are built in a folder with a name drawn by lot
    (re.compile(r"(Ran \d+ tests? in) [0-9.]+s"), r"\1 time"),  # as unittest says it
)
_PAGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"^\| `step-[0-9a-z]+` \| [0-9.]+(?:m \d+)?s \|\n", re.MULTILINE),
        "",
    ),  # who was slow differs by itself
    (re.compile(r"\b(?:\d+m )?[0-9.]+s\b"), "time"),
    (re.compile(r"^`sha256:[0-9a-f]{64}`$", re.MULTILINE), "head"),
    (re.compile(r"\b(chain of|link) \d+\b"), r"\1 some"),  # a try that a kill made necessary is one more link
)
_CHECK = re.compile(r"^check:[0-9a-f]{64}(#.*)?")
_SETTLED: Mapping[str, tuple[str, ...]] = {
    "anvil_checks": (
        *("task_id", "phase", "check_name", "tool", "exit_code", "passed", "verdict", "severity", "round", "instance"),
    ),
    "executions": ("task_id", "key", "tool", "exit_code", "assessment"),
    "observations": ("task_id", "key", "kind", "subject", "holds"),
    "events": ("type", "task", "attempt"),
}
"""The columns that no order changes; of the other tables it is all of them."""
_TOLD = (
    *("step", "dispatch_id", "path", "kind", "reason", "outcome", "status", "gate", "gate_id", "subject", "open"),
    *("selected_option", "nodeId", "attemptId", "newStatus"),
)
"""The same of what events tell."""


class Content(NamedTuple):
    """What a run left that is the same at every run."""

    tree: Mapping[str, str]
    """The files of the commit."""
    decisions: Sequence[tuple[str, str]]
    """Kind and reason, in their order."""
    course: Sequence[str]
    """All events in their order."""
    rows: Counter[str]
    """Of all tables."""
    tries: Mapping[str, int]
    """By dispatch, how often it was begun."""
    quarantined: Sequence[str]
    """The trees that are kept though nobody wanted them."""
    files: Sequence[str]
    """Of the run's folder."""


def content_of(repository: Path, run_id: str) -> Content:
    """Reads all of it; every dispatch that was begun must have ended, once."""
    folder = repository / "docs"
    files = [_DAY.sub("day", str(path.relative_to(folder))) for path in folder.rglob("*") if path.is_file()]
    return read_content(repository, Reader(repository, run_id), tip="HEAD", files=files)


def read_content(
    repository: Path, reader: "Reader", *, tip: str, files: Iterable[str], left_out: Collection[int] = ()
) -> Content:
    """The same of any workflow: its result stands at `tip`, and beside it so many files; `left_out` numbers events."""
    rows = {name: rows_in(repository, f"SELECT * FROM {name}") for name in TABLES}
    rows["events"] = [row for row in rows["events"] if row["seq"] not in left_out]
    told = sorted(rows["events"], key=lambda row: int(row["seq"]))
    decided = [json.loads(row["data"]) for row in told if row["type"] == "decided"]
    return Content(
        tree=_files(repository, tip),
        decisions=[(data["kind"], reader.said(data["reason"])) for data in decided],
        course=[reader.plain(row) for row in told if not _is_another_try("events", row, told)],
        rows=Counter(
            f"{name} {reader.plain(row)}"
            for name, found in rows.items()
            for row in found
            if not _is_another_try(name, row, told)
        ),
        tries=tries_of(repository),
        quarantined=sorted(
            git(repository, "rev-parse", f"{commit}^{{tree}}")
            for commit in git(repository, "for-each-ref", "--format=%(objectname)", PREFIX).split()
        ),
        files=sorted(files),
    )


def _is_another_try(table: str, row: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> bool:
    """The one kind of row that a kill adds: a dispatch that is begun again says so, once in either table."""
    if table == "observations":
        return row["kind"] == STARTED and not row["key"].endswith(":try-1")
    if table != "events" or row["type"] != "dispatch_started":
        return False
    about = json.loads(row["data"])["dispatch_id"]
    begun = [each["seq"] for each in told if each["type"] == row["type"] and f'"{about}"' in each["data"]]
    return bool(row["seq"] != begun[0])


class Reader:
    """Reads rows of one run without what passes."""

    def __init__(self, repository: Path, run_id: str) -> None:
        self._run, self._outputs, self._root = run_id, repository / ".fairwitness" / "outputs", str(repository)
        listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
        commits = [line[:40] for line in listed.splitlines() if line.endswith(" commit")]
        self.names = dict.fromkeys((name for commit in commits for name in (commit, commit[:12])), "commit")
        """What stands for names of objects that hold moments."""
        self._known: dict[str, str] = {}

    def plain(self, row: Mapping[str, Any]) -> str:
        """A row as text."""
        return json.dumps(self._walk(dict(row), ""), sort_keys=True, ensure_ascii=False)

    def said(self, text: str) -> str:
        """A text without moments, commits (they hold moments) and hashes of documents that hold moments."""
        text = text.replace(self._run, "RUN").replace(self._root, "ROOT")
        text = _DAY.sub("day", _TIME.sub("time", text))
        for pattern, instead in _SAID:
            text = pattern.sub(instead, text)
        text = _ID.sub(lambda found: self.names.get(found[0], found[0]), text)
        return _KEPT.sub(lambda found: self._of_kept(found[0]), text)

    def _walk(self, value: Any, name: str) -> Any:
        if _passes(name, value):
            return "*"
        if isinstance(value, dict):
            return {key: self._walk(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._walk(inner, "") for inner in value]
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            with contextlib.suppress(ValueError):
                return self._walk(json.loads(value), "")
        return self.said(value)

    def _of_kept(self, digest: str) -> str:
        """What was kept under a hash counts, and not the hash: it may hold moments."""
        if digest not in self._known:
            self._known[digest] = digest
            file = self._outputs / digest.removeprefix("sha256:")
            if file.is_file():
                text = document(self.said(file.read_text(errors="replace")))
                self._known[digest] = f"kept {hashlib.sha256(text.encode()).hexdigest()}"
        return self._known[digest]


def _passes(name: str, value: Any) -> bool:
    """Whether a field has nothing to say but what differs by itself; some have the name of one that has."""
    if name == "rows":
        return not isinstance(value, list)  # a tally's are evidence, a head's are a number
    return name in _PASSING and (name != "head" or str(value).startswith("sha256:"))  # other heads are commits


def document(text: str) -> str:
    """A page without what is told there of time: durations, the slowest steps, and the head that is made of moments."""
    for pattern, instead in _PAGES:
        text = pattern.sub(instead, text)
    return text


def tries_of(repository: Path, *, ended: bool = False) -> dict[str, int]:
    """By dispatch, how often it was begun; of those alone that have ended, if asked."""
    if not (repository / ".fairwitness" / "evidence.db").exists():
        return {}
    rows = rows_in(repository, "SELECT kind, subject FROM observations")
    done = Counter(row["subject"] for row in rows if row["kind"] == ENDED)
    begun = Counter(row["subject"] for row in rows if row["kind"] == STARTED)
    assert set(done.values()) <= {1}
    return {name: number for name, number in begun.items() if not ended or name in done}


def assert_same(found: Content, reference: Content) -> None:
    """The same tree, decisions and evidence; only how often dispatches were begun may differ."""
    _assert_rows(found.rows, reference.rows)
    for ours, theirs in zip(found.course, reference.course, strict=True):
        assert ours == theirs
    _assert_kept(found, reference)


def assert_alike(found: Content, reference: Content) -> None:
    """The same as far as it does not depend on which of several that work at the same time was quicker."""
    _assert_rows(settled(found.rows), settled(reference.rows))
    _assert_kept(found, reference)


def _assert_kept(found: Content, reference: Content) -> None:
    assert found.tree == reference.tree
    assert found.decisions == reference.decisions
    assert found.tries.keys() == reference.tries.keys()
    assert found.quarantined == reference.quarantined
    assert found.files == reference.files


def _assert_rows(found: Counter[str], reference: Counter[str]) -> None:
    more, fewer = sorted((found - reference).elements()), sorted((reference - found).elements())
    assert (more, fewer) == ([], []), f"{len(more)} too many: {more[:2]}; {len(fewer)} missing: {fewer[:2]}"


def settled(rows: Counter[str]) -> Counter[str]:
    """Rows without what the order of two tasks decides.

    Who is merged first is proven upon the base, and who is second upon the first, or both are merged at once: so the
    rows of merges, and with them numbers and digests; that each was merged is told by itself. What was merged before an
    attempt began is in its tree, or is not yet: so the trees that were checked, and the names of checks made of them.
    """
    found: Counter[str] = Counter()
    for row, number in rows.items():
        table, _, text = row.partition(" ")
        fields: dict[str, Any] = json.loads(text)
        if table == "check_sources":
            continue  # one beside each check, and nothing in it tells of which: the checks themselves are compared
        if str(fields.get("task_id")).startswith("merge-") or str(fields.get("type")).startswith("merge."):
            continue
        if "key" in fields:
            fields["key"] = _CHECK.sub("check", fields["key"])
        about = fields.get("data") if table == "events" else None
        if table in _SETTLED:
            fields = {name: fields[name] for name in _SETTLED[table]}
        if about is not None:
            fields |= {name: about[name] for name in _TOLD if name in about}
        found[f"{table} {json.dumps(fields, sort_keys=True)}"] += number
    return found


def assert_clean(repository: Path, run_id: str) -> None:
    """Nothing is left of a run that ended but its branches, its ledger and what is kept on purpose; nothing is lost."""
    branches = git(repository, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split()
    assert [name.partition("/")[0] for name in branches] == [
        "fairwitness",
        "feature",
        "main",
    ]  # the first is the target
    assert_left(repository, run_id, head=branches[1])


def assert_left(repository: Path, run_id: str, *, head: str) -> None:
    """The same of any workflow, but for its branches; `head` is what is checked out."""
    state = repository / ".fairwitness"
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not _names(repository / ".git" / "worktrees")
    assert not list((repository / ".git").glob("fairwitness*"))
    assert git(repository, "symbolic-ref", "--short", "HEAD") == head
    assert git(repository, "status", "--porcelain") == ""
    assert not _names(state / "worktrees" / "pool") | _names(state / "worktrees" / "aside")
    assert not _names(state / "work")
    assert not [path for path in repository.rglob("*") if _is_held(path)]
    assert len(list((state / "env").glob("*/try-*"))) <= 1
    engine = state / "engine.db"
    assert {row["status"] for row in rows_in(engine, "SELECT status FROM workflow_status")} == {"SUCCESS"}
    assert not rows_in(engine, "SELECT 1 FROM engine_body WHERE executor NOT IN (SELECT executor FROM engine_lease)")
    leases = [row["pid"] for row in rows_in(engine, "SELECT pid FROM engine_lease")]
    assert not [pid for pid in leases if Path(f"/proc/{pid}").exists()]  # that of a dead one keeps nobody out
    assert {(report.findings, report.rebuilt) for report in verify_ledgers(repository)} == {((), False)}
    told = " ".join(row["data"] for row in rows_in(repository, "SELECT data FROM events"))
    named = {name for name in _ID.findall(told) if len(name) == 40}
    commits = sorted(name for name in named if git(repository, "cat-file", "-t", name) == "commit")
    assert commits
    assert lost(Repository.open(repository), run_id, commits) == ()


def rows_in(place: Path, query: str) -> list[dict[str, Any]]:
    """Rows of a database, or of a repository's ledger."""
    file = place / ".fairwitness" / "evidence.db" if place.is_dir() else place
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*")}


def _files(repository: Path, tip: str) -> dict[str, str]:
    listed = git(repository, "ls-tree", "-r", tip)
    return {line.split("\t")[1]: line.split()[2] for line in listed.splitlines()}
