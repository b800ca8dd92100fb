"""What the agent calls of a run used: counted where it was reported, limited where a call was interrupted.

A try of a call that was killed reported nothing. It counts as interrupted, and its use is at most what was reserved for
it. A try whose answer arrived before the kill was adopted, and is an ordinary call.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from fairwitness.app.text import counted
from fairwitness.ledger.summary import observed

if TYPE_CHECKING:
    from fairwitness.db.base import Database

STARTED, CANCELLED, ENDED = "dispatch-started", "dispatch-cancelled", "dispatch-ended"
"""The kinds of observation that a call leaves. `runs` spells them too, and is too heavy for a screen to import."""


class CallRow(NamedTuple):
    """A record of one try of a call: that it started, was stopped or ended."""

    kind: str
    call: str
    detail: dict[str, Any]


@dataclass(slots=True)
class AgentUsage:
    """The usage of calls, as far as it was counted."""

    calls: int = 0
    """Calls that ended or were stopped."""
    counted: int = 0
    """Those of them whose tokens were counted."""
    tokens_in: int = 0
    tokens_out: int = 0
    priced: int = 0
    """Those of them whose price is known."""
    cost_micros: int = 0
    interrupted: int = 0
    """Tries that were killed; nothing is known of their use but a limit."""
    unlimited: int = 0
    """Those of them without a limit."""
    most_tokens: int = 0
    most_micros: int = 0
    """What interrupted tries used at the most, apart from the unlimited ones."""

    @property
    def tokens(self) -> int:
        """The tokens that were counted, in and out."""
        return self.tokens_in + self.tokens_out

    def plain(self) -> dict[str, int]:
        """Return the numbers as plain values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def read_usage(database: "Database", run_id: str, *, is_worked_on: bool) -> AgentUsage:
    """Return the usage of a run; see `usage_by_role`."""
    rows = map(CallRow._make, observed(database, run_id, STARTED, CANCELLED, ENDED))
    return total(usage_by_role(rows, is_worked_on=is_worked_on).values())


def usage_by_role(rows: Iterable[CallRow], *, is_worked_on: bool) -> dict[str, AgentUsage]:
    """Return the usage by role from the records of all calls.

    While a process works on the run, the last try of a call that has not ended is under way and not interrupted.
    """
    used: dict[str, AgentUsage] = {}
    open_tries: dict[str, list[CallRow]] = {}
    ended: set[str] = set()
    for row in rows:
        tries = open_tries.setdefault(row.call, [])
        if row.kind == STARTED:
            tries.append(row)
            continue
        if row.kind == ENDED:
            ended.add(row.call)
        if tries:
            tries.pop()  # a try ends before the next one starts, so it is the last
        outcome = _mapping(row.detail.get("outcome"))
        _add(used.setdefault(_role(row), AgentUsage()), _mapping(outcome.get("usage")))
    for call, tries in open_tries.items():
        lost = tries[:-1] if is_worked_on and call not in ended else tries
        for row in lost:
            _add_interrupted(used.setdefault(_role(row), AgentUsage()), row)
    return used


def total(used: Iterable[AgentUsage]) -> AgentUsage:
    """Return the usage of all roles together."""
    every = list(used)
    return AgentUsage(**{each.name: sum(getattr(one, each.name) for one in every) for each in fields(AgentUsage)})


def usage_line(used: AgentUsage) -> str:
    """Return what calls used in one line: what was counted, then what interrupted calls used at the most."""
    known = f"{counted(used.calls, 'agent call')}, {counted(used.tokens, 'token')}"
    known += f", {_money(used.cost_micros)}" if used.cost_micros else ""
    return f"{known}; {interrupted_text(used)}" if used.interrupted else known


def interrupted_text(used: AgentUsage) -> str:
    """Return how many calls were interrupted and what they used at the most."""
    if used.unlimited:
        return f"{counted(used.interrupted, 'interrupted call')} used an unknown number of tokens"
    most = f"{counted(used.interrupted, 'interrupted call')} used at most {counted(used.most_tokens, 'token')}"
    return f"{most}, {_money(used.most_micros)}" if used.most_micros else most


def _money(micros: int) -> str:
    return f"${micros / 1e6:.2f}"


def _add(used: AgentUsage, usage: dict[str, Any]) -> None:
    used.calls += 1
    tokens_in, tokens_out, cost = (_number(usage.get(name)) for name in ("tokens_in", "tokens_out", "cost_micros"))
    used.counted += tokens_in is not None and tokens_out is not None
    used.tokens_in += tokens_in or 0
    used.tokens_out += tokens_out or 0
    used.priced += cost is not None
    used.cost_micros += cost or 0


def _add_interrupted(used: AgentUsage, row: CallRow) -> None:
    asked = _mapping(_mapping(row.detail.get("reservation")).get("asked"))
    tokens = _number(asked.get("tokens"))
    used.interrupted += 1
    used.unlimited += not tokens
    used.most_tokens += tokens or 0
    used.most_micros += _number(asked.get("money_micros")) or 0


def _role(row: CallRow) -> str:
    return str(row.detail.get("role") or "agent")


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
