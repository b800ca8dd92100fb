"""The steps of a script for a model: abstract operations, which fit the tools of any agent, and failures."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Amount, Contract, Flag, Positive, Prose, Text

ScriptName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class ReadStep(Contract):
    """Reads a file."""

    op: Literal["read"] = "read"
    path: Text


class WriteStep(Contract):
    """Creates or replaces a file."""

    op: Literal["write"] = "write"
    path: Text
    content: Prose


class EditStep(Contract):
    """Replaces lines of a file; whole lines, since some agents edit by patch."""

    op: Literal["edit"] = "edit"
    path: Text
    old: Text
    new: Prose


class RunStep(Contract):
    """Runs a command line."""

    op: Literal["run"] = "run"
    command: Text


class PatchStep(Contract):
    """Applies a patch in the format of codex."""

    op: Literal["patch"] = "patch"
    patch: Text


class SubmitStep(Contract):
    """Submits the answer: with a tool if there is one, else as a JSON block."""

    op: Literal["submit"] = "submit"
    answer: dict[str, Any]


class ForceStep(Contract):
    """Calls a tool by its own name, offered or not."""

    op: Literal["force"] = "force"
    tool: Text
    args: dict[str, Any] = Field(default_factory=dict)


class GarbageStep(Contract):
    """Calls a tool with arguments that are not JSON."""

    op: Literal["garbage"] = "garbage"
    call: "CallStep"
    text: Text = '{"path": "no end'


CallStep = Annotated[
    ReadStep | WriteStep | EditStep | RunStep | PatchStep | SubmitStep | ForceStep | GarbageStep,
    Field(discriminator="op"),
]


class SayStep(Contract):
    """Text without a call, which ends the turn."""

    op: Literal["text"] = "text"
    text: Prose


class CallsStep(Contract):
    """Several calls at once, optionally with text before them."""

    op: Literal["calls"] = "calls"
    calls: Annotated[tuple[CallStep, ...], Field(min_length=1)]
    text: Prose = ""


class DelayStep(Contract):
    """Another step, after a delay."""

    op: Literal["delay"] = "delay"
    seconds: Amount
    step: "ScriptStep"


class HangStep(Contract):
    """No answer, until the agent gives up."""

    op: Literal["hang"] = "hang"


class ErrorStep(Contract):
    """An error of the model, also on a retry."""

    op: Literal["error"] = "error"
    status: Annotated[int, Field(ge=400, le=599)]
    message: Prose = "scripted error"
    headers: dict[str, str] = Field(default_factory=dict)


class BreakStep(Contract):
    """Another step whose answer breaks off in the middle."""

    op: Literal["break"] = "break"
    step: "ScriptStep"


class FloodStep(Contract):
    """A very long answer."""

    op: Literal["flood"] = "flood"
    characters: Positive


ScriptStep = Annotated[
    ReadStep
    | WriteStep
    | EditStep
    | RunStep
    | PatchStep
    | SubmitStep
    | ForceStep
    | GarbageStep
    | SayStep
    | CallsStep
    | DelayStep
    | HangStep
    | ErrorStep
    | BreakStep
    | FloodStep,
    Field(discriminator="op"),
]


class Script(Contract):
    """A script for a model; a prompt names it by a marker."""

    name: ScriptName
    steps: tuple[ScriptStep, ...]
    without_tools: Flag = False
    """Whether it plays for an agent without tools; such requests are otherwise titles, summaries and probes."""
