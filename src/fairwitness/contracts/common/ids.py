"""Ids and their forms in data, paths, branches and refs.

An id that becomes part of a path or a ref is checked by a pattern first: no `..`, no separator, no drive, no NUL,
nothing that git or a file system would interpret.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
_REL_PATH_LIMIT = 1024
_BRANCH_LIMIT = 200


def is_safe_name(value: str) -> bool:
    """Return True if the text can be one segment of a path and of a git ref.

    >>> [is_safe_name(text) for text in ("task-001", "../x", "a..b", "x.lock", "2026-02-26T14-30-00Z")]
    [True, False, False, False, True]
    """
    return _NAME.fullmatch(value) is not None and ".." not in value and not value.endswith(".lock")


def _safe_name(value: str) -> str:
    if not is_safe_name(value):
        raise PydanticCustomError("safe_name", "a name of letters, digits, '.', '_' and '-' (at most 128, no '..')")
    return value


SafeName = Annotated[
    str, AfterValidator(_safe_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
]

Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
"""Kebab case, as in `docs/feature/<slug>/`."""

TaskId = Annotated[str, Field(pattern=r"^task-[0-9]{2,6}$")]
"""A planner's task: `task-01`."""

_ISO_RUN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
FeatureRunId = Annotated[str, Field(pattern=f"^{_ISO_RUN}$")]
"""The start of a feature run in UTC: `2026-02-26T14:30:00Z`."""

AutopilotRunId = Annotated[str, Field(pattern=r"^run-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{6}$")]
"""`run-2026-02-09-143052`."""

PhaseId = Annotated[str, Field(pattern=r"^[0-9]{1,6}(\.[0-9]{1,6})?[a-z]?$")]
"""A roadmap phase: `6`, an inserted one `6.1`, a part of a split one `6a`."""

NodeId = SafeName
"""A node of a task graph: `task-001`, `refinery-001`."""

RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,126}[A-Za-z0-9]$")]
"""Any workflow's run id; `run_ref` is its spelling in paths and refs."""


def run_ref(run_id: str) -> str:
    """Return a run id as used in paths and git refs, where ':' is forbidden.

    >>> run_ref("2026-02-26T14:30:00Z")
    '2026-02-26T14-30-00Z'
    """
    return run_id.replace(":", "-")


def baseline_tag(run_id: str) -> str:
    """Return the tag of a feature run's base.

    >>> baseline_tag("2026-02-26T14:30:00Z")
    'pipeline-baseline-2026-02-26T14-30-00Z'
    """
    return f"pipeline-baseline-{run_ref(run_id)}"


def attempt_name(attempt: int) -> str:
    """Return an attempt as used in paths and branches; in data it is the number.

    >>> attempt_name(1)
    'attempt-1'
    """
    return f"attempt-{attempt}"


def attempt_branch(task: str, attempt: int, *, prefix: str = "forge") -> str:
    """Return the branch of one attempt.

    >>> attempt_branch("task-001", 1)
    'forge/task-001/attempt-1'
    """
    return f"{prefix}/{task}/{attempt_name(attempt)}"


def sub_branch(branch: str, name: str) -> str:
    """Return the branch of a helper; git cannot hold both `a/b` and `a/b/c`, so the name is joined by '--'.

    >>> sub_branch("forge/task-001/attempt-1", "sub-1")
    'forge/task-001/attempt-1--sub-1'
    """
    return f"{branch}--{name}"


def review_task_id(slug: str, scope: str) -> str:
    """Return the task id of a feature-level review.

    >>> review_task_id("auth-handler", "design")
    'auth-handler-design-review'
    """
    return f"{slug}-{scope}-review"


def relative_path_problem(value: str) -> str | None:
    """Return why a text is no path inside a folder, or None.

    >>> relative_path_problem("src/a.py") is None
    True
    >>> relative_path_problem("src/../../etc/passwd")
    "it has a '..' segment"
    """
    if not value or len(value) > _REL_PATH_LIMIT:
        return f"it must have 1 to {_REL_PATH_LIMIT} characters"
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in value):
        return "it has a control character"
    if unicodedata.normalize("NFC", value) != value:
        return "it is not in Unicode normal form C"
    if "\\" in value:
        return "it has a backslash"
    if value.startswith(("/", "~")) or re.match(r"[A-Za-z]:", value):
        return "it is absolute"
    if ".." in value.split("/"):
        return "it has a '..' segment"
    return None


def _rel_path(value: str) -> str:
    problem = relative_path_problem(value)
    if problem is not None:
        raise PydanticCustomError("relative_path", "a relative path inside the folder: {problem}", {"problem": problem})
    return value


RelPath = Annotated[
    str,
    AfterValidator(_rel_path),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": _REL_PATH_LIMIT,
            "pattern": r"^(?![/~])(?![A-Za-z]:)(?!(?:.*/)?\.\.(?:/|$))[^\\\u0000-\u001f\u007f]+$",
        }
    ),
]
"""A relative path inside the repository or the run's folder."""

_BRANCH_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|\.$|/$|^[/.-]|^@$")


def is_git_ref(value: str) -> bool:
    """Return True if git accepts the text as the name of a branch or tag.

    >>> [is_git_ref(text) for text in ("main", "forge/task-001/attempt-1", "a:b", "-x", "a..b")]
    [True, True, False, False, False]
    """
    return 0 < len(value) <= _BRANCH_LIMIT and _BRANCH_BAD.search(value) is None


def _git_ref(value: str) -> str:
    if not is_git_ref(value):
        raise PydanticCustomError("git_ref", "the name of a git branch or ref")
    return value


GitRef = Annotated[
    str,
    AfterValidator(_git_ref),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": _BRANCH_LIMIT}),
]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{4,64}$")]
"""A commit by its (abbreviated) hash."""
Sha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
