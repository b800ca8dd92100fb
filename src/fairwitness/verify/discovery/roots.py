"""Find the projects of a tree: folders with a manifest that no project above already covers."""

import re
from collections.abc import Callable, Iterable, Set
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from fairwitness.contracts.verify.checks import Language
from fairwitness.verify.discovery.documents import UnreadableDocument, at, table, texts
from fairwitness.verify.discovery.tree import TOP, IndexedTree, inside, join

MOST_PROJECTS = 30
"""More projects than this are not inspected, and the result says so."""

NOT_OURS = frozenset({"vendor", "target", "dist", "build", "third_party", "third-party", "bower_components", "env"})
"""Folders of generated or copied files."""
EXAMPLES = frozenset(
    {"tests", "test", "__tests__", "fixtures", "fixture", "__fixtures__", "testdata", "test_data", "test-data"}
    | {"examples", "example", "samples", "sample", "templates"}
)
"""A manifest in one of these folders belongs to a test or an example, not to a project of the repository."""

PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")
PYTHON_HINTS = (
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "tox.ini",
    "conftest.py",
    "mypy.ini",
    "ruff.toml",
    ".ruff.toml",
)
GRADLE = ("build.gradle", "build.gradle.kts")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_NAMES = frozenset({*PYTHON_MANIFESTS, *PYTHON_HINTS, "package.json", "Cargo.toml", "go.mod", "pom.xml"}).union(
    GRADLE, MAKEFILES, {"CMakeLists.txt"}
)
"""Files without which no folder is a project."""
_TESTS = re.compile(r"^(?:test|check)[ \t]*:(?!:{0,2}=)", re.MULTILINE)
_PATTERNS = 30
_LONGEST = 200


class Root(NamedTuple):
    """A project's folder and the language of its manifest."""

    path: str
    language: Language


def is_test_file(name: str) -> bool:
    """Return True for the names that Python's test runners look for."""
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def find_roots(tree: IndexedTree, wanted: Iterable[str] | None) -> list[Root]:
    """Return every project, outermost first; `wanted` names the only folders to look at, wherever they lie."""
    if wanted is not None:
        folders = sorted(set(wanted), key=_depth)
        return [
            Root(folder, language) for folder in folders for language in _speaks(tree, folder) or _loose(tree, folder)
        ]
    folders = sorted(filter(is_own, tree.folders_with(_NAMES, "requirements")), key=_depth)
    found = [Root(folder, language) for folder in folders for language in _speaks(tree, folder)]
    if Root(TOP, Language.PYTHON) not in found and _is_loose_python(tree, found):
        found.insert(0, Root(TOP, Language.PYTHON))
    known = frozenset(found)
    return [root for root in found if not _is_spoken_for(tree, root, known)]


def is_own(folder: str) -> bool:
    """Return False for folders of generated, copied or hidden files and of examples."""
    parts = folder.split("/")
    return folder == TOP or not any(part in NOT_OURS or part in EXAMPLES or part.startswith(".") for part in parts)


def _depth(folder: str) -> tuple[int, str]:
    return (0 if folder == TOP else folder.count("/") + 1, folder)


def _speaks(tree: IndexedTree, folder: str) -> list[Language]:
    return [language for language, has in _MARKS.items() if has(tree, folder)]


def _is_python(tree: IndexedTree, folder: str) -> bool:
    if tree.first(folder, *PYTHON_MANIFESTS) is not None:
        return True
    if tree.first(folder, *PYTHON_HINTS) is not None and folder == TOP:
        return True
    # a requirements file alone may also list documentation tools
    return bool(tree.names(folder, "requirements*.txt")) and _has_python(tree, folder)


def _has_python(tree: IndexedTree, folder: str) -> bool:
    """Return True if a folder holds a package, or a test beside or below it."""
    if any(tree.has(join(join(folder, inner), "__init__.py")) for inner in tree.folders(folder)):
        return True
    return any(is_test_file(path.rpartition("/")[2]) for path in tree.under(folder))


def _is_loose_python(tree: IndexedTree, found: list[Root]) -> bool:
    """Return True for a repository of Python files without any manifest, unless they all belong to projects below."""
    nested = [root.path for root in found if root.language is Language.PYTHON]
    tops = tree.names(TOP, "*.py")
    packages = [name for name in tree.folders(TOP) if tree.has(f"{name}/__init__.py") and is_own(name)]
    tests = any(
        is_test_file(path.rpartition("/")[2])
        for path in tree.paths
        if not any(inside(path, root) for root in nested) and not _is_made(path)
    )
    return bool(tops or packages or tests)


def _loose(tree: IndexedTree, folder: str) -> list[Language]:
    """Return the languages of a folder without a manifest that the user configured."""
    return [Language.PYTHON] if tree.names(folder, "*.py") or _has_python(tree, folder) else []


def _is_made(path: str) -> bool:
    return any(part in NOT_OURS or part.startswith(".") for part in path.split("/")[:-1])


def _is_node(tree: IndexedTree, folder: str) -> bool:
    manifest = tree.json(join(folder, "package.json"))
    if not isinstance(manifest, dict):
        return tree.has(join(folder, "package.json"))
    # a manifest that only sets the module type is not a project
    return any(key in manifest for key in ("name", "scripts", "dependencies", "devDependencies", "workspaces"))


def _is_native(tree: IndexedTree, folder: str) -> bool:
    if tree.has(join(folder, "CMakeLists.txt")):
        return True
    makefile = tree.first(folder, *MAKEFILES)
    if makefile is None:
        return False
    if folder == TOP or tree.first(folder, *PYTHON_MANIFESTS, "package.json", "Cargo.toml", "go.mod") is not None:
        return True
    # most Makefiles below the top are called by the one above them, or make documentation
    return not _makefile_above(tree, folder) and _TESTS.search(tree.text(join(folder, makefile)) or "") is not None


def _makefile_above(tree: IndexedTree, folder: str) -> bool:
    return any(tree.first(above, *MAKEFILES) is not None for above in folders_above(folder))


_MARKS: dict[Language, Callable[[IndexedTree, str], bool]] = {
    Language.PYTHON: _is_python,
    Language.NODE: _is_node,
    Language.RUST: lambda tree, folder: tree.has(join(folder, "Cargo.toml")),
    Language.GO: lambda tree, folder: tree.has(join(folder, "go.mod")),
    Language.JAVA: lambda tree, folder: tree.first(folder, "pom.xml", *GRADLE) is not None,
    Language.NATIVE: _is_native,
}


def _is_spoken_for(tree: IndexedTree, root: Root, found: Set[Root]) -> bool:
    """Return True if a project above runs this one's tests with its own."""
    rule = _SPEAKS_FOR.get(root.language)
    return rule is not None and any(
        Root(above, root.language) in found and rule(tree, above, root.path) for above in folders_above(root.path)
    )


def folders_above(folder: str) -> list[str]:
    """Return every folder around a folder, outermost first.

    >>> folders_above("a/b/c"), folders_above(".")
    (['.', 'a', 'a/b'], [])
    """
    parts = folder.split("/")
    return [] if folder == TOP else [TOP, *("/".join(parts[:depth]) for depth in range(1, len(parts)))]


def _cargo_speaks(tree: IndexedTree, above: str, folder: str) -> bool:
    """Return whether a Cargo workspace contains a crate: all below it, except excluded ones and other workspaces."""
    manifest, own = tree.toml(join(above, "Cargo.toml")), tree.toml(join(folder, "Cargo.toml"))
    if at(manifest, "workspace") is None or at(own, "workspace") is not None:
        return False
    return not any(
        inside(folder, join(above, excluded.strip("/"))) for excluded in texts(at(manifest, "workspace", "exclude"))
    )


def _maven_speaks(tree: IndexedTree, above: str, folder: str) -> bool:
    return "<modules>" in (tree.text(join(above, "pom.xml")) or "") and tree.has(join(folder, "pom.xml"))


def _java_speaks(tree: IndexedTree, above: str, folder: str) -> bool:
    gradle = tree.first(above, "settings.gradle", "settings.gradle.kts") is not None
    return _maven_speaks(tree, above, folder) or (gradle and tree.first(folder, *GRADLE) is not None)


def _native_speaks(tree: IndexedTree, above: str, folder: str) -> bool:
    """Return whether CMake above covers a folder: it enters folders itself, unless they have their own Makefile."""
    if tree.first(folder, *MAKEFILES) is not None:
        return False
    mine, theirs = (tree.text(join(path, "CMakeLists.txt")) or "" for path in (folder, above))
    return bool(theirs) and ("add_subdirectory" in theirs.lower() or "project" not in mine.lower())


def _node_speaks(tree: IndexedTree, above: str, folder: str) -> bool:
    """Return whether the root of Node workspaces runs their tests: it does if it has a test script."""
    manifest = tree.json(join(above, "package.json"))
    script = at(manifest, "scripts", "test")
    return isinstance(script, str) and has_tests(script) and is_member(tree, above, folder)


_SPEAKS_FOR: dict[Language, Callable[[IndexedTree, str, str], bool]] = {
    Language.NODE: _node_speaks,
    Language.RUST: _cargo_speaks,
    Language.JAVA: _java_speaks,
    Language.NATIVE: _native_speaks,
}


def has_tests(script: str) -> bool:
    """Return False for an empty test script, and for the one that `npm init` writes."""
    return bool(script.strip()) and "no test specified" not in script


def is_member(tree: IndexedTree, above: str, folder: str) -> bool:
    """Return True if a folder is one of the workspaces of a Node project above it."""
    relative = folder if above == TOP else folder.removeprefix(f"{above}/")
    patterns = workspace_patterns(tree, above)
    if not patterns:
        return False
    wanted = any(_matches(pattern, relative) for pattern in patterns if not pattern.startswith("!"))
    return wanted and not any(_matches(pattern[1:], relative) for pattern in patterns if pattern.startswith("!"))


def workspace_patterns(tree: IndexedTree, root: str) -> list[str]:
    """Return the workspace patterns of a Node project, for npm, yarn, pnpm or lerna."""
    declared: Any = at(tree.json(join(root, "package.json")), "workspaces")
    patterns = texts(declared) or texts(table({"w": declared}, "w").get("packages"))
    pnpm = tree.yaml(join(root, "pnpm-workspace.yaml"))
    if not isinstance(pnpm, UnreadableDocument):
        patterns += texts(at(pnpm, "packages"))
    patterns += texts(at(tree.json(join(root, "lerna.json")), "packages"))
    return [pattern.removeprefix("./").rstrip("/") for pattern in patterns[:_PATTERNS] if len(pattern) <= _LONGEST]


def _matches(pattern: str, path: str) -> bool:
    """Return whether a workspace pattern matches a folder: `*` matches (a part of) a name, `**` any number of names.

    >>> [_matches(pattern, "packages/ui/kit") for pattern in ("packages/*", "packages/**", "packages/ui/k*")]
    [False, True, True]
    """
    wanted, names = pattern.split("/"), path.split("/")
    # reached[i]: whether the first i parts of the pattern match the names so far
    reached = [True, *(all(part == "**" for part in wanted[:index]) for index in range(1, len(wanted) + 1))]
    for name in names:
        now = [False]
        for index, part in enumerate(wanted):
            if part == "**":
                now.append(reached[index + 1] or reached[index] or now[index])
            else:
                now.append(reached[index] and fnmatchcase(name, part))
        reached = now
    return reached[-1]
