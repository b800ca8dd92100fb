"""What exists today, shown on documents that come with the package: nothing is simulated."""

from pathlib import Path

from assay.app import demo_ledger, demo_verify
from assay.app.scenes import Demo, Scene
from assay.app.schemas import Violation, check_document
from assay.contracts.catalog import BY_NAME
from assay.errors import AlreadyWritten, BadDocument, HashMismatch
from assay.kit.documents import Format, read, render
from assay.store.artifacts import Store, content_hash
from assay.store.layout.forge import ForgeLayout

TASK = "task-001"

_WALKTHROUGH = {
    "task_id": TASK,
    "branch": "forge/task-001/attempt-1",
    "base_ref": "main",
    "status": "completed",
    "confidence": 0.95,
    "time_spent_minutes": 12,
    "files_changed": [{"path": "src/login.py", "reason": "the login endpoint"}],
    "tests": [{"name": "login.success", "result": "pass"}],
    "body": "\n## Summary\nLogin works.\n\n## Approach\nOne endpoint.\n\n"
    "## Issues Encountered\nNone.\n\n## Testing\nOne test.\n",
}


def run_demo(folder: Path) -> Demo:
    """Plays every scene in a folder and tells what really happened."""
    store = Store(folder)
    run_id = _free_run(store)
    first = ForgeLayout(run_id).walkthrough(TASK, 1)
    text = render(_WALKTHROUGH, Format.MARKDOWN).encode()
    return Demo(
        (
            _honest(text),
            _careless(),
            _hostile(),
            _kept(store, first, text),
            _not_overwritten(store, first),
            *demo_ledger.play(folder, run_id, TASK, first, content_hash(text)),
            _tampered(store, folder, first, text),
            *demo_verify.play(folder),
        )
    )


def _free_run(store: Store) -> str:
    """The id of the first demo in this folder that has not been played yet."""
    number = 1
    while store.exists(ForgeLayout(f"demo-{number}").walkthrough(TASK, 1)):
        number += 1
    return f"demo-{number}"


def _check(text: bytes, form: Format, contract: str) -> tuple[Violation, ...]:
    return check_document(read(text, form), BY_NAME[contract])


def _spelled(violations: tuple[Violation, ...]) -> tuple[str, ...]:
    return tuple(
        f"line {violation.line}: {violation.field}: expected {violation.expected}; found {violation.found}"
        for violation in violations
    )


def _honest(text: bytes) -> Scene:
    violations = _check(text, Format.MARKDOWN, "forge-walkthrough")
    return Scene(
        "an agent's walkthrough is read", "accepted", "refused" if violations else "accepted", _spelled(violations)
    )


def _careless() -> Scene:
    wrong = {
        **_WALKTHROUGH,
        "status": "finished",
        "confidence": "very",
        "files_changed": [{"path": "../../etc/passwd"}],
    }
    violations = _check(render(wrong, Format.MARKDOWN).encode(), Format.MARKDOWN, "forge-walkthrough")
    return Scene(
        "a careless one is held to its contract",
        "refused",
        "refused" if violations else "accepted",
        _spelled(violations),
    )


def _hostile() -> Scene:
    bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"
    try:
        read(bomb, Format.YAML, source="bomb.yaml")
    except BadDocument as error:
        return Scene("a hostile one never becomes a value", "refused", "refused", (error.what,))
    return Scene("a hostile one never becomes a value", "refused", "accepted")


def _kept(store: Store, path: str, text: bytes) -> Scene:
    stored = store.create(path, text)
    same = store.get(path, sha256=stored.sha256) == text
    return Scene(
        "it is stored and read back by its hash", "equal", "equal" if same else "different", (path, stored.sha256)
    )


def _not_overwritten(store: Store, path: str) -> Scene:
    try:
        store.create(path, b"another story")
    except AlreadyWritten as error:
        return Scene("a second attempt cannot overwrite the first", "refused", "refused", (error.what,))
    return Scene("a second attempt cannot overwrite the first", "refused", "overwritten")


def _tampered(store: Store, folder: Path, path: str, text: bytes) -> Scene:
    (folder / path).write_bytes(text.replace(b"0.95", b"1.0"))
    try:
        store.get(path, sha256=content_hash(text))
    except HashMismatch as error:
        return Scene("someone edits the file behind our back", "noticed", "noticed", (error.what,))
    return Scene("someone edits the file behind our back", "noticed", "not noticed")
