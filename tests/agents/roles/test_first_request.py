"""A first request is short, begins with what others of its kind share, and names only what is there."""

import json
import os
import re
import sys
from functools import reduce
from itertools import combinations

import pytest

from agents.roles.briefs import BRIEFS, offers_of, tools_of
from fairwitness.agents.backends.turn_loop import SUBMIT, SUBMIT_DESCRIPTION
from fairwitness.agents.prompt_text import PROMPTS, render
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import fields_of, form_of, unasked_fields
from fairwitness.agents.toolset.offers import is_usable
from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool

TEXT_LIMIT, REQUEST_LIMIT = 4_000, 8_000
"""Bytes of a role's fixed text, and of that with its tools and the form of its answer."""


def _text(brief: Brief) -> str:
    return render(ROLES[brief.role], brief, tools=tools_of(brief.role), submits=True)


def _shared(one: str, other: str) -> str:
    """How both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return one[: next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))]


def _form(role: Role) -> dict[str, object]:
    spec = ROLES[role]
    return form_of(str(spec.answer), unasked_fields(spec, BRIEFS[role].known, tools_of(role))).schema


def _size(name: str, words: str, schema: dict[str, object]) -> int:
    """The bytes of a tool in a request of the OpenAI dialect."""
    told = {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
    return len(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()) + 1


def sizes(role: Role) -> tuple[int, int, int]:
    """The bytes of a role's text without inputs, of its tools, and of the form of its answer."""
    text = len(_text(BRIEFS[role].model_copy(update={"inputs": ()})).encode())
    tools = sum(_size(spec.name, spec.description, spec.schema) for spec in offers_of(role))
    return text, tools, _size(SUBMIT, SUBMIT_DESCRIPTION, _form(role))


@pytest.mark.req("P15")
@pytest.mark.parametrize("role", BRIEFS)
def test_a_first_request_keeps_to_its_limits(role: Role) -> None:
    text, tools, form = sizes(role)
    assert text <= TEXT_LIMIT
    assert text + tools + form <= REQUEST_LIMIT


def test_the_table_of_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed if `FAIRWITNESS_SIZES` is set in the environment."""
    with capsys.disabled():
        for role in BRIEFS if os.environ.get("FAIRWITNESS_SIZES") else ():
            text, tools, form = sizes(role)
            row = f"{role.value:22} text {text:5} tools {tools:5} form {form:5} total {text + tools + form:5}"
            sys.stdout.write(f"{row}\n")
    assert sum(sum(sizes(role)) for role in BRIEFS) <= 150_000


def _instances(role: Role) -> list[Brief]:
    brief, variants = BRIEFS[role], ROLES[role].variants
    assert variants is not None
    return [
        brief.model_copy(
            update={
                "instance": instance,
                "parameters": {**brief.parameters, variants.parameter: instance.removeprefix("researcher-")},
            }
        )
        for instance in ROLES[role].instances
    ]


@pytest.mark.req("P4", "P7")
@pytest.mark.parametrize("role", [Role.RESEARCHER, Role.REVIEWER])
def test_instances_of_a_role_share_everything_up_to_their_own_task(role: Role) -> None:
    for one, other in combinations(map(_text, _instances(role)), 2):
        shared = _shared(one, other)
        assert "\n## Your task\n" in shared
        assert len(shared) > 0.75 * len(one)


@pytest.mark.parametrize("role", BRIEFS)
def test_dispatches_of_a_role_share_everything_up_to_their_inputs(role: Role) -> None:
    brief = BRIEFS[role]
    parameters = {
        name: value if name == "perspective" or name == "focus" else "other" for name, value in brief.parameters.items()
    }
    other = brief.model_copy(update={"task": "Another task.", "parameters": parameters, "inputs": brief.inputs[:1]})
    shared = _shared(_text(brief), _text(other))
    assert f"\n### {brief.inputs[0].title}\n" in shared
    assert brief.inputs[0].text.strip() in shared


def test_all_roles_begin_alike() -> None:
    assert len(reduce(_shared, map(_text, BRIEFS.values()))) > 500


_NAMED = re.compile(r"`([a-z][a-z_]+(?:\.[a-z_]+)*)`")
_ELSEWHERE = {
    # of the task documents that a planner writes, of the ledger, and of files beside the answer
    Role.PLANNER: {"agent", "implementer", "task.test_waiver", "replan", "initial"},
    Role.KNOWLEDGE: {"anvil_checks", "pipeline_telemetry", "artifact_evaluations", "decisions.yaml"},
    Role.DEBUGGER: {"find_and_fix", "find_root_cause_only"},
    Role.CAPTAIN: {"plan", "replan", "metadata.writes", "overlay", "rejected", "json"},
    Role.REFINERY: {"change_requests", "body"},
    Role.PHASE_VERIFIER: {"true", "false"},
}


def _values(node: object) -> set[str]:
    if isinstance(node, list):
        return {value for entry in node for value in _values(entry)}
    if not isinstance(node, dict):
        return set()
    own = {value for value in node.get("enum", ()) if isinstance(value, str)}
    return own.union(*(_values(value) for value in node.values()))


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_a_prompt_names_only_fields_values_and_tools_that_its_agent_has(role: Role) -> None:
    spec, schema = ROLES[role], _form(role)
    ways = {field.way.replace("[]", "") for field in fields_of(schema)}
    parts = {way.split(".", first)[-1] for way in ways for first in range(way.count(".") + 1)} | {
        part for way in ways for part in way.split(".")
    }
    known = parts | _values(schema) | set(tools_of(role)) | {"submit_result"} | _ELSEWHERE.get(role, set())
    named = set(_NAMED.findall((PROMPTS / f"{spec.prompt}.md").read_text()))
    assert named <= known, named - known


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", Role)
def test_who_can_write_nothing_has_no_tool_that_writes(role: Role) -> None:
    writing = {Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE} & POLICIES[role].tools
    assert not any(is_usable(tool, role, Scope()) for tool in writing)
    source = Scope(writes=("a.py",))
    assert all(is_usable(tool, role, source) is POLICIES[role].source for tool in writing)
    run = Scope(folder="docs/feature/x")
    assert all(is_usable(tool, role, run) is bool(ROLES[role].documents) for tool in writing)


@pytest.mark.parametrize("role", BRIEFS)
def test_nobody_is_told_to_write_a_file_and_not_to_write_a_file(role: Role) -> None:
    forbids = "Do not write the answer into a file" in _text(BRIEFS[role])
    assert forbids is not bool(ROLES[role].documents)
