"""A test that must fail, planted beside the real ones: if it is reported as anything else, the report is forged.

A hook that turns failures into passes, an exit in the middle of a run, a configuration that runs nothing: all of them
make the planted test look well, or make it vanish. It is named after a test that stands in the same folder, so that
whatever the project takes for a test, it is one.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable
from typing import NamedTuple

from fairwitness.contracts.verify.checks import CheckSpec
from fairwitness.contracts.verify.results import RED, Evidence, Outcome, Ran
from fairwitness.git.objects import TreeEntry
from fairwitness.verify.cascade import Checked, ask_all
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import Change, Tell
from fairwitness.verify.proofs import Proof
from fairwitness.verify.question import Question, narrowed

FOLDERS = 4
"""In how many folders of tests one is planted: a hook may reach only its own."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Canary(NamedTuple):
    """A planted test."""

    path: str
    id: str
    content: str


def planted(spec: CheckSpec, ids: tuple[str, ...], salt: str) -> tuple[Canary, ...]:
    """The canaries for a check; none for a tool whose tests we cannot write."""
    make = _MAKERS.get(spec.tool)
    if make is None:
        return ()
    by_folder: dict[str, Canary] = {}
    for id_ in ids:
        path = id_.split("::", 1)[0]
        folder = posixpath.dirname(path)
        if folder not in by_folder and len(by_folder) < FOLDERS and (canary := make(id_, salt)):
            by_folder[folder] = canary
    return tuple(by_folder.values())


def _pytest(id_: str, salt: str) -> Canary | None:
    path, _, rest = id_.partition("::")
    name = rest.rsplit("::", 1)[-1].split("[", 1)[0]
    if not path.endswith(".py") or not _PLAIN_NAME.fullmatch(name):
        return None
    file = path.removesuffix(".py") + f"_{salt}.py"
    function = f"{name}_{salt}"
    return Canary(file, f"{file}::{function}", f"def {function}():\n    assert 1 == 2\n")


_MAKERS: dict[str, Callable[[str, str], Canary | None]] = {"pytest": _pytest}


def must_fail(harness: Harness, change: Change, checked: Checked, *, tell: Tell) -> Proof | None:
    """Whether a test that must fail is reported as failed, with the change's own configuration."""
    ran_ids = tuple(item.id for item in checked.after.items if item.outcome is Outcome.PASSED)
    salt = hashlib.sha256(change.head.tree.encode()).hexdigest()[:8]
    canaries = planted(checked.spec, ran_ids, salt)
    if not canaries:
        return None
    seen = _ask(harness, checked, checked.spec, change.head.tree, canaries, tell)
    unheard = _unheard(seen, canaries)
    if unheard is None:
        text = f"{len(canaries)} planted tests that must fail were reported as failed"
        return Proof("forgery", checked.spec.id, True, text, {"execution": seen.execution})
    if checked.base_spec is not None:
        at_base = _ask(harness, checked, checked.base_spec, change.base.tree, canaries, tell)
        if _unheard(at_base, canaries) is not None:
            return None  # it was so before the change: whatever the reason, the change did not bring it
    detail = {"execution": seen.execution, "planted": [canary.id for canary in canaries]}
    return Proof("forgery", checked.spec.id, False, f"a planted test that must fail {unheard}", detail)


def _ask(
    harness: Harness, checked: Checked, spec: CheckSpec, tree: str, canaries: tuple[Canary, ...], tell: Tell
) -> Ran:
    files = {
        spec.in_repository(canary.path): TreeEntry("100644", harness.shadow.add_blob(canary.content.encode()))
        for canary in canaries
    }
    question = Question(
        spec,
        checked.project,
        harness.shadow.compose(tree, files),
        "canary",
        ids=narrowed(spec, [canary.id for canary in canaries]),
        environment_tree=tree,
    )
    (ran,) = ask_all(harness, [question], tell, 1)
    return ran


def _unheard(ran: Ran, canaries: tuple[Canary, ...]) -> str | None:
    """What became of the canaries instead of failing; None if every one failed."""
    if ran.evidence is Evidence.NONE:
        return f"left no evidence: {ran.reason}"
    outcomes = {item.id: item.outcome for item in ran.items}
    for canary in canaries:
        outcome = outcomes.get(canary.id)
        if outcome not in RED:
            return f"was reported as {outcome.value}" if outcome else "was not reported at all"
    return None
