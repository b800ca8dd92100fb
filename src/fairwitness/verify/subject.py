"""The verification of one subject of a run: an attempt, a merge, or the one change of `fairwitness verify`.

Several may go on at a time, in threads and in processes: each has a folder of its own, the environments take turns, and
the ledger keeps their rows apart. The same subject in two places takes turns too, and the second finds it done.
"""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.checks import Discovered, VerifySettings
from fairwitness.contracts.verify.report import Side, Subject
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.concluding import begin, verdict_of
from fairwitness.verify.discovery.discover import discover
from fairwitness.verify.environments import Environments, TreeView
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import Accept, Change, Tell, Told, refuse_stopped
from fairwitness.verify.turns import sweep, turn
from fairwitness.verify.verify import Proven, verify_change

NOBODY = "nobody"
"""Who accepts where nothing is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDeps:
    """What the verifications of one repository share; made once, used by any number of threads."""

    repository: Repository
    runner: Runner
    shadow: Shadow
    ledger: Ledger
    state: Path
    scratch: Path
    """Where checkouts and environments stand: the state folder, unless commands run as another user."""
    settings: VerifySettings
    """The person's, read before anything was run."""
    digest: str
    """SHA-256 of what they were read from."""
    clock: Clock = system_clock
    use_cache: bool = True
    strict: bool = False
    parallel: int = 1
    """How many commands of one subject run at a time."""


class Proved(NamedTuple):
    """What came of a subject."""

    holds: bool
    tree: str
    reasons: tuple[str, ...]
    """What stands against it; nothing exactly if it holds."""
    adopted: bool
    """Whether it was verified before, and nothing was run now."""


def prove(
    parts: VerifyDeps,
    run_id: str,
    subject: Subject,
    *,
    base: Side,
    head: Side,
    declared: tuple[str, ...] | None = None,
    accepts: tuple[Accept, ...] = (),
    actor: str = NOBODY,
    tell: Tell | None = None,
    stop: threading.Event | None = None,
) -> Proved:
    """Verifies a subject, or goes on where a killed try ended, or finds that it is done.

    It blocks until then and runs commands, so an event loop calls it in a thread. Once `stop` is set the running
    command is killed and `Stopped` is raised; what had ended before stays on record. `UsageError` if the subject was
    verified for other trees.
    """

    def found() -> Proved | None:
        verdict = verdict_of(parts.ledger, run_id, subject, base=base.tree, head=head.tree)
        return None if verdict is None else Proved(verdict.holds, verdict.tree, verdict.missing, adopted=True)

    place = parts.scratch / "work"
    before_this = found()
    if before_this is not None:
        sweep(place)  # who said so may have been killed before it could tidy up
        return before_this
    refuse_stopped(stop)
    with turn(place, _name_of(run_id, subject), stop) as work:
        meanwhile = found()
        if meanwhile is not None:
            return meanwhile
        change = Change(
            base=base, head=head, files=parts.shadow.diff(base.tree, head.tree), accepts=accepts, declared=declared
        )
        before, after = (discover(TreeView(parts.shadow, side.tree), parts.settings) for side in (base, head))
        proven = verify_subject(
            parts,
            subject,
            change,
            before,
            after,
            run_id=run_id,
            work=work,
            actor=actor,
            tell=tell or unheard,
            stop=stop,
        )
    reasons = proven.answer.missing if isinstance(proven.answer, Blocked) else ()
    return Proved(isinstance(proven.answer, Open), head.tree, reasons, adopted=False)


def verify_subject(
    parts: VerifyDeps,
    subject: Subject,
    change: Change,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    actor: str,
    tell: Tell,
    stop: threading.Event | None = None,
) -> Proven:
    """Proves a change under the name of a subject, with everything that only this one needs in a folder of its own."""
    with harness_of(parts, subject, before, after, run_id=run_id, work=work, tell=tell, stop=stop) as harness:
        begin(harness, change, parts.settings, parts.digest)
        return verify_change(
            harness,
            change,
            before,
            after,
            parts.settings,
            actor=actor,
            strict=parts.strict,
            tell=tell,
            parallel=parts.parallel,
        )


@contextmanager
def harness_of(
    parts: VerifyDeps,
    subject: Subject,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    tell: Tell,
    stop: threading.Event | None = None,
) -> Iterator[Harness]:
    """What runs the commands of a subject, in environments of the projects that were found before and after."""
    environments = Environments(
        runner=parts.runner,
        shadow=parts.shadow,
        state=parts.scratch,
        settings=parts.settings,
        persons=parts.repository.top,
        checks=(*before.checks, *after.checks),
        tell=tell,
        stop=stop,
    )
    common = parts.repository.common_dir
    harness = Harness(
        runner=parts.runner,
        shadow=parts.shadow,
        ledger=parts.ledger,
        state=parts.state,
        work=work,
        settings=parts.settings,
        run_id=run_id,
        clock=parts.clock,
        prepare=environments.prepare,
        use_cache=parts.use_cache,
        guards=(common / "config", common / "hooks"),
        subject=subject,
        stop=stop,
    )
    try:
        yield harness
    finally:
        harness.close()


def _name_of(run_id: str, subject: Subject) -> str:
    """The same at every try; short, since a path must fit into the name of a socket."""
    return f"turn-{hashlib.sha256(f'{run_id} {subject.name}'.encode()).hexdigest()[:12]}"


def unheard(_told: Told) -> None:
    """Nobody watches."""
