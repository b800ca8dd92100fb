"""Makes commits and moves refs: each is one atomic step that runs no hook and loses no update of another process."""

from collections.abc import Sequence

from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed, failed
from fairwitness.git.identity import Identity
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible


def commit_tree(
    objects: Objects, tree: str, parents: Sequence[str], message: str, identity: Identity, *, sign: bool = False
) -> str:
    """Write a commit and return its hash; no ref moves.

    Git signs with the key and the program of the user's own configuration, never with a program that the repository
    names.
    """
    git = objects.git.given(env=identity.env)
    arguments = commit_arguments(tree, parents, identity, sign=sign)
    answer = git.ask(*arguments, stdin=message.encode(), as_person=sign)
    if answer.code and sign:
        raise GitFailed(
            f"the commit could not be signed: {answer.words}",
            next_step="try `git commit -S` by hand, or switch signing off",
        )
    if answer.code:
        raise failed(arguments[0], git.path, answer)
    killpoint("git.commit.made")
    return answer.out.decode().strip()


def commit_arguments(tree: str, parents: Sequence[str], identity: Identity, *, sign: bool) -> list[str]:
    """Return the arguments of the command that makes a commit."""
    signed = [f"-S{identity.signing_key}"] if sign else ["--no-gpg-sign"]
    return ["commit-tree", *signed, *(word for parent in parents for word in ("-p", parent)), "-F", "-", tree]


def move_ref(repository: Repository, ref: str, new: str, old: str | None, *, why: str) -> bool:
    """Set a ref if it still has the old value (None: if it does not exist); return False if it has another value."""
    _refuse_others(ref)
    null = "0" * len(new)
    answer = repository.git.ask("update-ref", "-m", f"fairwitness: {why}", "--no-deref", ref, new, old or null)
    if answer.code == 0:
        killpoint("git.ref.moved")
        return True
    if repository.ref(ref) != old:
        return False
    raise failed("update-ref", repository.git_dir, answer)


def delete_ref(repository: Repository, ref: str, old: str) -> bool:
    """Delete a ref if it still has the old value, and return False if it has another; a missing ref is fine."""
    _refuse_others(ref)
    answer = repository.git.ask("update-ref", "--no-deref", "-d", ref, old)
    if answer.code == 0:
        killpoint("git.ref.deleted")
        return True
    now = repository.ref(ref)
    if now is None or now != old:
        return now is None
    raise failed("update-ref", repository.git_dir, answer)


def _refuse_others(ref: str) -> None:
    if not ref.startswith(("refs/fairwitness/", "refs/heads/", "refs/tags/pipeline-baseline-")):
        raise UsageError(f"{visible(ref)!r} is not a ref of ours", next_step="leave it to its owner")
