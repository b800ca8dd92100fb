"""How each kind of backend is put to a case: behind the scripted gateway, or from a recording made of the case."""

import secrets
import tempfile
from dataclasses import replace
from pathlib import Path

from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import Backend, Endpoint
from fairwitness.agents.cassettes import Cassette, packed, prompt_digest, spell
from fairwitness.agents.driver import Cut
from fairwitness.agents.gateway.meter import CappedMeter
from fairwitness.agents.gateway.metered import Metered
from fairwitness.agents.gateway.modes import Grant, ToolOffer
from fairwitness.agents.gateway.script import ScriptMode, marker
from fairwitness.agents.gateway.script_steps import Calls, Edit, Force, Read, Run, Say, Step, Submit, Write
from fairwitness.agents.gateway.script_tools import concrete
from fairwitness.agents.sameness import digest
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import DispatchLimits, Happening
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.sandbox.runner import Runner
from fairwitness.testing.agent_cases import Seen
from fairwitness.testing.agent_kit import Ground, put_to_test

MODELS = {
    # names that agents know: some take away tools from a model they have never heard of
    Dialect.ANTHROPIC: "claude-sonnet-5",
    Dialect.OPENAI_CHAT: "gpt-5",
    Dialect.OPENAI_RESPONSES: "gpt-5.5",
    Dialect.GEMINI: "gemini-2.5-pro",
}
_USAGE = (1000, 50)


async def on_gateway(
    backend: Backend,
    ground: Ground,
    *,
    dialect: Dialect,
    runner: Runner,
    tcp: bool,
    patience: float = 1.0,
    toolbox: type[Toolbox] = Toolbox,
) -> tuple[Seen, tuple[Happening, ...]]:
    """A case with a scripted model, served as real ones are: a token, a meter, and one way in."""
    from fairwitness.agents.gateway.app import gateway
    from fairwitness.agents.gateway.server import serving

    case = ground.case
    grant = Grant(token=f"fairwitness-{secrets.token_hex(24)}", dispatch_id=f"kit-{case.name}")
    meter, cut = CappedMeter(), Cut()
    limits = DispatchLimits(wall_s=case.wall_s * patience, turns=case.turns)
    meter.open(grant.dispatch_id, limits, lambda refusal: cut.make(refusal.reason))
    mode = Metered(ScriptMode([ground.script]), meter, lambda _asked, _usage: 0)
    app = gateway(mode, lambda token: grant if token == grant.token else None, models=(MODELS[dialect],))
    with tempfile.TemporaryDirectory(prefix="gateway-") as own:  # short, and nobody else's
        socket = None if tcp else Path(own, "socket")
        async with serving(app, socket=socket, tcp=tcp) as served:
            endpoint = Endpoint(dialect, grant.token, MODELS[dialect], url=served.url, socket=served.socket)
            prompt = f"{marker(case.name, str(ground.worktree))}\nDo what the script says."
            seen, happenings = await put_to_test(
                backend,
                ground,
                prompt=prompt,
                runner=runner,
                endpoint=endpoint,
                cut=cut,
                patience=patience,
                toolbox=toolbox,
            )
    counted = meter.close(grant.dispatch_id)
    return replace(seen, requests=tuple(app.log.requests), counted=counted), happenings


async def on_cassette(ground: Ground, *, runner: Runner) -> tuple[Seen, tuple[Happening, ...]]:
    """A case from a recording; what its tools answered is not part of it, since nobody has run them yet."""
    prompt = "Do what the recording says."
    place = ground.worktree.parent / "case.jsonl"
    place.write_bytes(spell(recorded(ground, prompt)))
    backend = CassetteBackend(place, strict=False)
    return await put_to_test(backend, ground, prompt=prompt, runner=runner, endpoint=None)


def recorded(ground: Ground, prompt: str) -> Cassette:
    """The cassette of a case; `ValueError` if a mishap of the model is part of it, which no recording has."""
    case = ground.case
    header = CassetteHeader(
        cassette=1,
        role=case.role,
        instance=case.role.value,
        model="scripted",
        prompt=prompt_digest(prompt, ground.worktree),
    )
    offers = _offers(ground.worktree)
    turns = [_turn(number, step, offers, ground) for number, step in enumerate(ground.script.steps)]
    return Cassette(header, tuple(turns))


def _turn(number: int, step: Step, offers: list[ToolOffer], ground: Ground) -> CassetteTurn:
    turn = CassetteTurn(turn=number, usage=_USAGE, ms=0, seen=digest([]))
    match step:
        case Say():
            return turn.model_copy(update={"text": step.text})
        case Submit():
            return turn.model_copy(update={"submitted": step.answer})
        case Calls():
            made = [concrete(call, offers, str(ground.worktree)) for call in step.calls]
        case Read() | Write() | Edit() | Run() | Force():
            made = [concrete(step, offers, str(ground.worktree))]
        case _:
            raise ValueError(f"a recording has no step {step.op}")
    calls = [CassetteCall(tool=one.tool, args=packed(one.args, ground.worktree)) for one in made if one is not None]
    return turn.model_copy(update={"calls": tuple(calls)})


def _offers(worktree: Path) -> list[ToolOffer]:
    """Every tool of ours that a model could name, whatever the role of the case has."""
    from fairwitness.sandbox.scripted import ScriptedRunner

    every = Toolbox(role=Role.IMPLEMENTER, scope=Scope(), worktree=worktree, runner=ScriptedRunner(()))
    return [ToolOffer(spec.name, spec.schema) for spec in every.offered()]
