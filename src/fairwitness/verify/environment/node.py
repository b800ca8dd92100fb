"""The environment of a Node project: its dependencies exactly as a lock file names them."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fairwitness.contracts.common.sandbox import End
from fairwitness.contracts.verify.checks import Language
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_given
from fairwitness.kit.folder_trees import remove_tree
from fairwitness.kit.json_text import parse
from fairwitness.kit.limits import DocumentLimits
from fairwitness.verify.environment.clients import clients, npm_lines, user_npmrc
from fairwitness.verify.environment.commands import run_commands
from fairwitness.verify.environment.environment_store import digest_of, failure
from fairwitness.verify.environment.machine import SYSTEM_PATH, find, needed_by, version_of
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.node_modules import every_modules
from fairwitness.verify.environment.request import EnvironmentRequest
from fairwitness.verify.environment.requirements import join

LOCKS = ("npm-shrinkwrap.json", "package-lock.json")
OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_NAME = re.compile(r"(@[a-z0-9._~-]+/)?[a-z0-9._~-]+", re.IGNORECASE)
_LARGE = DocumentLimits(bytes=64 << 20, nodes=5_000_000)
ALLOW = (
    "fairwitness verify --setup-network (permanently: network = true under [verify.setup] in fairwitness.toml), "
    "or npm ci in your checkout"
)


@dataclass(frozen=True, slots=True)
class _Tools:
    node: Path
    npm: Path | None

    @property
    def read(self) -> tuple[Path, ...]:
        return (*needed_by(self.node), *(needed_by(self.npm) if self.npm else ()))

    @property
    def versions(self) -> dict[str, str]:
        return {"node": version_of(self.node), **({"npm": version_of(self.npm)} if self.npm else {})}


def prepare_node(request: EnvironmentRequest) -> Environment | NoEnvironment:
    """Go through the sources of `node_modules` in order and return the first usable one."""
    node = find("node", request.search, outside=request.repositories)
    if node is None:
        return NoEnvironment("node is not on the PATH", environmental=True, next_step="install Node.js")
    manifest = join(request.project.root, "package.json")
    if manifest in request.files.paths and not isinstance(_json(request, manifest), dict):
        return NoEnvironment(f"{manifest} cannot be read", environmental=False)
    tools = _Tools(node, find("npm", request.search, outside=request.repositories))
    root, lock = _lock(request)
    manifests = _manifests(request, root)
    facts = ["node", request.project.root, root, request.content(manifests), tools.versions]
    if request.settings.commands:
        settings = [[list(command) for command in request.settings.commands], sorted(request.settings.env.items())]
        digest = digest_of("commands", facts, settings)
        done = run_commands(request, digest, None)
        if isinstance(done, NoEnvironment):
            return done
        modules = done.folder / "env" / "node_modules"
        if not modules.is_dir() and _declares(request):
            return NoEnvironment("the commands of [verify.setup] left no node_modules in {env}", environmental=False)
        by, network = "the commands of [verify.setup]", request.settings.network
        return _environment(request, digest, tools, request.project.root, modules, by, network=network)
    theirs, why_not = _user_modules(request, root, lock, manifests)
    if theirs is not None:
        digest = digest_of("persons", facts, str(theirs), _hidden_hash(theirs))
        return _environment(request, digest, tools, root, theirs, "the checkout's node_modules (locks equal)")
    if not _declares(request) and (lock is None or not _locked(request, lock)):
        return _environment(request, digest_of("bare", facts), tools, root, None, "node of this machine")
    if lock is None:
        return _unlocked(request, root, why_not)
    if request.files.read(lock) is None:
        return NoEnvironment(f"{lock} is not a regular file, or is too large", environmental=True)
    if _locked(request, lock) is None:
        return NoEnvironment(f"{lock} is not a valid npm lock file", environmental=False, next_step="regenerate it")
    if tools.npm is None:
        return NoEnvironment("npm is not on the PATH", environmental=True, next_step="install npm")
    digest = digest_of("npm", facts, sorted(request.settings.env.items()))
    built = request.store.kept(digest, lambda folder: _npm_ci(request, tools, root, manifests, folder))
    if isinstance(built, NoEnvironment):
        reason = f"{built.reason}; {why_not}" if why_not else built.reason
        return NoEnvironment(reason, built.environmental, built.next_step)
    modules = built.folder / join("project", root) / "node_modules"
    network = bool(built.notes["network"])
    return _environment(request, digest, tools, root, modules, "npm ci", network=network)


def _unlocked(request: EnvironmentRequest, root: str, why_not: str) -> NoEnvironment:
    other = next((name for name in OTHER_LOCKS if join(root, name) in request.files.paths), None)
    if other is not None:
        reason = f"Fair Witness cannot install from {other}"
        step = "run the install in your checkout to create node_modules, or set commands under [verify.setup]"
        return NoEnvironment(f"{reason}; {why_not}" if why_not else reason, environmental=True, next_step=step)
    reason = "package.json declares dependencies without a lock file, so npm install is refused"
    step = "commit a package-lock.json (npm install --package-lock-only)"
    return NoEnvironment(f"{reason}; {why_not}" if why_not else reason, environmental=False, next_step=step)


def _lock(request: EnvironmentRequest) -> tuple[str, str | None]:
    """Return the folder whose lock applies to the project, and the lock; without one, the project's folder and None."""
    paths = set(request.files.paths)
    folders = [request.project.root, *map(str, PurePosixPath(request.project.root).parents)]
    for folder in dict.fromkeys(folders):
        for name in (*LOCKS, *OTHER_LOCKS):
            if join(folder, name) in paths:
                return folder, join(folder, name) if name in LOCKS else None
    return request.project.root, None


def _manifests(request: EnvironmentRequest, root: str) -> list[str]:
    """Return every package.json under the lock's folder, and the locks themselves."""
    prefix = "" if root == "." else f"{root}/"
    names = ("package.json", ".npmrc", *LOCKS, *OTHER_LOCKS)
    beneath = [path for path in request.files.paths if path.startswith(prefix) and path.rpartition("/")[2] in names]
    return sorted({*beneath, *(join(root, name) for name in names), *request.project.manifests})


def _json(request: EnvironmentRequest, path: str) -> Any:
    content = request.files.read(path) if path in request.files.paths else None
    try:
        return parse(content.decode(), _LARGE) if content is not None else None
    except (BadDocument, UnicodeDecodeError):
        return None


def _declares(request: EnvironmentRequest) -> bool:
    """Return True if the project declares any dependency."""
    manifest = _json(request, join(request.project.root, "package.json"))
    return not isinstance(manifest, dict) or any(manifest.get(key) for key in (*_DEPENDENCIES, "workspaces"))


def _locked(request: EnvironmentRequest, lock: str) -> dict[str, Any] | None:
    """Return the packages a lock names, by where they are installed; None if it cannot be read."""
    content = _json(request, lock)
    packages = content.get("packages", content.get("dependencies")) if isinstance(content, dict) else None
    if not isinstance(packages, dict):
        return None if not isinstance(content, dict) or "lockfileVersion" not in content else {}
    return {path: about for path, about in packages.items() if path}


def _user_modules(
    request: EnvironmentRequest, root: str, lock: str | None, manifests: list[str]
) -> tuple[Path | None, str]:
    """Return `node_modules` of the user's own checkout if it fits this tree, else why it does not."""
    if request.user_checkout is None:
        return None, ""
    modules = request.user_checkout / root / "node_modules"
    if modules.is_symlink() or not modules.is_dir():
        return None, ""
    if any("node_modules" in PurePosixPath(path).parts for path in request.files.paths):
        return None, "node_modules is part of the tree"
    differing = request.differs_from_user_checkout(manifests)
    if differing is not None:
        return None, f"the checkout's node_modules is for another {differing}"
    other = any(join(root, name) in request.files.paths for name in OTHER_LOCKS)
    if lock is None and not other:
        return None, "the checkout's node_modules has no lock file to be held against"
    stale = _stale(request, lock, modules) if lock is not None else None
    return (None, f"the checkout's node_modules {stale}") if stale else (modules, "")


def _stale(request: EnvironmentRequest, lock: str, modules: Path) -> str | None:
    """Return how the installation differs from the lock, by npm's own record of what it installed."""
    try:
        hidden = parse(read_given(modules / ".package-lock.json", limit=_LARGE.bytes).decode(), _LARGE)
        installed = hidden["packages"]
    except (StoreError, BadDocument, UnicodeDecodeError, KeyError, TypeError):
        return "was not written by npm"
    locked = _locked(request, lock) or {}
    for path, about in locked.items():
        if not isinstance(about, dict) or not path.startswith("node_modules/") or about.get("link"):
            continue
        there = installed.get(path)
        if there is None and not (about.get("optional") or about.get("devOptional") or about.get("peer")):
            return f"lacks {path.removeprefix('node_modules/')}"
        if isinstance(there, dict) and there.get("version") != about.get("version"):
            return f"holds another {path.removeprefix('node_modules/')} than the lock"
    return None


def _hidden_hash(modules: Path) -> str:
    try:
        return hashlib.sha256(read_given(modules / ".package-lock.json", limit=_LARGE.bytes)).hexdigest()
    except StoreError:
        return str(modules.stat().st_mtime_ns)


def _npm_ci(
    request: EnvironmentRequest, tools: _Tools, root: str, manifests: list[str], folder: Path
) -> dict[str, Any] | NoEnvironment:
    """Install what the lock names, without running any script of it."""
    assert tools.npm is not None
    settings = request.settings
    project = folder / "project"
    request.write_manifests([path for path in manifests if not path.endswith(".npmrc")], project)
    theirs = request.files.read(join(root, ".npmrc")) if join(root, ".npmrc") in request.files.paths else b""
    registries = [*user_npmrc(request.environ), *npm_lines((theirs or b"").decode(errors="replace"))]
    (project / root / ".npmrc").write_text("".join(f"{line}\n" for line in registries))
    machine = clients(request.environ, network=settings.network)
    argv = [str(tools.npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--color=false"]
    argv += [] if settings.network else ["--offline"]
    path = f"{tools.node.parent}:{SYSTEM_PATH}"
    env = {**machine.env, "PATH": path, "npm_config_cache": str(folder / "cache"), **settings.env}
    read = (*tools.read, *machine.read, *_user_cache(request, folder / "cache"))
    done = request.store.run(
        argv, worktree=project, write=(folder,), cwd=root, read=read, env=env, network=settings.network
    )
    remove_tree(folder / "cache")
    if done.result.end is not End.OK:
        what = "npm ci" if settings.network else "npm ci without network"
        contradiction = _contradiction(request, root)
        if contradiction is not None and not settings.network:
            reason = f"{what} failed, and the lock and package.json disagree about {contradiction}"
            return NoEnvironment(reason, environmental=False, next_step="regenerate the lock (npm install)")
        return failure(what, done, network=settings.network, next_step="" if settings.network else ALLOW)
    (project / root / "node_modules").mkdir(exist_ok=True)
    return {"network": settings.network}


def _contradiction(request: EnvironmentRequest, root: str) -> str | None:
    """Return a dependency that a manifest and its lock specify differently; None if there is none."""
    manifest = _json(request, join(root, "package.json"))
    lock: Any = next((found for name in LOCKS if (found := _json(request, join(root, name))) is not None), None)
    packages = lock.get("packages") if isinstance(lock, dict) else None
    locked = packages.get("") if isinstance(packages, dict) else None
    if not isinstance(manifest, dict) or not isinstance(locked, dict):
        return None
    for key in ("dependencies", "devDependencies", "optionalDependencies"):
        ours, theirs = manifest.get(key) or {}, locked.get(key) or {}
        if isinstance(ours, dict) and isinstance(theirs, dict) and ours != theirs:
            return next((name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)), None)
    return None


def _user_cache(request: EnvironmentRequest, cache: Path) -> tuple[Path, ...]:
    """Return the user's npm cache, to be bound read-only; used only without network."""
    theirs = (
        Path(request.environ.get("npm_config_cache") or Path(request.environ.get("HOME", "/")) / ".npm") / "_cacache"
    )
    parts = [theirs / name for name in ("index-v5", "content-v2") if (theirs / name).is_dir()]
    if request.settings.network or not parts:
        return ()
    (cache / "_cacache").mkdir(parents=True)
    for part in parts:
        (cache / "_cacache" / part.name).symlink_to(part)
    return (theirs,)


def _environment(
    request: EnvironmentRequest,
    digest: str,
    tools: _Tools,
    root: str,
    modules: Path | None,
    by: str,
    *,
    network: bool = False,
) -> Environment:
    there = modules is not None and modules.is_dir()
    return Environment(
        project=request.project,
        language=Language.NODE,
        digest=digest,
        prepared_by=by,
        node_modules=modules if there else None,
        install_root=root,
        read=tuple(dict.fromkeys((*tools.read, *(every_modules(modules) if there and modules else ())))),
        env={"PATH": f"{tools.node.parent}:{SYSTEM_PATH}", "npm_config_offline": "true"},
        network_used=network,
        versions=tools.versions,
        own=_own(request),
        search=request.search,
    )


def _own(request: EnvironmentRequest) -> tuple[str, ...]:
    """Return the names of the repository's own packages."""
    manifests = [path for path in request.files.paths if path.rpartition("/")[2] == "package.json"]
    found = [_json(request, path) for path in manifests if "node_modules" not in PurePosixPath(path).parts]
    names = [one.get("name") for one in found if isinstance(one, dict)]
    return tuple(
        sorted(
            {*request.project.packages, *(name for name in names if isinstance(name, str) and _NAME.fullmatch(name))}
        )
    )
