"""Prepared dependencies of a Node project, offered to a checkout by links.

The checkout's `node_modules` is a folder of its own, so that tools can keep their caches in it. Its entries are links:
to the prepared dependencies, or into the checkout itself for packages that belong to the repository.
"""

import os
from collections.abc import Collection
from pathlib import Path

from fairwitness.contracts.verify.checks import Language, Project
from fairwitness.verify.environment.model import Environment


def furnish(checkout: Path, project: Project, environment: Environment) -> None:
    """Offers the prepared dependencies to a checkout; nothing is done where the tree holds its own."""
    modules = environment.node_modules
    if modules is None or project.language is not Language.NODE:
        return
    for one in every_modules(modules):
        within = one.relative_to(modules.parent)  # a package of the repository may have some of its own
        _furnish(one, checkout / environment.install_root / within, modules)


def every_modules(modules: Path) -> tuple[Path, ...]:
    """The prepared `node_modules`, and those of the repository's own packages below it."""
    own = [entry.resolve() for entry in _entries(modules) if _refers(entry, modules)]
    nested = [package / "node_modules" for package in own]
    base = modules.parent
    beside = [base / one.relative_to(base.resolve()) for one in nested if one.is_dir() and not one.is_symlink()]
    return (modules, *sorted(set(beside)))


def _entries(modules: Path) -> list[Path]:
    """The packages in a folder of them, those of a scope one by one."""
    found = []
    for entry in sorted(modules.iterdir()):
        if entry.name.startswith("@") and entry.is_dir() and not entry.is_symlink():
            found += sorted(entry.iterdir())
        elif not entry.name.startswith("."):
            found.append(entry)
    return found


def _refers(entry: Path, modules: Path) -> bool:
    """True if an entry is only a link to a package of the repository itself."""
    base, real = modules.resolve().parent, entry.resolve()
    return entry.is_symlink() and real.is_relative_to(base) and "node_modules" not in real.relative_to(base).parts


def _furnish(modules: Path, target: Path, top: Path) -> None:
    if os.path.lexists(target) or not target.parent.is_dir():
        return
    arriving = target.with_name("node_modules.arriving")
    (arriving / ".bin").mkdir(parents=True, exist_ok=True)
    for entry in _entries(modules):
        link = arriving / entry.relative_to(modules)
        link.parent.mkdir(exist_ok=True)
        if _refers(entry, top):
            within = entry.resolve().relative_to(top.resolve().parent)
            steps = len(modules.relative_to(top.parent).parts) - 1
            _link(link, target.parents[steps] / within)
        else:
            _link(link, entry)
    programs = modules / ".bin"
    for program in sorted(programs.iterdir()) if programs.is_dir() else ():
        # the same words lead to the same package, as this folder offers it
        _link(arriving / ".bin" / program.name, program.readlink() if program.is_symlink() else program)
    arriving.rename(target)


def _link(link: Path, to: Path) -> None:
    if not os.path.lexists(link):
        link.symlink_to(to)


def node_origin_problem(own: Collection[str], checkout: Path, install_root: str = ".") -> str | None:
    """Why code under test may have come from elsewhere: a package of the repository that leads out of the checkout."""
    tree = checkout.resolve()
    for name in sorted(own):
        place = checkout / install_root / "node_modules" / name
        if os.path.lexists(place) and not place.resolve().is_relative_to(tree):
            return f"`{name}` was loaded from {place.resolve()}, not from this tree"
    return None
