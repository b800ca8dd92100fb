"""The checks of one project as discovery collects them: stable ids, tiers and times that follow from a check's name."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairwitness.contracts.verify.checks import (
    LONG_S,
    QUICK_S,
    CheckSpec,
    Language,
    Project,
    ReportFormat,
    Undiscovered,
)
from fairwitness.kit.text import visible
from fairwitness.verify.discovery.tree import TOP, join

TIERS = {
    "syntax-check": 1,
    "ide-diagnostics": 1,
    "build": 2,
    "type-check": 2,
    "lint": 2,
    "tests": 2,
    "import-check": 3,
    "smoke-execution": 3,
}
_LONG = frozenset({"build", "type-check", "tests"})
_ODD = re.compile(r"[^A-Za-z0-9._/-]+")
_LONGEST = 80

DECLARE = "declare its tests as [[verify.check]] in fairwitness.toml"


def tier_of(name: str) -> int:
    """Return the tier of a check; those of readiness are the last."""
    return TIERS.get(name, 4)


def time_of(name: str) -> float:
    """Return how long a check may take."""
    return LONG_S if name in _LONG else QUICK_S


def _prefix(root: str) -> str:
    """Return a root as the first part of an id; a root that must be altered gets a short hash.

    >>> _prefix("services/api"), _prefix("my app")
    ('services/api', 'my-app-cccdfa')
    """
    plain = _ODD.sub("-", root).lstrip("._/-")
    if plain == root and len(plain) <= _LONGEST:
        return plain
    mark = hashlib.sha256(root.encode()).hexdigest()[:6]
    return f"{plain[:_LONGEST].rstrip('/-')}-{mark}".lstrip("-")


def check_id(root: str, name: str) -> str:
    """Return the id of a check of a project.

    >>> check_id(".", "pytest"), check_id("api", "pytest")
    ('pytest', 'api/pytest')
    """
    return name if root == TOP else f"{_prefix(root)}/{name}"


@dataclass(slots=True)
class ProjectChecks:
    """The checks of one project, and what is configured but cannot be run."""

    root: str
    language: Language
    checks: list[CheckSpec] = field(default_factory=list)
    undiscovered: list[Undiscovered] = field(default_factory=list)
    project: Project | None = None

    def where(self, name: str, section: str = "") -> str:
        """Return a place for display: `api/pyproject.toml [tool.ruff]`."""
        return visible(f"{join(self.root, name)} {section}".strip())

    def add_check(
        self,
        id_: str,
        name: str,
        argv: Sequence[str],
        *,
        found_in: str,
        tool: str | None = None,
        report: ReportFormat = ReportFormat.EXIT,
        report_on: str = "stdout",
        select: Sequence[str] | None = None,
        writes: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Add a check. Only tests are required."""
        self.checks.append(
            CheckSpec(
                id=check_id(self.root, id_),
                name=name,
                tier=tier_of(name),
                root=self.root,
                language=self.language,
                tool=tool or id_,
                argv=tuple(argv),
                report=report,
                report_on=report_on,
                select=None if select is None else tuple(select),
                timeout_s=timeout_s or time_of(name),
                writes=writes,
                required=name == "tests",
                found_in=found_in,
            )
        )

    def add_undiscovered(
        self, id_: str, name: str, reason: str, *, found_in: str, required: bool = False, next_step: str = DECLARE
    ) -> None:
        """Add something that is configured but cannot be run."""
        self.undiscovered.append(
            Undiscovered(
                id=check_id(self.root, id_),
                name=name,
                root=self.root,
                required=required,
                reason=reason,
                found_in=found_in,
                next_step=next_step,
            )
        )

    def add_unreadable(self, name: str, reason: str) -> None:
        """Add an unreadable manifest: it may declare tests, so it counts as missing."""
        self.add_undiscovered(
            name.lstrip("."),
            "tests",
            f"{visible(name)} cannot be read: {reason}",
            found_in=self.where(name),
            required=True,
            next_step="repair the file",
        )

    def has(self, name: str) -> bool:
        """Return True if there is a check of that name."""
        return any(check.name == name for check in self.checks)
