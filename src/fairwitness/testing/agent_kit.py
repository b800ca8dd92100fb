"""The conformance kit of backends: a new one is done when `check_backend` finds nothing wrong with it.

Each case gets a real repository, real tools and a real sandbox; only the model is scripted. What happened is looked for
on disk, in git and among the processes.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.base import Backend, Endpoint, Job
from fairwitness.agents.driver import Cut, drive
from fairwitness.agents.gateway.script_steps import Script
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.toolbox import Surroundings, Toolbox
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Happening
from fairwitness.contracts.common.tools import POLICIES
from fairwitness.rules.tool_policy import may_write
from fairwitness.sandbox.runner import Runner
from fairwitness.testing.agent_cases import CASES, REPOSITORY, Case, Seen, always

_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ.get("PATH", "")}
_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case."""

    case: str
    problems: tuple[str, ...]
    seen: Seen
    happenings: tuple[Happening, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where one case takes place."""

    case: Case
    worktree: Path
    outside: Path
    marker: str
    """Unique: a number that `sleep` takes, by which whatever is left over is found."""

    @property
    def script(self) -> Script:
        """The case's steps, for this place."""
        return Script.model_validate(self.filled({"name": self.case.name, "steps": self._steps()}))

    def _steps(self) -> list[dict[str, Any]]:
        return [step.plain() for step in self.case.steps]

    def filled(self, value: Any) -> Any:
        """A value with the names of this place in it."""
        text = json.dumps(value)
        for name, meant in (("outside", str(self.outside)), ("marker", self.marker)):
            text = text.replace("{" + name + "}", meant)
        return json.loads(text)


def prepare(case: Case, folder: Path) -> Ground:
    """A repository with one commit, a folder that nobody may touch, and a marker."""
    worktree, outside = folder / "worktree", folder / "outside"
    worktree.mkdir(parents=True)
    outside.mkdir()
    digits = int(hashlib.sha256(str(folder).encode()).hexdigest()[:8], 16)
    ground = Ground(case, worktree, outside, f"1{digits % 10_000_000:07d}")
    for path, text in REPOSITORY.items():
        target = worktree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("{outside}", str(outside)))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "toy")):
        name = ("-c", "user.name=Kit", "-c", "user.email=kit@localhost")
        subprocess.run(("git", *name, *words), cwd=worktree, env=_GIT, check=True, capture_output=True)
    return ground


async def put_to_test(
    backend: Backend,
    ground: Ground,
    *,
    prompt: str,
    runner: Runner,
    endpoint: Endpoint | None,
    cut: Cut | None = None,
    patience: float = 1.0,
    toolbox: type[Toolbox] = Toolbox,
) -> tuple[Seen, tuple[Happening, ...]]:
    """One case, driven to its end and looked at from outside; `patience` is for agents that take long to start."""
    case = ground.case
    happenings: list[Happening] = []
    tools = toolbox(
        role=case.role,
        scope=case.scope,
        worktree=ground.worktree,
        runner=runner,
        surroundings=Surroundings(env={"PATH": "/usr/local/bin:/usr/bin:/bin"}),
    )
    spec = ROLES[case.role]
    assert spec.answer is not None, "the orchestrator is not put to the test"
    job = Job(
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
        tell=happenings.append,
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
    return Seen(
        outcome=outcome,
        changed=changed,
        outside=tuple(sorted(path.name for path in ground.outside.iterdir())),
        git_changed=_digest(ground.worktree / ".git") != repository,
        orphans=await _left(ground.marker),
        seconds=time.monotonic() - job.began,
        void=any(not may_write(policy, path, case.scope) for path in changed),
    ), tuple(happenings)


Put = Callable[[Ground], Awaitable[tuple[Seen, tuple[Happening, ...]]]]


async def check_backend(put: Put, folder: Path, cases: Iterable[Case] = CASES) -> list[Verdict]:
    """Puts a backend to every case; `put` opens what the backend needs and calls `put_to_test`."""
    verdicts = []
    for case in cases:
        ground = prepare(case, folder / case.name)
        seen, happenings = await put(ground)
        verdicts.append(Verdict(case.name, (*case.judge(seen), *always(seen)), seen, happenings))
    return verdicts


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        if ".git" not in path.relative_to(folder).parts[:1] and path.is_file():
            found[str(path.relative_to(folder))] = path.read_text(errors="replace")
    return found


def _digest(folder: Path) -> str:
    """Of everything in a folder that git would act on: names and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0")
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


async def _stop_at(line: str, stop: asyncio.Event) -> None:
    while not any(line in running for running in _running()):  # noqa: ASYNC110 -- no process tells us that it runs
        await asyncio.sleep(_WAIT_S)
    stop.set()


async def _left(marker: str) -> tuple[str, ...]:
    """What of a case still runs; a process that is being reaped gets a moment."""
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
