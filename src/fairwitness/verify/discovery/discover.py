"""From a tree's files to the checks it offers. Pure over what the files say; a file can be wrong, never dangerous."""

from collections.abc import Iterable

from fairwitness.contracts.verify.checks import Discovered, Language, Undiscovered, VerifySettings
from fairwitness.kit.text import visible
from fairwitness.verify.discovery.compiled import look_at_go, look_at_java, look_at_rust
from fairwitness.verify.discovery.files import PATHS_LIMIT, TreeFiles
from fairwitness.verify.discovery.native import look_at_native
from fairwitness.verify.discovery.node import look_at_node
from fairwitness.verify.discovery.overrides import apply_settings
from fairwitness.verify.discovery.python import PythonProject
from fairwitness.verify.discovery.python_checks import look_for_checks, ruff_configuration
from fairwitness.verify.discovery.python_tests import look_for_tests, pytest_configuration
from fairwitness.verify.discovery.roots import MOST_PROJECTS, Root, find_roots
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import TOP, Tree, inside, join

_UNKNOWN = {
    "meson.build": "meson",
    "configure.ac": "autotools",
    "MODULE.bazel": "bazel",
    "WORKSPACE": "bazel",
    "Gemfile": "ruby",
    "composer.json": "php",
    "mix.exs": "elixir",
    "build.sbt": "sbt",
    "Package.swift": "swift",
    "deno.json": "deno",
    "stack.yaml": "haskell",
    "dub.json": "d",
}
"""Manifests of tools that nobody here can run: said, so that their silence is no surprise."""


def discover(files: TreeFiles, settings: VerifySettings) -> Discovered:
    """What a tree offers: projects, checks, and what is configured but cannot be run. Empty if it offers nothing."""
    tree = Tree(files)
    wanted = None if settings.roots is None else [_plain(root) for root in settings.roots]
    roots = find_roots(tree, wanted)
    top = Found(TOP, Language.OTHER)
    if len(roots) > MOST_PROJECTS:
        _say_cut(top, roots[MOST_PROJECTS:])
        roots = roots[:MOST_PROJECTS]
    founds = _look(tree, roots)
    _look_at_top(tree, top, wanted, roots)
    if tree.is_cut or tree.is_tired:
        words = f"the tree holds more than {PATHS_LIMIT} files" if tree.is_cut else "there was too much to read"
        _say(top, "whole-tree", f"{words}; only a part was looked at", found_in=TOP)
    founds.append(top)
    checks = {check.id: check for found in founds for check in found.checks}
    return apply_settings(
        Discovered(
            projects=tuple(found.project for found in founds if found.project is not None),
            checks=tuple(checks.values()),
            undiscovered=_once(each for found in founds for each in found.undiscovered),
        ),
        settings,
    )


def _plain(root: str) -> str:
    return root.strip().removeprefix("./").strip("/") or TOP


def _look(tree: Tree, roots: list[Root]) -> list[Found]:
    founds: list[Found] = []
    python = {
        root.path: PythonProject(tree, root.path, _below(root, roots))
        for root in roots
        if root.language is Language.PYTHON
    }
    for root in roots:
        found = Found(root.path, root.language)
        match root.language:
            case Language.PYTHON:
                _look_at_python(python[root.path], found, python)
            case Language.NODE:
                look_at_node(tree, found, _below(root, roots))
            case Language.RUST:
                look_at_rust(tree, found)
            case Language.GO:
                look_at_go(tree, found)
            case Language.JAVA:
                look_at_java(tree, found)
            case _:
                look_at_native(tree, found, [other for other in founds if other.root == root.path])
        founds.append(found)
    return founds


def _below(root: Root, roots: Iterable[Root]) -> list[str]:
    """The projects of the same language inside another's folder."""
    return [
        other.path
        for other in roots
        if other.language is root.language and other.path != root.path and inside(other.path, root.path)
    ]


def _look_at_python(project: PythonProject, found: Found, all_of_them: dict[str, PythonProject]) -> None:
    found.project = project.describe()
    if project.broken is not None:
        found.unreadable("pyproject.toml", project.broken)
    above = [other for path, other in all_of_them.items() if path != project.root and inside(project.root, path)]
    # a project above that configures pytest runs everything below it, unless what is below configures its own
    covered = any(pytest_configuration(other) is not None for other in above)
    apart = tuple(path for path in project.nested if pytest_configuration(all_of_them[path]) is not None)
    look_for_tests(project, found, others=apart, covered=covered)
    look_for_checks(project, found, ruff_above=any(ruff_configuration(other) is not None for other in above))


def _look_at_top(tree: Tree, top: Found, wanted: list[str] | None, roots: list[Root]) -> None:
    """What belongs to no language: hooks, tools we do not know, and folders that a person named in vain."""
    if tree.has(".pre-commit-config.yaml") and (wanted is None or TOP in wanted):
        argv = ("pre-commit", "run", "--all-files", "--color=never")
        top.check("pre-commit", "lint", argv, writes=True, found_in=".pre-commit-config.yaml")
    for folder in [TOP] if wanted is None else wanted:
        for manifest, tool in _UNKNOWN.items():
            if tree.has(join(folder, manifest)):
                found = Found(folder, Language.OTHER)
                found.cannot(tool, "tests", f"discovery cannot run {tool} projects", found_in=found.where(manifest))
                top.undiscovered += found.undiscovered
    known = {root.path for root in roots}
    for folder in dict.fromkeys(wanted or ()):
        if folder not in known:
            words = f"fairwitness.toml names the folder {visible(folder)}, and no project is there"
            _say(top, "named-root", words, found_in="fairwitness.toml", folder=folder)


def _say_cut(top: Found, left_out: list[Root]) -> None:
    names = ", ".join(visible(root.path) for root in left_out[:5])
    words = f"there are more than {MOST_PROJECTS} projects; {len(left_out)} were not looked at: {names}"
    _say(top, "more-projects", f"{words}{', …' if len(left_out) > 5 else ''}", found_in=TOP)


def _say(top: Found, id_: str, reason: str, *, found_in: str, folder: str = TOP) -> None:
    """Something was not looked at: whether it would have held, nobody knows, so it counts as missing."""
    found = Found(folder, Language.OTHER)
    step = "name the folders that matter as roots in fairwitness.toml"
    found.cannot(id_, "tests", reason, found_in=found_in, required=True, next_step=step)
    top.undiscovered += found.undiscovered


def _once(found: Iterable[Undiscovered]) -> tuple[Undiscovered, ...]:
    return tuple({each.id: each for each in found}.values())
