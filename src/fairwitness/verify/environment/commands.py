"""Build an environment with the user's commands of [verify.setup], run in order in the sandbox."""

from pathlib import Path
from typing import Any

from fairwitness.contracts.common.sandbox import End
from fairwitness.verify.environment.clients import clients
from fairwitness.verify.environment.environment_store import BuiltEnvironment, failure
from fairwitness.verify.environment.interpreters import Interpreter
from fairwitness.verify.environment.machine import SYSTEM_PATH, find, needed_by, within
from fairwitness.verify.environment.model import NoEnvironment
from fairwitness.verify.environment.request import EnvironmentRequest


def run_commands(
    request: EnvironmentRequest, digest: str, base: Interpreter | None
) -> BuiltEnvironment | NoEnvironment:
    """Run the commands; they may write only to `{env}`, a folder with copies of the project's manifests."""
    return request.store.kept(digest, lambda folder: _make(request, folder, base))


def _make(request: EnvironmentRequest, folder: Path, base: Interpreter | None) -> dict[str, Any] | NoEnvironment:
    settings = request.settings
    place = folder / "env"
    place.mkdir()
    root = request.project.root
    prefix = "" if root == "." else f"{root}/"
    for path in request.project.manifests:
        content = request.files.read(path)
        if content is not None and path.startswith(prefix):
            target = place / path.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    machine = clients(request.environ, network=settings.network)
    path = f"{place}/bin:{place}/venv/bin:{base.executable.parent if base else '/usr/bin'}:{SYSTEM_PATH}"
    env = {**machine.env, "PATH": path, "npm_config_cache": str(folder / "cache"), **settings.env}
    for command in settings.commands:
        argv = [
            word.replace("{env}", str(place)).replace("{python}", str(base.executable) if base else "python3")
            for word in command
        ]
        program = _program(argv[0], request, place, base)
        if program is None:
            reason = f"{argv[0]}, a command of [verify.setup], is not installed"
            return NoEnvironment(reason, environmental=True, next_step=f"install {argv[0]}, or put it on the PATH")
        done = request.store.run(
            [str(program), *argv[1:]],
            worktree=request.checkout or place,
            writable=request.checkout is None,
            write=(folder,) if request.checkout is not None else (),
            cwd=root if request.checkout is not None else ".",
            # what the commands created stays writable: a separate bind would make it read-only
            read=(
                *(base.read if base else ()),
                *machine.read,
                *(path for path in needed_by(program) if not path.is_relative_to(folder)),
            ),
            env=env,
            network=settings.network,
        )
        if done.result.end is not End.OK:
            step = (
                ""
                if settings.network
                else "fairwitness verify --setup-network (or network = true under [verify.setup] in fairwitness.toml)"
            )
            return failure(" ".join(command), done, network=settings.network, next_step=step)
    return {"network": settings.network, "checkouts": [str(request.checkout)] if request.checkout is not None else []}


def _program(word: str, request: EnvironmentRequest, place: Path, base: Interpreter | None) -> Path | None:
    """Return the program a command names: one it made itself, one of the machine's, never one of the repository."""
    named = Path(word)
    if named.is_absolute():
        allowed = named.is_relative_to(place) or not within(named, request.repositories)
        return named if allowed and named.exists() else None
    if "/" in word:
        return None
    if word in ("python", "python3") and base is not None:
        return base.executable
    return find(word, request.search, outside=request.repositories)
