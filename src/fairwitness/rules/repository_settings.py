"""Which settings of a repository's `fairwitness.toml` count only after a person has trusted the file.

A repository is made by others. Its file may make a run stricter, and may add checks, which run in the sandbox as the
repository's tests do. It may not weaken what the person has, spend the person's money, choose who receives the code, or
act on the person's checkout. `SETTINGS` has a row for every setting; a test compares it with the contracts, so that a
new setting needs a decision here. A value is compared with the one that would be in force without the repository's
file: the user's own, else the default.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import PathChoice
from fairwitness.contracts.feature.order import Dirty
from fairwitness.contracts.graph.forge_order import Decider
from fairwitness.contracts.verify.checks import OracleMode

ANY_NAME, EACH = "*", "[]"
"""In a path: every key of a table, and every table of a list."""


class TrustClass(StrEnum):
    """When a setting of a repository needs trust."""

    FREE = "never"
    ASKS = "if it differs"
    MAY_LOWER = "if it is higher"
    MAY_RAISE = "if it is lower"
    MAY_TIGHTEN = "if it is weaker"
    """The values of the setting are ordered, from the weakest to the strictest."""
    MAY_ADD = "if it replaces your own"


class WithoutTrust(StrEnum):
    """What happens to a setting that needs trust and has none."""

    LEFT_OUT = "left out"
    """The run continues with the value that would be in force without the repository's file."""
    NEEDED = "stops"
    """Without it the result would be about something else, or a check would silently be missing."""


class SettingTrust(NamedTuple):
    """The decision about one setting."""

    path: str
    needs: TrustClass
    effect: str = ""
    """What a trusted value can do, for the person who is asked."""
    without: WithoutTrust = WithoutTrust.LEFT_OUT
    order: tuple[Any, ...] = ()
    """The values from the weakest to the strictest."""


class HeldSetting(NamedTuple):
    """A setting of a repository that is not in force."""

    path: tuple[str | int, ...]
    name: str
    value: Any
    instead: Any
    """The value that is in force without it."""
    trust: SettingTrust


_FREE, _ASKS, _LOWER, _RAISE, _TIGHTEN, _ADD = TrustClass
_NEEDED = WithoutTrust.NEEDED
_COST = "lets a run use more of your money or machine"
_LESS_EVIDENCE = "lets a change pass with less evidence"
_BREAKER = "lets a run that makes no progress continue for longer"
_SENT = "decides which agent and model receive your code, and what they cost"
_GIT = "changes what a run does to your checkout and commits"

SETTINGS: tuple[SettingTrust, ...] = (
    SettingTrust("verify.check", _ADD, "replaces the checks of your own configuration", _NEEDED),
    SettingTrust("verify.check[].name", _FREE),
    SettingTrust("verify.check[].argv", _FREE),
    SettingTrust("verify.check[].id", _ASKS, "replaces the check that is found under this id", _NEEDED),
    SettingTrust("verify.check[].tier", _FREE),
    SettingTrust("verify.check[].root", _FREE),
    SettingTrust("verify.check[].report", _FREE),
    SettingTrust("verify.check[].report_on", _FREE),
    SettingTrust("verify.check[].select", _FREE),
    SettingTrust("verify.check[].timeout_s", _FREE),
    SettingTrust("verify.check[].network", _TIGHTEN, "gives this check the network", _NEEDED, (True, False)),
    SettingTrust("verify.check[].required", _FREE),
    SettingTrust("verify.check[].writes", _FREE),
    SettingTrust("verify.disable", _ASKS, "switches checks off"),
    SettingTrust("verify.roots", _ASKS, "leaves projects of the repository unverified"),
    SettingTrust(
        "verify.setup.network", _TIGHTEN, "gives the installation of dependencies the network", order=(True, False)
    ),
    SettingTrust("verify.setup.commands", _ASKS, "runs these commands in the sandbox to prepare environments", _NEEDED),
    SettingTrust("verify.setup.env.*", _ASKS, "sets this variable while environments are prepared", _NEEDED),
    SettingTrust("verify.setup.timeout_s", _FREE),
    SettingTrust(
        "verify.sandbox.tier",
        _TIGHTEN,
        "accepts weaker isolation for commands of the repository",
        order=(SandboxTier.NONE.value, SandboxTier.UID.value, SandboxTier.LANDLOCK.value, SandboxTier.NAMESPACES.value),
    ),
    SettingTrust("verify.sandbox.memory_mb", _LOWER, "lets commands use more memory"),
    SettingTrust("verify.sandbox.processes", _LOWER, "lets commands start more processes"),
    SettingTrust("verify.oracle", _TIGHTEN, _LESS_EVIDENCE, order=tuple(mode.value for mode in OracleMode)),
    SettingTrust("verify.mutants", _RAISE, _LESS_EVIDENCE),
    SettingTrust("verify.mutants_s", _RAISE, _LESS_EVIDENCE),
    SettingTrust("agents.default", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.models.*", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.roles.*.agent", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.roles.*.model", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.roles.*.instances.*.agent", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.roles.*.instances.*.model", _ASKS, _SENT, _NEEDED),
    SettingTrust("agents.backend.*", _ASKS, "sends your code to a model server on this machine; never a key", _NEEDED),
    SettingTrust("agents.gateway.request_s", _ASKS, _COST),
    SettingTrust("agents.gateway.unread_s", _ASKS, _COST),
    SettingTrust("agents.gateway.idle_s", _ASKS, _COST),
    SettingTrust("agents.gateway.connections", _ASKS, _COST),
    SettingTrust("agents.gateway.provider_wait_s", _LOWER, _COST),
    SettingTrust("agents.prices.*.input", _ASKS, _COST),
    SettingTrust("agents.prices.*.output", _ASKS, _COST),
    SettingTrust("agents.prices.*.cached", _ASKS, _COST),
    SettingTrust("feature.dirty", _TIGHTEN, _GIT, order=(Dirty.SNAPSHOT.value, Dirty.REFUSE.value)),
    SettingTrust(
        "policy.path",
        _TIGHTEN,
        "lets fewer agents look at a change",
        order=(PathChoice.LIGHT.value, PathChoice.AUTO.value, PathChoice.FULL.value),
    ),
    SettingTrust("policy.retry.dispatch", _LOWER, _COST),
    SettingTrust("policy.retry.inside_agent", _LOWER, _COST),
    SettingTrust("policy.retry.database_busy", _FREE),
    SettingTrust("policy.retry.checks", _LOWER, _COST),
    SettingTrust("policy.review.approvals", _RAISE, _LESS_EVIDENCE),
    SettingTrust("policy.review.design_revisions", _FREE),
    SettingTrust("policy.review.code_rounds", _FREE),
    SettingTrust("policy.review.on_exhausted", _TIGHTEN, _LESS_EVIDENCE, order=("low-confidence", "error")),
    SettingTrust("policy.verification.standard_checks", _RAISE, _LESS_EVIDENCE),
    SettingTrust("policy.verification.large_checks", _RAISE, _LESS_EVIDENCE),
    SettingTrust("policy.verification.iterations", _LOWER, _COST),
    SettingTrust("policy.verification.revert_from", _FREE),
    SettingTrust("policy.verification.self_fixes", _LOWER, _COST),
    SettingTrust("policy.risk", _ASKS, "changes which files count as risky, and so how much evidence they need"),
    SettingTrust("policy.researchers", _RAISE, _LESS_EVIDENCE),
    SettingTrust("policy.max_concurrent", _LOWER, _COST),
    SettingTrust("policy.human_loops", _FREE),
    SettingTrust("finish.checkout", _TIGHTEN, _GIT, order=(True, False)),
    SettingTrust("finish.co_author", _ASKS, _GIT),
    SettingTrust("artifacts.commit", _ASKS, _GIT),
    SettingTrust("budget.tokens", _LOWER, _COST),
    SettingTrust("budget.dollars", _LOWER, _COST),
    SettingTrust("budget.minutes", _LOWER, _COST),
    SettingTrust("budget.ask_above_dollars", _LOWER, _COST),
    SettingTrust("budget.ask_above_tokens", _LOWER, _COST),
    SettingTrust("forge.cap", _LOWER, _COST),
    SettingTrust("forge.max_attempts", _LOWER, _COST),
    SettingTrust("forge.interview_rounds", _FREE),
    SettingTrust("forge.plan_rounds", _FREE),
    SettingTrust(
        "forge.change_requests",
        _TIGHTEN,
        "lets an agent answer requests to change the plan",
        order=(Decider.CAPTAIN.value, Decider.PERSON.value),
    ),
    SettingTrust("forge.helpers", _LOWER, _COST),
    SettingTrust("forge.depth", _LOWER, _COST),
    SettingTrust("autopilot.cap", _LOWER, _COST),
    SettingTrust("autopilot.kept_events", _FREE),
    SettingTrust("autopilot.deferral_rate", _LOWER, "silences the warning about deferred phases"),
    SettingTrust("autopilot.command_seconds", _FREE),
    SettingTrust("autopilot.quick_phase_seconds", _RAISE, "silences the warning about phases that end too quickly"),
    SettingTrust("autopilot.minimum_verification_seconds", _RAISE, _LESS_EVIDENCE),
    SettingTrust("autopilot.audit", _TIGHTEN, "skips the audit at the end of a run", order=(False, True)),
    SettingTrust("autopilot.breaker.no_progress_threshold", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.same_error_threshold", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.output_degradation_pct", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.max_debug_attempts_per_phase", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.max_replan_attempts_per_phase", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.max_total_retries_per_run", _LOWER, _BREAKER),
    SettingTrust("autopilot.breaker.cooldown_minutes", _RAISE, _BREAKER),
    SettingTrust("autopilot.breaker.cost_cap_tokens_per_phase", _LOWER, _COST),
    SettingTrust("autopilot.breaker.cost_cap_tokens_total", _LOWER, _COST),
    SettingTrust("autopilot.breaker.wall_clock_timeout_minutes_per_phase", _LOWER, _COST),
    SettingTrust("autopilot.breaker.wall_clock_timeout_minutes_total", _LOWER, _COST),
)
"""The decision about every setting. `*` stands for a name, `[]` for each table of a list. Keys, key commands and
addresses on other machines are not here: they are refused in a repository's file, trusted or not."""

_BY_PATH = {setting.path: setting for setting in SETTINGS}
_UNSPOKEN = frozenset({"roles", "instances"})
"""Parts of a path that the contract has and the file has not."""


def held_settings(table: str, said: Mapping[str, Any], below: Mapping[str, Any]) -> tuple[HeldSetting, ...]:
    """Return the settings of a repository's table that need trust; `below` is in force without them.

    Both are plain values in the form of the table's contract. A setting without a row needs trust.
    """
    return tuple(_held((table,), table, said, below))


def without_held(table: str, said: Mapping[str, Any], held: Sequence[HeldSetting]) -> dict[str, Any]:
    """Return a table without the settings that are held back."""
    return _without((table,), said, {setting.path for setting in held})


def _without(way: tuple[str | int, ...], said: Mapping[str, Any], held: set[tuple[str | int, ...]]) -> dict[str, Any]:
    kept = {}
    for key, value in said.items():
        here = (*way, key)
        if here not in held:
            kept[key] = _without(here, value, held) if isinstance(value, Mapping) else value
    return kept


def _held(way: tuple[str | int, ...], pattern: str, value: Any, below: Any) -> Iterator[HeldSetting]:
    setting = _BY_PATH.get(pattern)
    if setting is not None and setting.needs is not TrustClass.MAY_ADD:
        if _needs_trust(setting, value, below):
            yield _as_held(way, value, below, setting)
    elif isinstance(value, Mapping):
        under = below if isinstance(below, Mapping) else {}
        for key, inner in value.items():
            yield from _held((*way, key), _step(pattern, key), inner, under.get(key))
    elif setting is not None:
        if below:
            yield _as_held(way, value, below, setting)
        for index, inner in enumerate(value):
            for key, field in inner.items():
                yield from _held((*way, index, key), f"{pattern}{EACH}.{key}", field, _UNSAID.get(f"{pattern}.{key}"))
    else:
        yield _as_held(way, value, below, SettingTrust(pattern, TrustClass.ASKS, without=WithoutTrust.NEEDED))


_UNSAID = {"verify.check.network": False}
"""Defaults of fields in lists, whose tables have nothing below them."""


def _step(pattern: str, key: str) -> str:
    named, unnamed = f"{pattern}.{key}", f"{pattern}.{ANY_NAME}"
    has_names = any(path == unnamed or path.startswith(f"{unnamed}.") for path in _BY_PATH)
    return unnamed if has_names else named


def _needs_trust(setting: SettingTrust, value: Any, below: Any) -> bool:
    match setting.needs:
        case TrustClass.FREE:
            return False
        case TrustClass.MAY_LOWER:
            return below is not None and value > below
        case TrustClass.MAY_RAISE:
            return below is None or value < below
        case TrustClass.MAY_TIGHTEN:
            return below is None or setting.order.index(value) < setting.order.index(below)
        case _:
            return bool(value != below)


def _as_held(way: tuple[str | int, ...], value: Any, below: Any, setting: SettingTrust) -> HeldSetting:
    spelled = ""
    for part in way:
        if isinstance(part, int):
            spelled += f"[{part}]"
        elif part not in _UNSPOKEN:
            spelled += f".{part}" if spelled else part
    return HeldSetting(way, spelled, value, below, setting)
