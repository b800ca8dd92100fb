"""What a check runs in, and what a check becomes when it is to run there."""

from dataclasses import dataclass, field
from pathlib import Path

from fairwitness.contracts.verify.checks import Language, Project


@dataclass(frozen=True, slots=True)
class Environment:
    """Interpreter, dependencies and tools of a project; made once, outside any evidence run, and then only read."""

    project: Project
    language: Language
    digest: str
    """Of lock and manifest files, of the tools that made it, and of what is installed; hexadecimal SHA-256."""
    prepared_by: str
    """One clause for people: `uv sync`, `python3 of this machine`."""
    python: Path | None = None
    node_modules: Path | None = None
    install_root: str = "."
    """Node: the folder of the repository, relative to it, whose `node_modules` this is."""
    read: tuple[Path, ...] = ()
    """To be bound read-only wherever a check runs."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables every check gets; `PATH` names folders that are there inside, `{tmp}` stands for the check's own."""
    network_used: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    """Of tools and installed distributions, by normalised name."""
    installed: frozenset[str] = frozenset()
    """Python: top-level modules that are installed as copies, so that no folder of a tree may stand in for them."""
    editable: tuple[str, ...] = ()
    """Python: folders of the repository, relative to it, that are installed by reference."""
    own: tuple[str, ...] = ()
    """Node: names of the repository's own packages."""
    search: tuple[Path, ...] = ()
    """The person's PATH without any folder of the repository: where programs are looked for."""


@dataclass(frozen=True, slots=True)
class NoEnvironment:
    """Why a project has nothing to run in: its checks give no evidence."""

    reason: str
    environmental: bool
    """Whether it lies in the machine (a missing tool, no network) and not in the tree."""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A check's command with every placeholder filled, ready for the sandbox."""

    argv: tuple[str, ...]
    """`argv[0]` is an absolute path outside the worktree."""
    env: dict[str, str]
    """Complete: nothing is inherited."""
    read: tuple[Path, ...]
    tool_version: str
    origin: Path | None
    """The file in which our bootstrap says what was loaded from where; None for a command it does not start."""
    loads: bool
    """Whether the command runs the code under test, so that without a whole word on its origin there is no evidence."""
    own: tuple[str, ...] = ()
    install_root: str = "."
    """Node: as in the environment."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a check cannot be run in an environment: no evidence."""

    reason: str
    environmental: bool
