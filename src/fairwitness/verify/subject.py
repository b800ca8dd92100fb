"""Verify one subject of a run: an attempt, a merge, or the single change of `fairwitness verify`.

Threads and processes may verify several subjects at the same time: each subject has its own folder, building an
environment is exclusive, and the ledger keeps the rows of subjects apart. If two processes verify the same subject, the
second waits and takes the result of the first.
"""

import hashlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.checks import CheckSpec, Discovered, OracleMode, VerifySettings
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.conclusion import record_start, recorded_outcome
from fairwitness.verify.folder_lock import locked_folder, remove_abandoned_folders
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import Acceptance, Progress, ProgressCallback, ProposedChange, refuse_stopped
from fairwitness.verify.tree_view import checks_at

if TYPE_CHECKING:  # imported late: a run is resumed without environments and inspections
    from fairwitness.verify.environment.preparation import Environments
    from fairwitness.verify.verification import VerificationResult

NO_ACTOR = "nobody"
"""The actor of a verification in which nothing is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDeps:
    """What the verifications of one repository share; created once and safe to use from any thread."""

    repository: Repository
    runner: Runner
    shadow: Shadow
    ledger: Ledger
    state: Path
    scratch: Path
    """The folder of checkouts and environments: the state folder, unless commands run as another user."""
    settings: VerifySettings
    """The user's settings, read before any command runs."""
    digest: str
    """SHA-256 of the file that the settings were read from."""
    clock: Clock = system_clock
    use_cache: bool = True
    oracle: OracleMode = OracleMode.STRICT
    """How changes of existing tests are judged; runs of agents are strict whatever the settings say."""
    strict: bool = False
    parallel: int = 1
    """How many commands of one subject run at the same time."""


class SubjectOutcome(NamedTuple):
    """The result of verifying a subject."""

    holds: bool
    tree: str
    reasons: tuple[str, ...]
    """Why it does not hold; empty if and only if it holds."""
    adopted: bool
    """Whether the result was already in the ledger, so that nothing was run."""


def prove(
    deps: VerifyDeps,
    run_id: str,
    subject: VerifySubject,
    *,
    base: Side,
    head: Side,
    declared: tuple[str, ...] | None = None,
    accepts: tuple[Acceptance, ...] = (),
    actor: str = NO_ACTOR,
    on_progress: ProgressCallback | None = None,
    stop: threading.Event | None = None,
) -> SubjectOutcome:
    """Verify a subject and return the result; resume an interrupted verification, or return a recorded result.

    The call blocks and runs commands, so an event loop calls it in a thread. When `stop` is set, the running command is
    killed and `VerificationStopped` is raised; finished commands stay in the ledger. Raises `UsageError` if the subject
    was verified for other trees.
    """

    def recorded() -> SubjectOutcome | None:
        outcome = recorded_outcome(deps.ledger, run_id, subject, base=base.tree, head=head.tree)
        return None if outcome is None else SubjectOutcome(outcome.holds, outcome.tree, outcome.missing, adopted=True)

    place = deps.scratch / "work"
    before_this = recorded()
    if before_this is not None:
        remove_abandoned_folders(place)  # the process that recorded it may have died before it cleaned up
        return before_this
    refuse_stopped(stop)
    with locked_folder(place, _name_of(run_id, subject), stop) as work:
        meanwhile = recorded()
        if meanwhile is not None:
            return meanwhile
        change = ProposedChange(
            base=base, head=head, files=deps.shadow.diff(base.tree, head.tree), accepts=accepts, declared=declared
        )
        before, after = (checks_at(deps.shadow, side.tree, deps.settings) for side in (base, head))
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
    subject: VerifySubject,
    change: ProposedChange,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    actor: str,
    on_progress: ProgressCallback,
    stop: threading.Event | None = None,
) -> "VerificationResult":
    """Verify a change as this subject, in its own folder `work`, and return the result with the lines of a report."""
    from fairwitness.verify.verification import verify_change

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
            oracle=deps.oracle,
            strict=deps.strict,
            on_progress=on_progress,
            parallel=deps.parallel,
        )


def environments_of(
    deps: VerifyDeps,
    checks: Iterable[CheckSpec],
    *,
    on_progress: ProgressCallback,
    stop: threading.Event | None = None,
) -> "Environments":
    """Return the environments of projects with these checks."""
    from fairwitness.verify.environment.preparation import Environments

    return Environments(
        runner=deps.runner,
        shadow=deps.shadow,
        state=deps.scratch,
        settings=deps.settings,
        user_checkout=deps.repository.top,
        checks=checks,
        on_progress=on_progress,
        stop=stop,
    )


@contextmanager
def harness_of(
    deps: VerifyDeps,
    subject: VerifySubject,
    before: Discovered,
    after: Discovered,
    *,
    run_id: str,
    work: Path,
    on_progress: ProgressCallback,
    stop: threading.Event | None = None,
) -> Iterator[Harness]:
    """Yield the harness that runs a subject's checks, in environments of the projects at the base and at the head."""
    environments = environments_of(deps, (*before.checks, *after.checks), on_progress=on_progress, stop=stop)
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


def _name_of(run_id: str, subject: VerifySubject) -> str:
    """Return the folder's name: the same at every try, and short, because a socket's path contains it."""
    return f"turn-{hashlib.sha256(f'{run_id} {subject.name}'.encode()).hexdigest()[:12]}"


def ignore_progress(_progress: Progress) -> None:
    """Discard a progress report."""
