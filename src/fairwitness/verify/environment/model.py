"""The environment in which checks run, and a check's command resolved for it."""

from dataclasses import dataclass, field
from pathlib import Path

from fairwitness.contracts.verify.checks import Language, Project


@dataclass(frozen=True, slots=True)
class Environment:
    """Interpreter, dependencies and tools of a project; built once, before any check runs, and then only read."""

    project: Project
    language: Language
    digest: str
    """SHA-256 (hexadecimal) over lock and manifest files, the tools that built it, and what is installed."""
    prepared_by: str
    """How it was prepared, for people: `uv sync`, `python3 of this machine`."""
    python: Path | None = None
    node_modules: Path | None = None
    install_root: str = "."
    """Node: the folder, relative to the repository, to which `node_modules` belongs."""
    read: tuple[Path, ...] = ()
    """Paths that are bound read-only where a check runs."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables for every check; `PATH` names folders that exist in the sandbox, `{tmp}` is the check's own folder."""
    network_used: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of tools and installed distributions, by normalised name."""
    installed: frozenset[str] = frozenset()
    """Python: top-level modules that are installed as copies; a folder of the tree must not shadow them."""
    editable: tuple[str, ...] = ()
    """Python: folders, relative to the repository, that are installed by reference."""
    own: tuple[str, ...] = ()
    """Node: names of the repository's own packages."""
    search: tuple[Path, ...] = ()
    """The person's PATH without any folder of the repository: where programs are looked for."""


@dataclass(frozen=True, slots=True)
class NoEnvironment:
    """The reason why a project has no environment; its checks give no evidence."""

    reason: str
    environmental: bool
    """Whether the cause is the machine (a missing tool, no network) and not the tree."""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A check's command with every placeholder filled, ready for the sandbox."""

    argv: tuple[str, ...]
    """`argv[0]` is an absolute path outside the worktree."""
    env: dict[str, str]
    """The complete variables; nothing is inherited."""
    read: tuple[Path, ...]
    tool_version: str
    origin: Path | None
    """The file in which the bootstrap records where code was loaded from; None for a command it does not start."""
    loads: bool
    """Whether the command runs the code under test; then a run without a complete origin record is no evidence."""
    own: tuple[str, ...] = ()
    install_root: str = "."
    """Node: see `Environment.install_root`."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The reason why a check cannot run in an environment; it gives no evidence."""

    reason: str
    environmental: bool
