"""The dependencies that a Python project declares, read from its files without running them.

Runtime dependencies, and the groups and extras that usually hold what tests need. The project itself and folders of
the repository are left out: their code comes from the worktree.
"""

import configparser
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from fairwitness.kit import toml_text
from fairwitness.verify.discovery.files import TreeFiles

USUAL = ("test", "tests", "testing", "dev")
"""Groups and extras that hold what tests need."""
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml")
_KINDS = {
    "run": {"base", "common", "core", "install", "main", "runtime"},
    "test": {"test", "tests", "testing"},
    "dev": {"dev", "develop", "development"},
}
"""Words in the names of requirement files, by the purpose of the file."""
_INDEX = re.compile(r"--(extra-)?index-url[= ]\s*(https://[^@\s]+|file://\S+)")

_HASH = re.compile(r"--hash[= ]\w+:[0-9a-fA-F]+")
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,60}")


@dataclass(slots=True)
class DeclaredRequirements:
    """The dependencies of a project; `problem` if its files cannot be read."""

    requirements: list[str] = field(default_factory=list)
    """Lines for pip, with their hashes."""
    indexes: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    requires_python: str = ""
    extras: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    """Names of the extras and groups that are included."""
    read: list[str] = field(default_factory=list)
    """The files this was read from."""
    problem: str | None = None
    foreign: bool = False
    """Whether the problem is only a format of another tool, which is not supported."""


def declared_by(root: str, files: TreeFiles) -> DeclaredRequirements:
    """Return what the project in a folder of the tree declares."""
    declared = DeclaredRequirements()
    _pyproject(join(root, "pyproject.toml"), files, declared)
    _setup_cfg(join(root, "setup.cfg"), files, declared)
    for path in _requirement_files(root, files):
        _requirement_file(path, files, declared, {path})
    return declared


def _requirement_files(root: str, files: TreeFiles) -> list[str]:
    """Return the requirement files of the project and its tests; those for development if there are none for tests."""
    found: dict[str, list[str]] = {"run": [], "test": [], "dev": []}
    for path in sorted(files.paths):
        parent, _, name = path.rpartition("/")
        stem = name.removesuffix(".txt").lower()
        if name == stem or (parent or ".") not in (root, join(root, "requirements")):
            continue
        words = set(re.split(r"[-_.]+", stem))
        if (parent or ".") == root and "requirements" not in words:
            continue
        kind = next((kind for kind, names in _KINDS.items() if words - {"requirements"} <= names), None)
        if kind is not None:
            found[kind].append(path)
    return found["run"] + (found["test"] or found["dev"])


def unmet(declared: DeclaredRequirements, versions: Mapping[str, str], markers: Mapping[str, str]) -> list[str]:
    """Return the requirements and Python version bounds that a set of installed distributions does not satisfy."""
    missing = []
    if not python_fits(declared, markers["python_full_version"]):
        missing.append(f"Python {declared.requires_python}")
    for line in (*declared.requirements, *declared.constraints):
        requirement = Requirement(line.split(" --hash")[0])
        installed = versions.get(canonicalize_name(requirement.name))
        if not applies(requirement, markers) or (installed is None and line in declared.constraints):
            continue
        if installed is None or not requirement.specifier.contains(installed, prereleases=True):
            missing.append(str(requirement).split(";")[0].strip())
    return list(dict.fromkeys(missing))


def applies(requirement: Requirement, markers: Mapping[str, str]) -> bool:
    """Return True unless a marker excludes this interpreter."""
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate({**markers, "extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True


def python_fits(declared: DeclaredRequirements, version: str) -> bool:
    """Return True if the project supports this version of Python."""
    try:
        return SpecifierSet(declared.requires_python).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def locked_versions(root: str, files: TreeFiles) -> dict[str, set[str]]:
    """Return the locked versions of each distribution; empty without a readable lock file."""
    for folder in dict.fromkeys((root, ".")):
        for name in LOCKS:
            content = files.read(join(folder, name)) if join(folder, name) in files.paths else None
            if content is not None and name.endswith((".lock", ".toml")) and name != "Pipfile.lock":
                try:
                    return _locked(toml_text.parse(content.decode()))
                except (tomllib.TOMLDecodeError, UnicodeDecodeError):
                    return {}
    return {}


def _locked(lock: dict[str, Any]) -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    packages = lock.get("package", lock.get("packages"))
    for package in packages if isinstance(packages, list) else ():
        if (
            isinstance(package, dict)
            and isinstance(package.get("name"), str)
            and isinstance(package.get("version"), str)
        ):
            source = package.get("source")
            local = isinstance(source, dict) and {"editable", "virtual", "directory", "workspace"} & set(source)
            if not local and _VERSION.fullmatch(package["version"]):
                versions.setdefault(canonicalize_name(package["name"]), set()).add(package["version"])
    return versions


def _pyproject(path: str, files: TreeFiles, declared: DeclaredRequirements) -> None:
    content = files.read(path) if path in files.paths else None
    if content is None:
        return
    declared.read.append(path)
    try:
        document = toml_text.parse(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        declared.problem = f"{path} cannot be read: {error}"
        return
    project = _table(document.get("project"))
    if not project and _table(_table(document.get("tool")).get("poetry")):
        declared.problem, declared.foreign = f"{path} declares its dependencies for Poetry alone", True
    declared.requires_python = _text(project.get("requires-python"))
    own = canonicalize_name(_text(project.get("name")) or "-")
    _add(declared, _texts(project.get("dependencies")), path, own)
    extras = _table(project.get("optional-dependencies"))
    named: dict[str, str] = {canonicalize_name(name): name for name in extras}
    waiting, taken = [name for name in USUAL if name in named], set[str]()
    while waiting:
        extra = waiting.pop(0)
        if extra in taken or extra not in named:
            continue
        taken.add(extra)
        declared.extras.append(named[extra])
        lines = _texts(extras[named[extra]])
        waiting += [canonicalize_name(more) for line in lines for more in _own_extras(line, own)]
        _add(declared, lines, path, own)
    groups: dict[str, Any] = {
        canonicalize_name(name): value for name, value in _table(document.get("dependency-groups")).items()
    }
    for name in (name for name in USUAL if name in groups):
        declared.groups.append(name)
        _add(declared, _group(name, groups, set()), path, own)


def _group(name: str, groups: Mapping[str, Any], seen: set[str]) -> list[str]:
    """Return the lines of a dependency group with those of the groups it includes."""
    lines: list[str] = []
    if name in seen or name not in groups:
        return lines
    seen.add(name)
    for entry in groups[name] if isinstance(groups[name], list) else ():
        if isinstance(entry, str):
            lines.append(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            lines += _group(canonicalize_name(entry["include-group"]), groups, seen)
    return lines


def _setup_cfg(path: str, files: TreeFiles, declared: DeclaredRequirements) -> None:
    content = files.read(path) if path in files.paths else None
    if content is None:
        return
    declared.read.append(path)
    parser = configparser.RawConfigParser(delimiters=("=",))
    try:
        parser.read_string(content.decode(errors="replace"))
    except configparser.Error as error:
        declared.problem = f"{path} cannot be read: {str(error).splitlines()[0]}"
        return
    own = canonicalize_name(parser.get("metadata", "name", fallback="-"))
    declared.requires_python = declared.requires_python or parser.get("options", "python_requires", fallback="")
    blocks = [parser.get("options", "install_requires", fallback="")]
    blocks += [parser.get("options.extras_require", name, fallback="") for name in USUAL]
    for block in blocks:
        lines = [line.split("#")[0].strip() for line in block.splitlines()]
        _add(declared, [line for line in lines if line and not line.startswith(("file:", "attr:"))], path, own)


def _requirement_file(
    path: str, files: TreeFiles, declared: DeclaredRequirements, seen: set[str], *, constrains: bool = False
) -> None:
    content = files.read(path) if path in files.paths else None
    if content is None:
        declared.problem = f"{path} is named by a requirements file and cannot be read"
        return
    declared.read.append(path)
    text = re.sub(r"\\\n", " ", content.decode(errors="replace").replace("\r\n", "\n"))
    for raw in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        other = re.fullmatch(r"(-r|--requirement|-c|--constraint)[= ]?\s*(\S+)", line)
        if other:
            named = join(str(PurePosixPath(path).parent), other[2])
            if named not in seen:
                constraint = constrains or other[1] in ("-c", "--constraint")
                _requirement_file(named, files, declared, seen | {named}, constrains=constraint)
        elif index := _INDEX.fullmatch(line):
            declared.indexes.append(index[2])
        elif line and not line.startswith("-") and not _is_folder(line):
            _add(declared, [line], path, canonicalize_name("-"), constrains=constrains)


def _is_folder(line: str) -> bool:
    """Return True for a line that names a folder or file of the repository: its code comes from the worktree."""
    return line.startswith((".", "/", "file:")) or " @ file:" in line


def _add(
    declared: DeclaredRequirements, lines: Sequence[str], path: str, own: str, *, constrains: bool = False
) -> None:
    for line in lines:
        text, *hashes = re.split(r"(?<!\s)\s+(?=--hash[= ])", line)
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            declared.problem = f"{path} asks for {text[:80]!r}, which is not a valid requirement"
            continue
        if canonicalize_name(requirement.name) == own or _is_folder(line):
            continue
        if not all(_HASH.fullmatch(one) for one in hashes):
            declared.problem = f"{path} gives {requirement.name} options that are not supported"
            continue
        kept = " ".join((str(requirement), *hashes))  # rebuilt, so that it contains nothing but a requirement
        target = declared.constraints if constrains else declared.requirements
        if kept not in target:
            target.append(kept)


def _own_extras(line: str, own: str) -> set[str]:
    """Return the project's own extras that a requirement names, as in `shop[test]`."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return set()
    return requirement.extras if canonicalize_name(requirement.name) == own else set()


def join(folder: str, name: str) -> str:
    """Return the path in the tree of a name relative to a folder."""
    parts: list[str] = []
    for part in (*PurePosixPath(folder).parts, *PurePosixPath(name).parts):
        if part == "..":
            if not parts:
                return f"../{name}"  # leads out of the repository: no file of the tree has this name
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
