"""The `[agents]` settings: the table of the checkout over that of the user configuration.

A repository may choose agents once its file is trusted. It may not say where a key is, nor send one anywhere: only the
person's own file may. Unknown settings are refused.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairwitness.app.settings.trust import NAME, RepositoryFile, left_out_note, refuse_needed
from fairwitness.app.settings.verify import RepositoryContent, TableReading, read_table, refused
from fairwitness.contracts.agents.dispatch import Probe
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.agents.settings import AgentChoice, AgentsSettings, ModelChoice, RoleChoice
from fairwitness.contracts.common.ids import is_safe_name
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.addresses import is_loopback
from fairwitness.kit.redaction import redact
from fairwitness.kit.text import visible
from fairwitness.rules.problem_words import problems_of
from fairwitness.rules.repository_settings import HeldSetting

TABLE = "agents"
ORDER = ("claude", "codex", "copilot", "gemini", "goose", "opencode", "qwen", "kimi-code", "vibe", "api")
"""Without a choice the first usable one of these is taken; the built-in loop with a model's key is last."""
CASSETTE = "cassette"
SHORT = {"reviewer": Role.REVIEWER}
"""Short names of roles."""
_OWN_KEYS = ("default", "models", "backend", "gateway", "prices")
_KEY_WAYS = ("key_env", "key_cmd")
_PLAIN = "only texts, numbers, lists of texts and tables"

Raw = dict[str, Any]


class AgentsReading(NamedTuple):
    """The settings in force, and those of the repository's file that are not."""

    settings: AgentsSettings
    digest: str
    """The SHA-256 of what was read."""
    file: RepositoryFile | None
    held: tuple[HeldSetting, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence about the settings that are not in force; empty if all are."""
        return (left_out_note(self.file, self.held),) if self.file is not None and self.held else ()

    def refuse_held(self, override: str | None) -> None:
        """Raise `NotReady` if a run would have another agent than the repository's file says.

        An agent that the person named decides by itself, unless only the file says what it is.
        """
        names = {str(setting.path[2]) for setting in self.held if setting.path[1] == "backend"}
        if override is None or (override in names and override not in self.settings.backend):
            refuse_needed(self.file, self.held)


def agents_settings(top: Path | None, roles: Mapping[Role, RoleSpec], *, user: Path | None = None) -> AgentsReading:
    """Return the effective settings."""
    reading = read_agents_table(top, roles, user=user)
    merged: Raw = {}
    for _, table in reading.layers:
        merged = _over(merged, table)
    settings = _validated(reading.layers[-1][0] if reading.layers else NAME, merged)
    return AgentsReading(settings, reading.digest, reading.file, reading.held)


def read_agents_table(
    top: Path | None,
    roles: Mapping[Role, RoleSpec],
    *,
    user: Path | None = None,
    instead: RepositoryContent | None = None,
) -> TableReading:
    """Return the `[agents]` table of each file."""

    def checked(where: str, table: Raw) -> Raw:
        _refuse_unknown(where, table, roles)
        sorted_out = _sorted_out(where, table)
        settings = _validated(where, sorted_out)
        _refuse_nonsense(where, settings)
        if where == NAME:
            _refuse_keys(where, settings)
        return sorted_out

    return read_table(TABLE, top, checked, AgentsSettings().plain(), user=user, instead=instead)


def role_named(name: str) -> Role:
    """Return a role by its name or short name."""
    if name in SHORT:
        return SHORT[name]
    if name not in {role.value for role in Role}:
        listed = ", ".join(role.value for role in Role)
        raise UsageError(f"there is no role {visible(name)!r}", next_step=f"choose one of {listed}")
    return Role(name)


def choose(
    spec: RoleSpec,
    instance: str,
    settings: AgentsSettings,
    override: str | None,
    probe: Callable[[str], Probe],
) -> ModelChoice:
    """Return the agent for a role: by override, instance, role, default, or the first usable one.

    A model applies only to the agent it was set for: `[agents.models]` names models of the default agent.
    """
    role = settings.roles.get(spec.role, RoleChoice())
    levels = (role.instances.get(instance, AgentChoice()), role)
    said = [level.agent for level in levels]
    agent = override or next(filter(None, (*said, settings.default)), None) or _first_found(probe)
    if not is_safe_name(agent):
        raise UsageError(f"there is no agent {visible(agent)!r}", next_step="fairwitness agents list")
    for depth, level in enumerate(levels):
        meant = next(filter(None, (*said[depth:], settings.default)), agent)
        if level.model is not None and meant == agent:
            return ModelChoice(agent=agent, model=level.model)
    if agent in settings.backend and settings.backend[agent].model is not None:
        return ModelChoice(agent=agent, model=settings.backend[agent].model)
    is_default = settings.default in (None, agent)
    return ModelChoice(agent=agent, model=settings.models.get(spec.model) if is_default else None)


def _first_found(probe: Callable[[str], Probe]) -> str:
    for name in ORDER:
        found = probe(name)
        if found.found and not found.missing:
            return name
    raise NotReady(
        "no agent can be used here, and there is no key for a model",
        next_step=(
            "install one that speaks ACP (npm install -g @agentclientprotocol/claude-agent-acp), or set a key "
            "(ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY) for `--agents api`, or play a recording "
            "(`--agents cassette --cassette FILE`, `fairwitness demo`)"
        ),
    )


def _refuse_unknown(where: str, table: Raw, roles: Mapping[Role, RoleSpec]) -> None:
    names = {role.value: role for role in Role} | SHORT
    for key, value in table.items():
        if key in _OWN_KEYS:
            continue
        if key not in names:
            raise refused(where, f"{TABLE}.{key}", f"{', '.join(_OWN_KEYS)} or a role ({', '.join(sorted(names))})")
        if not isinstance(value, dict):
            raise refused(where, f"{TABLE}.{key}", 'a table, such as { agent = "claude" }')
        instances = roles[names[key]].instances
        for inner in value:
            if inner not in AgentChoice.model_fields and inner not in instances:
                listed = ", ".join((*AgentChoice.model_fields, *instances))
                raise refused(where, f"{TABLE}.{key}.{inner}", f"one of {listed}")


def _sorted_out(where: str, table: Raw) -> Raw:
    """Return the table in the form of the contract: full role names, instances separate from roles."""
    found: Raw = {key: table[key] for key in _OWN_KEYS if key in table}
    roles: Raw = {}
    for key, value in table.items():
        if key in _OWN_KEYS:
            continue
        name = SHORT[key].value if key in SHORT else key
        if name in roles:
            raise refused(where, f"{TABLE}.{key}", f"{name} only once")
        said = {inner: value[inner] for inner in value if inner in AgentChoice.model_fields}
        roles[name] = {**said, "instances": {inner: value[inner] for inner in value if inner not in said}}
    return {**found, "roles": roles}


def _validated(where: str, table: Raw) -> AgentsSettings:
    try:
        # as JSON: strict mode then accepts a list as a tuple, but no "5" as a number
        return AgentsSettings.model_validate_json(json.dumps(table, allow_nan=False), strict=True)
    except ValidationError as error:
        first = problems_of(table, error.errors(include_url=False))[0]
        way = [step for step in first.where if step not in ("roles", "instances")]
        raise refused(where, spell_path((TABLE, *way)), f"{first.expected}, found {first.found}") from None
    except (TypeError, ValueError, RecursionError):
        raise refused(where, TABLE, _PLAIN) from None


def _refuse_nonsense(where: str, settings: AgentsSettings) -> None:
    """Check what a schema cannot: a command must not contain a key, and a backend needs its own name."""
    for name, backend in settings.backend.items():
        if name in (CASSETTE, "api"):
            raise refused(where, f"{TABLE}.backend.{name}", f"another name: {name} is there already")
        for word in backend.key_cmd or ():
            if redact(word) != word:
                raise refused(where, f"{TABLE}.backend.{name}.key_cmd", "a command that fetches the key, not the key")


def _refuse_keys(where: str, settings: AgentsSettings) -> None:
    """Refuse keys, key commands and addresses in a repository's settings: they could send a key elsewhere."""
    for name, backend in settings.backend.items():
        if backend.base_url is None or not is_loopback(backend.base_url):
            step = "write this backend into your own configuration (fairwitness doctor says where it is)"
            way = f"{TABLE}.backend.{name}.base_url"
            raise refused(where, way, "an address on this machine: a repository may name no other", next_step=step)
        for way in _KEY_WAYS:
            if getattr(backend, way) is not None:
                step = "write this backend into your own configuration (fairwitness doctor says where it is)"
                raise refused(where, f"{TABLE}.backend.{name}.{way}", "no way to a key in a repository", next_step=step)


def _over(below: Raw, above: Raw) -> Raw:
    """Merge settings key by key, but keep a model with its agent and a backend as a whole."""
    roles = dict(below.get("roles", {}))
    for name, said in above["roles"].items():
        old = roles.get(name, {"instances": {}})
        instances = dict(old["instances"])
        for instance, choice in said["instances"].items():
            instances[instance] = _choice(instances.get(instance, {}), choice)
        roles[name] = {**_choice(old, said), "instances": instances}
    models = {} if _is_another(below, above, "default") else below.get("models", {})
    merged = {**below, **above, "roles": roles, "models": {**models, **above.get("models", {})}}
    merged["backend"] = {**below.get("backend", {}), **above.get("backend", {})}
    return merged


def _choice(below: Raw, above: Raw) -> Raw:
    kept = {} if _is_another(below, above, "agent") else below
    return {key: value for key, value in {**kept, **above}.items() if key in AgentChoice.model_fields}


def _is_another(below: Raw, above: Raw, key: str) -> bool:
    return key in above and above[key] != below.get(key)
