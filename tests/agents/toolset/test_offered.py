"""What each role is shown: only its own tools, and only those that something here can answer."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from inline_snapshot import snapshot

from agents.toolset.kit import SCOPE, Bench
from fairwitness.agents.toolset.arguments import ARGUMENTS
from fairwitness.agents.toolset.offers import WORDS, schema
from fairwitness.agents.toolset.toolbox import OWN_TOOLS, Toolbox
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool
from fairwitness.errors import UsageError
from fairwitness.sandbox.scripted import ScriptedRunner

SOURCES = {tool: lambda **_: "" for tool in Tool if tool not in OWN_TOOLS}


@pytest.mark.req("X3")
def test_the_whole_table_of_roles_and_tools(tmp_path: Path) -> None:
    """`+` is always offered, `s` is offered where somebody answers it, `-` never is."""
    rows = []
    for role in Role:
        scope = SCOPE.model_copy(update={"checks": ("pytest",), "interactive": True})
        alone = {spec.name for spec in Bench(tmp_path, role=role, scope=scope).box.offered()}
        full = {spec.name for spec in Bench(tmp_path, role=role, scope=scope, sources=SOURCES).box.offered()}
        policy = POLICIES[role]
        idle = {Tool.CREATE_FILE, Tool.REPLACE_STRING} if not (policy.source or policy.writes) else set()
        assert alone <= full == {tool.value for tool in policy.tools - idle}
        rows.append(" ".join("+" if tool in alone else "s" if tool in full else "-" for tool in Tool) + f" {role}")
    assert [tool.value for tool in Tool] == snapshot(
        [
            "read_file",
            "list_dir",
            "grep_search",
            "semantic_search",
            "file_search",
            "create_file",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "run_in_terminal",
            "get_terminal_output",
            "get_errors",
            "memory",
            "ask_questions",
            "list_code_usages",
            "agent",
            "query_ledger",
            "query_map",
            "read_subtasks",
            "write_subtask",
            "merge_branches",
            "run_tests",
            "fix_conflict",
            "emit_cr",
            "run_check",
        ]
    )
    assert rows == snapshot(
        [
            "+ + - - - - - - + + - s s - s s - - - - - - - - orchestrator",
            "+ + + - + - - - - - - - - - - - - - - - - - - - intake",
            "+ + + s + - - - - - - - - - - - s - - - - - - - researcher",
            "+ + + s + - - - - - - - s - - - s - - - - - - - spec",
            "+ + + s + - - - - - - - - - - - s - - - - - - - designer",
            "+ + + s + - - - + - - - - - - - s - - - - - - s adversarial-reviewer",
            "+ + + s + + + - - - - - - - - - s - - - - - - - planner",
            "+ + + s + + + + + + s - - s - - s - - - - - - s implementer",
            "+ + + - + - - - + + s - - - - - s - - - - - - s verifier",
            "+ + + s + - - - - - - s - - - s s - - - - - - - knowledge-agent",
            "+ + + s + - - - - - - - - - - - s - - - - - - - phase-researcher",
            "+ + + s + - - - - - - - - - - - s - - - - - - - phase-planner",
            "+ + + s + - - - - - - - - - - - s - - - - - - - plan-checker",
            "+ + + s + + + + + + s - - s - - s - - - - - - s executor",
            "+ + + s + - - - + + s - - - - - s - - - - - - s mini-verifier",
            "+ + + s + - - - + + s - - - - - s - - - - - - s phase-verifier",
            "+ + + s + - - - + + s - - - - - s - - - - - - s judge",
            "- - - - - - - - - - - - - - - - - - - - - - - - rater",
            "+ + + s + + + + + + s - - s - - s - - - - - - s debugger",
            "+ + + s + - - - - - - - - - - - s - - - - - - - questioning",
            "+ + + s + - - - - - - - - - - - s - - - - - - - self-audit",
            "+ + + s + - - - - - - - s - - - s - - - - - - - captain",
            "+ + + - - + + - + - s - - - - - - - - - - - - s worker-1",
            "+ + + - - + + - + - s - - - s - - - - - - - - s worker-2",
            "+ + + - - + + - + - s - - - s - - s s - - - - s worker-3",
            "+ + + - - + + - + - s - - - s - - s s s s s s s refinery",
        ]
    )


def test_a_tool_that_is_of_no_use_here_is_not_offered(tmp_path: Path) -> None:
    def names(role: Role, scope: Scope) -> set[str]:
        return {spec.name for spec in Bench(tmp_path, role=role, scope=scope, sources=SOURCES).box.offered()}

    assert {"create_file", "replace_string_in_file", "run_check"}.isdisjoint(names(Role.IMPLEMENTER, Scope()))
    assert {"create_file", "run_check"} <= names(Role.IMPLEMENTER, SCOPE.model_copy(update={"checks": ("pytest",)}))
    assert "ask_questions" not in names(Role.SPEC, Scope())
    assert "ask_questions" in names(Role.SPEC, Scope(interactive=True))


def test_the_checks_are_named_by_the_tool_that_runs_them(tmp_path: Path) -> None:
    scope = Scope(checks=tuple(f"check-{number}" for number in range(40)))
    said = {spec.name: spec.description for spec in Bench(tmp_path, scope=scope, sources=SOURCES).box.offered()}
    assert said["run_check"].endswith("check-28, check-29 and 10 more.")


def test_every_tool_has_words_and_a_schema_that_every_model_interface_takes() -> None:
    assert set(WORDS) == set(ARGUMENTS) == set(Tool)
    for tool in Tool:
        found = schema(tool)
        jsonschema.Draft202012Validator.check_schema(found)
        assert found["type"] == "object"
        assert not _keys(found) & {"$ref", "$defs", "anyOf", "oneOf", "allOf"}


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


def test_a_schema_describes_what_is_taken() -> None:
    """Limits are not told: each call is validated, and a model that exceeds one is told which."""
    assert schema(Tool.MULTI_REPLACE) == snapshot(
        {
            "properties": {
                "replacements": {
                    "items": {
                        "properties": {
                            "path": {"type": "string"},
                            "old_string": {"type": "string"},
                            "new_string": {"type": "string"},
                        },
                        "required": ["path", "old_string", "new_string"],
                        "type": "object",
                    },
                    "type": "array",
                }
            },
            "required": ["replacements"],
            "type": "object",
        }
    )
    assert schema(Tool.WRITE_SUBTASK)["properties"]["title"] == {"type": "string"}
    changed = schema(Tool.READ_FILE)
    changed.clear()
    assert schema(Tool.READ_FILE)


def test_what_the_toolset_answers_itself_has_no_other_source(tmp_path: Path) -> None:
    runner = ScriptedRunner(())
    with pytest.raises(UsageError, match="read_file is answered by the toolset itself"):
        Toolbox(
            role=Role.JUDGE, scope=SCOPE, worktree=tmp_path, runner=runner, sources={Tool.READ_FILE: lambda **_: ""}
        )
    for place in (Path("relative"), Path("/")):
        with pytest.raises(UsageError, match="is no place for a worktree"):
            Toolbox(role=Role.JUDGE, scope=SCOPE, worktree=place, runner=runner)
