"""What to think of a document's version: an unknown major version is worth a warning, never a crash."""

from collections.abc import Mapping

from fairwitness.contracts.common.problems import Level, Path, Problem

KNOWN_MAJOR = 1


def version_warning(version: str, where: Path) -> Problem | None:
    """A warning if the major version is one this code has never seen.

    >>> version_warning("1.7", ("schema_version",)) is None
    True
    >>> version_warning("2.0", ("schema_version",)).level.value
    'warning'
    """
    if int(version.split(".", 1)[0]) == KNOWN_MAJOR:
        return None
    return Problem(where=where, expected=f"major version {KNOWN_MAJOR}", found=version, level=Level.WARNING)


def version_place(document: Mapping[str, object]) -> Path | None:
    """Where a plain document says its version, if it does."""
    header = document.get("agent_output")
    if isinstance(header, Mapping) and isinstance(header.get("schema_version"), str):
        return ("agent_output", "schema_version")
    return ("schema_version",) if isinstance(document.get("schema_version"), str) else None
