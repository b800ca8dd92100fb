"""The environment of a Python project: from the user's commands, their checkout, a build, or this machine.

A build installs what the project declares: with uv if the tree has its lock, with pip otherwise. The tree itself is not
there while it is built: manifests are copied, and the project's own code is never installed.
"""

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fairwitness.contracts.common.sandbox import End
from fairwitness.contracts.verify.checks import Language
from fairwitness.kit import toml_text
from fairwitness.kit.folder_trees import remove_tree
from fairwitness.verify.environment.clients import clients
from fairwitness.verify.environment.commands import run_commands
from fairwitness.verify.environment.environment_store import BuiltEnvironment, digest_of, failure
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
from fairwitness.verify.environment.layers import bare, describe, hook, lay, references, site_of
from fairwitness.verify.environment.machine import SYSTEM_PATH, find, needed_by, version_of, within
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.project_metadata import ProjectMetadata, is_own, read_metadata
from fairwitness.verify.environment.request import EnvironmentRequest
from fairwitness.verify.environment.requirements import (
    LOCKS,
    DeclaredRequirements,
    declared_by,
    join,
    locked_versions,
    python_fits,
    unmet,
)

ALLOW = (
    "fairwitness verify --setup-network (permanently: network = true under [verify.setup] in fairwitness.toml), "
    "or create a .venv with what the project needs"
)

TOOLS = frozenset(
    {"pytest", "ruff", "mypy", "black", "flake8", "pyright", "basedpyright", "isort", "pylint", "build", "pre-commit"}
)
"""Tools that are installed by name; any other name could be a stranger's package, so it must be declared."""


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What to install, and with which program."""

    request: EnvironmentRequest
    declared: DeclaredRequirements
    metadata: ProjectMetadata
    base: Interpreter
    uv: Path | None

    @property
    def by(self) -> str:
        """The program and what it installs, for people."""
        return "uv sync" if self.uv is not None else "pip install of the declared dependencies"

    @property
    def facts(self) -> list[Any]:
        """The facts that are part of its digest."""
        tool = version_of(self.uv) if self.uv is not None else self.base.versions.get("pip", "bundled")
        settings = self.request.settings
        return [
            self.by,
            tool,
            self.base.identity,
            missing_tools(self),
            sorted(settings.env.items()),
            self.metadata.plain(),
        ]


def plan_of(
    request: EnvironmentRequest, declared: DeclaredRequirements, metadata: ProjectMetadata, base: Interpreter
) -> InstallPlan:
    """Return the plan; it uses uv if the tree has a uv.lock and uv is installed."""
    locked = any(join(folder, "uv.lock") in request.files.paths for folder in (request.project.root, "."))
    uv = find("uv", request.search, outside=request.repositories) if locked else None
    return InstallPlan(request, declared, metadata, base, uv)


def missing_tools(plan: InstallPlan) -> list[str]:
    """Return the tools that checks need and the project does not declare."""
    lines = [line.split(" --hash")[0] for line in plan.declared.requirements]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    return sorted({tool for tool in plan.request.tools if tool in TOOLS and canonicalize_name(tool) not in declared})


def build(plan: InstallPlan, folder: Path) -> dict[str, Any] | NoEnvironment:
    """Install everything into `venv` of a folder; return the notes of the environment, or why there is none."""
    venv = folder / "venv"
    failed = _with_uv(plan, folder, venv) if plan.uv is not None else _with_pip(plan, folder, venv)
    if failed is not None:
        return failed
    python = venv / "bin" / "python"
    try:
        interpreter = probe(plan.request.store, python)
    except NoInterpreter as error:
        return NoEnvironment(f"{plan.by} left no interpreter: {error}", environmental=True)
    site = site_of(venv, interpreter)
    hook(site)
    if plan.metadata.name and not any(is_own(name, plan.metadata) for name in interpreter.distributions):
        describe(site, venv / "bin", python, plan.metadata.plain())
    request = plan.request
    return notes_of(interpreter, plan.metadata, request.repositories, network=request.settings.network, by=plan.by)


def notes_of(
    interpreter: Interpreter,
    metadata: ProjectMetadata,
    repositories: Sequence[Path],
    *,
    network: bool,
    by: str,
    editable: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the notes of an environment, which are stored with it."""
    installed = set[str]()
    for name, one in interpreter.distributions.items():
        ours = is_own(name, metadata) or (one.folder is not None and within(one.folder, repositories))
        if not ours:
            installed |= set(one.names)
    versions = {**interpreter.versions, "python": interpreter.version}
    return {
        "python": "venv/bin/python",
        "versions": dict(sorted(versions.items())),
        "installed": sorted(installed),
        "editable": list(editable),
        "network": network,
        "by": by,
    }


def _with_pip(plan: InstallPlan, folder: Path, venv: Path) -> NoEnvironment | None:
    if plan.base.pip is None:
        return NoEnvironment(f"{plan.base.executable} has no pip", environmental=True, next_step="install pip for it")
    bare(venv, plan.base)
    hashed = [line for line in plan.declared.requirements if " --hash" in line]
    plain = [line for line in plan.declared.requirements if " --hash" not in line]
    constraints = [*plan.declared.constraints, *_locked(plan)]
    (folder / "constraints.txt").write_text("".join(f"{line}\n" for line in constraints))
    for name, lines in (("hashed.txt", hashed), ("requirements.txt", plain)):
        failed = _pip(plan, folder, venv, name, lines, with_constraints=name != "hashed.txt")
        if failed is not None:
            return failed
    return _tools_with_pip(plan, folder, venv)


def _tools_with_pip(plan: InstallPlan, folder: Path, venv: Path) -> NoEnvironment | None:
    """Add undeclared tools; if one cannot be installed, its own check reports that, unless nothing else is missing."""
    tools = missing_tools(plan)
    failed = _pip(plan, folder, venv, "tools.txt", tools, with_constraints=True)
    if failed is not None and len(tools) > 1:
        each = [_pip(plan, folder, venv, "tools.txt", [tool], with_constraints=True) for tool in tools]
        failed = failed if all(one is not None for one in each) else None
    return failed if not plan.declared.requirements else None


def _locked(plan: InstallPlan) -> list[str]:
    """Return constraints from a lock that pip cannot read, for distributions with exactly one locked version."""
    versions = locked_versions(plan.request.project.root, plan.request.files)
    declared = "\n".join(plan.declared.requirements)
    return [
        f"{name}=={min(found)}"
        for name, found in sorted(versions.items())
        if len(found) == 1 and f"{name}==" not in declared
    ]


def _pip(
    plan: InstallPlan, folder: Path, venv: Path, name: str, lines: list[str], *, with_constraints: bool
) -> NoEnvironment | None:
    if not lines:
        return None
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    request, settings = plan.request, plan.request.settings
    machine = clients(request.environ, network=settings.network)
    argv = [str(venv / "bin" / "python"), "-I", str(plan.base.pip), "install", "--no-cache-dir", "--progress-bar=off"]
    argv += ["--prefer-binary", "--no-warn-script-location", "-r", name]
    argv += ["-c", "constraints.txt"] if with_constraints else []
    if settings.network:
        argv += [f"--extra-index-url={index}" for index in plan.declared.indexes]
    env = {**machine.env, "PATH": f"{venv}/bin:/usr/local/bin:/usr/bin:/bin", **settings.env}
    read = (*plan.base.read, *machine.read)
    done = request.store.run(argv, worktree=folder, read=read, env=env, network=settings.network)
    if done.result.end is End.OK:
        return None
    what = "pip install" if settings.network else "pip install without network"
    return failure(what, done, network=settings.network, next_step="" if settings.network else ALLOW)


def _with_uv(plan: InstallPlan, folder: Path, venv: Path) -> NoEnvironment | None:
    assert plan.uv is not None
    request, settings = plan.request, plan.request.settings
    manifests = [path for path in request.files.paths if path.rpartition("/")[2] in ("pyproject.toml", "uv.lock")]
    request.write_manifests(manifests, folder / "project")
    machine = clients(request.environ, network=settings.network)
    argv = [str(plan.uv), "sync", "--frozen", "--no-install-project", "--no-install-workspace", "--no-progress"]
    argv += ["--python", str(plan.base.executable), "--color", "never"]
    argv += [word for extra in plan.declared.extras for word in ("--extra", extra)]
    argv += [word for group in plan.declared.groups for word in ("--group", group)]
    argv += [] if settings.network else ["--offline"]
    env = {
        **machine.env,
        "UV_PROJECT_ENVIRONMENT": str(venv),
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        **settings.env,
    }
    read = (*plan.base.read, *machine.read, *needed_by(plan.uv))
    done = request.store.run(
        argv,
        # the cache contains folders that look like repositories, so it must be outside the worktree
        worktree=folder / "project",
        write=(folder,),
        cwd=request.project.root,
        read=read,
        env=env,
        network=settings.network,
    )
    if done.result.end is not End.OK:
        return failure("uv sync", done, network=settings.network, next_step="" if settings.network else ALLOW)
    remove_tree(folder / "cache")
    return _tools_with_uv(plan, folder, venv, env, read)


def _tools_with_uv(
    plan: InstallPlan, folder: Path, venv: Path, env: dict[str, str], read: tuple[Path, ...]
) -> NoEnvironment | None:
    """Add tools that the lock does not contain; if one cannot be installed, its own check reports that."""
    site = next((venv / "lib").glob("python*/site-packages"), None)
    present = (
        {path.name.split("-")[0].lower().replace("_", "-") for path in site.glob("*.dist-info")} if site else set()
    )
    tools = [tool for tool in missing_tools(plan) if canonicalize_name(tool) not in present]
    if tools and plan.request.settings.network:
        argv = [str(plan.uv), "pip", "install", "--python", str(venv / "bin" / "python"), *tools]
        place = folder / "project"
        plan.request.store.run(argv, worktree=place, write=(folder,), read=read, env=env, network=True)
        remove_tree(folder / "cache")
    return None


_VENVS = (".venv", "venv")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _PythonNeeds:
    """A Python project and what its files declare."""

    request: EnvironmentRequest
    declared: DeclaredRequirements
    metadata: ProjectMetadata

    @property
    def manifests(self) -> list[str]:
        """Every file that determines the environment."""
        project = self.request.project
        locks = [join(folder, name) for folder in (project.root, ".") for name in LOCKS]
        return sorted({*project.manifests, *self.declared.read, *self.metadata.read, *locks})

    @property
    def facts(self) -> list[Any]:
        """The facts that are part of every digest of this project."""
        bootstrap = hashlib.sha256(BOOTSTRAP.read_bytes()).hexdigest()
        return ["python", bootstrap, self.request.project.root, self.request.content(self.manifests)]


def prepare_python(request: EnvironmentRequest) -> Environment | NoEnvironment:
    """Go through the sources of an environment in order and return the first usable one."""
    wanted = _PythonNeeds(
        request, declared_by(request.project.root, request.files), read_metadata(request.project.root, request.files)
    )
    broken = _broken_lock(wanted)
    if broken is not None:
        return broken
    if request.settings.commands:
        return _by_commands(wanted, _base(wanted))
    ready, why_not = _user_environment(wanted)
    if ready is not None:
        return ready
    if wanted.declared.problem is not None:
        step = "set commands that install it under [verify.setup] in fairwitness.toml"
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


def _base(wanted: _PythonNeeds) -> Interpreter | None:
    """Return the first working interpreter of the user's PATH whose version the project supports."""
    request = wanted.request
    for python in on_path(request.search, request.repositories):
        try:
            interpreter = probe(request.store, python)
        except NoInterpreter:
            continue
        if python_fits(wanted.declared, interpreter.version):
            return interpreter
    return None


def _built(wanted: _PythonNeeds, base: Interpreter) -> Environment | NoEnvironment:
    """Return an environment installed from the tree's declarations; offline, pip is tried too: it can use folders."""
    request = wanted.request
    first = plan_of(request, wanted.declared, wanted.metadata, base)
    again = first.uv is not None and not request.settings.network
    refusal: NoEnvironment | None = None
    for plan in (first, replace(first, uv=None)) if again else (first,):
        digest = digest_of("built", wanted.facts, plan.facts)
        built = request.store.kept(digest, partial(build, plan))
        if isinstance(built, BuiltEnvironment):
            return _environment(request, digest, built, base.read)
        refusal = refusal or built
    assert refusal is not None
    return refusal


def _broken_lock(wanted: _PythonNeeds) -> NoEnvironment | None:
    """Return why there is no environment if a lock file cannot be read: an error of the tree, not of the machine."""
    request = wanted.request
    for path in wanted.manifests:
        if path in request.files.paths and path.endswith(("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")):
            content = request.files.read(path)
            if content is None:
                return NoEnvironment(f"{path} cannot be read", environmental=False)
            try:
                toml_text.parse(content.decode())
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                return NoEnvironment(f"{path} is not a valid lock file: {error}", environmental=False)
    return None


def _lacks(wanted: _PythonNeeds, interpreter: Interpreter) -> list[str]:
    """Return what the project needs and an interpreter lacks, or has in a version other than the locked one."""
    versions = interpreter.versions
    lacking = unmet(wanted.declared, versions, interpreter.markers)
    locked = locked_versions(wanted.request.project.root, wanted.request.files)
    lacking += [
        f"{name} {'/'.join(sorted(locked[name]))} (it has {version})"
        for name, version in sorted(versions.items())
        if name in locked and version not in locked[name] and not is_own(name, wanted.metadata)
    ]
    return lacking


def _without(wanted: _PythonNeeds, interpreter: Interpreter) -> list[str]:
    """Return the tools that checks need and an interpreter lacks."""
    return [tool for tool in wanted.request.tools if tool in TOOLS and tool not in interpreter.versions]


def _user_environment(wanted: _PythonNeeds) -> tuple[Environment | None, str]:
    """Return the environment of the user's own checkout if it fits this tree, else why it does not."""
    request = wanted.request
    user_checkout = request.user_checkout
    if user_checkout is None:
        return None, ""
    for folder in dict.fromkeys((request.project.root, ".")):
        for name in _VENVS:
            venv = user_checkout / folder / name
            if not (venv / "pyvenv.cfg").is_file():
                continue
            shown = join(folder, name)
            if any(path.startswith(f"{shown}/") for path in request.files.paths):
                return None, f"{shown} is part of the tree and not the user's own"
            differing = request.differs_from_user_checkout(wanted.manifests)
            if differing is not None:
                return None, f"{shown} is for another {differing}"
            python = venv_python(venv, request.repositories)
            if python is None:
                return None, f"{shown} has no interpreter of this machine"
            try:
                interpreter = probe(request.store, python)
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
    wanted: _PythonNeeds,
    interpreter: Interpreter,
    by: str,
    *,
    network: bool = False,
    extra: tuple[Path, ...] = (),
    checkouts: tuple[Path, ...] = (),
) -> Environment:
    """Return a layer over an interpreter with everything installed in it.

    `checkouts` are folders besides the request's own that references in it may lead to: trees it was made from.
    """
    request, metadata = wanted.request, wanted.metadata
    repositories = (*checkouts, *request.repositories)
    refers = references(interpreter, repositories)
    installed = {name: [one.version, str(one.folder)] for name, one in interpreter.distributions.items()}
    digest = digest_of(
        "layer", wanted.facts, interpreter.identity, installed, refers.lines, refers.editable, metadata.plain(), by
    )

    def make(folder: Path) -> dict[str, Any]:
        venv = folder / "venv"
        python = lay(venv, interpreter, refers)
        if metadata.name and not any(is_own(name, metadata) for name in interpreter.distributions):
            describe(site_of(venv, interpreter), venv / "bin", python, metadata.plain())
        return notes_of(interpreter, metadata, repositories, network=network, by=by, editable=refers.editable)

    built = request.store.kept(digest, make)
    assert isinstance(built, BuiltEnvironment)  # `make` returns nothing else
    outside = (*refers.outside, *outside_folders(interpreter, repositories), *extra)
    return _environment(request, digest, built, (*interpreter.read, *outside))


def _by_commands(wanted: _PythonNeeds, base: Interpreter | None) -> Environment | NoEnvironment:
    """Return a layer over the interpreter that the commands of [verify.setup] leave in their folder."""
    request = wanted.request
    digest = digest_of("commands", wanted.facts, base.identity if base else None, *_settings_facts(request))
    done = run_commands(request, digest, base)
    if isinstance(done, NoEnvironment):
        return done
    for place in ("bin/python", "venv/bin/python", ".venv/bin/python"):
        python = done.folder / "env" / place
        if python.exists():
            try:
                interpreter = probe(request.store, python)
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
    step = "create a virtual environment in {env}, for example with python3 -m venv {env}"
    return NoEnvironment(
        "the commands of [verify.setup] left no interpreter in {env}", environmental=False, next_step=step
    )


def _settings_facts(request: EnvironmentRequest) -> list[Any]:
    settings = request.settings
    return [[list(command) for command in settings.commands], sorted(settings.env.items())]


def _environment(
    request: EnvironmentRequest, digest: str, built: BuiltEnvironment, read: tuple[Path, ...]
) -> Environment:
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
