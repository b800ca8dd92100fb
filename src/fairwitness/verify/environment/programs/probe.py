"""Print what an interpreter is and what is installed in it, as one line of JSON.

    python -I probe.py [SITE-FOLDER …]

Without a folder, the interpreter's own. Nothing that is installed is imported.
"""

# Paths are strings here, as the interpreter itself reports them.
# ruff: noqa: PTH112, PTH113, PTH118, PTH207
from __future__ import annotations

import glob
import json
import os
import platform
import sys
import sysconfig
from importlib.metadata import Distribution, DistributionFinder


def markers() -> dict[str, str]:
    """Return the values for evaluating the markers of requirements."""
    info = sys.implementation.version
    version = f"{info.major}.{info.minor}.{info.micro}"
    if info.releaselevel != "final":
        version += info.releaselevel[0] + str(info.serial)
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": version,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def names_of(dist: Distribution) -> list[str]:
    """Return the top-level modules of a distribution."""
    names = set((dist.read_text("top_level.txt") or "").split())
    for file in dist.files or ():
        first = file.parts[0]
        if len(file.parts) == 1:
            if first.endswith((".py", ".so")):
                names.add(first.split(".")[0])
        elif first not in ("..", "__pycache__") and not first.endswith((".dist-info", ".egg-info", ".data")):
            names.add(first)
    return sorted(name for name in names if not name.startswith("__editable__"))


def hooks_of(dist: Distribution) -> list[str]:
    """Return files of the distribution that the interpreter runs, or reads folders from, as it starts."""
    return sorted(file.name for file in dist.files or () if len(file.parts) == 1 and file.name.endswith(".pth"))


def direct_of(dist: Distribution) -> tuple[str | None, bool]:
    """Return the folder it was installed from, if any, and whether it is editable."""
    try:
        told = json.loads(dist.read_text("direct_url.json") or "{}")
        folder = told.get("dir_info")
        if folder is None:
            return None, False
        return str(told.get("url", "")), bool(folder.get("editable", False))
    except ValueError:
        return None, False


def distributions(folders: list[str]) -> dict[str, dict[str, object]]:
    """Return the distributions installed in some folders; the first one of a name wins."""
    found: dict[str, dict[str, object]] = {}
    for dist in Distribution.discover(context=DistributionFinder.Context(path=folders)):
        name = dist.metadata["Name"]
        if not name or name in found:
            continue
        url, editable = direct_of(dist)
        found[name] = {
            "version": dist.version,
            "names": names_of(dist),
            "hooks": hooks_of(dist),
            "folder": url,
            "editable": editable,
        }
    return found


def pip_of(folders: list[str]) -> str | None:
    """Return a pip that any interpreter can run: an installed one, or the one bundled with Python."""
    installed = [os.path.join(folder, "pip", "__pip-runner__.py") for folder in folders]
    bundled = [os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), "/usr/share/python-wheels"]
    wheels = [wheel for folder in bundled for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))]
    found = [path for path in installed if os.path.isfile(path)] + [os.path.join(wheel, "pip") for wheel in wheels]
    return found[0] if found else None


def main(folders: list[str]) -> None:
    """Print the description of this interpreter."""
    import site

    own = [folder for folder in site.getsitepackages() if os.path.isdir(folder)]
    told = {
        "executable": os.path.realpath(sys.executable),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "scripts": sysconfig.get_path("scripts"),
        "version": platform.python_version(),
        "sites": folders or own,
        "markers": markers(),
        "pip": pip_of(folders or own),
        "distributions": distributions(folders or own),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
