"""Building a Python environment from what a project declares: uv where its lock is there, pip otherwise.

The tree itself is not there while it is built: manifests are copied, the project's own code is never installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fairwitness.contracts.common.sandbox import End
from fairwitness.verify.environment.about import About, is_own
from fairwitness.verify.environment.clients import clients
from fairwitness.verify.environment.environment_store import failure, remove
from fairwitness.verify.environment.interpreters import Interpreter, NoInterpreter, probe
from fairwitness.verify.environment.layers import bare, describe, hook, site_of
from fairwitness.verify.environment.machine import find, needed_by, version_of, within
from fairwitness.verify.environment.model import NoEnvironment
from fairwitness.verify.environment.request import Request
from fairwitness.verify.environment.requirements import Declared, join, locked_versions

ALLOW = (
    "fairwitness verify --setup-network (for good: network = true under [verify.setup] in fairwitness.toml), "
    "or make a .venv of what the project needs"
)

TOOLS = frozenset(
    {"pytest", "ruff", "mypy", "black", "flake8", "pyright", "basedpyright", "isort", "pylint", "build", "pre-commit"}
)
"""Tools that are fetched by their name; any other name may be anybody's package, so it has to be declared."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be installed, and by which program."""

    request: Request
    declared: Declared
    said: About
    base: Interpreter
    uv: Path | None

    @property
    def by(self) -> str:
        """One clause for people."""
        return "uv sync" if self.uv is not None else "pip install of the declared dependencies"

    @property
    def facts(self) -> list[Any]:
        """What a digest has to know."""
        tool = version_of(self.uv) if self.uv is not None else self.base.versions.get("pip", "bundled")
        settings = self.request.settings
        return [self.by, tool, self.base.identity, missing_tools(self), sorted(settings.env.items()), self.said.plain()]


def plan_of(request: Request, declared: Declared, said: About, base: Interpreter) -> Plan:
    """uv if the tree has its lock and the person has the program."""
    locked = any(join(folder, "uv.lock") in request.files.paths for folder in (request.project.root, "."))
    uv = find("uv", request.search, outside=request.repositories) if locked else None
    return Plan(request, declared, said, base, uv)


def missing_tools(plan: Plan) -> list[str]:
    """Tools that checks want and the project does not declare."""
    lines = [line.split(" --hash")[0] for line in plan.declared.requirements]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    return sorted({tool for tool in plan.request.tools if tool in TOOLS and canonicalize_name(tool) not in declared})


def build(plan: Plan, folder: Path) -> dict[str, Any] | NoEnvironment:
    """Installs everything into `venv` of a folder; the notes of the environment, or why there is none."""
    venv = folder / "venv"
    failed = _with_uv(plan, folder, venv) if plan.uv is not None else _with_pip(plan, folder, venv)
    if failed is not None:
        return failed
    python = venv / "bin" / "python"
    try:
        interpreter = probe(plan.request.workshop, python)
    except NoInterpreter as error:
        return NoEnvironment(f"{plan.by} left no interpreter: {error}", environmental=True)
    site = site_of(venv, interpreter)
    hook(site)
    if plan.said.name and not any(is_own(name, plan.said) for name in interpreter.distributions):
        describe(site, venv / "bin", python, plan.said.plain())
    request = plan.request
    return notes_of(interpreter, plan.said, request.repositories, network=request.settings.network, by=plan.by)


def notes_of(
    interpreter: Interpreter,
    said: About,
    repositories: Sequence[Path],
    *,
    network: bool,
    by: str,
    editable: tuple[str, ...] = (),
) -> dict[str, Any]:
    """What is written down of an environment."""
    installed = set[str]()
    for name, one in interpreter.distributions.items():
        ours = is_own(name, said) or (one.folder is not None and within(one.folder, repositories))
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


def _with_pip(plan: Plan, folder: Path, venv: Path) -> NoEnvironment | None:
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


def _tools_with_pip(plan: Plan, folder: Path, venv: Path) -> NoEnvironment | None:
    """Adds tools that are not declared; one that cannot be had is missed by its own check, unless nothing else is."""
    tools = missing_tools(plan)
    failed = _pip(plan, folder, venv, "tools.txt", tools, with_constraints=True)
    if failed is not None and len(tools) > 1:
        each = [_pip(plan, folder, venv, "tools.txt", [tool], with_constraints=True) for tool in tools]
        failed = failed if all(one is not None for one in each) else None
    return failed if not plan.declared.requirements else None


def _locked(plan: Plan) -> list[str]:
    """The versions of a lock that pip cannot read itself, where it names one version only."""
    versions = locked_versions(plan.request.project.root, plan.request.files)
    declared = "\n".join(plan.declared.requirements)
    return [
        f"{name}=={min(found)}"
        for name, found in sorted(versions.items())
        if len(found) == 1 and f"{name}==" not in declared
    ]


def _pip(
    plan: Plan, folder: Path, venv: Path, name: str, lines: list[str], *, with_constraints: bool
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
    done = request.workshop.run(argv, worktree=folder, read=read, env=env, network=settings.network)
    if done.result.end is End.OK:
        return None
    what = "pip install" if settings.network else "pip install without network"
    return failure(what, done, network=settings.network, next_step="" if settings.network else ALLOW)


def _with_uv(plan: Plan, folder: Path, venv: Path) -> NoEnvironment | None:
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
    done = request.workshop.run(
        argv,
        # the cache holds folders that look like repositories, so it may not lie in the worktree
        worktree=folder / "project",
        write=(folder,),
        cwd=request.project.root,
        read=read,
        env=env,
        network=settings.network,
    )
    if done.result.end is not End.OK:
        return failure("uv sync", done, network=settings.network, next_step="" if settings.network else ALLOW)
    remove(folder / "cache")
    return _tools_with_uv(plan, folder, venv, env, read)


def _tools_with_uv(
    plan: Plan, folder: Path, venv: Path, env: dict[str, str], read: tuple[Path, ...]
) -> NoEnvironment | None:
    """Adds tools that the lock does not hold; one that cannot be had is missed by its own check, not here."""
    site = next((venv / "lib").glob("python*/site-packages"), None)
    present = (
        {path.name.split("-")[0].lower().replace("_", "-") for path in site.glob("*.dist-info")} if site else set()
    )
    tools = [tool for tool in missing_tools(plan) if canonicalize_name(tool) not in present]
    if tools and plan.request.settings.network:
        argv = [str(plan.uv), "pip", "install", "--python", str(venv / "bin" / "python"), *tools]
        place = folder / "project"
        plan.request.workshop.run(argv, worktree=place, write=(folder,), read=read, env=env, network=True)
        remove(folder / "cache")
    return None
