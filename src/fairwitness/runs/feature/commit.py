"""The commit of a feature run: exactly the tree that was proven, on a branch of its own.

Commits are made first and kept by refs of ours, then recorded, and only then is a branch created; a repeated call finds
each of them. The person's checkout is switched last, and only if nothing in it can be lost.
"""

import itertools
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.feature.events import Committed
from fairwitness.contracts.feature.order import KeepArtifacts
from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed, text_of
from fairwitness.git.checkout_switch import CheckoutMove, CheckoutPosition, checkout_position, switch
from fairwitness.git.commits import commit_tree, move_ref
from fairwitness.git.identity import read_identity
from fairwitness.git.objects import FILE, TreeEntry
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import bounded, cells, visible, visible_lines
from fairwitness.ledger.export import exported
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import WHOLE
from fairwitness.runs.feature.setup import note
from fairwitness.runs.feature.tasks import plan_of
from fairwitness.store.artifacts import join

COMMITTED = "refs/fairwitness/committed/"
ROLLED_BACK = "refs/fairwitness/rolled-back/"
SUBJECT_LIMIT = 72
"""The columns of a subject, in any script."""
_FIRST_LINE = 1000
_CLOSING = " .。:：;；,，،"
"""Signs that do not end a subject."""
_TYPED = re.compile(r"^(?:feat|fix|docs|test|chore|refactor|perf|build|ci|style)(?:\([^)]*\))?!?:\s*", re.IGNORECASE)


class CommittedWork(NamedTuple):
    """The commit of a run and its branch."""

    commit: str
    branch: str
    switched: bool
    """Whether the person's checkout is on the branch."""
    why_not: str | None
    command: str
    """The command that switches a checkout to it."""


def subject_of(request: str, files: tuple[str, ...] = (), titles: Sequence[str] = ()) -> str:
    """Return the first line of the commit's message: the kind of change, and the request in the words of its author.

    A first sentence that is too long gives way to the title of the only task; otherwise it is cut at a word, and the
    body of the message holds it whole.

    >>> subject_of("Gift vouchers")
    'feat: Gift vouchers'
    >>> subject_of("礼品券。顾客可以购买礼品券。", ("docs/api.md",))
    'docs: 礼品券。顾客可以购买礼品券'
    """
    kind = f"{_type(files)}: "
    room = SUBJECT_LIMIT - cells(kind)
    first = first_line(request)
    found = bounded(first, room)
    if found.endswith("…") and not first.endswith("…") and len(titles) == 1:
        title = first_line(titles[0])
        found = title if title and cells(title) <= room else found
    return kind + (found.rstrip(_CLOSING) or found or "complete the feature")


def first_line(request: str) -> str:
    """Return the first line of a request that says something, without marks of Markdown and the kind of a commit."""
    joined = request.translate(dict.fromkeys(map(ord, "\u200c\u200d")))  # they join letters, and are invisible
    lines = (" ".join(line.lstrip("#*-> \t").split()) for line in joined.splitlines())
    return _TYPED.sub("", next((visible(line) for line in lines if line), ""))


def commit(
    context: FeatureContext, tip: str, *, subject: str, body: str, bundle_sha256: str, assisted_by: tuple[str, ...]
) -> CommittedWork:
    """Make the commit and the branch, and switch the checkout if nothing can be lost. A repeated call makes nothing
    twice."""
    repository = context.repository
    if repository.ref(ROLLED_BACK + run_ref(context.run_id)) is not None:
        raise UsageError(f"run {context.run_id} was rolled back", next_step="start a new run")
    message = _message(context, subject, body, bundle_sha256, assisted_by)
    work = _work(context, repository.tree_of(repository.commit(tip)), message)
    top = _artifacts(context, work) if context.order.finish.artifacts is KeepArtifacts.SEPARATE_COMMIT else work
    branch = _branch(context, work, top)
    why_not = _switched(context, branch, top)
    return CommittedWork(work, branch, why_not is None, why_not, f"git switch {shlex.quote(branch)}")


def kept_commits(repository: Repository, run_id: str) -> tuple[str | None, str | None]:
    """Return the run's commit and the following one with its documents, each None if it was not made."""
    name = COMMITTED + run_ref(run_id)
    return repository.ref(f"{name}/work"), repository.ref(f"{name}/artifacts")


def branches_of(repository: Repository, slug: str) -> dict[str, str]:
    """Return every branch named after a feature, with its commit."""
    under = ("refs/heads/feature/", "refs/heads/feature-*")
    listed = repository.git.run("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *under)
    pairs = (line.rpartition(" ") for line in text_of(listed).splitlines())
    return {name: tip for name, _, tip in pairs if re.fullmatch(rf"feature[/-]{re.escape(slug)}(?:-[0-9]+)?", name)}


def _type(files: tuple[str, ...]) -> str:
    if files and all(path.startswith("docs/") or path.endswith((".md", ".rst")) for path in files):
        return "docs"
    if files and all(re.search(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$", path) for path in files):
        return "test"
    return "feat"


def _message(context: FeatureContext, subject: str, body: str, bundle_sha256: str, assisted_by: tuple[str, ...]) -> str:
    trailers = [f"Run-Id: {context.run_id}", f"Evidence-Sha256: {bundle_sha256}"]
    trailers += [f"Assisted-by: {' '.join(visible(name).split())}" for name in dict.fromkeys(assisted_by)]
    if context.order.finish.co_author:
        trailers.append("Co-authored-by: pipeline")
    # trailers are a paragraph of their own, so that no line of the body is taken for one
    parts = [
        bounded(visible(" ".join(subject.split())), SUBJECT_LIMIT),
        visible_lines(body).strip(),
        "\n".join(trailers),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _work(context: FeatureContext, tree: str, message: str) -> str:
    """Make the commit of the run's work."""
    repository = context.repository
    base = repository.commit(context.order.base_commit)
    made, _ = kept_commits(repository, context.run_id)
    if made is None:
        objects = context.shadow.into_store(repository)
        made = commit_tree(objects, tree, [base], message, read_identity(repository))
        made = _keep(context, "work", made)
    if repository.tree_of(made) != tree or repository.ref(f"{made}^1") != base:
        raise GitFailed(
            f"run {context.run_id} has a commit already, {made[:12]}, and it holds other files",
            next_step=f"see `git diff {made[:12]} {tree[:12]}`; what was proved must be what is committed",
        )
    key = f"commit:{context.run_id}"
    if context.ledger.observation(context.run_id, key) is None:
        order = context.order
        detail = {"base_commit": base, "base_branch": order.base_branch, "slug": order.slug, "snapshot": order.snapshot}
        note(
            context,
            context.observation(key, "commit", made, {**detail, "folder": context.layout.folder}, tree=tree),
        )
        killpoint("feature.commit.noted")
    return made


def _artifacts(context: FeatureContext, work: str) -> str:
    """Make the commit of the feature folder and a sealed copy of the ledger, after the work's commit."""
    repository, layout = context.repository, context.layout
    _, made = kept_commits(repository, context.run_id)
    if made is not None:
        return made
    objects = context.shadow.into_store(repository)
    contents = {path: context.files.get(path) for path in _plain_files(context, layout.folder)}
    contents |= {
        path: context.kept_bytes(digest)
        for path, digest in context.state().artifacts.items()
        if path.startswith(f"{layout.folder}/")
    }
    contents[layout.ledger] = exported(context.ledger.database, context.run_id, context.now())
    # written to the folder too: it then equals the commit, and a checkout can be switched to it
    context.files.put(layout.ledger, contents[layout.ledger])
    killpoint("feature.commit.sealed")
    tree = repository.tree_of(work)
    changes: dict[str, TreeEntry | None] = {
        path: None for path in objects.entries(tree) if path.startswith(f"{layout.folder}/")
    }
    changes |= {path: TreeEntry(FILE, objects.add_blob(content)) for path, content in contents.items()}
    message = f"docs: keep the documents of {context.order.slug}\n\nRun-Id: {context.run_id}\n"
    top = commit_tree(objects, objects.compose(tree, changes), [work], message, read_identity(repository))
    return _keep(context, "artifacts", top)


def _plain_files(context: FeatureContext, folder: str) -> list[str]:
    found = []
    for entry in context.files.entries(folder):
        path = join(folder, entry.name)
        if entry.kind == "folder":
            found += _plain_files(context, path)
        elif entry.kind == "file":
            found.append(path)
    return found


def _keep(context: FeatureContext, name: str, made: str) -> str:
    """Protect a commit from garbage collection before anything names it."""
    ref = f"{COMMITTED}{run_ref(context.run_id)}/{name}"
    if not move_ref(context.repository, ref, made, None, why="commit"):
        return context.repository.commit(ref)  # another process was faster
    killpoint("feature.commit.kept")
    return made


def _branch(context: FeatureContext, work: str, top: str) -> str:
    """Return the branch that holds the commit: the first of its names that does, or the first free one."""
    repository, slug = context.repository, context.order.slug
    for name, tip in sorted(branches_of(repository, slug).items(), key=lambda pair: (len(pair[0]), pair[0])):
        if repository.is_ancestor(work, tip):
            return name
    # git cannot hold both `a` and `a/b`
    first = f"feature/{slug}" if repository.ref("refs/heads/feature") is None else f"feature-{slug}"
    for number in itertools.count(1):
        name = first + (f"-{number}" if number > 1 else "")
        ref = f"refs/heads/{name}"
        if repository.git.run("for-each-ref", "--count=1", ref):  # it, or something beneath it
            continue
        if move_ref(repository, ref, top, None, why="feature"):
            killpoint("feature.commit.branched")
            return name
    raise AssertionError("counting ends never")


def _switched(context: FeatureContext, branch: str, top: str) -> str | None:
    """Switch the checkout to the branch; return None, or why the checkout stays where it is."""
    order, repository = context.order, context.repository
    there = CheckoutPosition(top, branch)
    if not order.finish.checkout:
        return None if checkout_position(repository) == there else "the settings leave the checkout where it is"
    here = CheckoutPosition(repository.commit(order.base_commit), order.base_branch)
    why_not = switch(repository, context.shadow, CheckoutMove(here, there, context.layout.folder))
    killpoint("feature.commit.switched")
    return why_not


def commit_whole(context: FeatureContext, tip: str) -> None:
    """Commit exactly what was proven, with the hash of its evidence bundle."""
    proven = context.ledger.observations(context.run_id, WHOLE)
    if not proven or proven[-1].detail["commit"] != tip:
        raise UsageError("the target is not what was proven", next_step=f"fairwitness resume {context.run_id}")
    bundle = context.state().artifacts.get(context.layout.evidence_bundle)
    if bundle is None:
        raise UsageError("there is no evidence bundle to be named", next_step=f"fairwitness resume {context.run_id}")
    base, tree = (context.repository.tree_of(commit) for commit in (context.order.base_commit, tip))
    files = tuple(change.path for change in context.shadow.diff(base, tree))
    subject = subject_of(context.order.request, files, _merged_titles(context))
    landed = commit(
        context,
        tip,
        subject=subject,
        body=_body(context, subject),
        bundle_sha256=bundle.removeprefix("sha256:"),
        assisted_by=_assisted(context),
    )
    if context.state().commit is None:
        context.write_event(Committed(commit=landed.commit, rollback_command=rollback_command(context.run_id)))
        killpoint("feature.committed")


def rollback_command(run_id: str) -> str:
    """Return the shell command that undoes a run."""
    return f"fairwitness rollback {shlex.quote(run_id)}"


def _body(context: FeatureContext, subject: str) -> str:
    """Return the body of the commit message: the first line of the request if the subject cannot hold it, and the
    merged tasks."""
    titles = _merged_titles(context)
    first = first_line(context.order.request)
    whole = [bounded(first, _FIRST_LINE)] if first.rstrip(_CLOSING) not in subject else []
    return "\n\n".join((*whole, "\n".join(f"- {title}" for title in titles)))


def _merged_titles(context: FeatureContext) -> tuple[str, ...]:
    plan = plan_of(context)
    merged = context.state().tasks
    tasks = () if plan is None else plan.agent_output.payload.tasks
    return tuple(task.title for task in tasks if task.id in merged and merged[task.id].merged)


def _assisted(context: FeatureContext) -> tuple[str, ...]:
    """Return every model that answered, as far as it was reported."""
    rows = context.ledger.observations(context.run_id, ENDED)
    models = (row.detail["outcome"].get("model") for row in rows)
    return tuple(dict.fromkeys(str(model) for model in models if model))
