"""A person's repository with a feature run in it that begins and ends; and processes that die on the way."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.contracts.common.ids import baseline_tag
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.feature.commit import CommittedWork, commit
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.rollback import RolledBack, rollback
from fairwitness.store.artifacts import Store
from git.person import Person
from runs.feature.contexts import RUN, begin, clock

HASH = "sha256:" + "0" * 64
WORK = {"app.py": "print(2)\n", "new/voucher.py": "x = 1\n"}
"""What the run makes of the repository; it removes `old.txt` too."""


@dataclass(frozen=True)
class Land:
    """A person, and a run that began at what they had checked out."""

    person: Person
    state: Path
    run_id: str = RUN
    order: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    """A linked worktree, if the run began there."""

    @contextmanager
    def context(self) -> Iterator[FeatureContext]:
        """The run's room, opened as a new process does."""
        repository = Repository.open(self.folder or self.person.folder)
        assert repository.top is not None
        self.state.mkdir(exist_ok=True)
        ledger = Ledger.open_file(self.state / "evidence.db", clock=clock)
        plain: dict[str, Any] = {
            "request": "Gift vouchers\n\nCustomers can buy them.",
            "slug": "gift-vouchers",
            "mode": "autonomous",
            "base_commit": self.person.git("rev-parse", "refs/tags/began"),
            "base_branch": "main",
            "baseline_tag": baseline_tag(self.run_id),
            "target": "fairwitness/target",
            "verify": {},
            "settings_hash": HASH,
            "started_by": "Ada",
        }
        context = FeatureContext(
            run_id=self.run_id,
            order=FeatureOrder.model_validate(plain | self.order),
            repository=repository,
            shadow=Shadow.open(self.state / "shadow", repository),
            ledger=ledger,
            files=Store(repository.top),
            kept=Store(self.state),
            clock=clock,
        )
        if not any(ledger.events(self.run_id)):
            begin(context)
        try:
            yield context
        finally:
            ledger.close()

    def commit(self) -> CommittedWork:
        """Commits the work, as a new process does."""
        with self.context() as context:
            return commit(
                context,
                "fairwitness/target",
                subject="feat: add gift vouchers",
                body="Run-Id: forged\n\nCustomers can buy them.",
                bundle_sha256=HASH,
                assisted_by=("claude:opus", "codex:gpt", "claude:opus"),
            )

    def rollback(self, *, revert: bool = False) -> RolledBack:
        """Undoes the run, as a new process does."""
        with self.context() as context:
            return rollback(context.repository, context.shadow, context.ledger, self.run_id, revert=revert, clock=clock)


def land(root: Path, **order: Any) -> Land:
    """A repository on `main`, and the run's work on a branch that nobody has checked out."""
    person = Person.in_folder(root)
    person.write("tool.sh", "#!/bin/sh\n").chmod(0o755)
    (person.folder / "link").symlink_to("app.py")
    person.commit(
        "first", **{"app.py": "print(1)\n", "old.txt": "old\n", "same.txt": "same\n", ".gitignore": "*.log\n"}
    )
    person.git("tag", "began")
    person.git("checkout", "-q", "-b", "fairwitness/target")
    person.git("rm", "-q", "old.txt")
    person.commit("task 1", **{"app.py": WORK["app.py"]})
    person.commit("task 2", **{"new/voucher.py": WORK["new/voucher.py"]})
    person.git("checkout", "-q", "main")
    return Land(person, root / "state", order=order)


def dies(work: Callable[[], object], *, at: str = "", log: Path | None = None) -> bool:
    """Does something in a process of its own that dies at a point; False if it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ.pop("FAIRWITNESS_KILL_AT", None)
            os.environ |= {"FAIRWITNESS_KILL_AT": at} if at else {}
            os.environ |= {"FAIRWITNESS_KILL_LOG": str(log)} if log else {}
            importlib.reload(sys.modules["fairwitness.kit.killpoints"])  # what is loaded asks once whether to die
            work()
            code = 0
        except BaseException:  # noqa: BLE001  # this is the last place where it can be told
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -9), "it failed where it should have come to its end or died"
    return code == -9


def points(work: Callable[[], object], log: Path, *, of: tuple[str, ...] = ("feature.", "git.")) -> list[str]:
    """Every point of some rooms that something passes, the first and the last time of each.

    What is inside the writing of one file or one record is proved where that is.
    """
    assert not dies(work, log=log)
    passed = [name for name in log.read_text().split() if name.startswith((*of, "ledger.record.committed"))]
    last = [f"{name}#{passed.count(name)}" for name in dict.fromkeys(passed) if passed.count(name) > 1]
    return [*dict.fromkeys(passed), *last]
