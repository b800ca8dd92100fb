"""One script drives agents that name their tools and arguments in ten different ways."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fairwitness.agents.gateway.modes import UNPARSED, OfferedTool
from fairwitness.testing.script_steps import (
    CallStep,
    EditStep,
    ForceStep,
    GarbageStep,
    PatchStep,
    ReadStep,
    RunStep,
    SubmitStep,
    WriteStep,
)
from fairwitness.testing.script_tools import FittedCall, Unplayable, fit_call

pytestmark = pytest.mark.req("X3")


def _schema(*required: str, **fields: Any) -> dict[str, Any]:
    properties = {name: field if isinstance(field, dict) else {"type": field} for name, field in fields.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


ABSOLUTE = {"type": "string", "description": "The absolute path to the file"}
CLAUDE = (
    OfferedTool("Bash", _schema("command", command="string", timeout="number", description="string")),
    OfferedTool("Read", _schema("file_path", file_path=ABSOLUTE, offset="number")),
    OfferedTool("Write", _schema("file_path", "content", file_path=ABSOLUTE, content="string")),
    OfferedTool(
        "Edit",
        _schema(
            "file_path",
            "old_string",
            "new_string",
            file_path=ABSOLUTE,
            old_string="string",
            new_string="string",
            replace_all={"type": "boolean", "default": False},
        ),
    ),
)
GEMINI = (
    OfferedTool("read_file", _schema("absolute_path", absolute_path="string")),
    OfferedTool("write_file", _schema("file_path", "content", file_path="string", content="string")),
    OfferedTool(
        "replace",
        _schema(
            *("file_path", "instruction", "old_string", "new_string"),
            **{"file_path": "string", "instruction": "string", "old_string": "string", "new_string": "string"},
        ),
    ),
    OfferedTool("run_shell_command", _schema("command", command="string", description="string")),
)
OPENCODE = (
    OfferedTool("bash", _schema("command", "description", command="string", description="string")),
    OfferedTool("read", _schema("filePath", filePath="string")),
    OfferedTool("write", _schema("content", "filePath", content="string", filePath="string")),
    OfferedTool(
        "edit",
        _schema("filePath", "oldString", "newString", filePath="string", oldString="string", newString="string"),
    ),
)
CODEX = (
    OfferedTool("exec_command", _schema("cmd", cmd="string", workdir="string")),
    OfferedTool("apply_patch", {}, is_freeform=True),
)
OLD_CODEX = (
    OfferedTool("shell", _schema("command", command={"type": "array", "items": {"type": "string"}})),
    OfferedTool("apply_patch", _schema("input", input="string")),
)
GOOSE = (
    OfferedTool("developer__shell", _schema("command", command="string")),
    OfferedTool(
        "developer__text_editor",
        _schema(
            *("command", "path"),
            command={"type": "string", "enum": ["view", "write", "str_replace", "undo_edit"]},
            path="string",
            file_text="string",
            old_str="string",
            new_str="string",
        ),
    ),
)
NEW_GOOSE = (
    OfferedTool("read", _schema("path", path=ABSOLUTE)),
    OfferedTool("write", _schema("path", "content", path="string", content="string")),
    OfferedTool("edit", _schema("path", "before", "after", path="string", before="string", after="string")),
    OfferedTool("shell", _schema("command", command="string")),
)
PATCHING_OPENCODE = (
    OfferedTool("bash", _schema("command", command="string")),
    OfferedTool("read", _schema("filePath", filePath="string")),
    OfferedTool("apply_patch", _schema("patchText", patchText="string")),
)
KIMI = (
    OfferedTool("Shell", _schema("command", command="string")),
    OfferedTool("ReadFile", _schema("path", path="string")),
    OfferedTool("WriteFile", _schema("path", "content", path="string", content="string")),
    OfferedTool(
        "StrReplaceFile",
        _schema("path", "edit", path="string", edit={"$ref": "#/$defs/Edit"})
        | {"$defs": {"Edit": _schema("old", "new", old="string", new="string")}},
    ),
)
VIBE = (
    OfferedTool("bash", _schema("command", command="string")),
    OfferedTool("read_file", _schema("path", path="string")),
    OfferedTool("write_file", _schema("path", "content", path="string", content="string")),
    OfferedTool("search_replace", _schema("file_path", "content", file_path="string", content="string")),
)
OURS = (
    OfferedTool("read_file", _schema("path", path="string")),
    OfferedTool("create_file", _schema("path", "content", path="string", content="string")),
    OfferedTool(
        "multi_replace_string_in_file",
        _schema(
            *("explanation", "replacements"),
            explanation="string",
            replacements={
                "type": "array",
                "items": _schema(
                    "path", "old_string", "new_string", path="string", old_string="string", new_string="string"
                ),
            },
        ),
    ),
    OfferedTool("run_in_terminal", _schema("command", command="string")),
)
SHELL_ONLY = (OfferedTool("bash", _schema("command", command="string")),)

AGENTS = {
    "claude": CLAUDE,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "codex": CODEX,
    "old codex": OLD_CODEX,
    "goose": GOOSE,
    "new goose": NEW_GOOSE,
    "opencode that patches": PATCHING_OPENCODE,
    "kimi": KIMI,
    "vibe": VIBE,
    "ours": OURS,
    "shell only": SHELL_ONLY,
}
READ = ReadStep(path="src/a.py")
WRITE = WriteStep(path="src/new.py", content="x = 1\n")
EDIT = EditStep(path="src/a.py", old="a = 1", new="a = 2")
RUN = RunStep(command="make test")


def _made(call: CallStep, offers: tuple[OfferedTool, ...], cwd: str = "/tree") -> FittedCall:
    made = fit_call(call, offers, cwd)
    assert made is not None
    return made


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("call", [READ, WRITE, EDIT, RUN], ids=lambda call: str(call.op))
def test_every_operation_fits_the_tools_of_every_agent(agent: str, call: CallStep) -> None:
    made = _made(call, AGENTS[agent])
    offer = next(offer for offer in AGENTS[agent] if offer.name == made.tool)
    if not offer.is_freeform:
        strict = offer.schema | {"additionalProperties": False}
        Draft202012Validator(strict).validate(made.args)


@pytest.mark.parametrize(
    ("agent", "call", "expected"),
    [
        ("claude", READ, ("Read", {"file_path": "/tree/src/a.py"})),
        ("gemini", READ, ("read_file", {"absolute_path": "/tree/src/a.py"})),
        ("opencode", READ, ("read", {"filePath": "src/a.py"})),
        ("codex", READ, ("exec_command", {"cmd": "cat src/a.py"})),
        ("goose", READ, ("developer__text_editor", {"command": "view", "path": "src/a.py"})),
        ("opencode", RUN, ("bash", {"command": "make test", "description": "script"})),
        ("old codex", RUN, ("shell", {"command": ["bash", "-lc", "make test"]})),
        ("kimi", EDIT, ("StrReplaceFile", {"path": "src/a.py", "edit": {"old": "a = 1", "new": "a = 2"}})),
        (
            "goose",
            EDIT,
            (
                "developer__text_editor",
                {"command": "str_replace", "path": "src/a.py", "old_str": "a = 1", "new_str": "a = 2"},
            ),
        ),
        ("new goose", EDIT, ("edit", {"path": "src/a.py", "before": "a = 1", "after": "a = 2"})),
        (
            "opencode that patches",
            WRITE,
            ("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: src/new.py\n+x = 1\n*** End Patch"}),
        ),
        (
            "ours",
            EDIT,
            (
                "multi_replace_string_in_file",
                {
                    "explanation": "script",
                    "replacements": [{"path": "src/a.py", "old_string": "a = 1", "new_string": "a = 2"}],
                },
            ),
        ),
        (
            "vibe",
            EDIT,
            (
                "search_replace",
                {
                    "file_path": "src/a.py",
                    "content": "<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE",
                },
            ),
        ),
        (
            "codex",
            WRITE,
            ("apply_patch", {"input": "*** Begin Patch\n*** Add File: src/new.py\n+x = 1\n*** End Patch"}),
        ),
        (
            "old codex",
            EDIT,
            (
                "apply_patch",
                {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a = 1\n+a = 2\n*** End Patch"},
            ),
        ),
    ],
)
def test_tools_and_arguments_are_found_by_name(
    agent: str, call: CallStep, expected: tuple[str, dict[str, Any]]
) -> None:
    assert _made(call, AGENTS[agent]) == expected


def test_a_patch_goes_to_the_patch_tool_or_to_the_shell() -> None:
    patch = PatchStep(patch="*** Begin Patch\n*** Delete File: a\n*** End Patch")
    assert _made(patch, CODEX).args == {"input": patch.patch}
    assert _made(patch, OLD_CODEX).args == {"input": patch.patch}
    assert _made(patch, SHELL_ONLY).args["command"].startswith("apply_patch <<'PATCH'\n*** Begin Patch")


def _run(command: str, folder: Path) -> str:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_the_shell_is_given_instead_does_the_same(tmp_path: Path) -> None:
    hostile = 'it\'s "$HOME" `id`\\n\n'
    steps: tuple[CallStep, ...] = (
        WriteStep(path="in/a b.txt", content=hostile),
        EditStep(path="in/a b.txt", old='"$HOME"', new="'home'"),
        ReadStep(path="in/a b.txt"),
    )
    printed = [_run(_made(call, SHELL_ONLY, "").args["command"], tmp_path) for call in steps]
    assert printed == ["", "", hostile.replace('"$HOME"', "'home'")]


def test_the_folder_of_the_agent_is_put_in_everywhere() -> None:
    assert _made(ForceStep(tool="x", args={"a": ["{cwd}/b"]}), ()).args == {"a": ["/tree/b"]}
    with pytest.raises(Unplayable, match="cwd"):
        fit_call(ReadStep(path="{cwd}/a"), CLAUDE, "")


def test_a_forced_tool_need_not_be_offered() -> None:
    assert _made(ForceStep(tool="launch_missiles", args={"n": 1}), CLAUDE) == ("launch_missiles", {"n": 1})


def test_garbage_has_the_right_tool_and_arguments_nobody_can_read() -> None:
    assert _made(GarbageStep(call=READ, text="{nope"), CLAUDE) == ("Read", {UNPARSED: "{nope"})
    with pytest.raises(Unplayable):
        fit_call(GarbageStep(call=SubmitStep(answer={})), CLAUDE, "")


@pytest.mark.parametrize("name", ["submit_result", "fairwitness_submit_result", "final_result", "StructuredOutput"])
def test_an_answer_is_handed_in_by_whatever_takes_one(name: str) -> None:
    answer = {"status": "DONE", "files": ["a"]}
    flat = OfferedTool(name, _schema("status", "files", status="string", files="array"))
    assert fit_call(SubmitStep(answer=answer), (*CLAUDE, flat), "") == (name, answer)
    wrapped = OfferedTool(name, _schema("result", result="object"))
    assert fit_call(SubmitStep(answer=answer), (wrapped,), "") == (name, {"result": answer})
    assert fit_call(SubmitStep(answer=answer), CLAUDE, "") is None


def test_other_fields_that_must_not_be_empty_are_filled_by_their_schema() -> None:
    fields = {
        "path": {"type": "string"},
        "mode": {"enum": ["fast", "slow"]},
        "limit": {"type": "integer", "minimum": 5},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "deep": {"$ref": "#/$defs/Deep"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "flag": {"type": "boolean"},
        "fixed": {"const": 3},
        "free": {"type": "string"},
    }
    schema = _schema(*fields, **fields) | {
        "$defs": {"Deep": _schema("again", again={"$ref": "#/$defs/Deep"})},
    }
    made = _made(READ, (OfferedTool("read_file", schema),))
    deep = made.args.pop("deep")
    assert made.args == {
        "path": "src/a.py",
        "mode": "fast",
        "limit": 5,
        "maybe": None,
        "either": None,
        "tags": ["script"],
        "flag": False,
        "fixed": 3,
        "free": "script",
    }
    assert "again" in deep
