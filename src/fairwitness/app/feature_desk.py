"""The desk of a feature run: everything that carrying it needs, put together from what stands on record."""

from typing import TYPE_CHECKING

from fairwitness.app.feature_room import order_of, room_of
from fairwitness.app.state import workroom
from fairwitness.contracts.common.budgets import BudgetCaps, BudgetTable, Caps
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger

if TYPE_CHECKING:  # whoever only looks at a budget, or ends a run, does not wait for what carries one
    from fairwitness.runs.feature.desk import FeatureRunDesk
    from fairwitness.verify.subject import Parts

PREFIX = "fairwitness"
"""What the branches of a run's attempts begin with."""
_PYTHON = "python3"


def caps_of(budget: BudgetTable) -> BudgetCaps:
    """The caps of a run."""
    none = Caps(tokens=None, money_micros=None, milliseconds=None)
    money = None if budget.dollars is None else round(budget.dollars * 1_000_000)
    time = None if budget.minutes is None else budget.minutes * 60_000
    return BudgetCaps(dispatch=none, phase=none, run=Caps(tokens=budget.tokens, money_micros=money, milliseconds=time))


def desk_of(repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> "FeatureRunDesk":
    """Everything that carrying a run needs."""
    from fairwitness.app.graph_means import MeansMaker, prover
    from fairwitness.app.wiring import runner
    from fairwitness.contracts.verify.checks import VerifySettings
    from fairwitness.git.candidates import Candidates
    from fairwitness.git.worktrees import Worktrees
    from fairwitness.runs.dispatch.events import FeatureEvents
    from fairwitness.runs.feature.briefs import Briefs
    from fairwitness.runs.feature.calls import Caller
    from fairwitness.runs.feature.desk import FeatureRunDesk
    from fairwitness.runs.feature.memory import Memory
    from fairwitness.runs.graph.world import World
    from fairwitness.verify.subject import Parts

    order, budget = order_of(ledger, run_id)
    room = room_of(repository, ledger, run_id, order, clock=clock)
    settings = VerifySettings.model_validate(order.verify)
    sandbox = runner()
    place = workroom(room.state_folder, sandbox.tier)
    worktrees = Worktrees(repository, room.shadow, place / "worktrees", prefix=PREFIX)
    identity = read_identity(repository)
    world = World(repository, worktrees, Candidates(repository, room.shadow), room.state_folder / "locks", identity)
    maker = MeansMaker(
        repository,
        room.shadow,
        ledger,
        room.state_folder,
        sandbox,
        run_id,
        {"agents": order.agents, "cassettes": order.cassettes},
        clock,
        recorder=FeatureEvents(),
        caps=caps_of(budget),
    )
    parts = Parts(
        repository=repository,
        runner=sandbox,
        shadow=room.shadow,
        ledger=ledger,
        state=room.state_folder,
        room=place,
        settings=settings,
        digest=order.settings_hash.removeprefix("sha256:"),
        clock=clock,
    )
    briefs = Briefs(room, commands_of(parts, order.base_commit), Memory(room.kept).boxed())
    caller = Caller(room, maker.context, maker.means, worktrees, identity)
    return FeatureRunDesk(room, world, caller, briefs, parts, prover(parts, run_id))


def commands_of(parts: "Parts", base: str) -> tuple[tuple[str, ...], ...]:
    """How the project's checks begin, as an agent may type them; from the first word on that only we know, nothing."""
    from fairwitness.verify.discovery.discover import discover
    from fairwitness.verify.environments import TreeView

    found: dict[tuple[str, ...], None] = {}
    for check in discover(TreeView(parts.shadow, parts.repository.tree_of(base)), parts.settings).checks:
        words = [_PYTHON if word == "{python}" else word for word in check.argv]
        known = tuple(words[: next((at for at, word in enumerate(words) if "{" in word), len(words))])
        if known and known[-1].startswith("-"):
            continue  # what follows would be a program that the agent types itself
        if len(known) > 1 or (known and known[0] != _PYTHON):
            found[known] = None
    return tuple(found)
