"""The environments of languages whose tools are this machine's own: Rust, Go, Java, C and C++.

Tool chains in a home are bound by their own folder. Crates and modules come from what the person has fetched already,
read-only; what is missing there is said before anything is run.
"""

import tomllib
from pathlib import Path, PurePosixPath

from fairwitness.contracts.common.sandbox import End
from fairwitness.contracts.verify.checks import Language
from fairwitness.kit import toml_text
from fairwitness.verify.environment.clients import clients
from fairwitness.verify.environment.environment_store import digest_of, failure
from fairwitness.verify.environment.machine import SYSTEM, SYSTEM_PATH, find, needed_by, version_of, within
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.request import EnvironmentRequest
from fairwitness.verify.environment.requirements import join

_PROGRAMS: dict[Language, tuple[str, ...]] = {
    Language.RUST: ("cargo", "rustc", "rustfmt"),
    Language.GO: ("go",),
    Language.JAVA: ("java", "javac", "mvn", "gradle"),
    Language.NATIVE: ("cc", "c++", "make", "cmake", "ctest", "ninja"),
    Language.OTHER: (),
}
_NEEDED: dict[Language, str] = {Language.RUST: "cargo", Language.GO: "go", Language.JAVA: "java"}


def prepare_toolchain(request: EnvironmentRequest) -> Environment | NoEnvironment:
    """Return the environment of a language whose tools are installed on this machine, or why there is none."""
    language = request.project.language
    found = {name: find(name, request.search, outside=request.repositories) for name in _PROGRAMS[language]}
    programs = {name: path for name, path in found.items() if path is not None}
    needed = _NEEDED.get(language)
    if needed is not None and needed not in programs:
        reason = f"{needed} is not on the PATH"
        return NoEnvironment(reason, environmental=True, next_step=f"install {needed}, or put it on the PATH")
    versions = {name: version_of(path) for name, path in programs.items()}
    read = [path for program in programs.values() for path in needed_by(program)]
    folders = [str(path.parent) for path in programs.values() if not within(path, SYSTEM)]
    env = {"PATH": ":".join((*dict.fromkeys(folders), SYSTEM_PATH))}
    facts: list[object] = [
        "toolchain",
        language,
        request.project.root,
        request.content(request.project.manifests),
        versions,
    ]
    network = False
    match language:
        case Language.RUST:
            crates = _crates(request, programs["cargo"], facts)
            if isinstance(crates, NoEnvironment):
                return crates
            folder, network = crates
            read += [folder] if folder is not None else []
            env |= {"CARGO_HOME": "{tmp}/cargo", "CARGO_TARGET_DIR": "{tmp}/target", "CARGO_NET_OFFLINE": "true"}
            env |= {"RUSTC": str(programs["rustc"])} if "rustc" in programs else {}
        case Language.GO:
            read += [path for path in (_home(request) / "go/pkg/mod",) if path.is_dir()]
            vendored = join(request.project.root, "vendor/modules.txt") in request.files.paths
            env |= {"GOFLAGS": "-mod=vendor" if vendored else "-mod=readonly", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
            env |= {"GOCACHE": "{tmp}/go-build", "GOPATH": "{tmp}/go", "GOMODCACHE": str(_home(request) / "go/pkg/mod")}
        case Language.JAVA:
            repository = _home(request) / ".m2/repository"
            if repository.is_dir():
                read.append(repository)
                env["MAVEN_OPTS"] = f"-Dmaven.repo.local={repository}"
            env |= {"MAVEN_ARGS": "--offline --batch-mode", "GRADLE_USER_HOME": "{tmp}/gradle"}
        case _:
            pass
    return Environment(
        project=request.project,
        language=language,
        digest=digest_of(facts, sorted(map(str, read)), sorted(env.items())),
        prepared_by="the tools of this machine",
        read=tuple(dict.fromkeys(read)),
        env=env,
        network_used=network,
        versions=versions,
        search=request.search,
    )


def _home(request: EnvironmentRequest) -> Path:
    return Path(request.environ.get("HOME", "/nonexistent"))


def _crates(request: EnvironmentRequest, cargo: Path, facts: list[object]) -> tuple[Path | None, bool] | NoEnvironment:
    """Return the registry with every crate of the lock, and whether it was fetched."""
    wanted = _locked(request)
    if isinstance(wanted, NoEnvironment):
        return wanted
    if any(path.startswith(join(request.project.root, "vendor") + "/") for path in request.files.paths):
        return None, False  # the tree contains them
    registry = Path(request.environ.get("CARGO_HOME") or _home(request) / ".cargo") / "registry"
    missing = [crate for crate in wanted if not any(registry.glob(f"cache/*/{crate}.crate"))]
    if not missing:
        return (registry, False) if wanted else (None, False)
    reason = f"the crate {missing[0]} of Cargo.lock is not on this machine"
    if not request.settings.network or request.checkout is None:
        step = (
            "run cargo fetch, or fairwitness verify --setup-network "
            "(permanently: network = true under [verify.setup] in fairwitness.toml)"
        )
        return NoEnvironment(reason, environmental=True, next_step=step)
    built = request.store.kept(digest_of("cargo", facts), lambda folder: _fetch(request, cargo, folder))
    return built if isinstance(built, NoEnvironment) else (built.folder / "cargo" / "registry", True)


def _fetch(request: EnvironmentRequest, cargo: Path, folder: Path) -> dict[str, object] | NoEnvironment:
    assert request.checkout is not None
    machine = clients(request.environ, network=True)
    done = request.store.run(
        [str(cargo), "fetch", "--locked"],
        worktree=request.checkout,
        writable=False,
        write=(folder,),
        cwd=request.project.root,
        read=(*needed_by(cargo), *machine.read),
        env={**machine.env, "CARGO_HOME": str(folder / "cargo"), "PATH": f"{cargo.parent}:{SYSTEM_PATH}"},
        network=True,
    )
    return {"network": True} if done.result.end is End.OK else failure("cargo fetch", done, network=True)


def _locked(request: EnvironmentRequest) -> list[str] | NoEnvironment:
    """Return `name-version` of every crate that comes from a registry."""
    folders = [request.project.root, *map(str, PurePosixPath(request.project.root).parents)]
    path = next((found for folder in folders if (found := join(folder, "Cargo.lock")) in request.files.paths), None)
    content = request.files.read(path) if path is not None else b""
    try:
        packages = toml_text.parse((content or b"").decode()).get("package", [])
        return sorted(f"{one['name']}-{one['version']}" for one in packages if "source" in one)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        return NoEnvironment(f"{path} is not a valid lock file: {error}", environmental=False)
