"""The desk of a forge run: everything that carrying it needs, put together from what stands on record."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairwitness.app.feature_desk import caps_of, commands_of
from fairwitness.app.graph_means import CAPS, MeansMaker, prover
from fairwitness.app.state import workroom
from fairwitness.app.wiring import runner
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.runs.forge.book import ForgeBook
from fairwitness.runs.forge.captain import ForgeCaptain
from fairwitness.runs.forge.desk import ForgeDesk
from fairwitness.runs.forge.working import ForgeWorker
from fairwitness.runs.graph.world import World
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.verify.subject import Parts

if TYPE_CHECKING:
    from pathlib import Path

    from fairwitness.git.worktrees import Worktrees
    from fairwitness.kit.clock import Clock
    from fairwitness.ledger.ledger import Ledger


def forge_desk_of(
    worktrees_of: Callable[[str], "Worktrees"], ledger: "Ledger", state: "Path", run_id: str, clock: "Clock"
) -> ForgeDesk:
    """Everything that carrying a run needs, whether its captain plans or its plan stood before.

    `worktrees_of` gives those whose branches begin with a prefix.
    """
    book = ForgeBook(ledger, run_id, clock=clock)
    order = book.order()
    worktrees = worktrees_of((book.begun().options if order is None else order.options).prefix)
    repository, shadow = worktrees.repository, worktrees.shadow
    settings = book.settings()
    sandbox = runner()
    world = World(repository, worktrees, Candidates(repository, shadow), state / "locks", read_identity(repository))
    maker = MeansMaker(
        repository,
        shadow,
        ledger,
        state,
        sandbox,
        run_id,
        settings,
        clock,
        caps=CAPS if order is None else caps_of(book.budget()),
    )
    parts = Parts(
        repository=repository,
        runner=sandbox,
        shadow=shadow,
        ledger=ledger,
        state=state,
        room=workroom(state, sandbox.tier),
        settings=VerifySettings.model_validate(settings["verify"]),
        digest=settings["digest"],
        clock=clock,
    )
    files, layout = Store(repository.top or state), ForgeLayout(run_id)
    base = book.begun().base_commit if order is None else order.base_commit
    worker = ForgeWorker(maker.context, book, files, maker.means, commands_of(parts, base))
    captain = None if order is None else ForgeCaptain(maker.context, book, maker.means, world, files, layout)
    return ForgeDesk(world, ledger, files, run_id, worker, prover(parts, run_id), captain=captain, clock=clock)
