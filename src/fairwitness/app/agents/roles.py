"""The roles and the agents that play them: a list, and one role in detail."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.prompt_text import words_of
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import explain, form_of, unasked_fields
from fairwitness.app.assembly.agent_choice import Prober, instance_of, settings_of
from fairwitness.app.assembly.models import is_priced, prices_of, route_of
from fairwitness.app.settings.agents import choose, role_named
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.common.tools import POLICIES, Access, Tool
from fairwitness.errors import NotReady
from fairwitness.rules.budgets import EXTERNAL, sized
from fairwitness.rules.tool_policy import access


@dataclass(frozen=True, slots=True)
class ListedRole:
    """A role in the list."""

    name: str
    workflow: str
    title: str
    purpose: str
    answer: str | None
    tools: tuple[str, ...]
    writes: tuple[str, ...]
    """Globs below the run's folder; `(declared)` means the files that the task declares."""
    statuses: tuple[str, ...]
    timeout_s: float
    budget: dict[str, int]
    """The budget of one call by this agent, as it is enforced."""
    turns: int
    """The maximum number of model calls in it."""
    own_prompt: int
    """The tokens of the budget that are for the agent's own prompt."""
    is_priced: bool | None
    """Whether the price of the model is known, so that dollars are counted; None without an agent or a key."""
    instances: tuple[str, ...]
    agent: str | None
    """The agent; None if none is usable, and for the orchestrator, which is this program."""
    model: str | None


@dataclass(frozen=True, slots=True)
class ShownRole:
    """A role in detail."""

    role: ListedRole
    words: str
    tools: dict[str, str]
    """Each tool of the role: `allowed`, or `scoped` to its own files and commands."""
    commands: tuple[str, ...]
    fields: str
    """The form of the answer in words."""
    schema: dict[str, Any]


def list_roles(where: Path) -> tuple[ListedRole, ...]:
    """Return every role, in the order of the workflows."""
    settings = settings_of(where).settings
    probe = Prober(settings)
    return tuple(_listed(spec, settings, probe) for spec in ROLES.values())


def settings_notes(where: Path) -> tuple[str, ...]:
    """Return what to know about agent settings of the repository that are not in force."""
    return settings_of(where).notes


def show_role(name: str, where: Path) -> ShownRole:
    """Return a role with its instructions, tools and the form of its answer."""
    spec = ROLES[role_named(name)]
    settings = settings_of(where).settings
    policy = POLICIES[spec.role]
    has = {tool: access(spec.role, tool) for tool in Tool}
    return ShownRole(
        role=_listed(spec, settings, Prober(settings)),
        words=words_of(spec.prompt),
        tools={tool.value: level.value for tool, level in has.items() if level is not Access.DENIED},
        commands=tuple(" ".join(start) for start in policy.programs),
        fields=explain(spec.answer, unasked_fields(spec, ())) if spec.answer is not None else "",
        schema=form_of(spec.answer, unasked_fields(spec, ())).schema if spec.answer is not None else {},
    )


def _listed(spec: RoleSpec, settings: AgentsSettings, probe: Prober) -> ListedRole:
    policy = POLICIES[spec.role]
    choice = _choice(spec, settings, probe)
    kind = probe(choice.agent).kind if choice is not None else ""
    given = sized(spec, kind)
    return ListedRole(
        name=spec.role.value,
        workflow=spec.workflow.value,
        title=spec.title,
        purpose=spec.purpose,
        answer=spec.answer,
        tools=tuple(tool.value for tool in Tool if tool in policy.tools),
        writes=(*policy.writes, *(("(declared)",) if policy.source else ())),
        statuses=tuple(status.value for status in spec.statuses),
        timeout_s=spec.timeout_s,
        budget=given.budget.plain(),
        turns=given.turns,
        own_prompt=EXTERNAL.tokens if kind == "acp" and spec.budget.tokens else 0,
        is_priced=None if choice is None else _is_priced(choice, settings),
        instances=spec.instances,
        agent=choice.agent if choice is not None else None,
        model=choice.model if choice is not None else None,
    )


def _is_priced(choice: ModelChoice, settings: AgentsSettings) -> bool | None:
    try:
        return is_priced(route_of(choice.agent, choice.model, settings), prices_of(settings.prices))
    except NotReady:
        return None


def _choice(spec: RoleSpec, settings: AgentsSettings, probe: Prober) -> ModelChoice | None:
    if not spec.is_dispatched:
        return None
    try:
        return choose(spec, instance_of(spec, None), settings, None, probe)
    except NotReady:
        return None
