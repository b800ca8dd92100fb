"""A tiny repository with two quick checks, and subjects of one run verified in it, also in a process of its own.

`python -m verify.subjects ROOT TASK ROUND BASE HEAD` verifies one.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairwitness.app.assembly.backends import runner
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import scratch_root, state_of
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.tables import CHAINED
from fairwitness.verify.subject import SubjectOutcome, VerifyDeps, prove
from git.person import Person

RUN = "run-2026-02-26-143000"
SETTINGS = """\
[verify]
mutants = 0

[[verify.check]]
name = "tests"
argv = ["sh", "tests/prices.sh"]

[[verify.check]]
name = "lint"
argv = ["sh", "-c", "! grep -n TODO price"]
"""
PRICES = "echo looking at the price; test $(cat price) -gt 0\n"
TIMES = frozenset({"ts", "timestamp", "started_at", "observed_at", "duration_ms"})
SPENT = frozenset({"started_at", "wall_ms", "setup_ms", "cpu_ms", "peak_memory", "peak_processes", "survivors_killed"})


@dataclass(frozen=True)
class World:
    """A repository, and what verifications in it share."""

    root: Path
    deps: VerifyDeps

    @classmethod
    @contextmanager
    def open(cls, root: Path) -> Iterator["World"]:
        """A world that was made before; its ledger is closed afterwards."""
        repository = Repository.open(root / "repo")
        state = state_of(repository)
        sandbox = runner()
        settings, digest = verify_settings(repository.top, user=root / "home" / "none.toml")
        ledger = Ledger.open_file(state / "evidence.db")
        try:
            yield cls(
                root,
                VerifyDeps(
                    repository=repository,
                    runner=sandbox,
                    shadow=Shadow.open(state / "git", repository),
                    ledger=ledger,
                    state=state,
                    scratch=scratch_root(state, sandbox.tier),
                    settings=settings,
                    digest=digest,
                ),
            )
        finally:
            ledger.close()

    @property
    def person(self) -> Person:
        return Person(self.root / "repo", self.root / "home")

    def side(self, ref: str) -> Side:
        repository = self.deps.repository
        commit = repository.commit(ref)
        return Side(ref=ref, commit=commit, tree=repository.tree_of(commit))

    def prove(
        self,
        task: str,
        round_: int,
        *,
        base: str = "main",
        head: str,
        stop: threading.Event | None = None,
        run_id: str = RUN,
        **differs: Any,
    ) -> SubjectOutcome:
        """Verifies a subject."""
        subject = VerifySubject(task_id=task, round=round_)
        deps = replace(self.deps, **differs)
        return prove(deps, run_id, subject, base=self.side(base), head=self.side(head), stop=stop)

    def rows(self, table: str, columns: str = "*", where: str = "1 = 1") -> list[tuple[Any, ...]]:
        """Rows of a table, in the order they were written."""
        key = {"events": "seq", "chain": "seq"}.get(table, CHAINED[table].key if table in CHAINED else "id")
        return self.deps.ledger.database.read(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {key}")

    def content(self) -> list[str]:
        """Everything the ledger says, without ids and times, in no order."""
        said = []
        for name, table in CHAINED.items():
            for row in self.rows(name, ", ".join(table.columns)):
                plain = dict(zip(table.columns, row, strict=True))
                kept = {
                    column: value
                    for column, value in plain.items()
                    if column not in TIMES and column != "id" and not column.endswith("_id")
                } | {"task": plain.get("task_id")}
                if "detail" in kept:
                    kept["detail"] = _timeless(json.loads(kept["detail"]))
                said.append(f"{name} {json.dumps(kept, sort_keys=True)}")
        return sorted(said)

    def left(self) -> list[str]:
        """What verifications left in the folder they work in."""
        return sorted(path.name for path in (self.deps.scratch / "work").iterdir())


def _timeless(detail: dict[str, Any]) -> dict[str, Any]:
    """A detail without row numbers, without times, and without the hash of a result, which holds its duration."""
    detail = {key: value for key, value in detail.items() if key not in ("execution", "result")}
    if "confined" in detail:
        detail["confined"] = {key: value for key, value in detail["confined"].items() if key not in SPENT}
    if "taken_from" in detail:
        detail["taken_from"] = detail["taken_from"]["run"]
    return detail


def make(root: Path, *, settings: str = SETTINGS, price: str = "1\n") -> Person:
    """The repository: `main`, and whatever branches a test adds."""
    person = Person.in_folder(root)
    person.commit("begin", **{"fairwitness.toml": settings, "tests/prices.sh": PRICES, "price": price})
    return person


def branch(person: Person, name: str, *, of: str = "main", **files: str) -> None:
    """A branch with one commit."""
    person.git("checkout", "-q", "-b", name, of)
    person.commit(name, **files)
    person.git("checkout", "-q", "main")


def main(root: str, task: str, round_: str, base: str, head: str) -> None:
    """Verifies one subject."""
    with World.open(Path(root)) as world:
        world.prove(task, int(round_), base=base, head=head)


if __name__ == "__main__":
    main(*sys.argv[1:])
