"""The environment of a Python project: by the person's commands, found ready, built anew, or this machine's own."""

import hashlib
import tomllib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairwitness.contracts.verify.checks import Language
from fairwitness.verify.environment.about import About, about, is_own
from fairwitness.verify.environment.commands import run_commands
from fairwitness.verify.environment.environment_store import Built, digest_of
from fairwitness.verify.environment.interpreters import (
    BOOTSTRAP,
    PROGRAMS,
    Interpreter,
    NoInterpreter,
    on_path,
    outside_folders,
    probe,
    venv_python,
)
from fairwitness.verify.environment.layers import describe, lay, references, site_of
from fairwitness.verify.environment.machine import SYSTEM_PATH
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.python_build import ALLOW, TOOLS, build, notes_of, plan_of
from fairwitness.verify.environment.request import Request
from fairwitness.verify.environment.requirements import (
    LOCKS,
    Declared,
    declared_by,
    join,
    locked_versions,
    python_fits,
    unmet,
)

_VENVS = (".venv", "venv")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A project and what its files say it needs."""

    request: Request
    declared: Declared
    said: About

    @property
    def manifests(self) -> list[str]:
        """Every file that has a part in the environment."""
        project = self.request.project
        locks = [join(folder, name) for folder in (project.root, ".") for name in LOCKS]
        return sorted({*project.manifests, *self.declared.read, *self.said.read, *locks})

    @property
    def facts(self) -> list[Any]:
        """What every digest has to know."""
        bootstrap = hashlib.sha256(BOOTSTRAP.read_bytes()).hexdigest()
        return ["python", bootstrap, self.request.project.root, self.request.content(self.manifests)]


def prepare_python(request: Request) -> Environment | NoEnvironment:
    """Goes through the sources of an environment in order and takes the first that will do."""
    wanted = _Wanted(
        request, declared_by(request.project.root, request.files), about(request.project.root, request.files)
    )
    broken = _broken_lock(wanted)
    if broken is not None:
        return broken
    if request.settings.commands:
        return _by_commands(wanted, _base(wanted))
    ready, why_not = _persons(wanted)
    if ready is not None:
        return ready
    if wanted.declared.problem is not None:
        step = "say how to install it under [verify.setup] commands in fairwitness.toml"
        return NoEnvironment(wanted.declared.problem, environmental=wanted.declared.foreign, next_step=step)
    base = _base(wanted)
    if base is None:
        bound = f" {wanted.declared.requires_python}" if wanted.declared.requires_python else ""
        reason = f"there is no Python{bound} on the PATH that can be run in the sandbox"
        return NoEnvironment(
            reason, environmental=True, next_step="install one that every user of this machine can run"
        )
    lacks = _lacks(wanted, base)
    nothing = not wanted.declared.requirements and not wanted.declared.constraints
    if not lacks and not _without(wanted, base) and (nothing or not request.settings.network):
        return _layer(wanted, base, "python3 of this machine")
    built = _built(wanted, base)
    if isinstance(built, Environment):
        return built
    if not lacks:
        return _layer(wanted, base, "python3 of this machine")
    shown = ", ".join(lacks[:_SHOWN]) + (f" and {len(lacks) - _SHOWN} more" if len(lacks) > _SHOWN else "")
    reason = f"{built.reason}; python3 of this machine lacks {shown}"
    return NoEnvironment(f"{reason}; {why_not}" if why_not else reason, built.environmental, built.next_step or ALLOW)


def _base(wanted: _Wanted) -> Interpreter | None:
    """The first interpreter of the person's PATH that answers and is one the project is made for."""
    request = wanted.request
    for python in on_path(request.search, request.repositories):
        try:
            interpreter = probe(request.workshop, python)
        except NoInterpreter:
            continue
        if python_fits(wanted.declared, interpreter.version):
            return interpreter
    return None


def _built(wanted: _Wanted, base: Interpreter) -> Environment | NoEnvironment:
    """An environment installed from what the tree declares; without network pip may know folders that uv does not."""
    request = wanted.request
    first = plan_of(request, wanted.declared, wanted.said, base)
    again = first.uv is not None and not request.settings.network
    refusal: NoEnvironment | None = None
    for plan in (first, replace(first, uv=None)) if again else (first,):
        digest = digest_of("built", wanted.facts, plan.facts)
        built = request.workshop.kept(digest, partial(build, plan))
        if isinstance(built, Built):
            return _environment(request, digest, built, base.read)
        refusal = refusal or built
    assert refusal is not None
    return refusal


def _broken_lock(wanted: _Wanted) -> NoEnvironment | None:
    """A lock that cannot be read is the tree's own fault, whatever else is on this machine."""
    request = wanted.request
    for path in wanted.manifests:
        if path in request.files.paths and path.endswith(("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")):
            content = request.files.read(path)
            if content is None:
                return NoEnvironment(f"{path} cannot be read", environmental=False)
            try:
                tomllib.loads(content.decode())
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                return NoEnvironment(f"{path} is no lock file: {error}", environmental=False)
    return None


def _lacks(wanted: _Wanted, interpreter: Interpreter) -> list[str]:
    """What the project needs and an interpreter has not, or has in another version than the lock names."""
    versions = interpreter.versions
    lacking = unmet(wanted.declared, versions, interpreter.markers)
    locked = locked_versions(wanted.request.project.root, wanted.request.files)
    lacking += [
        f"{name} {'/'.join(sorted(locked[name]))} (it has {version})"
        for name, version in sorted(versions.items())
        if name in locked and version not in locked[name] and not is_own(name, wanted.said)
    ]
    return lacking


def _without(wanted: _Wanted, interpreter: Interpreter) -> list[str]:
    """The tools that checks want and an interpreter has not."""
    return [tool for tool in wanted.request.tools if tool in TOOLS and tool not in interpreter.versions]


def _persons(wanted: _Wanted) -> tuple[Environment | None, str]:
    """The environment in the person's own checkout, if it is the one this tree asks for; else why it is not."""
    request = wanted.request
    persons = request.persons_checkout
    if persons is None:
        return None, ""
    for folder in dict.fromkeys((request.project.root, ".")):
        for name in _VENVS:
            venv = persons / folder / name
            if not (venv / "pyvenv.cfg").is_file():
                continue
            shown = join(folder, name)
            if any(path.startswith(f"{shown}/") for path in request.files.paths):
                return None, f"{shown} is part of the tree, so it is not the person's"
            differing = request.differs_from_persons(wanted.manifests)
            if differing is not None:
                return None, f"{shown} is for another {differing}"
            python = venv_python(venv, request.repositories)
            if python is None:
                return None, f"{shown} has no interpreter of this machine"
            try:
                interpreter = probe(request.workshop, python)
            except NoInterpreter as error:
                return None, str(error)
            locked = any(path.rpartition("/")[2] in LOCKS for path in wanted.manifests if path in request.files.paths)
            if wanted.declared.problem is not None and not locked:
                return None, wanted.declared.problem
            lacks = _lacks(wanted, interpreter)
            if lacks:
                return None, f"{shown} lacks {', '.join(lacks[:_SHOWN])}"
            reason = "locks equal" if locked else "manifests equal, requirements met"
            return _layer(wanted, interpreter, f"the checkout's {shown} ({reason})"), ""
    return None, ""


def _layer(
    wanted: _Wanted,
    interpreter: Interpreter,
    by: str,
    *,
    network: bool = False,
    extra: tuple[Path, ...] = (),
    checkouts: tuple[Path, ...] = (),
) -> Environment:
    """An environment of ours over an interpreter with everything installed in it.

    `checkouts` are folders besides the request's own that references in it may lead to: trees it was made from.
    """
    request, said = wanted.request, wanted.said
    repositories = (*checkouts, *request.repositories)
    refers = references(interpreter, repositories)
    installed = {name: [one.version, str(one.folder)] for name, one in interpreter.distributions.items()}
    digest = digest_of(
        "layer", wanted.facts, interpreter.identity, installed, refers.lines, refers.editable, said.plain(), by
    )

    def make(folder: Path) -> dict[str, Any]:
        venv = folder / "venv"
        python = lay(venv, interpreter, refers)
        if said.name and not any(is_own(name, said) for name in interpreter.distributions):
            describe(site_of(venv, interpreter), venv / "bin", python, said.plain())
        return notes_of(interpreter, said, repositories, network=network, by=by, editable=refers.editable)

    built = request.workshop.kept(digest, make)
    assert isinstance(built, Built)  # `make` answers nothing else
    outside = (*refers.outside, *outside_folders(interpreter, repositories), *extra)
    return _environment(request, digest, built, (*interpreter.read, *outside))


def _by_commands(wanted: _Wanted, base: Interpreter | None) -> Environment | NoEnvironment:
    """What the commands of [verify.setup] leave in their folder, seen through a layer."""
    request = wanted.request
    digest = digest_of("commands", wanted.facts, base.identity if base else None, *_settings_facts(request))
    done = run_commands(request, digest, base)
    if isinstance(done, NoEnvironment):
        return done
    for place in ("bin/python", "venv/bin/python", ".venv/bin/python"):
        python = done.folder / "env" / place
        if python.exists():
            try:
                interpreter = probe(request.workshop, python)
            except NoInterpreter as error:
                return NoEnvironment(str(error), environmental=True)
            checkouts = tuple(Path(str(one)) for one in done.notes["checkouts"])
            return _layer(
                wanted,
                interpreter,
                "the commands of [verify.setup]",
                network=bool(done.notes["network"]),
                extra=(done.folder,),
                checkouts=checkouts,
            )
    step = "make a virtual environment in {env}, for example with python3 -m venv {env}"
    return NoEnvironment(
        "the commands of [verify.setup] left no interpreter in {env}", environmental=False, next_step=step
    )


def _settings_facts(request: Request) -> list[Any]:
    settings = request.settings
    return [[list(command) for command in settings.commands], sorted(settings.env.items())]


def _environment(request: Request, digest: str, built: Built, read: tuple[Path, ...]) -> Environment:
    notes = built.notes
    python = built.folder / str(notes["python"])
    return Environment(
        project=request.project,
        language=Language.PYTHON,
        digest=digest,
        prepared_by=str(notes["by"]),
        python=python,
        read=tuple(dict.fromkeys((built.folder, *read, PROGRAMS))),
        env={"PATH": f"{python.parent}:{SYSTEM_PATH}", "VIRTUAL_ENV": str(python.parent.parent)},
        network_used=bool(notes["network"]),
        versions={str(name): str(version) for name, version in notes["versions"].items()},
        installed=frozenset(map(str, notes["installed"])),
        editable=tuple(map(str, notes["editable"])),
        search=request.search,
    )
