"""How the demo's workers use tools and tell what they did; what only the harness knows, it fills in."""

from collections.abc import Mapping
from typing import Any

from fairwitness.app.demo_feature.scripts import Call, Document
from fairwitness.contracts.common.tools import Tool
from fairwitness.contracts.forge.documents import TestResult, WalkthroughStatus

NO_ISSUES = "None."


def use(tool: Tool, **args: Any) -> Call:
    """One use of a tool."""
    return Call(tool, args)


def walkthrough(
    files: Mapping[str, str],
    tests: tuple[str, ...],
    summary: str,
    *,
    issues: str = NO_ISSUES,
    confidence: float = 0.9,
    followups: tuple[str, ...] = (),
) -> Document:
    """A completed piece of work: files with their reasons, and tests of which all are said to pass.

    Branch, task and base are left out.
    """
    tested = f"`python3 -m unittest {' '.join(tests)}` passes." if tests else "Read once more."
    said: Document = {
        "status": WalkthroughStatus.COMPLETED.value,
        "confidence": confidence,
        "time_spent_minutes": 1,
        "files_changed": [{"path": path, "reason": reason} for path, reason in files.items()],
        "body": (
            f"## Summary\n\n{summary}\n\n## Approach\n\nThe smallest change that meets the criteria.\n\n"
            f"## Issues Encountered\n\n{issues}\n\n## Testing\n\n{tested}\n"
        ),
    }
    if tests:
        said["tests"] = [{"name": name, "result": TestResult.PASS.value} for name in tests]
    if followups:
        said["followups"] = list(followups)
    return said
