"""The conformance kit for backends: a new backend is finished when `check_backend` finds no problem.

Each case gets a real repository, real tools and a real sandbox; only the model is scripted. The results are read from
the disk, from git and from the list of processes. A case runs behind the scripted gateway, or from a recording of it.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, Backend, Endpoint
from fairwitness.agents.cassette_file import Cassette, packed, prompt_digest, spell
from fairwitness.agents.driver import DispatchCut, drive
from fairwitness.agents.gateway.meter import CappedMeter
from fairwitness.agents.gateway.metered import MeteredMode
from fairwitness.agents.gateway.modes import Grant, OfferedTool
from fairwitness.agents.normalization import digest
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.model import CommandEnvironment
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Happening
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.tools import POLICIES, Role, Scope
from fairwitness.kit.folder_trees import walk
from fairwitness.rules.tool_policy import may_write
from fairwitness.sandbox.runner import Runner
from fairwitness.testing.conformance_cases import CASES, REPOSITORY, CaseObservation, ConformanceCase, always
from fairwitness.testing.script_steps import (
    CallsStep,
    EditStep,
    ForceStep,
    ReadStep,
    RunStep,
    SayStep,
    Script,
    ScriptStep,
    SubmitStep,
    WriteStep,
)
from fairwitness.testing.script_tools import fit_call
from fairwitness.testing.scripted_model import ScriptMode, marker

_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ.get("PATH", "")}
_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case."""

    case: str
    problems: tuple[str, ...]
    seen: CaseObservation
    happenings: tuple[Happening, ...]


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """The folders of one case."""

    case: ConformanceCase
    worktree: Path
    outside: Path
    marker: str
    """A unique number that `sleep` takes; processes that are left over are found by it."""

    @property
    def script(self) -> Script:
        """The steps of the case, with the names of this folder."""
        return Script.model_validate(self.filled({"name": self.case.name, "steps": self._steps()}))

    def _steps(self) -> list[dict[str, Any]]:
        return [step.plain() for step in self.case.steps]

    def filled(self, value: Any) -> Any:
        """Return a value with the names of this folder filled in."""
        text = json.dumps(value)
        for name, meant in (("outside", str(self.outside)), ("marker", self.marker)):
            text = text.replace("{" + name + "}", meant)
        return json.loads(text)


def prepare(case: ConformanceCase, folder: Path) -> CaseFolder:
    """Create a repository with one commit and a folder that no agent may touch."""
    worktree, outside = folder / "worktree", folder / "outside"
    worktree.mkdir(parents=True)
    outside.mkdir()
    digits = int(hashlib.sha256(str(folder).encode()).hexdigest()[:8], 16)
    ground = CaseFolder(case, worktree, outside, f"1{digits % 10_000_000:07d}")
    for path, text in REPOSITORY.items():
        target = worktree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("{outside}", str(outside)))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "toy")):
        name = ("-c", "user.name=Kit", "-c", "user.email=kit@localhost")
        subprocess.run(("git", *name, *words), cwd=worktree, env=_GIT, check=True, capture_output=True)
    return ground


async def run_case(
    backend: Backend,
    ground: CaseFolder,
    *,
    prompt: str,
    runner: Runner,
    endpoint: Endpoint | None,
    cut: DispatchCut | None = None,
    patience: float = 1.0,
    toolbox: type[Toolbox] = Toolbox,
) -> tuple[CaseObservation, tuple[Happening, ...]]:
    """Run a case and return what is observed from outside; `patience` is a factor for slow agents."""
    case = ground.case
    happenings: list[Happening] = []
    tools = toolbox(
        role=case.role,
        scope=case.scope,
        worktree=ground.worktree,
        runner=runner,
        surroundings=lambda: CommandEnvironment(env={"PATH": "/usr/local/bin:/usr/bin:/bin"}),
    )
    spec = ROLES[case.role]
    assert spec.answer is not None, "the orchestrator is not put to the test"
    job = AgentJob(
        spec=spec,
        brief=Brief(
            dispatch_id=f"kit-{case.name}",
            run_id="2026-02-26T14:30:00Z",
            role=case.role,
            instance=case.role.value,
            task=prompt,
            scope=case.scope,
        ),
        prompt=prompt,
        form=form_of(spec.answer, ()),
        worktree=ground.worktree,
        limits=DispatchLimits(wall_s=case.wall_s * patience, turns=case.turns),
        tools=tools,
        runner=runner,
        endpoint=endpoint,
        on_happening=happenings.append,
        began=time.monotonic(),
    )
    before, repository = _files(ground.worktree), _digest(ground.worktree / ".git")
    stop = asyncio.Event()
    watching = asyncio.ensure_future(_stop_at(ground.filled(case.stops_at), stop)) if case.stops_at else None
    try:
        outcome = await drive(backend, job, stop=stop, cut=cut)
    finally:
        if watching is not None:
            watching.cancel()
        await tools.close()
    after = _files(ground.worktree)
    changed = {
        path: after.get(path) for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)
    }
    policy = POLICIES[case.role]
    return CaseObservation(
        outcome=outcome,
        changed=changed,
        outside=tuple(sorted(path.name for path in ground.outside.iterdir())),
        git_changed=_digest(ground.worktree / ".git") != repository,
        orphans=await _left(ground.marker),
        seconds=time.monotonic() - job.began,
        void=any(not may_write(policy, path, case.scope) for path in changed),
    ), tuple(happenings)


RunCase = Callable[[CaseFolder], Awaitable[tuple[CaseObservation, tuple[Happening, ...]]]]


async def check_backend(put: RunCase, folder: Path, cases: Iterable[ConformanceCase] = CASES) -> list[CaseResult]:
    """Run every case with a backend; `put` opens what the backend needs and calls `run_case`."""
    verdicts = []
    for case in cases:
        ground = prepare(case, folder / case.name)
        seen, happenings = await put(ground)
        verdicts.append(CaseResult(case.name, (*case.judge(seen), *always(seen)), seen, happenings))
    return verdicts


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for path in _everything(folder):
        if ".git" not in path.relative_to(folder).parts[:1] and path.is_file():
            found[str(path.relative_to(folder))] = path.read_text(errors="replace")
    return found


def _digest(folder: Path) -> str:
    """Return a digest of the names and contents of a folder."""
    digest = hashlib.sha256()
    for path in sorted(_everything(folder)):
        digest.update(str(path.relative_to(folder)).encode() + b"\0")
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _everything(folder: Path) -> list[Path]:
    return [Path(place, name) for place, folders, files in walk(folder) for name in (*folders, *files)]


async def _stop_at(line: str, stop: asyncio.Event) -> None:
    while not any(line in running for running in _running()):  # noqa: ASYNC110 -- no event tells that a process runs
        await asyncio.sleep(_WAIT_S)
    stop.set()


async def _left(marker: str) -> tuple[str, ...]:
    """Return the processes of a case that still run, after a short wait."""
    left: tuple[str, ...] = ()
    for _ in range(20):
        left = tuple(line for line in _running() if re.search(rf"\b{marker}\b", line))
        if not left:
            break
        await asyncio.sleep(_WAIT_S)
    return left


def _running() -> list[str]:
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return lines


MODELS = {
    # names that agents know: some offer fewer tools to an unknown model
    ApiDialect.ANTHROPIC: "claude-sonnet-5",
    ApiDialect.OPENAI_CHAT: "gpt-5",
    ApiDialect.OPENAI_RESPONSES: "gpt-5.5",
    ApiDialect.GEMINI: "gemini-2.5-pro",
}
_USAGE = (1000, 50)


async def run_on_gateway(
    backend: Backend,
    ground: CaseFolder,
    *,
    dialect: ApiDialect,
    runner: Runner,
    tcp: bool,
    patience: float = 1.0,
    toolbox: type[Toolbox] = Toolbox,
) -> tuple[CaseObservation, tuple[Happening, ...]]:
    """Run a case with a scripted model behind a gateway with a token and a meter, like a real one."""
    from fairwitness.agents.gateway.app import gateway
    from fairwitness.agents.gateway.server import serving

    case = ground.case
    grant = Grant(token=f"fairwitness-{secrets.token_hex(24)}", dispatch_id=f"kit-{case.name}")
    meter, cut = CappedMeter(), DispatchCut()
    limits = DispatchLimits(wall_s=case.wall_s * patience, turns=case.turns)
    meter.open(grant.dispatch_id, limits, lambda refusal: cut.over_budget(refusal.reason))
    mode = MeteredMode(ScriptMode([ground.script]), meter, lambda _asked, _usage: 0)
    app = gateway(mode, lambda token: grant if token == grant.token else None, models=(MODELS[dialect],))
    with tempfile.TemporaryDirectory(prefix="gateway-") as own:  # short and private
        socket = None if tcp else Path(own, "socket")
        async with serving(app, socket=socket, tcp=tcp) as served:
            endpoint = Endpoint(dialect, grant.token, MODELS[dialect], url=served.url, socket=served.socket)
            prompt = f"{marker(case.name, str(ground.worktree))}\nDo what the script says."
            seen, happenings = await run_case(
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


async def run_on_cassette(ground: CaseFolder, *, runner: Runner) -> tuple[CaseObservation, tuple[Happening, ...]]:
    """Run a case from a recording without recorded results, since its tools have not run yet."""
    prompt = "Do what the recording says."
    place = ground.worktree.parent / "case.jsonl"
    place.write_bytes(spell(recorded(ground, prompt)))
    backend = CassetteBackend(place, strict=False)
    return await run_case(backend, ground, prompt=prompt, runner=runner, endpoint=None)


def recorded(ground: CaseFolder, prompt: str) -> Cassette:
    """Return the cassette of a case; `ValueError` if a failure of the model is part of it."""
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


def _turn(number: int, step: ScriptStep, offers: list[OfferedTool], ground: CaseFolder) -> CassetteTurn:
    turn = CassetteTurn(turn=number, usage=_USAGE, ms=0, seen=digest([]))
    match step:
        case SayStep():
            return turn.model_copy(update={"text": step.text})
        case SubmitStep():
            return turn.model_copy(update={"submitted": step.answer})
        case CallsStep():
            made = [fit_call(call, offers, str(ground.worktree)) for call in step.calls]
        case ReadStep() | WriteStep() | EditStep() | RunStep() | ForceStep():
            made = [fit_call(step, offers, str(ground.worktree))]
        case _:
            raise ValueError(f"a recording has no step {step.op}")
    calls = [CassetteCall(tool=one.tool, args=packed(one.args, ground.worktree)) for one in made if one is not None]
    return turn.model_copy(update={"calls": tuple(calls)})


def _offers(worktree: Path) -> list[OfferedTool]:
    """Return every tool that a model could name, whatever the role has."""
    from fairwitness.sandbox.scripted import ScriptedRunner

    every = Toolbox(role=Role.IMPLEMENTER, scope=Scope(writes=("**",)), worktree=worktree, runner=ScriptedRunner(()))
    return [OfferedTool(spec.name, spec.schema) for spec in every.offered()]
