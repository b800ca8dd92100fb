"""The scripted model: a mode of the gateway that derives its next step from the conversation, without state or a key.

A prompt names the script by `[[script:NAME]]` and the agent's folder by `[[cwd:PATH]]`. The position in the script is
the number of steps that the conversation after the last marker has completed, so retries, parallel sessions and
restarts need no bookkeeping.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairwitness.agents.gateway import modes
from fairwitness.agents.gateway.modes import ChatMessage, FailedAnswer, ModelAnswer, ModelRequest
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse
from fairwitness.errors import UsageError
from fairwitness.testing.script_steps import (
    BreakStep,
    CallsStep,
    CallStep,
    DelayStep,
    EditStep,
    ErrorStep,
    FloodStep,
    ForceStep,
    GarbageStep,
    HangStep,
    PatchStep,
    ReadStep,
    RunStep,
    SayStep,
    Script,
    ScriptStep,
    SubmitStep,
    WriteStep,
)
from fairwitness.testing.script_tools import Unplayable, fit_call, with_cwd

USAGE = ModelUsage(tokens_in=1000, tokens_out=50)
"""The usage of every turn, so that tests can tell a sum from the usage of the last turn."""
ASIDE = "OK"
"""The answer to every request without tools: titles, summaries, probes."""
OVER = "The script is over."

_SCRIPT = re.compile(r"\[\[script:([A-Za-z0-9][A-Za-z0-9._-]*)\]\]")
_CWD = re.compile(r"\[\[cwd:([^\]\r\n]+)\]\]")
_OUR_ID = re.compile(r"(call_[0-9a-f]{12})_\d+")
_FLOOD = "A flood of words. "


def marker(script: str, cwd: str = "") -> str:
    """Return the marker that makes a prompt play a script."""
    return f"[[script:{script}]]" + (f" [[cwd:{cwd}]]" if cwd else "")


class ScriptPosition(NamedTuple):
    """The position of a conversation in a script."""

    script: str
    step: int
    cwd: str


def script_position(messages: Sequence[ChatMessage]) -> ScriptPosition | None:
    """Which script is played, and how many of its steps are done; None if no prompt names one.

    Only messages of the user count: a marker in a file that a tool has read is ignored.
    """
    prompts = [(index, said.text) for index, said in enumerate(messages) if said.role == "user"]
    named = [(index, names[-1]) for index, text in prompts if (names := _SCRIPT.findall(text))]
    if not named:
        return None
    index, script = named[-1]
    folders = [folder for _, text in prompts for folder in _CWD.findall(text)]
    return ScriptPosition(script, _completed(messages[index + 1 :]), folders[-1] if folders else "")


def _completed(messages: Sequence[ChatMessage]) -> int:
    """Steps that are over: every call of a turn has its result, or somebody went on after its last words.

    Messages of the model are not counted: agents split one turn into several. A turn whose calls and results an agent
    tells back one by one is known by the ids that were given to its calls.
    """
    done = calls = results = 0
    turn = ""
    spoke = False
    for said in messages:
        if said.role == "tool":
            results += len(said.results)
            spoke = False
        elif said.role == "user":
            done += 1 if spoke and said.text.strip() else 0
            spoke = False
        else:
            begun = _turn_of(said)
            if results and not (begun and begun == turn):
                done += 1 if results >= calls else 0
                calls = results = 0
            calls += len(said.calls)
            turn = begun or turn
            spoke = not said.calls and bool(said.text.strip())
    return done + (1 if results and results >= calls else 0)


def _turn_of(said: ChatMessage) -> str:
    ours = _OUR_ID.fullmatch(said.calls[0].id) if said.calls else None
    return ours[1] if ours else ""


class ScriptMode:
    """The mode `script`: plays the script that a prompt names."""

    name = "script"

    def __init__(self, scripts: Iterable[Script]) -> None:
        known = list(scripts)
        self._scripts = {script.name: script for script in known}
        if len(self._scripts) != len(known):
            raise UsageError("two scripts have the same name", next_step="give each script a name of its own")

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The step that is next; what cannot be played is an error that says why, never a turn."""
        here = script_position(asked.messages)
        script = self._scripts.get(here.script) if here else None
        if not asked.tools and not (script and script.without_tools):
            return modes.TurnAnswer(ModelTurn(text="{}" if asked.wants_json else ASIDE, usage=USAGE))
        if here is None:
            return FailedAnswer(400, "no prompt of this conversation names a script: [[script:NAME]]")
        if script is None:
            return FailedAnswer(400, f"there is no script {here.script}")
        step: ScriptStep = script.steps[here.step] if here.step < len(script.steps) else SayStep(text=OVER)
        try:
            return replace(await _played(step, asked, here), step=here.step)
        except Unplayable as error:
            return FailedAnswer(400, f"script {here.script}, step {here.step}: {error}", step=here.step)


async def _played(step: ScriptStep, asked: ModelRequest, here: ScriptPosition) -> ModelAnswer:
    match step:
        case DelayStep():
            await asyncio.sleep(step.seconds)
            return await _played(step.step, asked, here)
        case BreakStep():
            answered = await _played(step.step, asked, here)
            return replace(answered, is_cut=True) if isinstance(answered, modes.TurnAnswer) else answered
        case HangStep():
            return modes.NoAnswer()
        case ErrorStep():
            return FailedAnswer(step.status, step.message, step.headers)
        case SayStep():
            return _turn(with_cwd(step.text, here.cwd) if "{cwd}" in step.text else step.text)
        case FloodStep():
            return _turn((_FLOOD * (step.characters // len(_FLOOD) + 1))[: step.characters])
        case CallsStep():
            return _calling(step.calls, step.text, asked, here)
        case (
            ReadStep() | WriteStep() | EditStep() | RunStep() | PatchStep() | SubmitStep() | ForceStep() | GarbageStep()
        ):
            return _calling((step,), "", asked, here)


def _calling(calls: Sequence[CallStep], text: str, asked: ModelRequest, here: ScriptPosition) -> modes.TurnAnswer:
    """Return a turn with the calls that are possible; an answer without a tool becomes text."""
    seed = f"{here.script} {here.step} {len(asked.messages)}"
    turn = f"call_{hashlib.sha256(seed.encode()).hexdigest()[:12]}"
    words = text
    made: list[ToolUse] = []
    for call in calls:
        fitted = fit_call(call, asked.tools, here.cwd)
        if fitted is not None:
            made.append(ToolUse(id=f"{turn}_{len(made)}", name=fitted.tool, args=fitted.args))
        elif isinstance(call, SubmitStep):
            answer = json.dumps(with_cwd(call.answer, here.cwd), indent=2, ensure_ascii=False)
            words += answer if asked.wants_json else f"\n```json\n{answer}\n```\n"
    return _turn(words, made)


def _turn(text: str, calls: Iterable[ToolUse] = ()) -> modes.TurnAnswer:
    return modes.TurnAnswer(ModelTurn(text=text, calls=tuple(calls), usage=USAGE))
