"""Every setting has a decision about trust, and the decision is what the table says."""

from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from fairwitness.contracts.agents.settings import AgentsSettings
from fairwitness.contracts.autopilot.order import AutopilotSettings
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.feature.order import FeatureSettings
from fairwitness.contracts.graph.forge_order import ForgeSettings
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.rules.repository_settings import (
    SETTINGS,
    SettingTrust,
    TrustClass,
    WithoutTrust,
    held_settings,
    without_held,
)

TABLES: dict[str, type[Contract]] = {"verify": VerifySettings, "agents": AgentsSettings}
TABLES |= {
    name: field.annotation
    for contract in (FeatureSettings, ForgeSettings, AutopilotSettings)
    for name, field in contract.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Contract)
}
BY_PATH = {setting.path: setting for setting in SETTINGS}
DEFAULTS = {name: contract().plain() for name, contract in TABLES.items()}
NEVER_FREE = frozenset({"agents", "budget", "finish", "artifacts"})
"""Tables about other people's money, keys and checkouts: a setting of them may tighten, but never counts freely."""


def leaves(annotation: Any, path: str) -> Iterator[str]:
    """The paths of all settings below one; a setting that the table has as a whole is not looked into."""
    setting = BY_PATH.get(path)
    if setting is not None and setting.needs is not TrustClass.MAY_ADD:
        yield path
        return
    origin, inner = get_origin(annotation), [part for part in get_args(annotation) if part is not type(None)]
    if origin is Annotated or origin in (Union, UnionType):
        yield from leaves(inner[0], path)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from leaves(field.annotation, f"{path}.{name}")
    elif origin is dict:
        yield from leaves(inner[1], f"{path}.*")
    elif origin is tuple and isinstance(inner[0], type) and issubclass(inner[0], BaseModel):
        yield path
        for name, field in inner[0].model_fields.items():
            yield from leaves(field.annotation, f"{path}[].{name}")
    else:
        yield path


@pytest.mark.req("X5")
def test_every_setting_has_exactly_one_decision() -> None:
    found = [path for name, contract in TABLES.items() for path in leaves(contract, name)]
    assert sorted(found) == sorted(setting.path for setting in SETTINGS)


def test_the_walk_over_the_contracts_would_notice_a_new_setting() -> None:
    class Newer(VerifySettings):
        notify: str = ""

    assert set(leaves(Newer, "verify")) - set(BY_PATH) == {"verify.notify"}


def test_a_setting_without_a_decision_needs_trust_and_stops_the_run() -> None:
    (held,) = held_settings("verify", {"hooks": {"before": ["rm"]}}, DEFAULTS["verify"])
    assert (held.name, held.trust.without) == ("verify.hooks.before", WithoutTrust.NEEDED)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: str(setting.path))
def test_a_decision_is_complete(setting: SettingTrust) -> None:
    assert bool(setting.effect) is (setting.needs is not TrustClass.FREE)
    assert bool(setting.order) is (setting.needs is TrustClass.MAY_TIGHTEN)
    assert not (setting.path.split(".")[0] in NEVER_FREE and setting.needs is TrustClass.FREE)


def _default(path: str) -> Any:
    table, *parts = path.split(".")
    value: Any = DEFAULTS[table]
    for part in parts:
        value = value.get(part)
    return value


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if "[" not in one.path and "*" not in one.path], ids=lambda one: str(one.path)
)
def test_the_default_itself_needs_no_trust_and_fits_the_decision(setting: SettingTrust) -> None:
    default = _default(setting.path)
    if default is not None:
        assert held(setting.path, default) == []
    if setting.needs is TrustClass.MAY_TIGHTEN:
        assert default in setting.order
    if setting.needs in (TrustClass.MAY_LOWER, TrustClass.MAY_RAISE):
        assert default is None or isinstance(default, (int, float))


def test_an_order_has_every_value_of_its_words() -> None:
    for setting in SETTINGS:
        if setting.order and "[" not in setting.path:
            annotation = _annotation(setting.path)
            every = {each.value for each in annotation} if issubclass(annotation, Enum) else {True, False}
            assert set(setting.order) == every, setting.path


def _annotation(path: str) -> type[Any]:
    table, *parts = path.split(".")
    found: Any = TABLES[table]
    for part in parts:
        found = found.model_fields[part].annotation
    return found if isinstance(found, type) and issubclass(found, Enum) else bool


def held(path: str, value: Any, user: Any = None) -> list[str]:
    """The settings that are held back if a repository says one thing, over the default or a user's own."""
    table, *parts = path.split(".")
    said: Any = value
    below = dict(DEFAULTS[table])
    for part in reversed(parts):
        said = {part: said}
    if user is not None:
        place = below = _copied(below)
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = user
    return [one.name for one in held_settings(table, said, below)]


def _copied(value: Any) -> Any:
    return {key: _copied(inner) for key, inner in value.items()} if isinstance(value, dict) else value


HELD: list[tuple[str, Any, Any]] = [
    ("verify.sandbox.tier", "none", None),
    ("verify.sandbox.tier", "uid", "ns"),
    ("verify.sandbox.tier", "ll", "ns"),
    ("verify.sandbox.memory_mb", 4097, None),
    ("verify.sandbox.memory_mb", 2048, 1024),
    ("verify.setup.network", True, None),
    ("verify.setup.commands", [["./setup"]], None),
    ("verify.disable", ["pytest"], None),
    ("verify.roots", ["."], None),
    ("verify.mutants", 0, None),
    ("verify.mutants", 9, None),
    ("agents.default", "claude", None),
    ("agents.default", "codex", "claude"),
    ("agents.models.strong", "big", None),
    ("agents.roles.implementer.agent", "claude", None),
    ("agents.roles.adversarial-reviewer.instances.security-sentinel.model", "m", None),
    ("agents.backend.local", {"provider": "openai", "base_url": "http://localhost:1/v1"}, None),
    ("agents.backend.b", {"provider": "openai"}, {"provider": "openai", "key_env": "MINE"}),
    ("policy.risk", [{"pattern": "*", "risk": "🟢"}], None),
    ("policy.risk", [], [{"pattern": "auth/**", "risk": "🔴"}]),
    ("policy.review.approvals", 2, 3),
    ("policy.review.on_exhausted", "low-confidence", "error"),
    ("budget.dollars", 1000.0, 5.0),
    ("finish.checkout", True, False),
    ("finish.co_author", False, None),
    ("artifacts.commit", "separate-commit", None),
    ("forge.change_requests", "captain", "person"),
    ("autopilot.audit", False, None),
    ("autopilot.breaker.cost_cap_tokens_total", 6_000_000, None),
    ("autopilot.breaker.cooldown_minutes", 1, None),
    ("feature.dirty", "snapshot", "refuse"),
]
FREE: list[tuple[str, Any, Any]] = [
    ("verify.sandbox.tier", "ns", None),
    ("verify.sandbox.tier", "ll", None),
    ("verify.sandbox.memory_mb", 512, None),
    ("verify.setup.network", False, True),
    ("verify.setup.network", True, True),
    ("verify.setup.timeout_s", 5.0, None),
    ("verify.disable", ["ruff"], ["ruff"]),
    ("verify.mutants", 20, None),
    ("agents.default", "claude", "claude"),
    ("policy.review.approvals", 3, None),
    ("budget.dollars", 1.0, 5.0),
    ("budget.dollars", 1000.0, None),
    ("finish.checkout", False, None),
    ("autopilot.breaker.cooldown_minutes", 60, None),
    ("autopilot.command_seconds", 600, None),
    ("feature.dirty", "refuse", None),
]


@pytest.mark.req("X5")
@pytest.mark.parametrize(("path", "value", "user"), HELD)
def test_what_weakens_needs_trust(path: str, value: Any, user: Any) -> None:
    (name,) = held(path, value, user)
    assert name == path.replace(".roles", "").replace(".instances", "")


@pytest.mark.parametrize(("path", "value", "user"), FREE)
def test_what_is_as_strict_needs_none(path: str, value: Any, user: Any) -> None:
    assert held(path, value, user) == []


def test_a_variable_of_the_set_up_is_named() -> None:
    assert held("verify.setup.env.PIP_INDEX_URL", "https://evil.example") == ["verify.setup.env.PIP_INDEX_URL"]


def test_a_check_that_adds_is_free_and_one_that_could_replace_is_not() -> None:
    adds = {"name": "lint", "argv": ["./lint"], "required": False, "network": False}
    said = {"check": [adds, {**adds, "id": "pytest"}, {**adds, "network": True}]}
    found = held_settings("verify", said, DEFAULTS["verify"])
    assert [one.name for one in found] == ["verify.check[1].id", "verify.check[2].network"]
    assert {one.trust.without for one in found} == {WithoutTrust.NEEDED}
    (replaces,) = held_settings("verify", {"check": [adds]}, {**DEFAULTS["verify"], "check": [adds]})
    assert (replaces.name, replaces.trust.without) == ("verify.check", WithoutTrust.NEEDED)


def test_what_is_held_back_is_taken_out_and_nothing_else() -> None:
    said = {"mutants": 0, "disable": ["x"], "sandbox": {"tier": "none", "memory_mb": 512}, "setup": {"timeout_s": 5.0}}
    found = held_settings("verify", said, DEFAULTS["verify"])
    assert [one.name for one in found] == ["verify.mutants", "verify.disable", "verify.sandbox.tier"]
    assert without_held("verify", said, found) == {"sandbox": {"memory_mb": 512}, "setup": {"timeout_s": 5.0}}
