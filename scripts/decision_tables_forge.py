"""The decision tables of a forge run as Markdown, made by asking the rules themselves."""

from collections.abc import Iterable, Sequence

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.graph.forge_order import Decider, ForgeTable
from fairwitness.rules.change_requests import AFTER, RequestDecision
from fairwitness.rules.helper_limits import ROLE_OF
from fairwitness.rules.next_forge_move import ForgeMove, ForgeProgress, RequestProgress, next_move

_RUNNING = ForgeProgress(proposals=1, is_proposed=True, is_approved=True, is_started=True)
_STANDS: tuple[tuple[str, ForgeProgress], ...] = (
    ("no plan", ForgeProgress()),
    ("a plan with questions", ForgeProgress(proposals=1, is_proposed=True, asked=1)),
    ("a plan", ForgeProgress(proposals=1, is_proposed=True)),
    ("a plan that a person sent back", ForgeProgress(proposals=1, returned=1)),
    ("a plan that is approved", _RUNNING._replace(is_started=False)),
    ("a graph that is carried out", _RUNNING),
    *(
        (
            f"a change request that is {status.value}",
            _RUNNING._replace(requests={"cr-001": RequestProgress(status, "r")}),
        )
        for status in ChangeRequestStatus
    ),
    ("an end", _RUNNING._replace(is_over=True)),
)


def sections() -> list[tuple[str, str]]:
    """Every table with its heading."""
    return [
        ("What a forge run does next", _course()),
        ("Change requests", _requests()),
        ("Helpers", _helpers()),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def _course() -> str:
    kinds = [(mode, decider) for mode in ApprovalMode for decider in Decider]
    rows = [
        (name, *(_words(next_move(course, mode, ForgeTable(change_requests=decider))) for mode, decider in kinds))
        for name, course in _STANDS
    ]
    head = ("there is", *(f"{mode.value}, requests go to the {decider.value}" for mode, decider in kinds))
    opening = (
        "`wait` names the question that is waited for. A run that failed and is resumed goes on where it failed.\n"
    )
    return f"{opening}\n{_table(head, rows)}"


def _words(move: ForgeMove) -> str:
    return move.kind.value if move.gate is None else f"{move.kind.value}: `{move.gate}`"


def _requests() -> str:
    rows = [
        (status.value, *(after.value if (after := AFTER[status, verdict]) else "" for verdict in RequestDecision))
        for status in ChangeRequestStatus
    ]
    opening = (
        "An empty cell is refused. Whoever emitted a request cannot decide about it, and one that was approved is\n"
        "rejected only if what was to be applied did not fit.\n"
    )
    return f"{opening}\n{_table(('request is', *(verdict.value for verdict in RequestDecision)), rows)}"


def _helpers() -> str:
    limits = ForgeTable()
    rows = [
        (
            f"`{role.value}`",
            ", ".join(f"`{other.value}`" for other in Role if other in POLICIES[role].spawns) or "nobody",
        )
        for role in (*ROLE_OF.values(), Role.REFINERY)
    ]
    opening = (
        f"At most {limits.helpers} by one agent and {limits.depth} deep, unless `fairwitness.toml` says otherwise.\n"
    )
    return f"{opening}\n{_table(('agent', 'may start'), rows)}"
