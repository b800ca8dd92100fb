"""Rollback: undo what a feature run committed without losing it, since the commits stay under a ref of ours.

A branch without later commits is deleted, and a checkout on it returns to where the run began. Work that was merged or
built upon is undone by a revert commit, and only with `--revert`.
"""

import shlex
from typing import NamedTuple

from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.ids import run_ref
from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed, text_of
from fairwitness.git.checkout_switch import CheckoutMove, CheckoutPosition, checkout_position, release, switch
from fairwitness.git.commits import commit_tree, delete_ref, move_ref
from fairwitness.git.identity import read_identity
from fairwitness.git.merge import checked_out, merged_tree
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.feature.commit import ROLLED_BACK, branches_of, kept_commits, rollback_command
from fairwitness.runs.feature.setup import restore_command, snapshot_ref


class RolledBack(NamedTuple):
    """The result of a rollback."""

    run_id: str
    commit: str
    kept: str
    """The ref that keeps the commits."""
    branches: tuple[str, ...]
    """The branches that this call deleted."""
    reverted_by: str | None
    """The revert commit, if the work had been merged or built upon."""
    was_done: bool
    """True if an earlier call had done everything."""
    now_on: str
    """Where the checkout is."""
    restore: str | None
    """The command that restores what was not committed when the run began; None if everything was committed."""


class _CommittedRun(NamedTuple):
    """The commits of a run, by the ledger and the refs."""

    run_id: str
    work: str
    top: str
    """The last commit of the run: the one with its documents if it exists."""
    base: CheckoutPosition
    slug: str
    folder: str

    @property
    def kept(self) -> str:
        return ROLLED_BACK + run_ref(self.run_id)


def rollback(
    repository: Repository,
    shadow: Shadow,
    ledger: Ledger,
    run_id: str,
    *,
    revert: bool = False,
    clock: Clock = system_clock,
) -> RolledBack:
    """Undo what a run committed; raise `UsageError` with the next step if something could be lost."""
    run = _known(repository, ledger, run_id)
    release(repository, shadow)
    ours = {name: tip for name, tip in branches_of(repository, run.slug).items() if tip in (run.work, run.top)}
    here = checkout_position(repository)
    others = _holders(repository, run, here) - set(ours)
    reverted_by = None
    if others:
        reverted_by, is_new = _reverted(repository, shadow, ledger, run, here, others, revert=revert, clock=clock)
    else:
        is_new = _removed(repository, shadow, run, ours, here)
    note = Observation(
        run_id=run_id,
        task_id=None,
        key=f"rollback:{run_id}",
        kind="rollback",
        subject=run.work,
        holds=True,
        detail={"kept": run.kept, "branches": sorted(ours), "reverted_by": reverted_by},
        tree=None,
        observed_at=spell(clock()),
    )
    _note_once(ledger, note)
    has_snapshot = repository.ref(snapshot_ref(run_id)) is not None
    return RolledBack(
        run_id=run_id,
        commit=run.work,
        kept=run.kept,
        branches=() if others else tuple(sorted(ours)),
        reverted_by=reverted_by,
        was_done=not is_new,
        now_on=str(checkout_position(repository)),
        restore=restore_command(run_id) if has_snapshot else None,
    )


def _known(repository: Repository, ledger: Ledger, run_id: str) -> _CommittedRun:
    seen = ledger.observation(run_id, f"commit:{run_id}")
    work, artifacts = kept_commits(repository, run_id)
    if seen is None:
        raise UsageError(
            f"run {run_id} has committed nothing that could be undone", next_step=f"fairwitness status {run_id}"
        )
    if work != seen.subject:
        raise GitFailed(
            f"the ref that keeps the commit of run {run_id} is gone or holds another",
            next_step=f"git update-ref {kept_name(run_id)} {seen.subject}",
        )
    base = CheckoutPosition(seen.detail["base_commit"], seen.detail["base_branch"])
    return _CommittedRun(run_id, work, artifacts or work, base, seen.detail["slug"], seen.detail["folder"])


def kept_name(run_id: str) -> str:
    """Return the ref that keeps a run's commit."""
    return f"refs/fairwitness/committed/{run_ref(run_id)}/work"


def _holders(repository: Repository, run: _CommittedRun, here: CheckoutPosition) -> set[str]:
    """Return every branch that contains the work; "HEAD" for a detached checkout that is beyond it."""
    listed = repository.git.run("for-each-ref", "--format=%(refname:lstrip=2)", f"--contains={run.work}", "refs/heads/")
    found = set(text_of(listed).splitlines())
    is_beyond = here.commit is not None and here.commit not in (run.work, run.top)
    if here.branch is None and here.commit is not None and is_beyond and repository.is_ancestor(run.work, here.commit):
        found.add("HEAD")
    return found


def _removed(
    repository: Repository, shadow: Shadow, run: _CommittedRun, ours: dict[str, str], here: CheckoutPosition
) -> bool:
    """Delete the branch and move a checkout that is on it; return False if there was nothing left to do."""
    is_new = repository.ref(run.kept) is None
    on_it = here.commit in (run.work, run.top) and (here.branch is None or here.branch in ours)
    _refuse_elsewhere(repository, ours)
    if on_it:
        why_not = switch(repository, shadow, CheckoutMove(here, _back_to(repository, run), run.folder))
        if why_not is not None:
            raise UsageError(
                f"{visible(here.branch or 'the commit')} is checked out and cannot be left: {why_not}",
                next_step=f"commit or stash what is not committed (git stash -u), then: {rollback_command(run.run_id)}",
            )
        killpoint("feature.rollback.left")
    _keep(repository, run)
    for name, tip in ours.items():
        if not delete_ref(repository, f"refs/heads/{name}", tip):
            raise GitFailed(f"{visible(name)} moved while it was removed", next_step=rollback_command(run.run_id))
        killpoint("feature.rollback.deleted")
    return is_new or on_it or bool(ours)


def _keep(repository: Repository, run: _CommittedRun) -> None:
    if not move_ref(repository, run.kept, run.top, None, why="rollback") and repository.ref(run.kept) != run.top:
        raise GitFailed(f"{run.kept} holds another commit", next_step=f"git log {run.kept}")
    killpoint("feature.rollback.kept")


def _back_to(repository: Repository, run: _CommittedRun) -> CheckoutPosition:
    """Return the branch on which the run began, at its current commit, unless it is gone or checked out elsewhere."""
    branch = run.base.branch
    tip = None if branch is None else repository.ref(f"refs/heads/{branch}")
    if tip is None or f"refs/heads/{branch}" in dict(checked_out(repository)):
        return CheckoutPosition(run.base.commit, None)
    return CheckoutPosition(tip, branch)


def _refuse_elsewhere(repository: Repository, ours: dict[str, str]) -> None:
    top = None if repository.top is None else repository.top.resolve()
    for ref, where in checked_out(repository):
        name = ref.removeprefix("refs/heads/")
        if name in ours and (top is None or str(top) != where):
            raise UsageError(
                f"{visible(name)} is checked out in {visible(where)}",
                next_step=f"git -C {shlex.quote(where)} switch --detach, then again",
            )


def _reverted(
    repository: Repository,
    shadow: Shadow,
    ledger: Ledger,
    run: _CommittedRun,
    here: CheckoutPosition,
    others: set[str],
    *,
    revert: bool,
    clock: Clock,
) -> tuple[str, bool]:
    """Return the commit on the current branch that reverts the work, and whether it is new."""
    before = [seen.subject for seen in ledger.observations(run.run_id, "revert")]
    for commit in before:
        if here.commit is not None and repository.ref(commit) and repository.is_ancestor(commit, here.commit):
            is_new = repository.ref(run.kept) is None
            _keep(repository, run)
            return commit, is_new
    if not revert:
        raise UsageError(
            f"the commit of run {run.run_id} was merged or built upon: {visible(', '.join(sorted(others)))} holds it",
            next_step=f"to take it back with a commit on the current branch: {rollback_command(run.run_id)} --revert",
        )
    if here.commit is None or not repository.is_ancestor(run.work, here.commit):
        wanted = min(others)
        raise UsageError(
            f"the checkout is on {here}, which does not hold the commit of run {run.run_id}",
            next_step=f"git switch {shlex.quote(wanted)}, then: {rollback_command(run.run_id)} --revert",
        )
    commit = _revert_commit(repository, shadow, ledger, run, here.commit, clock)
    why_not = switch(repository, shadow, CheckoutMove(here, CheckoutPosition(commit, here.branch), run.folder))
    if why_not is not None:
        raise UsageError(
            f"the work of run {run.run_id} is not taken back: {why_not}",
            next_step="commit or stash what is not committed (git stash -u), then: "
            f"{rollback_command(run.run_id)} --revert",
        )
    killpoint("feature.rollback.reverted")
    _keep(repository, run)
    return commit, True


def _revert_commit(
    repository: Repository, shadow: Shadow, ledger: Ledger, run: _CommittedRun, head: str, clock: Clock
) -> str:
    key = f"revert:{run.run_id}:{head}"
    seen = ledger.observation(run.run_id, key)
    if seen is not None and repository.ref(seen.subject) is not None:
        return seen.subject
    objects = shadow.into_store(repository)
    last = run.top if repository.is_ancestor(run.top, head) else run.work
    assert run.base.commit is not None
    identity = read_identity(repository)
    # the change from the work back to its base, merged into the current tree, reverts exactly the work
    back = commit_tree(objects, repository.tree_of(run.base.commit), [last], "Back to the base", identity)
    tree, conflicts = merged_tree(objects, head, back)
    if conflicts is not None:
        raise UsageError(
            f"later work changed the same places: {visible(', '.join(conflicts[:3]))}",
            next_step=f"take it back by hand: git revert {run.work[:12]}",
        )
    subject = text_of(repository.git.run("rev-list", "--no-commit-header", "--format=%s", "-1", run.work).strip())
    message = f'Revert "{subject}"\n\nThis reverts commit {run.work}.\n\nRun-Id: {run.run_id}\n'
    commit = commit_tree(objects, tree, [head], message, identity)
    note = Observation(
        run_id=run.run_id,
        task_id=None,
        key=key,
        kind="revert",
        subject=commit,
        holds=True,
        detail={"head": head},
        tree=tree,
        observed_at=spell(clock()),
    )
    _note_once(ledger, note)
    return commit


def _note_once(ledger: Ledger, note: Observation) -> None:
    if ledger.observation(note.run_id, note.key) is not None:
        return

    def write(record: Record) -> None:
        record.observation(note)

    ledger.record(note.run_id, write)
    killpoint("feature.rollback.noted")
