"""Name, version and entry points of a Python project, read from its files without running them."""

import configparser
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name

from fairwitness.kit import toml_text
from fairwitness.verify.discovery.files import TreeFiles
from fairwitness.verify.environment.requirements import join

UNKNOWN = "0"
"""The version of a project whose files do not state one; no test asks for this release."""
_VERSION = re.compile(
    r"""^(?:__version__|VERSION|version)\s*(?::[^=\n]+)?=\s*["']([0-9A-Za-z.+!_-]{1,60})["']""", re.MULTILINE
)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_PLAIN = re.compile(r"[0-9A-Za-z.+!_-]{1,60}")
_LINE = re.compile(r"[^\n\r=\[\]]{1,200}")


@dataclass(slots=True)
class ProjectMetadata:
    """Name, version and entry points of a project; the name is empty if its files state none."""

    name: str = ""
    version: str = UNKNOWN
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, object]:
        """Return the metadata as plain values."""
        return {"name": self.name, "version": self.version, "entry_points": self.entry_points}


def read_metadata(root: str, files: TreeFiles) -> ProjectMetadata:
    """Return the metadata that the files of a project's folder state."""
    metadata = ProjectMetadata()
    content = files.read(join(root, "pyproject.toml"))
    try:
        document = toml_text.parse(content.decode()) if content is not None else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        document = {}
    project = _table(document.get("project"))
    if project:
        metadata.name = _matching(_NAME, project.get("name"))
        metadata.version = _matching(_PLAIN, project.get("version")) or _dynamic(
            root, files, _table(document.get("tool")), metadata
        )
        for group, key in (("console_scripts", "scripts"), ("gui_scripts", "gui-scripts")):
            _enter(metadata, group, _table(project.get(key)))
        for group, entries in _table(project.get("entry-points")).items():
            _enter(metadata, group, _table(entries))
    else:
        _setup_cfg(root, files, metadata)
    return metadata


def is_own(distribution: str, metadata: ProjectMetadata) -> bool:
    """Return True if a distribution is an installation of the project itself."""
    return bool(metadata.name) and canonicalize_name(distribution) == canonicalize_name(metadata.name)


def _dynamic(root: str, files: TreeFiles, tool: dict[str, Any], metadata: ProjectMetadata) -> str:
    """Return the version in the file that the build tool would take it from."""
    candidates = [_table(_table(tool.get("hatch")).get("version")).get("path")]
    setuptools = _table(_table(_table(tool.get("setuptools")).get("dynamic")).get("version"))
    candidates += [setuptools.get("file"), *_module_files(setuptools.get("attr"))]
    candidates += [_table(_table(tool.get("pdm")).get("version")).get("path")]
    candidates += _module_files(f"{metadata.name.replace('-', '_')}.__version__") if metadata.name else []
    for candidate in candidates:
        path = join(root, candidate) if isinstance(candidate, str) else ""
        content = files.read(path) if path in files.paths else None
        if content is not None:
            metadata.read.append(path)
            text = content.decode(errors="replace")
            found = _VERSION.search(text)
            version = found[1] if found else _matching(_PLAIN, text.strip())
            if version:
                return version
    return UNKNOWN


def _module_files(attribute: object) -> list[str]:
    """Return the files in which `shop.version.__version__` may stand."""
    if not isinstance(attribute, str) or "." not in attribute:
        return []
    module = attribute.rpartition(".")[0].replace(".", "/")
    return [f"{source}{module}{end}" for source in ("", "src/") for end in (".py", "/__init__.py", "/_version.py")]


def _setup_cfg(root: str, files: TreeFiles, metadata: ProjectMetadata) -> None:
    content = files.read(join(root, "setup.cfg"))
    parser = configparser.RawConfigParser(delimiters=("=",))
    try:
        parser.read_string((content or b"").decode(errors="replace"))
    except configparser.Error:
        return
    metadata.name = _matching(_NAME, parser.get("metadata", "name", fallback=""))
    metadata.version = _matching(_PLAIN, parser.get("metadata", "version", fallback="")) or UNKNOWN
    if parser.has_section("options.entry_points"):
        for group, block in parser.items("options.entry_points"):
            pairs = [line.partition("=") for line in block.splitlines() if "=" in line]
            _enter(metadata, group, {key.strip(): value.strip() for key, _, value in pairs})


def _enter(metadata: ProjectMetadata, group: str, entries: dict[str, Any]) -> None:
    kept = {key: value for key, value in entries.items() if _matching(_LINE, key) and _matching(_LINE, _bare(value))}
    if kept and _matching(_LINE, group):
        metadata.entry_points.setdefault(group, {}).update(kept)


def _bare(value: object) -> object:
    """Return an entry without its extras, which hold brackets."""
    return value.split("[")[0] if isinstance(value, str) else value


def _matching(pattern: re.Pattern[str], value: object) -> str:
    return value if isinstance(value, str) and pattern.fullmatch(value) else ""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
