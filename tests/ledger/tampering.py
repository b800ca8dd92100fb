"""Every kind of tampering with a ledger that was thought of, done as a forger with the files in his hands would do it.

A forger drops the guards of the database and recomputes what he can: the chain of a run, the anchors, the refs, the
exported copy, and in the end even the lines in the user's state directory. Each entry of `TABLE` says what
`fairwitness ledger verify` answers; `docs/ledger.md` shows the same table to people.
"""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.git.ledger_heads import PREFIX, KeptHead, keep_head
from fairwitness.kit.own_folder import claim
from fairwitness.kit.user_state import line_hash
from fairwitness.ledger.anchors import COLUMNS, Anchor, anchor_hash
from fairwitness.ledger.chain import START, ChainMember, link_hash, read_members, row_digest, spell_members
from fairwitness.ledger.export import exported
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.tables import CHAINED
from fairwitness.runs.dispatch.transcript import keep
from fairwitness.store.artifacts import Store
from ledger.samples import execution, observation

TIME = "2026-02-26T14:30:00Z"
EXPORT = "docs/feature/login/verification-ledger.db"
BUNDLE = "docs/feature/login/evidence-bundle.md"


@dataclass(frozen=True, slots=True)
class Ground:
    """A repository with a ledger of two runs, and what its forger knows about it."""

    top: Path
    state: Path
    """The user's state directory of this machine."""
    kind: str
    """`run` for a ledger of feature runs, `verify` for one of verifications."""

    @property
    def database(self) -> Path:
        return self.top / ".fairwitness" / "evidence.db"

    @property
    def outputs(self) -> Path:
        return self.top / ".fairwitness" / "outputs"

    @property
    def lines(self) -> Path:
        (file,) = (self.state / "fairwitness" / "heads").iterdir()
        return file

    @property
    def runs(self) -> tuple[str, str]:
        """The earlier run and the later one."""
        return RUNS[self.kind]

    def open(self) -> Ledger:
        """Open the ledger as the program does."""

        def keep_ref(anchor: Anchor) -> None:
            kept = KeptHead(anchor.links, anchor.head, anchor.number, anchor.hash, anchor.ledger)
            keep_head(self.top, anchor.run_id, kept)

        return Ledger.open_file(self.database, keep_ref=keep_ref)

    @contextmanager
    def forged(self, file: Path | None = None) -> Iterator[sqlite3.Connection]:
        """Change the database, without its guards."""
        with closing(sqlite3.connect(file or self.database, isolation_level=None)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            yield connection
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


RUNS = {
    "run": ("2026-02-26T14:30:00Z", "2026-02-27T09:00:00Z"),
    "verify": ("verify-20260226T143000-000000", "verify-20260227T090000-000000"),
}


def git(top: Path, *arguments: str) -> bytes:
    """What git says, called as a person calls it."""
    return subprocess.run(["git", *arguments], cwd=top, check=True, capture_output=True).stdout


def lay_ground(top: Path, state: Path, kind: str) -> Ground:
    """Make a repository with two runs, and beside it a copy of the database from before the second.

    The environment must name `state` as XDG_STATE_HOME.
    """
    top.mkdir(parents=True)
    git(top, "init", "-q")
    claim(top / ".fairwitness")
    ground = Ground(top, state, kind)
    for run_id in ground.runs:
        if ground.database.exists():
            shutil.copyfile(ground.database, top.parent / "older.db")
        with closing(ground.open()) as ledger:
            add_run(ground, ledger, run_id)
    return ground


def add_run(ground: Ground, ledger: Ledger, run_id: str) -> None:
    """Add an honest run: checks with stored outputs; a feature run also has events, a bundle and an exported copy."""
    store = Store(ground.top / ".fairwitness")
    for number in (1, 2, 3):
        ledger.record(run_id, lambda record, number=number: _check(record, store, run_id, number))  # type: ignore[misc]
    if ground.kind == "verify":
        ledger.anchor(run_id)
        return
    bundle = f"# Evidence of {run_id}\n\nAll checks hold.\n".encode()
    digest = keep(store, bundle)
    Store(ground.top).put(BUNDLE, bundle)
    for type_, data in (
        ("step_started", {"step": "step-1"}),
        ("artifact_written", {"path": BUNDLE, "sha256": digest}),
        ("run_finished", {"outcome": "committed"}),
    ):
        ledger.record(run_id, lambda record, type_=type_, data=data: _event(record, type_, data))  # type: ignore[misc]
    Store(ground.top).put(EXPORT, exported(ledger.database, run_id, TIME))


def go_on(ground: Ground, ledger: Ledger, run_id: str) -> None:
    """Continue a run after a crash, with one more check."""
    store = Store(ground.top / ".fairwitness")
    number = 10 + ledger.head(run_id).links
    ledger.record(run_id, lambda record: _check(record, store, run_id, number))
    ledger.anchor(run_id)


def _event(record: Record, type_: str, data: dict[str, str]) -> None:
    record.event(Workflow.FEATURE, type_, data, timestamp=TIME)


def _check(record: Record, store: Store, run_id: str, number: int) -> None:
    said = keep(store, f"output {number} of {run_id}\n".encode())
    result = keep(store, f'{{"result": "{number} of {run_id}"}}'.encode())
    fails = number == 2
    ran = execution(f"k{number}", run_id=run_id, assessment="fail" if fails else "pass", exit_code=int(fails))
    record.executed(ran, phase=Phase.AFTER, check_name="tests", round_=1)
    detail = {"purpose": "after", "kept": {"stdout": said, "stderr": said}, "result": result}
    record.observation(observation(f"k{number}", run_id=run_id, kind="run", detail=detail))


# what a forger recomputes


def rechain(connection: sqlite3.Connection, run_id: str) -> None:
    """Give every link of a run the digests of its rows as they are now, and the hashes that follow."""
    previous = START
    links = connection.execute("SELECT seq, members FROM chain WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
    for seq, members in links:
        spelled = spell_members([each for one in read_members(members) for each in _now(connection, run_id, one)])
        found = link_hash(run_id, seq, spelled, previous)
        connection.execute(
            "UPDATE chain SET members = ?, prev_hash = ?, hash = ? WHERE run_id = ? AND seq = ?",
            (spelled, previous, found, run_id, seq),
        )
        previous = found


def _now(connection: sqlite3.Connection, run_id: str, member: ChainMember) -> Iterator[ChainMember]:
    table = CHAINED[member.table]
    sql = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE run_id = ? AND {table.key} = ?"
    for row in connection.execute(sql, (run_id, member.row)):
        yield member._replace(digest=row_digest(table.name, row))


def reanchor(connection: sqlite3.Connection) -> None:
    """Make the anchors agree with the chains as they are now; anchors of runs that are gone go, too."""
    rows = [Anchor(*row) for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM anchors ORDER BY number")]
    connection.execute("DELETE FROM anchors")
    previous, number = START, 0
    for row in rows:
        held = dict(connection.execute("SELECT seq, hash FROM chain WHERE run_id = ?", (row.run_id,)).fetchall())
        if not held:
            continue
        links = min(row.links, max(held))
        number += 1
        anchor = row._replace(number=number, links=links, head=held.get(links, START), previous=previous)
        anchor = anchor._replace(hash=anchor_hash(anchor))
        connection.execute(f"INSERT INTO anchors VALUES ({', '.join('?' * len(COLUMNS))})", anchor)
        previous = anchor.hash


def anchors_of(ground: Ground) -> list[Anchor]:
    """The anchors in the database."""
    with closing(sqlite3.connect(ground.database)) as connection:
        return [Anchor(*row) for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM anchors ORDER BY number")]


def rewrite_refs(ground: Ground) -> None:
    """Make the refs agree with the anchors as they are now."""
    for ref in git(ground.top, "for-each-ref", "--format=%(refname)", PREFIX).decode().split():
        git(ground.top, "update-ref", "-d", ref)
    for anchor in anchors_of(ground):
        if anchor.links:
            kept = KeptHead(anchor.links, anchor.head, anchor.number, anchor.hash, anchor.ledger)
            keep_head(ground.top, anchor.run_id, kept)


def rewrite_export(ground: Ground) -> None:
    """Make the exported copy agree with the database."""
    if ground.kind == "run":
        with closing(Ledger.read_only(ground.database)) as ledger:
            Store(ground.top).put(EXPORT, exported(ledger.database, ground.runs[1], TIME))


def rewrite_lines(ground: Ground) -> None:
    """Make the lines of this machine agree with the anchors."""
    file, before, begun, lines = ground.lines, "", set[str](), []
    for anchor in anchors_of(ground):
        reason = "reached" if anchor.run_id in begun else "begun"
        begun.add(anchor.run_id)
        record = {
            "reason": reason,
            "number": anchor.number,
            "hash": anchor.hash,
            "at": anchor.at,
            "runs": {anchor.run_id: [anchor.links, anchor.head]},
            "before": before,
        }
        lines.append(json.dumps(record, separators=(",", ":")).encode())
        before = line_hash(lines[-1])
    file.write_bytes(b"".join(line + b"\n" for line in lines))


def _without_witness(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE anchors SET witness = ''")


# what a forger does


def edit_row(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE executions SET exit_code = 0 WHERE id = 2")


def edit_assessment(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE executions SET assessment = 'pass', exit_code = 0 WHERE id = 2")
        connection.execute("UPDATE anvil_checks SET passed = 1, exit_code = 0 WHERE id = 2")


def delete_row(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("DELETE FROM check_sources WHERE check_id = 2")
        connection.execute("DELETE FROM anvil_checks WHERE id = 2")


def insert_row(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute(
            "INSERT INTO anvil_checks (run_id, task_id, phase, check_name, passed, ts) "
            f"VALUES ('{ground.runs[0]}', 'task-03', 'after', 'lint', 1, 'now')"
        )


def swap_rows(ground: Ground) -> None:
    with ground.forged() as connection:
        for old, new in (("k1", "x"), ("k2", "k1"), ("x", "k2")):
            connection.execute(f"UPDATE executions SET key = '{new}' WHERE key = '{old}' AND id < 4")


def edit_link(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE chain SET members = '[]' WHERE seq = 2")


def flip_and_rechain(ground: Ground) -> None:
    edit_assessment(ground)
    with ground.forged() as connection:
        rechain(connection, ground.runs[0])


def flip_and_reanchor(ground: Ground) -> None:
    flip_and_rechain(ground)
    with ground.forged() as connection:
        reanchor(connection)


def flip_everywhere(ground: Ground) -> None:
    flip_and_reanchor(ground)
    rewrite_refs(ground)
    rewrite_export(ground)


def flip_last_row(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE observations SET holds = 0 WHERE id = 6")
        rechain(connection, ground.runs[1])
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)


def truncate(ground: Ground) -> None:
    with ground.forged() as connection:
        _truncate(connection, ground.runs[1])


def _truncate(connection: sqlite3.Connection, run_id: str) -> None:
    ((last, members),) = connection.execute(
        "SELECT seq, members FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run_id,)
    ).fetchall()
    for member in read_members(members):
        key = CHAINED[member.table].key
        connection.execute(f"DELETE FROM {member.table} WHERE run_id = ? AND {key} = ?", (run_id, member.row))
    connection.execute("DELETE FROM chain WHERE run_id = ? AND seq = ?", (run_id, last))
    connection.execute("DELETE FROM run_summaries")


def truncate_everywhere(ground: Ground) -> None:
    with ground.forged() as connection:
        _truncate(connection, ground.runs[1])
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)


def _delete_run(connection: sqlite3.Connection, run_id: str) -> None:
    for table in (*CHAINED, "chain", "run_summaries"):
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


def delete_run(ground: Ground) -> None:
    with ground.forged() as connection:
        _delete_run(connection, ground.runs[0])


def delete_run_everywhere(ground: Ground) -> None:
    with ground.forged() as connection:
        _delete_run(connection, ground.runs[0])
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)


def delete_last_run_everywhere(ground: Ground) -> None:
    with ground.forged() as connection:
        _delete_run(connection, ground.runs[1])
        reanchor(connection)
    rewrite_refs(ground)
    (ground.top / EXPORT).unlink(missing_ok=True)


def rename_run(ground: Ground) -> None:
    with ground.forged() as connection:
        for table in (*CHAINED, "chain", "run_summaries"):
            connection.execute(f"UPDATE {table} SET run_id = 'renamed' WHERE run_id = ?", (ground.runs[0],))
        rechain(connection, "renamed")
        connection.execute("UPDATE anchors SET run_id = 'renamed' WHERE run_id = ?", (ground.runs[0],))
        reanchor(connection)
    rewrite_refs(ground)


def _forge_run(ground: Ground) -> None:
    """A run that the program itself writes, but on another machine (in a state directory of its own)."""
    with closing(Ledger.open_file(ground.database, is_anchored=False)) as ledger:
        add = Ground(ground.top, ground.state, "verify")
        store = Store(add.top / ".fairwitness")
        ledger.record(FORGED, lambda record: _check(record, store, FORGED, 1))


FORGED = "verify-20260228T000000-000000"


def add_run_only(ground: Ground) -> None:
    _forge_run(ground)


def _anchor_forged(ground: Ground, connection: sqlite3.Connection) -> None:
    last = anchors_of(ground)[-1]
    ((links, head),) = connection.execute("SELECT MAX(seq), hash FROM chain WHERE run_id = ?", (FORGED,)).fetchall()
    for number, (count, hash_) in enumerate(((0, START), (links, head)), start=last.number + 1):
        anchor = last._replace(number=number, run_id=FORGED, links=count, head=hash_, previous=last.hash)
        last = anchor._replace(hash=anchor_hash(anchor))
        connection.execute(f"INSERT INTO anchors VALUES ({', '.join('?' * len(COLUMNS))})", last)


def add_run_with_anchors(ground: Ground) -> None:
    _forge_run(ground)
    with ground.forged() as connection:
        _anchor_forged(ground, connection)


def add_run_everywhere(ground: Ground) -> None:
    add_run_with_anchors(ground)
    rewrite_refs(ground)


def add_run_and_go_on(ground: Ground) -> None:
    add_run_everywhere(ground)
    with closing(ground.open()) as ledger:
        go_on(ground, ledger, FORGED)


def _set_back(ground: Ground) -> None:
    """Put back the database as it was before the last run."""
    older = ground.top.parent / "older.db"
    for suffix in ("-wal", "-shm"):
        ground.database.with_name(ground.database.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(older, ground.database)


def roll_back(ground: Ground) -> None:
    _set_back(ground)


def roll_back_with_refs(ground: Ground) -> None:
    _set_back(ground)
    rewrite_refs(ground)
    (ground.top / EXPORT).unlink(missing_ok=True)


def roll_back_and_go_on(ground: Ground) -> None:
    _set_back(ground)
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, ground.runs[1].replace("27T", "28T"))
    rewrite_refs(ground)


def exchange_database(ground: Ground) -> None:
    for name in ("evidence.db", "evidence.db-wal", "evidence.db-shm"):
        (ground.database.parent / name).unlink(missing_ok=True)
    with closing(Ledger.open_file(ground.database, is_anchored=False)) as ledger:
        add = Store(ground.top / ".fairwitness")
        ledger.record(ground.runs[0], lambda record: _check(record, add, ground.runs[0], 1))


def delete_database(ground: Ground) -> None:
    for name in ("evidence.db", "evidence.db-wal", "evidence.db-shm"):
        (ground.database.parent / name).unlink(missing_ok=True)


def downgrade(ground: Ground) -> None:
    edit_assessment(ground)
    with ground.forged() as connection:
        rechain(connection, ground.runs[0])
        connection.execute("DROP TABLE anchors")
        connection.execute("DELETE FROM migrations WHERE number >= 3")
    for ref in git(ground.top, "for-each-ref", "--format=%(refname)", PREFIX).decode().split():
        git(ground.top, "update-ref", "-d", ref)
    rewrite = ground.top / EXPORT
    rewrite.unlink(missing_ok=True)


def downgrade_and_go_on(ground: Ground) -> None:
    downgrade(ground)
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, ground.runs[1].replace("27T", "28T"))


def rename_ledger(ground: Ground) -> None:
    edit_assessment(ground)
    with ground.forged() as connection:
        rechain(connection, ground.runs[0])
        connection.execute(f"UPDATE anchors SET ledger = '{'f' * 32}', witness = ''")
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)


def edit_anchor(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE anchors SET links = 1 WHERE number = 2")


def delete_anchor(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("DELETE FROM anchors WHERE number = 2")


def delete_last_anchors(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("DELETE FROM anchors WHERE number > 2")
    for ref in git(ground.top, "for-each-ref", "--format=%(refname)", PREFIX).decode().split():
        git(ground.top, "update-ref", "-d", ref)


def edit_line(ground: Ground) -> None:
    text = ground.lines.read_text()
    ground.lines.write_text(text.replace('"reason":"begun"', '"reason":"begun" ', 1))


def edit_last_line(ground: Ground) -> None:
    *lines, last = ground.lines.read_text().splitlines()
    record = json.loads(last)
    record["hash"] = "sha256:" + "0" * 64
    ground.lines.write_text("\n".join([*lines, json.dumps(record, separators=(",", ":"))]) + "\n")


def break_line(ground: Ground) -> None:
    first, *lines = ground.lines.read_text().splitlines()
    ground.lines.write_text("\n".join([first, "no record", *lines[1:]]) + "\n")


def delete_line(ground: Ground) -> None:
    first, _, *lines = ground.lines.read_text().splitlines()
    ground.lines.write_text("\n".join([first, *lines]) + "\n")


def insert_line(ground: Ground) -> None:
    """Announce a forged run in the middle of the lines."""
    add_run_everywhere(ground)
    first, *lines = ground.lines.read_text().splitlines()
    record = json.loads(first)
    record["runs"] = {FORGED: [0, START]}
    ground.lines.write_text("\n".join([first, json.dumps(record, separators=(",", ":")), *lines]) + "\n")


def delete_last_lines(ground: Ground) -> None:
    lines = ground.lines.read_text().splitlines()
    ground.lines.write_text("\n".join(lines[:-1]) + "\n")


def delete_last_lines_and_refs(ground: Ground) -> None:
    lines = ground.lines.read_text().splitlines()
    ground.lines.write_text("\n".join(lines[:-2]) + "\n")
    for ref in git(ground.top, "for-each-ref", "--format=%(refname)", PREFIX).decode().split():
        git(ground.top, "update-ref", "-d", ref)


def delete_lines(ground: Ground) -> None:
    ground.lines.unlink()


def edit_ref(ground: Ground) -> None:
    ((_, last),) = [(1, anchors_of(ground)[-1])]
    kept = KeptHead(last.links, "sha256:" + "0" * 64, last.number, last.hash, last.ledger)
    keep_head(ground.top, ground.runs[1], kept)


def edit_anchor_in_ref(ground: Ground) -> None:
    last = anchors_of(ground)[-1]
    kept = KeptHead(last.links, last.head, last.number, "sha256:" + "0" * 64, last.ledger)
    keep_head(ground.top, ground.runs[1], kept)


def add_ref(ground: Ground) -> None:
    keep_head(ground.top, "run-that-never-was", KeptHead(3, "sha256:" + "0" * 64))


def delete_refs(ground: Ground) -> None:
    for ref in git(ground.top, "for-each-ref", "--format=%(refname)", PREFIX).decode().split():
        git(ground.top, "update-ref", "-d", ref)


def _one_output(ground: Ground) -> Path:
    with closing(sqlite3.connect(ground.database)) as connection:
        ((detail,),) = connection.execute("SELECT detail FROM observations WHERE id = 1").fetchall()
    return ground.outputs / str(json.loads(detail)["kept"]["stdout"]).removeprefix("sha256:")


def edit_output(ground: Ground) -> None:
    _one_output(ground).write_bytes(b"all tests passed\n")


def delete_output(ground: Ground) -> None:
    _one_output(ground).unlink()


def swap_outputs(ground: Ground) -> None:
    first, second = sorted(ground.outputs.iterdir())[:2]
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def link_output(ground: Ground) -> None:
    file = _one_output(ground)
    file.rename(file.with_name("moved"))
    file.symlink_to("moved")


def delete_outputs(ground: Ground) -> None:
    shutil.rmtree(ground.outputs)


def edit_summary(ground: Ground) -> None:
    with ground.forged() as connection:
        connection.execute("UPDATE run_summaries SET data = replace(data, 'run_finished', 'run_started')")


def edit_export(ground: Ground) -> None:
    with ground.forged(ground.top / EXPORT) as connection:
        connection.execute("UPDATE executions SET exit_code = 0")


def forge_export(ground: Ground) -> None:
    with ground.forged(ground.top / EXPORT) as connection:
        connection.execute("UPDATE executions SET assessment = 'pass', exit_code = 0")
        connection.execute("UPDATE anvil_checks SET passed = 1, exit_code = 0")
        rechain(connection, ground.runs[1])
        number, previous = connection.execute("SELECT number, prev_hash FROM anchors ORDER BY number").fetchone()
        reanchor(connection)
        connection.execute("UPDATE anchors SET number = number + ? - 1", (number,))
        _rehash(connection, previous)


def _rehash(connection: sqlite3.Connection, previous: str) -> None:
    for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM anchors ORDER BY number").fetchall():
        anchor = Anchor(*row)._replace(previous=previous)
        previous = anchor_hash(anchor)
        connection.execute(
            "UPDATE anchors SET prev_hash = ?, hash = ? WHERE number = ?", (anchor.previous, previous, anchor.number)
        )


def edit_bundle(ground: Ground) -> None:
    (ground.top / BUNDLE).write_text("# Evidence\n\nEverything holds.\n")


def forge_bundle(ground: Ground) -> None:
    """As an agent would that can write files, but not the ledger: the page, and its content among the outputs."""
    forged = b"# Evidence\n\nEverything holds.\n"
    keep(Store(ground.top / ".fairwitness"), forged)
    (ground.top / BUNDLE).write_bytes(forged)


def forge_bundle_and_event(ground: Ground) -> None:
    forge_bundle(ground)
    digest = keep(Store(ground.top / ".fairwitness"), (ground.top / BUNDLE).read_bytes())
    with ground.forged() as connection:
        connection.execute(
            "UPDATE events SET data = ? WHERE type = 'artifact_written' AND run_id = ?",
            (json.dumps({"path": BUNDLE, "sha256": digest}, separators=(",", ":"), sort_keys=True), ground.runs[1]),
        )
        rechain(connection, ground.runs[1])
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)


def forge_all(ground: Ground) -> None:
    flip_and_rechain(ground)
    with ground.forged() as connection:
        _without_witness(connection)
        reanchor(connection)
    rewrite_refs(ground)
    rewrite_export(ground)
    rewrite_lines(ground)


def roll_back_all(ground: Ground) -> None:
    _set_back(ground)
    rewrite_refs(ground)
    for path in (EXPORT, BUNDLE):
        (ground.top / path).unlink(missing_ok=True)
    text = ground.lines.read_text().splitlines()
    ground.lines.write_text("\n".join(text[: len(anchors_of(ground))]) + "\n")


def delete_all(ground: Ground) -> None:
    delete_database(ground)
    delete_refs(ground)


@dataclass(frozen=True, slots=True)
class Tampered:
    """A kind of tampering, and what `fairwitness ledger verify` says about it."""

    name: str
    do: Callable[[Ground], None]
    words: tuple[str, ...]
    """What must be said; empty if the machine cannot notice it."""
    needs: str = ""
    """Why it is not noticed on the machine itself, and what it takes to notice it."""
    only: str = ""
    """The only kind of ledger for which it makes sense; empty for both."""
    code: int = 6


TABLE = (
    Tampered("edit a row", edit_row, ("executions 2 edited",)),
    Tampered("edit a result and its source", edit_assessment, ("executions 2 edited", "anvil_checks 2 edited")),
    Tampered("delete a row", delete_row, ("anvil_checks 2 deleted",)),
    Tampered("insert a row", insert_row, ("inserted: no link knows this row",)),
    Tampered("swap two rows", swap_rows, ("executions 1 edited", "executions 2 edited")),
    Tampered("edit a link", edit_link, ("chain 2 edited",)),
    Tampered("flip a result, recompute its chain", flip_and_rechain, ("edited: not the head that was kept",)),
    Tampered(
        "flip a result, recompute chain and anchors", flip_and_reanchor, ("not the head that was kept", "replaced")
    ),
    Tampered(
        "flip a result, recompute chain, anchors, refs and export",
        flip_everywhere,
        ("edited: not the head that was kept", "replaced: not the one that this machine wrote"),
    ),
    Tampered("the same in the last run", flip_last_row, ("not the head that was kept", "replaced")),
    Tampered("cut off the end of a run", truncate, ("truncated: the ledger ends at link",)),
    Tampered("cut off the end, recompute all", truncate_everywhere, ("truncated: the ledger ends at link", "replaced")),
    Tampered("delete a run", delete_run, ("missing: git keeps its head", "missing: this machine anchored")),
    Tampered("delete a run, recompute all", delete_run_everywhere, ("missing: this machine anchored", "rolled back")),
    Tampered(
        "delete the last run, recompute all", delete_last_run_everywhere, ("missing: this machine", "rolled back")
    ),
    Tampered("rename a run, recompute all", rename_run, ("run renamed: foreign", "missing: this machine anchored")),
    Tampered("add a forged run", add_run_only, (f"run {FORGED}: foreign",)),
    Tampered("add a forged run with anchors", add_run_with_anchors, (f"run {FORGED}: foreign",)),
    Tampered("add a forged run with anchors and ref", add_run_everywhere, (f"run {FORGED}: foreign",)),
    Tampered("add a forged run that is then continued", add_run_and_go_on, (f"run {FORGED}: foreign",)),
    Tampered("roll the database back", roll_back, ("rolled back: the database ends at anchor", "missing: git keeps")),
    Tampered("roll database, refs and export back", roll_back_with_refs, ("rolled back: the database ends at anchor",)),
    Tampered("roll back, then use the ledger", roll_back_and_go_on, ("replaced", "missing: this machine anchored")),
    Tampered("exchange the database for another", exchange_database, ("foreign", "missing: git keeps its head")),
    Tampered("delete the database", delete_database, ("is gone, but git keeps the heads of 2 of its runs",)),
    Tampered("set the schema back to before anchors", downgrade, ("foreign",)),
    Tampered("the same, then use the ledger", downgrade_and_go_on, ("foreign",)),
    Tampered("give the ledger another id, recompute all", rename_ledger, ("foreign",)),
    Tampered("edit an anchor", edit_anchor, ("anchor 2 edited",)),
    Tampered("delete an anchor", delete_anchor, ("anchor 2 deleted",)),
    Tampered("delete the last anchors and all refs", delete_last_anchors, ("rolled back",)),
    Tampered("edit a line of the state directory", edit_line, ("line 2 edited",)),
    Tampered("edit the last line there", edit_last_line, ("replaced: not the one that this machine wrote",)),
    Tampered("break a line there", break_line, ("line 2 edited",)),
    Tampered("delete a line there", delete_line, ("line 2 edited",)),
    Tampered("insert a line there that announces a forged run", insert_line, ("line 2 edited",)),
    Tampered("delete the last line there", delete_last_lines, ("truncated: git keeps anchor",)),
    Tampered("delete the last lines there and all refs", delete_last_lines_and_refs, ("foreign",)),
    Tampered("delete the file there", delete_lines, ("foreign",)),
    Tampered("edit a ref", edit_ref, ("edited: not the head that was kept",)),
    Tampered("edit the anchor in a ref", edit_anchor_in_ref, ("replaced: git keeps another one",)),
    Tampered("add a ref", add_ref, ("run run-that-never-was: chain 3 missing: git keeps its head",)),
    Tampered("edit an output", edit_output, ("edited: its content has another hash (observation 1)",)),
    Tampered("delete an output", delete_output, ("missing: it is not stored any more (observation 1)",)),
    Tampered("swap two outputs", swap_outputs, ("edited: its content has another hash",)),
    Tampered("put a link in the place of an output", link_output, ("unreadable",)),
    Tampered("delete all outputs", delete_outputs, ("missing: it is not stored any more",)),
    Tampered(
        "edit a summary", edit_summary, ("its summary differed from its events and was rebuilt",), only="run", code=0
    ),
    Tampered("edit the exported copy", edit_export, ("executions 5 edited",), only="run"),
    Tampered("forge the exported copy, with its chain", forge_export, ("the ledger holds no such link",), only="run"),
    Tampered("edit the evidence bundle", edit_bundle, (f"{BUNDLE} edited: no run wrote what it says",), only="run"),
    Tampered("forge the evidence bundle, as an agent", forge_bundle, (f"{BUNDLE} edited",), only="run"),
    Tampered(
        "forge the evidence bundle and its event, recompute all",
        forge_bundle_and_event,
        ("not the head that was kept", "replaced"),
        only="run",
    ),
    Tampered(
        "delete the refs",
        delete_refs,
        (),
        "not noticed; nothing is forged by it, and the other anchors still hold",
        code=0,
    ),
    Tampered(
        "forge everything, the state directory too",
        forge_all,
        (),
        "not noticed here; a head held elsewhere contradicts it (`--head`)",
        code=0,
    ),
    Tampered(
        "roll everything back, the state directory too",
        roll_back_all,
        (),
        "not noticed here; a head held elsewhere contradicts it (`--head`)",
        code=0,
    ),
    Tampered(
        "delete database and refs",
        delete_all,
        ("that this machine kept there is gone",),
        "no alarm, because a fresh clone in that place looks the same",
        code=3,
    ),
)
