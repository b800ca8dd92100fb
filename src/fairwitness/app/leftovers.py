"""Removes what killed processes left in a repository's state folder. What a living process uses is never touched."""

from contextlib import closing

from fairwitness.app.state import ledger_in, state_of
from fairwitness.git.repository import Repository
from fairwitness.git.run_cleanup import sweep_temporaries
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.store.artifacts import Store

OUTPUTS = "outputs"
ANSWERS = "answers"


def remove_leftovers(repository: Repository, *, clock: Clock = system_clock) -> None:
    """Remove temporary files of outputs and of git, and the slots of answers that are recorded.

    Folders of sandboxes and of checks are locked by their processes and removed when the next one makes its own.
    """
    state = state_of(repository)
    store = Store(state)
    store.sweep(OUTPUTS)
    sweep_temporaries(state / "git", repository, now_s=clock().timestamp())
    if store.names(ANSWERS):
        from fairwitness.runs.dispatch.answer_slot import sweep_slots  # late: `verify` needs no agents

        with closing(ledger_in(state, repository, clock=clock)) as ledger:
            sweep_slots(state, ledger)
