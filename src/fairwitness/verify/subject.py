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
from fairwitness.verify.conclusion import record_start, recorded_outcome
from fairwitness.verify.discovery.repository_checks import discover
from fairwitness.verify.environment.preparation import Environments, TreeView
from fairwitness.verify.folder_lock import locked_folder, remove_abandoned_folders
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import Acceptance, Progress, ProgressCallback, ProposedChange, refuse_stopped
from fairwitness.verify.verification import VerificationResult, verify_change

NO_ACTOR = "nobody"
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


class SubjectOutcome(NamedTuple):
    """What came of a subject."""

    holds: bool
    tree: str
    reasons: tuple[str, ...]
    """What stands against it; nothing exactly if it holds."""
    adopted: bool
    """Whether it was verified before, and nothing was run now."""


def prove(
    deps: VerifyDeps,
    run_id: str,
    subject: Subject,
    *,
    base: Side,
    head: Side,
    declared: tuple[str, ...] | None = None,
    accepts: tuple[Acceptance, ...] = (),
    actor: str = NO_ACTOR,
    on_progress: ProgressCallback | None = None,
    stop: threading.Event | None = None,
) -> SubjectOutcome:
    """Verifies a subject, or goes on where a killed try ended, or finds that it is done.

    It blocks until then and runs commands, so an event loop calls it in a thread. Once `stop` is set the running
    command is killed and `Stopped` is raised; what had ended before stays on record. `UsageError` if the subject was
    verified for other trees.
    """

    def found() -> SubjectOutcome | None:
        verdict = recorded_outcome(deps.ledger, run_id, subject, base=base.tree, head=head.tree)
        return None if verdict is None else SubjectOutcome(verdict.holds, verdict.tree, verdict.missing, adopted=True)

    place = deps.scratch / "work"
    before_this = found()
    if before_this is not None:
        remove_abandoned_folders(place)  # who said so may have been killed before it could tidy up
        return before_this
    refuse_stopped(stop)
    with locked_folder(place, _name_of(run_id, subject), stop) as work:
        meanwhile = found()
        if meanwhile is not None:
            return meanwhile
        change = ProposedChange(
            base=base, head=head, files=deps.shadow.diff(base.tree, head.tree), accepts=accepts, declared=declared
        )
        before, after = (discover(TreeView(deps.shadow, side.tree), deps.settings) for side in (base, head))
        proven = verify_subject(
            deps,
            subject,
            change,
            before,
            after,
            run_id=run_id,
            work=work,
            actor=actor,
            on_progress=on_progress or ignore_progress,
            stop=stop,
        )
    reasons = proven.answer.missing if isinstance(proven.answer, Blocked) else ()
    return SubjectOutcome(isinstance(proven.answer, Open), head.tree, reasons, adopted=False)


def verify_subject(
    deps: VerifyDeps,
    subject: Subject,
    change: ProposedChange,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    actor: str,
    on_progress: ProgressCallback,
    stop: threading.Event | None = None,
) -> VerificationResult:
    """Proves a change under the name of a subject, with everything that only this one needs in a folder of its own."""
    with harness_of(
        deps, subject, before, after, run_id=run_id, work=work, on_progress=on_progress, stop=stop
    ) as harness:
        record_start(harness, change, deps.settings, deps.digest)
        return verify_change(
            harness,
            change,
            before,
            after,
            deps.settings,
            actor=actor,
            strict=deps.strict,
            on_progress=on_progress,
            parallel=deps.parallel,
        )


@contextmanager
def harness_of(
    deps: VerifyDeps,
    subject: Subject,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    on_progress: ProgressCallback,
    stop: threading.Event | None = None,
) -> Iterator[Harness]:
    """What runs the commands of a subject, in environments of the projects that were found before and after."""
    environments = Environments(
        runner=deps.runner,
        shadow=deps.shadow,
        state=deps.scratch,
        settings=deps.settings,
        persons=deps.repository.top,
        checks=(*before.checks, *after.checks),
        on_progress=on_progress,
        stop=stop,
    )
    common = deps.repository.common_dir
    harness = Harness(
        runner=deps.runner,
        shadow=deps.shadow,
        ledger=deps.ledger,
        state=deps.state,
        work=work,
        settings=deps.settings,
        run_id=run_id,
        clock=deps.clock,
        prepare=environments.prepare,
        use_cache=deps.use_cache,
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


def ignore_progress(_told: Progress) -> None:
    """Nobody watches."""
