"""Find the checks that a tree offers, and apply the user's settings of fairwitness.toml to them.

Discovery depends only on the content of files; a wrong file gives a wrong check, but nothing of the tree is run.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import ValidationError

from fairwitness.contracts.verify.checks import (
    CheckSpec,
    DeclaredCheck,
    Discovered,
    Language,
    Project,
    Undiscovered,
    VerifySettings,
)
from fairwitness.errors import NotReady
from fairwitness.kit.plugins import PlugIn
from fairwitness.kit.text import visible
from fairwitness.verify.discovery.compiled import add_go_checks, add_java_checks, add_native_checks, add_rust_checks
from fairwitness.verify.discovery.files import PATHS_LIMIT, TreeFiles
from fairwitness.verify.discovery.node import add_node_checks
from fairwitness.verify.discovery.python import (
    PythonProject,
    add_python_checks,
    add_python_tests,
    pytest_configuration,
    ruff_configuration,
)
from fairwitness.verify.discovery.roots import MOST_PROJECTS, Root, find_roots
from fairwitness.verify.discovery.specs import ProjectChecks, check_id, tier_of, time_of
from fairwitness.verify.discovery.tree import TOP, IndexedTree, inside, join

SETTINGS = "fairwitness.toml"
SWITCHED_OFF = "switched off in fairwitness.toml"


def apply_settings(discovered: Discovered, settings: VerifySettings) -> Discovered:
    """Return the checks with the user's settings applied; disabled checks stay visible as undiscovered."""
    checks = {check.id: check for check in discovered.checks}
    taken = {*checks, *(each.id for each in discovered.undiscovered)}
    for declared in settings.check:
        spec = declared_spec(declared, discovered.projects)
        if declared.id is None and spec.id in taken:  # only an id that was given replaces what was found
            spec = spec.model_copy(update={"id": f"{spec.id}-declared"})
        checks[spec.id] = spec
    off = [checks.pop(id_) for id_ in dict.fromkeys(settings.disable) if id_ in checks]
    silenced = set(settings.disable)
    return Discovered(
        projects=discovered.projects,
        checks=tuple(sorted(checks.values(), key=lambda check: (check.tier, check.id))),
        undiscovered=(
            *(
                # the user disabled it, so it is not required even if it could not be run
                each.model_copy(update={"required": False, "reason": f"{each.reason} ({SWITCHED_OFF})"})
                if each.id in silenced
                else each
                for each in discovered.undiscovered
                if each.id not in checks  # a declared check replaces what could not be discovered
            ),
            *(_switched_off(check) for check in off),
        ),
    )


def declared_id(declared: DeclaredCheck) -> str:
    """Return the id of a declared check: its own, or one made of its folder and name."""
    return declared.id or check_id(declared.root, declared.name)


def declared_spec(declared: DeclaredCheck, projects: Iterable[Project]) -> CheckSpec:
    """Return a declared check as a command to run; tier and time follow from its name unless they are set."""
    said = declared.model_fields_set
    return CheckSpec(
        id=declared_id(declared),
        name=declared.name,
        tier=declared.tier if "tier" in said else tier_of(declared.name),
        root=declared.root,
        language=_language_of(declared, projects),
        tool=_tool_of(declared.argv),
        argv=declared.argv,
        report=declared.report,
        report_on=declared.report_on,
        select=declared.select,
        timeout_s=declared.timeout_s if "timeout_s" in said else time_of(declared.name),
        writes=declared.writes,
        required=declared.required,
        network=declared.network,
        found_in=SETTINGS,
    )


def _switched_off(check: CheckSpec) -> Undiscovered:
    return Undiscovered(
        id=check.id,
        name=check.name,
        root=check.root,
        required=False,
        reason=SWITCHED_OFF,
        found_in=check.found_in,
        next_step=f"remove {check.id} from disable in fairwitness.toml to run it",
    )


def _language_of(declared: DeclaredCheck, projects: Iterable[Project]) -> Language:
    """Return the language of the environment: by the command's placeholders, else by the project in its folder."""
    words = " ".join(declared.argv)
    if "{python}" in words:
        return Language.PYTHON
    if "{node_modules}" in words:
        return Language.NODE
    own = [project.language for project in projects if project.root == declared.root]
    return own[0] if len(own) == 1 else Language.OTHER


def _tool_of(argv: tuple[str, ...]) -> str:
    """Return the program whose version counts."""
    if len(argv) > 2 and argv[0] == "{python}" and argv[1] == "-m" and argv[2].strip():
        return argv[2]
    name = re.sub(r"[{}]", "", argv[0]).rpartition("/")[2]
    return name if name.strip() else "unknown"


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
"""Manifests of tools that Fair Witness cannot run; they are reported, so that missing checks are explained."""


def discover(files: TreeFiles, settings: VerifySettings, finders: Sequence[PlugIn] = ()) -> Discovered:
    """Return a tree's projects and checks, and what is configured but cannot be run; empty if there is nothing.

    `finders` are functions of installed packages: each gets the paths of the tree and a function that reads one, and
    returns checks as tables of fairwitness.toml. They add checks and replace none.
    """
    tree = IndexedTree(files)
    wanted = None if settings.roots is None else [_plain(root) for root in settings.roots]
    roots = find_roots(tree, wanted)
    top = ProjectChecks(TOP, Language.OTHER)
    if len(roots) > MOST_PROJECTS:
        _say_cut(top, roots[MOST_PROJECTS:])
        roots = roots[:MOST_PROJECTS]
    every_project = _checks_of_roots(tree, roots)
    _add_top_checks(tree, top, wanted, roots)
    if tree.is_cut or tree.is_tired:
        words = f"the tree holds more than {PATHS_LIMIT} files" if tree.is_cut else "there was too much to read"
        _say(top, "whole-tree", f"{words}; only a part was looked at", found_in=TOP)
    every_project.append(top)
    checks = {check.id: check for project_checks in every_project for check in project_checks.checks}
    projects = tuple(project_checks.project for project_checks in every_project if project_checks.project is not None)
    for finder in finders:
        for spec in _found_by(finder, files, projects):
            id_ = f"{spec.id}-{finder.name}" if spec.id in checks else spec.id
            checks[id_] = spec.model_copy(update={"id": id_})
    return apply_settings(
        Discovered(
            projects=projects,
            checks=tuple(checks.values()),
            undiscovered=_once(each for project_checks in every_project for each in project_checks.undiscovered),
        ),
        settings,
    )


def _found_by(finder: PlugIn, files: TreeFiles, projects: Iterable[Project]) -> Iterator[CheckSpec]:
    """Yield the checks that an installed package finds; `NotReady` if it returns something else."""
    found = finder.call(tuple(files.paths), files.read)
    for number, table in enumerate(found if isinstance(found, list | tuple) else [found], 1):
        try:
            # as JSON: strict mode then accepts a list as a tuple, but no "5" as a number
            declared = DeclaredCheck.model_validate_json(json.dumps(table, allow_nan=False), strict=True)
            yield declared_spec(declared, projects).model_copy(update={"found_in": finder.package})
        except (ValidationError, TypeError, ValueError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            where = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "it"
            raise NotReady(
                f"check {number} of the plug-in {finder.name} of {finder.package} is wrong: {where}: {visible(why)}",
                next_step="repair or uninstall the package",
            ) from None


def _plain(root: str) -> str:
    return root.strip().removeprefix("./").strip("/") or TOP


def _checks_of_roots(tree: IndexedTree, roots: list[Root]) -> list[ProjectChecks]:
    every_project: list[ProjectChecks] = []
    python = {
        root.path: PythonProject(tree, root.path, _below(root, roots))
        for root in roots
        if root.language is Language.PYTHON
    }
    for root in roots:
        project_checks = ProjectChecks(root.path, root.language)
        match root.language:
            case Language.PYTHON:
                _add_python_checks(python[root.path], project_checks, python)
            case Language.NODE:
                add_node_checks(tree, project_checks, _below(root, roots))
            case Language.RUST:
                add_rust_checks(tree, project_checks)
            case Language.GO:
                add_go_checks(tree, project_checks)
            case Language.JAVA:
                add_java_checks(tree, project_checks)
            case _:
                add_native_checks(tree, project_checks, [other for other in every_project if other.root == root.path])
        every_project.append(project_checks)
    return every_project


def _below(root: Root, roots: Iterable[Root]) -> list[str]:
    """Return the projects of the same language inside another's folder."""
    return [
        other.path
        for other in roots
        if other.language is root.language and other.path != root.path and inside(other.path, root.path)
    ]


def _add_python_checks(
    project: PythonProject, project_checks: ProjectChecks, all_of_them: dict[str, PythonProject]
) -> None:
    project_checks.project = project.describe()
    if project.broken is not None:
        project_checks.add_unreadable("pyproject.toml", project.broken)
    above = [other for path, other in all_of_them.items() if path != project.root and inside(project.root, path)]
    # a project above that configures pytest runs everything below it, except projects with their own configuration
    covered = any(pytest_configuration(other) is not None for other in above)
    apart = tuple(path for path in project.nested if pytest_configuration(all_of_them[path]) is not None)
    add_python_tests(project, project_checks, others=apart, covered=covered)
    add_python_checks(project, project_checks, ruff_above=any(ruff_configuration(other) is not None for other in above))


def _add_top_checks(tree: IndexedTree, top: ProjectChecks, wanted: list[str] | None, roots: list[Root]) -> None:
    """Add what belongs to no language: hooks, unsupported tools, and configured folders without a project."""
    if tree.has(".pre-commit-config.yaml") and (wanted is None or TOP in wanted):
        argv = ("pre-commit", "run", "--all-files", "--color=never")
        top.add_check("pre-commit", "lint", argv, writes=True, found_in=".pre-commit-config.yaml")
    for folder in [TOP] if wanted is None else wanted:
        for manifest, tool in _UNKNOWN.items():
            if tree.has(join(folder, manifest)):
                project_checks = ProjectChecks(folder, Language.OTHER)
                project_checks.add_undiscovered(
                    tool, "tests", f"discovery cannot run {tool} projects", found_in=project_checks.where(manifest)
                )
                top.undiscovered += project_checks.undiscovered
    known = {root.path for root in roots}
    for folder in dict.fromkeys(wanted or ()):
        if folder not in known:
            words = f"fairwitness.toml names the folder {visible(folder)}, and no project is there"
            _say(top, "named-root", words, found_in="fairwitness.toml", folder=folder)


def _say_cut(top: ProjectChecks, left_out: list[Root]) -> None:
    names = ", ".join(visible(root.path) for root in left_out[:5])
    words = f"there are more than {MOST_PROJECTS} projects; {len(left_out)} were not inspected: {names}"
    _say(top, "more-projects", f"{words}{', …' if len(left_out) > 5 else ''}", found_in=TOP)


def _say(top: ProjectChecks, id_: str, reason: str, *, found_in: str, folder: str = TOP) -> None:
    """Add something that was not inspected; its result is unknown, so it counts as missing."""
    project_checks = ProjectChecks(folder, Language.OTHER)
    step = "name the folders that matter as roots in fairwitness.toml"
    project_checks.add_undiscovered(id_, "tests", reason, found_in=found_in, required=True, next_step=step)
    top.undiscovered += project_checks.undiscovered


def _once(undiscovered: Iterable[Undiscovered]) -> tuple[Undiscovered, ...]:
    return tuple({each.id: each for each in undiscovered}.values())
