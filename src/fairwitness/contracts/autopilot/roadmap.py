"""The user's input to autopilot: the roadmap with its phases, and the settings in `.planning/config.json`."""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.visual import VisualTesting
from fairwitness.contracts.common.base import Contract, Flag, Maybe, OneLine, Positive
from fairwitness.contracts.common.ids import PhaseId, RelPath
from fairwitness.contracts.common.problems import Problem, ProblemLevel, expect

ROADMAP_PATH = ".planning/ROADMAP.md"
DEFAULT_SPEC_PATHS = (".planning/REQUIREMENTS.md", ".planning/PROJECT.md", ROADMAP_PATH)
"""The default specification files; those that exist are locked."""
SLUG_LIMIT = 40

_ID_PARTS = re.compile(r"([0-9]+)(?:\.([0-9]+))?([a-z]?)")
_NO_WORD = re.compile(r"[^a-z0-9]+")


def phase_number(phase_id: str) -> tuple[int, int, str]:
    """Return the sort key of a phase: `6.1` comes after `6`, and `6.10` after `6.9`.

    >>> sorted(["7", "6.10", "6.9", "6", "10", "6a"], key=phase_number)
    ['6', '6a', '6.9', '6.10', '7', '10']
    """
    parts = _ID_PARTS.fullmatch(phase_id)
    if parts is None:
        raise ValueError(f"{phase_id!r} is no phase id")
    return int(parts[1]), -1 if parts[2] is None else int(parts[2]), parts[3]


def phase_slug(phase_id: str, name: str) -> str:
    """Return a phase's name in kebab case, at most 40 characters, or its number if the name has no usable letter.

    >>> phase_slug("2", "Überprüfung & sign-in"), phase_slug("6.1", "登录")
    ('uberprufung-sign-in', 'phase-6-1')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = _NO_WORD.sub("-", plain).strip("-")
    if len(slug) > SLUG_LIMIT:  # ends with a whole word, unless the first one is too long
        slug = slug[: SLUG_LIMIT + 1].rpartition("-")[0] or slug[:SLUG_LIMIT]
    return slug or f"phase-{phase_id.replace('.', '-')}"


def _requirement_id(value: str) -> str:
    if not any(sign in "0123456789" for sign in value):
        raise PydanticCustomError("requirement_id", "an id with a number, such as REQ-01")
    return value


RequirementId = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*$", max_length=64), AfterValidator(_requirement_id)
]
"""The id of a requirement: `REQ-01`, `A2`, `FR-1.2`; it contains a number."""


class Requirement(Contract):
    """A requirement of a phase; its text may be in another document."""

    id: RequirementId
    text: Maybe[OneLine] = None


class Criterion(Contract):
    """A success criterion of a phase, and the command that verifies it, if there is one."""

    text: OneLine
    command: OneLine | None


class DetailedPhase(RoadmapPhase):
    """One phase with all its fields of the roadmap."""

    goal: OneLine
    requirements: tuple[Requirement, ...]
    criteria: tuple[Criterion, ...]
    done: Flag
    """Whether its box is ticked by a person; a run does not set it."""

    @property
    def slug(self) -> str:
        """Return the name as used in paths and branches."""
        return phase_slug(self.id, self.name)

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        expect(self, len(set(self.depends_on)) == len(self.depends_on), "each dependency once", "depends_on")
        expect(self, self.id not in self.depends_on, "a phase that does not wait for itself", "depends_on")
        ids = {requirement.id for requirement in self.requirements}
        expect(self, len(ids) == len(self.requirements), "each requirement once", "requirements")
        return self


class Roadmap(Contract):
    """All phases in the order of their numbers."""

    phases: Annotated[tuple[DetailedPhase, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ids = [phase.id for phase in self.phases]
        expect(self, ids == sorted(set(ids), key=phase_number), "each phase once, in the order of numbers", "phases")
        expect(self, self._all_known(), "dependencies that are phases of the roadmap", "phases")
        return self

    def _all_known(self) -> bool:
        known = {phase.id for phase in self.phases}
        return all(known.issuperset(phase.depends_on) for phase in self.phases)

    @property
    def ticked(self) -> frozenset[str]:
        """Return the phases whose box is ticked."""
        return frozenset(phase.id for phase in self.phases if phase.done)

    @property
    def outline(self) -> tuple[RoadmapPhase, ...]:
        """Return the phases with what their order depends on."""
        return tuple(
            RoadmapPhase(id=phase.id, name=phase.name, type=phase.type, depends_on=phase.depends_on)
            for phase in self.phases
        )


class LineProblem(Problem):
    """A problem of a text, with the number of its line."""

    line: Positive


def at_line(line: int, expected: str, found: str, level: ProblemLevel = ProblemLevel.ERROR) -> LineProblem:
    """Return a problem at a line; a long text is shortened, an empty one reported as nothing.

    >>> at_line(3, "a name", "  ").where, at_line(3, "a name", "  ").found
    (('line 3',), 'nothing')
    """
    shown = " ".join(found.split())
    shown = f"{shown[:117]}..." if len(shown) > 120 else shown
    return LineProblem(where=(f"line {line}",), expected=expected, found=shown or "nothing", level=level, line=line)


class ProjectType(StrEnum):
    """The type of a project, from its manifest."""

    NODEJS = "nodejs"
    PYTHON = "python"
    RUST = "rust"
    MAKEFILE = "makefile"
    UNKNOWN = "unknown"


class CommandKind(StrEnum):
    """The four commands that check a phase's work."""

    COMPILE = "compile"
    TEST = "test"
    LINT = "lint"
    BUILD = "build"


class CommandsSource(StrEnum):
    """Where the commands come from."""

    AUTO_DETECTED = "auto-detected"
    USER_OVERRIDE = "user-override"


Commands: TypeAlias = Mapping[CommandKind, OneLine | None]
"""The known commands; null means that there is none, a missing entry that it is unknown."""

FileExtension = Annotated[str, Field(pattern=r"^\.?[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$", max_length=32)]


class UiFiles(Contract):
    """Where a project's user interface files are."""

    source_dir: RelPath
    file_extensions: Annotated[tuple[FileExtension, ...], Field(min_length=1)]


class ProjectSettings(Contract):
    """The settings of the project; missing ones are detected."""

    type: Maybe[ProjectType] = None
    manifest: Maybe[RelPath] = None
    commands: Commands = Field(default_factory=dict)
    commands_source: Maybe[CommandsSource] = None
    """Missing if a person wrote the commands by hand."""
    ui: Maybe[UiFiles] = None
    spec_paths: Maybe[Annotated[tuple[RelPath, ...], Field(min_length=1)]] = None
    visual_testing: Maybe[VisualTesting] = None

    @model_validator(mode="after")
    def _each_path_once(self) -> Self:
        paths = self.spec_paths or ()
        expect(self, len(set(paths)) == len(paths), "each path once", "spec_paths")
        return self


class ProjectConfig(Contract):
    """The file `.planning/config.json`; other tools keep settings of their own beside the project's."""

    model_config = ConfigDict(extra="allow")

    project: ProjectSettings


PhaseIds: TypeAlias = tuple[PhaseId, ...]


class PhaseSelection(Contract):
    """The phases selected for a run, in order."""

    open: PhaseIds
    """The selected phases that are not finished."""
    finished: PhaseIds
    """The selected phases that are finished; only forced or quality runs work on them."""
