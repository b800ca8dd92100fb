"""Generates docs/architecture.md from the packages, their imports and docs/architecture.toml."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fairwitness"
WRITTEN_PART = ROOT / "docs" / "architecture.toml"


class Package(NamedTuple):
    """A package or module at the top of `fairwitness`, with its neighbours."""

    name: str
    layer: int
    holds: str
    modules: int
    lines: int
    imports: tuple[str, ...]
    imported_by: tuple[str, ...]


@cache
def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def words() -> dict[str, Any]:
    """Return docs/architecture.toml: the paths and the table of places."""
    return tomllib.loads(WRITTEN_PART.read_text())


def contracts() -> list[dict[str, Any]]:
    """Return the import contracts."""
    found: list[dict[str, Any]] = project()["tool"]["importlinter"]["contracts"]
    return found


@cache
def packages() -> tuple[Package, ...]:
    """Return the packages, highest layer first."""
    layers = next(contract for contract in contracts() if contract["type"] == "layers")["layers"]
    placed = {name.strip(): number for number, layer in enumerate(layers, start=1) for name in layer.split("|")}
    imports: dict[str, set[str]] = {name: set() for name in placed}
    for name in placed:
        for path in _files(name):
            imports[name] |= {top for top in _imported(path) if top in placed and top != name}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, tops in imports.items():
        for top in tops:
            importers[top].add(name)
    return tuple(
        Package(
            name,
            layer,
            summary(_files(name)[0]),
            len(_files(name)),
            sum(len(path.read_text().splitlines()) for path in _files(name)),
            tuple(sorted(imports[name], key=lambda top: (placed[top], top))),
            tuple(sorted(importers[name], key=lambda top: (placed[top], top))),
        )
        for name, layer in placed.items()
    )


def _files(name: str) -> list[Path]:
    folder = SOURCE / name
    if not folder.is_dir():
        return [folder.with_suffix(".py")]
    return sorted(source_files(folder), key=lambda path: (len(path.parts), path))


def source_files(folder: Path = SOURCE) -> list[Path]:
    """Return the modules below a folder of the package; the repositories of the demos are data."""
    return [path for path in sorted(folder.rglob("*.py")) if not path.is_relative_to(SOURCE / "demo" / "data")]


def _imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fairwitness":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


def summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def resolve(place: str) -> Path:
    """Return the file of a place such as `fairwitness.rules.gates:decide`; raise LookupError if it does not exist."""
    module, _, symbol = place.partition(":")
    if "/" in module:
        path = ROOT / module
        if not path.exists():
            raise LookupError(place)
        return path
    base = ROOT / "src" / Path(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not path.exists():
        raise LookupError(place)
    if symbol and symbol not in _defined(path):
        raise LookupError(place)
    return path


@cache
def _defined(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if hasattr(inner, "name")}
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def link(place: str) -> str:
    """Return a place as a link to its file, relative to docs/."""
    path = resolve(place).relative_to(ROOT)
    _, _, symbol = place.partition(":")
    shown = str(path).removeprefix("src/fairwitness/").removesuffix("/__init__.py")
    return f"[`{shown}`](../{path})" + (f" `{symbol}`" if symbol else "")


def page(head: str) -> str:
    """Return docs/architecture.md."""
    written = words()
    listed = packages()
    parts = [
        f"{head}\n# Architecture\n\n{written['opening'].strip()}\n",
        "## Packages\n\nThe folders of `src/fairwitness/`, highest layer first. A package imports only packages of"
        " lower layers;\npackages of one layer do not import each other.\n",
        _table(
            ("layer", "package", "holds", "imports", "imported by"),
            [
                (str(each.layer), f"`{each.name}`", each.holds, _names(each.imports), _names(each.imported_by))
                for each in listed
            ],
        ),
        _subpackages(),
        "## Import contracts\n\n`make imports` checks them; they are at the end of `pyproject.toml`.\n",
        "\n".join(f"{number}. **{each['name']}.** {_contract(each)}" for number, each in enumerate(contracts(), 1))
        + "\n",
    ]
    for path in written["path"]:
        parts.append(f"## {path['title']}\n\n{path['about'].strip()}\n")
        steps = [f"{number}. {link(step['at'])}: {step['does']}" for number, step in enumerate(path["step"], start=1)]
        parts.append("\n".join(steps) + "\n")
    parts.append("## I want to …\n")
    parts.append(_table(("I want to …", "go to"), [(row["to"], link(row["at"])) for row in written["want"]]))
    parts.append(written["closing"].strip() + "\n")
    return "\n".join(parts)


def _subpackages() -> str:
    tops = {SOURCE, *(SOURCE / each.name for each in packages())}
    rows = []
    for package in source_files():
        folder = package.parent
        if package.name != "__init__.py" or folder in tops:
            continue
        if len(folder.relative_to(SOURCE).parts) <= 3:
            rows.append((f"`{folder.relative_to(SOURCE)}`", summary(package)))
    return "Inside them:\n\n" + _table(("package", "holds"), rows)


def _contract(contract: dict[str, Any]) -> str:
    def short(names: list[str]) -> str:
        return _names(tuple(dict.fromkeys(name.removeprefix("fairwitness.") for name in names)))

    match contract["type"]:
        case "layers":
            return "The layers above; a folder that is not listed fails."
        case "forbidden":
            reach = "import" if contract.get("allow_indirect_imports") else "reach, even indirectly,"
            return f"{short(contract['source_modules'])} do not {reach} {short(contract['forbidden_modules'])}."
        case "protected":
            return f"Only {short(contract['allowed_importers'])} import {short(contract['protected_modules'])}."
        case "independence":
            return f"{short(contract['modules'])} do not import each other."
        case _:
            return "No module imports a module that imports it, directly or through others."


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines) + "\n"
