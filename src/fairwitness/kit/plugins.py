"""Functions that installed packages add by entry point, taken only from the environment that Fair Witness runs in.

A package in a repository under test, in its virtual environment or on a search path of the shell is never loaded: its
author is whoever wrote the change.
"""

import importlib.util
import site
import sysconfig
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.errors import NotReady
from fairwitness.kit.text import visible

CHECKS = "fairwitness.checks"
"""Functions that find checks in a tree."""
REPORTS = "fairwitness.reports"
"""Functions that write a verification in another format."""
_NEXT = "repair or uninstall the package"


class PlugIn(NamedTuple):
    """A function that an installed package adds."""

    name: str
    package: str
    """The package and its version."""
    entry: EntryPoint
    folder: Path
    """The folder of packages that it was found in."""

    def call(self, *arguments: Any) -> Any:
        """Load the function and call it; `NotReady` says which package failed, and why."""
        try:
            function = self._function()
            return list(found) if isinstance(found := function(*arguments), Iterator) else found
        except NotReady:
            raise
        except Exception as error:
            said = visible(f"{type(error).__name__}: {error}".splitlines()[0])[:300]
            raise NotReady(f"the plug-in {self.name} of {self.package} failed: {said}", next_step=_NEXT) from error

    def _function(self) -> Callable[..., Any]:
        top = self.entry.module.partition(".")[0]
        spec = importlib.util.find_spec(top)  # a top-level name is found without being imported
        places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
        found = [Path(place).resolve() for place in places if place]
        if not any(place.is_relative_to(self.folder) for place in found):
            where = f"; Python finds {visible(str(found[0]))}" if found else ""
            raise NotReady(f"{self.package} has no module {visible(top)} in {self.folder}{where}", next_step=_NEXT)
        function: Callable[..., Any] = self.entry.load()
        return function


def plug_ins(group: str, *, repository: Path | None) -> tuple[PlugIn, ...]:
    """Return what the packages beside Fair Witness add to a group, by name; nothing that lies in the repository."""
    found: dict[str, PlugIn] = {}
    for folder in own_folders(repository):
        for package in distributions(path=[str(folder)]):
            for plug_in in _of(package, group, folder):
                other = found.setdefault(plug_in.name, plug_in)
                if other.package != plug_in.package:
                    both = f"{other.package} and {plug_in.package}"
                    raise NotReady(f"{both} both add the plug-in {plug_in.name}", next_step="uninstall one of them")
    return tuple(found[name] for name in sorted(found))


def _of(package: Distribution, group: str, folder: Path) -> Iterator[PlugIn]:
    for entry in package.entry_points:
        if entry.group == group:
            about = visible(f"{package.metadata['Name']} {package.version}")
            yield PlugIn(visible(entry.name), about, entry, folder)


def own_folders(repository: Path | None) -> tuple[Path, ...]:
    """Return the folders of packages of this interpreter, without those inside a repository."""
    paths = sysconfig.get_paths()
    named = [paths["purelib"], paths["platlib"], *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    folders = dict.fromkeys(Path(name).resolve() for name in named)
    top = None if repository is None else repository.resolve()
    return tuple(folder for folder in folders if top is None or not folder.is_relative_to(top))
