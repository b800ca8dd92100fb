"""What a script can make a model do: abstract operations, which fit whatever tools an agent offers, and mishaps."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Amount, Contract, Flag, Positive, Prose, Text

ScriptName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class ReadStep(Contract):
    """Reads a file."""

    op: Literal["read"] = "read"
    path: Text


class WriteStep(Contract):
    """Makes a file, or replaces the whole of it."""

    op: Literal["write"] = "write"
    path: Text
    content: Prose


class EditStep(Contract):
    """Replaces some lines of a file; whole lines, since some agents edit by patch."""

    op: Literal["edit"] = "edit"
    path: Text
    old: Text
    new: Prose


class RunStep(Contract):
    """Runs a command line."""

    op: Literal["run"] = "run"
    command: Text


class PatchStep(Contract):
    """Applies a patch in the envelope that codex and its kin use."""

    op: Literal["patch"] = "patch"
    patch: Text


class SubmitStep(Contract):
    """Hands in the answer: by a tool if there is one for it, as a JSON block otherwise."""

    op: Literal["submit"] = "submit"
    answer: dict[str, Any]


class ForceStep(Contract):
    """CallsStep a tool by its own name, offered or not."""

    op: Literal["force"] = "force"
    tool: Text
    args: dict[str, Any] = Field(default_factory=dict)


class GarbageStep(Contract):
    """CallsStep a tool with arguments that nobody can read."""

    op: Literal["garbage"] = "garbage"
    call: "CallStep"
    text: Text = '{"path": "no end'


CallStep = Annotated[
    ReadStep | WriteStep | EditStep | RunStep | PatchStep | SubmitStep | ForceStep | GarbageStep,
    Field(discriminator="op"),
]


class SayStep(Contract):
    """Words and no call: the turn is over."""

    op: Literal["text"] = "text"
    text: Prose


class CallsStep(Contract):
    """Several calls at once, with words before them or without."""

    op: Literal["calls"] = "calls"
    calls: Annotated[tuple[CallStep, ...], Field(min_length=1)]
    text: Prose = ""


class DelayStep(Contract):
    """Another step, after a while."""

    op: Literal["delay"] = "delay"
    seconds: Amount
    step: "ScriptStep"


class HangStep(Contract):
    """No answer, until the agent gives up."""

    op: Literal["hang"] = "hang"


class ErrorStep(Contract):
    """The model fails; asked again, it fails again."""

    op: Literal["error"] = "error"
    status: Annotated[int, Field(ge=400, le=599)]
    message: Prose = "scripted error"
    headers: dict[str, str] = Field(default_factory=dict)


class BreakStep(Contract):
    """Another step, whose answer breaks off in the middle."""

    op: Literal["break"] = "break"
    step: "ScriptStep"


class FloodStep(Contract):
    """A huge answer."""

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
    """What a model does, step by step; a prompt names it by a marker."""

    name: ScriptName
    steps: tuple[ScriptStep, ...]
    without_tools: Flag = False
    """Whether it plays for an agent that has no tools; such requests are otherwise titles, summaries and probes."""
