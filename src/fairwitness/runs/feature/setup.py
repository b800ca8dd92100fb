"""The start of a feature run in git: the state of the checkout, what is kept of it, a free feature folder and its name.

Nothing here touches the person's index, files or branches. Each function can be repeated after a crash.
"""

import contextlib
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from typing import NamedTuple

from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.ids import is_safe_name, run_ref
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import AlreadyWritten, UsageError
from fairwitness.git.baselines import keep_baseline
from fairwitness.git.checkout_switch import checkout_position, operation
from fairwitness.git.commits import commit_tree, move_ref
from fairwitness.git.identity import Identity
from fairwitness.git.indexes import staged_tree, worktree_tree
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import files
from fairwitness.kit.clock import Clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.store.artifacts import content_hash, join

SNAPSHOTS = "refs/fairwitness/snapshot/"
_EXCLUDE_LIMIT = 8 << 20
_ARCHIVE = "archive"


class Hygiene(NamedTuple):
    """The state of the checkout."""

    head_commit: str | None
    """None before the first commit."""
    branch: str | None
    """None if HEAD is detached."""
    is_dirty: bool
    in_progress: str | None
    """A merge, rebase or similar that has not ended."""

    @property
    def base(self) -> str:
        """Return the commit to start from; raise `UsageError` if there is none."""
        if self.in_progress is not None:
            raise UsageError(
                f"a {self.in_progress} is under way in the checkout, so no feature is begun",
                next_step="end it or abort it (git status says how), then start again",
            )
        if self.head_commit is None:
            raise UsageError("the repository has no commits yet", next_step="commit something first")
        return self.head_commit


def look(repository: Repository) -> Hygiene:
    """Return the state of the checkout; raise `UsageError` for a bare repository."""
    if repository.top is None:
        raise UsageError(
            f"{visible(str(repository.git_dir))} is a bare repository, so no feature is begun in it",
            next_step="go to a checkout of it: git clone, or git worktree add",
        )
    now, under_way = checkout_position(repository), operation(repository)
    if now.commit != repository.head:
        repository = Repository.open(repository.top)
    is_dirty = under_way is not None or repository.is_dirty()
    return Hygiene(now.commit, now.branch, is_dirty, under_way)


def ready(repository: Repository) -> Hygiene:
    """Return the state of the checkout if a feature can start there; raise `UsageError` otherwise."""
    hygiene = look(repository)
    _ = hygiene.base  # raises if nothing can start here
    return hygiene


def snapshot_ref(run_id: str) -> str:
    """Return the ref that keeps what was not committed when a run began."""
    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{visible(run_id)!r} cannot name a ref", next_step="use letters, digits and '-'")
    return SNAPSHOTS + name


def restore_command(run_id: str) -> str:
    """Return the command that restores into a clean checkout what was not committed when a run began."""
    return f"git stash apply {snapshot_ref(run_id)}"


def keep_dirty(repository: Repository, shadow: Shadow, run_id: str, identity: Identity) -> str | None:
    """Keep everything uncommitted under a ref, as `git stash` would; return None if there is nothing.

    Files that are neither tracked nor ignored are kept too. The second parent holds the index.
    """
    ref = snapshot_ref(run_id)
    if repository.ref(ref) is not None:
        return ref  # kept when the run began
    head = checkout_position(repository).commit
    if head is None:
        raise UsageError("the repository has no commits yet", next_step="commit something first")
    objects = shadow.into_store(repository)
    staged, present = staged_tree(objects, repository), worktree_tree(objects, repository)
    if staged == present == repository.tree_of(head):
        return None
    index = commit_tree(objects, staged, [head], f"Index when {run_id} began", identity)
    snapshot = commit_tree(objects, present, [head, index], f"Uncommitted when {run_id} began", identity)
    killpoint("feature.snapshot.made")
    move_ref(repository, ref, snapshot, None, why="snapshot")  # if another process was faster, its snapshot is kept
    killpoint("feature.snapshot.kept")
    return ref


def free_run_id(taken: Callable[[str], bool], clock: Clock) -> str:
    """Return the current second as a run id, or the next one that is free."""
    moment = clock().astimezone(UTC).replace(microsecond=0)
    while taken(run_id := moment.strftime("%Y-%m-%dT%H:%M:%SZ")):
        moment += timedelta(seconds=1)
    return run_id


def begin_files(context: FeatureContext) -> None:
    """Keep the baseline, exclude the feature folder from git, archive earlier outputs and store the request."""
    keep_baseline(context.repository, context.run_id, context.repository.commit(context.order.base_commit), tag=True)
    killpoint("feature.begin.baseline")
    exclude(context)
    _archive(context)
    request = context.order.request
    context.put(context.layout.initial_request, request if request.endswith("\n") else f"{request}\n")
    killpoint("feature.begin.request")


def exclude(context: FeatureContext) -> None:
    """Exclude the feature folder in the repository's `info/exclude`, which is never committed."""
    line = f"/{context.layout.folder}/".encode()

    def with_line(old: bytes | None) -> bytes:
        said = old or b""
        if line in (each.strip() for each in said.split(b"\n")):
            return said
        return said + (b"\n" if said and not said.endswith(b"\n") else b"") + line + b"\n"

    files.revise_file(context.repository.common_dir, "info/exclude", with_line, limit=_EXCLUDE_LIMIT)
    killpoint("feature.begin.excluded")


def _archive(context: FeatureContext) -> None:
    """Move what earlier runs left in the feature folder to their archives, once, before this run writes there."""
    key = f"archived:{context.run_id}"
    if context.ledger.observation(context.run_id, key) is not None:
        return
    found = list(_outputs(context, context.layout.folder))
    owners = _owners(context.ledger, context.run_id, context.order.slug) if found else []
    for path in found:
        _shelve(context, path, owners)
        killpoint("feature.begin.shelved")
    _sweep(context, context.layout.folder)
    note(context, context.observation(key, "archived", context.order.slug, {"files": found}))
    killpoint("feature.begin.archived")


def note(context: FeatureContext, observation: Observation) -> None:
    """Record an observation in a record of its own."""

    def write(record: Record) -> None:
        record.observation(observation)

    context.write(write)


def _sweep(context: FeatureContext, folder: str) -> None:
    """Remove empty subfolders; a killed process may have emptied some."""
    for inner in context.files.folders(folder):
        if inner != f"{context.layout.folder}/{_ARCHIVE}":
            _sweep(context, inner)
            with contextlib.suppress(OSError):  # not empty: it stays
                (context.files.root / inner).rmdir()


def _outputs(context: FeatureContext, folder: str) -> Iterator[str]:
    """Yield every plain file below the feature folder except archived ones; symbolic links stay."""
    for entry in context.files.entries(folder):
        path = join(folder, entry.name)
        if entry.kind == "folder" and path != f"{context.layout.folder}/{_ARCHIVE}":
            yield from _outputs(context, path)
        elif entry.kind == "file":
            yield path


class _Owner(NamedTuple):
    run_id: str
    written: dict[str, set[str]]
    """The hashes that the run wrote, by path."""


def _owners(ledger: Ledger, run_id: str, slug: str) -> list[_Owner]:
    """Return the other runs of the same feature, the newest first, with what each wrote."""
    found = []
    for other in sorted(ledger.runs(), reverse=True):
        began = ledger.last_event(other, "run_started")
        if other == run_id or began is None or began.workflow is not Workflow.FEATURE or began.data["slug"] != slug:
            continue
        written: dict[str, set[str]] = {}
        for event in ledger.events(other):
            if event.type == "artifact_written":
                written.setdefault(event.data["path"], set()).add(event.data["sha256"])
        found.append(_Owner(other, written))
    return found


def _shelve(context: FeatureContext, path: str, owners: list[_Owner]) -> None:
    """Move a file to the archive of the run that wrote it, or else of the last run that wrote a file of that name.

    A file that no run wrote is archived as what was there before this run.
    """
    digest = content_hash(context.files.get(path))
    theirs = [owner.run_id for owner in owners if digest in owner.written.get(path, ())]
    theirs += [owner.run_id for owner in owners if path in owner.written]
    before = f"before-{run_ref(context.run_id)}"
    number = 2
    names = [*theirs[:1], before]
    for name in names:
        try:
            context.files.move(path, context.layout.archived(name, path))
        except AlreadyWritten:  # a run that was resumed after it had been archived: both are kept
            if name == names[-1]:
                names.append(f"{before}-{number}")
                number += 1
        else:
            return


LIMIT = 48
_LETTERS = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i",
        "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "е": "e", "ж": "zh", "з": "z", "и": "i", "к": "k",
        "л": "l", "м": "m", "н": "n", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "у": "u", "ф": "f",
        "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ы": "y", "ь": "", "э": "e", "ю": "yu",
        "я": "ya", "і": "i", "є": "ye", "ґ": "g",
        "α": "a", "β": "b", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "i", "θ": "th", "ι": "i", "κ": "k",
        "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "ο": "o", "π": "p", "ρ": "r", "σ": "s", "ς": "s", "τ": "t",
        "υ": "y", "φ": "f", "χ": "ch", "ψ": "ps", "ω": "o",
    }
)  # fmt: skip
"""Common Latin spellings of letters that are not a Latin letter with an accent."""


def slug_of(request: str) -> str:
    """A name from the first line that says something; one that no Latin letters can spell is named by its hash.

    >>> slug_of("Gift vouchers\\n\\nCustomers can buy them.")
    'gift-vouchers'
    >>> slug_of("Größere Übersicht")
    'grossere-ubersicht'
    """
    line = next((text for text in map(str.strip, request.splitlines()) if any(map(str.isalnum, text))), "")
    plain = unicodedata.normalize("NFKD", line.casefold().replace("'", "").replace("’", ""))
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign)).translate(_LETTERS)
    lost = sum(sign.isalnum() and not sign.isascii() for sign in plain)
    words = re.findall(r"[a-z0-9]+", plain)
    name = _whole_words(words)
    if name and lost == 0:
        return name
    digest = hashlib.sha256(line.encode(errors="replace") or request.encode(errors="replace")).hexdigest()[:12]
    # the letters that could not be spelled may be the only difference between two requests
    return f"{_whole_words(words, LIMIT - 13)}-{digest}".lstrip("-") if words else f"feature-{digest}"


def _whole_words(words: list[str], limit: int = LIMIT) -> str:
    """Return as many words as fit; a first word that is too long is cut."""
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:limit]
        if len(longer) > limit:
            break
        name = longer
    return name
