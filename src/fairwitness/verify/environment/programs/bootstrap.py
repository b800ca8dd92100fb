"""Start a Python tool so that the tool comes from the environment and the code under test from the worktree.

    python bootstrap.py --checkout DIR --origin FILE --sources A:B --packages a,b --own a -- TOOL ARGUMENTS

A TOOL that ends in `.py` is a script of the tree and is run as one; any other is a module as `python -m` takes it. It
is found before anything of the worktree can be imported, so a folder in the tree cannot stand in for it. Only then the
project's folders are added, behind everything that is installed. Lines of JSON in the origin file say where the tool
came from, as it starts, and where the project's packages came from, as it ends. Processes that the tool starts append
lines of their own: `child` is called when any interpreter of the environment starts.
"""

# Every interpreter of an environment runs this as it starts, and pathlib is slow to load.
# ruff: noqa: PTH100, PTH120
from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

RECORD = "fairwitness-origin/1"
MISSING = 96
"""Exit code: the tool is not in the environment."""
REFUSED = 97
"""Exit code: the tool would have come from the worktree."""
SHOWN = 20
"""How many files outside the worktree are listed for one package."""

SOURCES, ORIGIN = "FAIRWITNESS_SOURCES", "FAIRWITNESS_ORIGIN"
PACKAGES, OWN, CHECKOUT = "FAIRWITNESS_PACKAGES", "FAIRWITNESS_OWN", "FAIRWITNESS_CHECKOUT"


def inside(path: str, folder: str) -> bool:
    """Return True if a path, links followed, lies in the folder."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def add_sources(sources: Iterable[str]) -> None:
    """Append the project's folders to the path, so that they shadow nothing that is installed."""
    for source in sources:
        if source and source not in sys.path:
            sys.path.append(source)


class OriginFinder:
    """A finder that records where the project's packages are found, and finds some of them only in the worktree."""

    def __init__(self, packages: Sequence[str], own: Sequence[str], sources: Sequence[str]) -> None:
        self.packages, self.own, self.sources = frozenset(packages), frozenset(own), list(sources)
        self.found: dict[str, list[tuple[str | None, list[str]]]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the next finders find, and record it."""
        if name not in self.packages or path is not None:
            return None
        spec = PathFinder.find_spec(name, self.sources) if name in self.own else None
        if spec is None:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                if finder is not self and find is not None:
                    spec = find(name, None, target)
                    if spec is not None:
                        break
        if spec is not None:
            places = list(spec.submodule_search_locations or ())
            self.found.setdefault(name, []).append((spec.origin if spec.has_location else None, places))
        return spec


def loaded(
    packages: Sequence[str], checkout: str, found: Mapping[str, Sequence[tuple[str | None, list[str]]]]
) -> dict[str, dict[str, object]]:
    """Return the file, folders and parts outside the worktree of each loaded package of the project."""
    record_of: dict[str, dict[str, object]] = {}
    modules = dict(sys.modules)
    for name in packages:
        seen = list(found.get(name, ()))
        module = modules.get(name)
        if module is not None and getattr(module, "__name__", None) == name:
            seen.append((getattr(module, "__file__", None), list(getattr(module, "__path__", None) or ())))
        seen = [(file, places) for file, places in seen if file or places]
        if not seen:
            continue
        outside = []
        for file, places in seen:
            # a namespace package may have parts in several folders; one must be in the worktree
            if not any(inside(place, checkout) for place in ([file] if file else places)):
                outside.append(os.path.realpath(file or places[0]))
        for other, part in modules.items():
            file = getattr(part, "__file__", None)
            # only modules under their own name: a package may alias others, as `requests.packages` does
            genuine = other.startswith(name + ".") and getattr(part, "__name__", None) == other
            if genuine and file and not inside(file, checkout):
                outside.append(os.path.realpath(file))
        file, places = seen[-1]
        record_of[name] = {
            "file": os.path.realpath(file) if file else None,
            "folders": [os.path.realpath(place) for place in places],
            "outside": sorted(set(outside))[:SHOWN],
        }
    return record_of


def write(origin: str, record: Mapping[str, object]) -> None:
    """Append a record as one line in one call, so that lines of several processes do not mix."""
    import json

    line = json.dumps(record, ensure_ascii=True, sort_keys=True) + "\n"
    handle = os.open(origin, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line.encode("ascii"))
    finally:
        os.close(handle)


def record_of(role: str, **more: object) -> dict[str, object]:
    """Return a record with the fields that every record has."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    said = {"record": RECORD, "role": role, "pid": os.getpid(), "python": sys.executable, "version": version}
    return {**said, **more}


def child() -> None:
    """Add the worktree's folders and record what is loaded; called when an interpreter of the environment starts."""
    sources = os.environ.get(SOURCES)
    if not sources or any(isinstance(finder, OriginFinder) for finder in sys.meta_path):
        return  # no check is running, or this interpreter has read its site folder twice
    folders = sources.split(os.pathsep)
    add_sources(folders)
    packages = [name for name in os.environ.get(PACKAGES, "").split(",") if name]
    own = [name for name in os.environ.get(OWN, "").split(",") if name]
    watch = OriginFinder(packages, own, folders)
    sys.meta_path.insert(0, watch)
    origin = os.environ.get(ORIGIN)
    if origin and packages:
        import atexit

        atexit.register(note_child, origin, watch, os.environ.get(CHECKOUT, ""), os.getpid())


def note_child(origin: str, watch: OriginFinder, checkout: str, started: int) -> None:
    """Record what a process started by the tool loaded, when it ends, if it may write the record."""
    packs = loaded(sorted(watch.packages), checkout, watch.found)
    if packs and os.getpid() == started:
        with contextlib.suppress(OSError):
            write(origin, record_of("child", packages=packs))


def find_tool(tool: str) -> tuple[str | None, ModuleType | None]:
    """Return the file of a tool, and the module that names its version; None if it is not there."""
    import importlib
    import importlib.util

    top = tool.split(".")[0]
    try:
        spec = importlib.util.find_spec(tool)
        if spec is not None and spec.submodule_search_locations is not None:
            importlib.import_module(tool)
            spec = importlib.util.find_spec(tool + ".__main__")
    except ModuleNotFoundError as error:
        if error.name is not None and not (tool + ".").startswith(error.name + "."):
            raise  # the tool exists, but something it needs is missing
        spec = None
    if spec is None:
        return None, None
    return spec.origin, sys.modules.get(top)


def version_of(tool: str, module: ModuleType | None) -> str | None:
    """Return the version a tool gives itself, or its distribution's."""
    version = getattr(module, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        from importlib.metadata import version as installed

        return installed(tool.split(".")[0])
    except Exception:  # noqa: BLE001 - a tool of the standard library has none; broken metadata may raise anything
        return None


def options_of(arguments: Sequence[str]) -> tuple[dict[str, str], str, Sequence[str]]:
    """Return the options before `--`, and the tool with its arguments after it."""
    at = arguments.index("--")
    options = {arguments[word]: arguments[word + 1] for word in range(0, at, 2)}
    return options, arguments[at + 1], arguments[at + 2 :]


def main(arguments: Sequence[str]) -> int:
    """Run the tool; return only if the tool does not end the process itself."""
    options, tool, rest = options_of(arguments)
    checkout, origin = options["--checkout"], options["--origin"]
    sources = [source for source in options.get("--sources", "").split(os.pathsep) if source]
    packages = [name for name in options.get("--packages", "").split(",") if name]
    own = [name for name in options.get("--own", "").split(",") if name]
    here = os.path.dirname(os.path.abspath(__file__))
    # while the tool is searched, the path contains nothing of the tree and not our own folder
    sys.path[:] = [entry for entry in sys.path if entry and entry != here and not inside(entry, checkout)]
    is_script = tool.endswith(".py")
    file, module = (os.path.abspath(tool), None) if is_script else find_tool(tool)
    if file is None:
        write(origin, record_of("tool", refused=f"{tool} is not installed in {sys.prefix}"))
        sys.stderr.write(f"No module named {tool} in {sys.prefix}\n")
        return MISSING
    if inside(file, checkout) and not is_script:
        write(origin, record_of("tool", refused=f"{tool} would have been loaded from the tree itself ({file})"))
        sys.stderr.write(f"{file} is a file of the tree: refused\n")
        return REFUSED
    metadata: dict[str, object] = {"name": tool, "file": None, "version": None}
    if is_script:
        sources.append(os.path.dirname(file))  # after what is installed; python itself would put it first
    else:
        metadata.update(file=os.path.realpath(file), version=version_of(tool, module))
    write(
        origin, record_of("start", tool=metadata)
    )  # some tools replace the process by another program and never reach the end
    add_sources(sources)
    os.environ.update({SOURCES: os.pathsep.join(sources), ORIGIN: origin, CHECKOUT: checkout})
    os.environ.update({PACKAGES: ",".join(packages), OWN: ",".join(own)})
    watch = OriginFinder(packages, own, sources)
    sys.meta_path.insert(0, watch)
    sys.argv = [file, *rest]
    started = os.getpid()
    import runpy

    try:
        if is_script:
            runpy.run_path(file, run_name="__main__")
        else:
            runpy.run_module(tool, run_name="__main__", alter_sys=True)
    finally:
        if os.getpid() == started:
            packs = loaded(packages, checkout, watch.found)
            write(origin, record_of("tool", tool=metadata, path=list(sys.path), packages=packs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
