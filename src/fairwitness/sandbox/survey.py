"""What must be after a command as it was before: the repositories in its worktree, and whatever the caller guards."""

from dataclasses import dataclass

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Violation, Warned
from fairwitness.sandbox import dotgit, guards
from fairwitness.sandbox.request import Request

_UNSEEN = Warned(
    code="worktree-unseen",
    text=f"the worktree holds more than {dotgit.ENTRIES} files: a repository made far inside it might not be seen",
)


@dataclass(frozen=True)
class Changed:
    """What was not as before."""

    repositories: tuple[Violation, ...] = ()
    guards: tuple[Violation, ...] = ()


class Survey:
    """One look before a command, to be compared with one after it."""

    def __init__(self, asked: Request, tier: SandboxTier) -> None:
        confinement = asked.command.confinement
        self._worktree = asked.worktree
        self._paths = confinement.guards
        # a view of its own keeps a read-only worktree as it is; other walls let some metadata through
        self._is_writable = confinement.writable or tier is not SandboxTier.NAMESPACES
        self._guarded = guards.look(self._paths)
        self._repositories = dotgit.look(self._worktree) if self._is_writable else None

    @property
    def problem(self) -> str | None:
        """Why the guards cannot be kept, if so."""
        if self._guarded.beyond is None:
            return None
        most = f"{guards.ENTRIES} files or {guards.BYTES >> 20} MiB"
        return f"the guards hold more than {most} (seen at {self._guarded.beyond}), which is too much to compare"

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What cannot be promised."""
        return (_UNSEEN,) if self._repositories is not None and not self._repositories.complete else ()

    def changed(self) -> Changed:
        """Looks again; nothing of the command may live any more."""
        guarded = guards.changes(self._guarded, guards.look(self._paths)) if self._paths else ()
        if self._repositories is None:
            return Changed(guards=guarded)
        now = dotgit.look(self._worktree)
        return Changed(dotgit.changes(self._worktree, self._repositories, now), guarded)
