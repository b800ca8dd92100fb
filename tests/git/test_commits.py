"""Commits carry the person's name, refs move only from what they held, and baselines and quarantine stay put."""

import shutil
import subprocess

import pytest

from fairwitness.contracts.common.ids import baseline_tag
from fairwitness.errors import UsageError
from fairwitness.git import baselines, quarantine
from fairwitness.git.call import GitFailed
from fairwitness.git.commits import commit_arguments, commit_tree, delete_ref, move_ref
from fairwitness.git.identity import FALLBACK, Identity, read_identity
from git.person import Person

RUN = "2026-02-26T14:30:00Z"


class TestIdentity:
    """Author and committer as the person's own git would put them."""

    def test_it_is_read_from_the_persons_own_configuration(self, person: Person) -> None:
        (person.home / ".gitconfig").write_text("[user]\n\tname = Ada Ünï\n\temail = ada@home\n\tsigningKey = K\n")
        assert read_identity(person.open()) == Identity("Ada Ünï", "ada@home", "Ada Ünï", "ada@home", False, "K")
        person.configure("[user]\n\temail = ada@work\n[committer]\n\tname = Robot\n\temail = robot@work\n")
        assert read_identity(person.open())[:4] == ("Ada Ünï", "ada@work", "Robot", "robot@work")

    def test_included_files_count(self, person: Person) -> None:
        (person.home / "work").write_text("[user]\n\tname = Ada\n\temail = ada@work\n")
        (person.home / ".gitconfig").write_text(f'[includeIf "gitdir:{person.folder}/"]\n\tpath = work\n')
        assert read_identity(person.open()).author_email == "ada@work"

    @pytest.mark.parametrize(
        "config", ["", "[user]\n\tname = Ada\n", "[user]\n\temail = a@b\n", "[user]\n\tname =\n\temail =\n"]
    )
    def test_without_one_ours_stands_there_and_says_so(self, person: Person, config: str) -> None:
        (person.home / ".gitconfig").write_text(config)
        assert read_identity(person.open()) == FALLBACK
        assert FALLBACK.is_fallback
        assert f"{FALLBACK.author_name} <{FALLBACK.author_email}>" == "Fair Witness <fairwitness@localhost>"

    def test_reading_it_runs_nothing(self, person: Person) -> None:
        program, mark = person.trap()
        (person.home / ".gitconfig").write_text(
            f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n[credential]\n\thelper = !{program}\n"
            f"[user]\n\tname = Ada\n\temail = ada@home\n[gpg]\n\tprogram = {program}\n"
        )
        assert read_identity(person.open()).author_name == "Ada"
        assert not mark.exists()


def test_a_commit_is_signed_only_if_asked_and_by_gits_own_switch() -> None:
    keyed = FALLBACK._replace(signing_key="K")
    assert commit_arguments("t", ["p", "q"], FALLBACK, sign=False) == [
        *("commit-tree", "--no-gpg-sign", "-p", "p", "-p", "q", "-F", "-", "t")
    ]
    assert commit_arguments("t", [], FALLBACK, sign=True)[1] == "-S"
    assert commit_arguments("t", [], keyed, sign=True)[1] == "-SK"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen to sign with")
def test_a_signature_is_made_with_the_persons_key_and_never_with_a_program_of_the_repository(person: Person) -> None:
    person.commit(a="1\n")
    key = person.home / "key"
    if subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=False).returncode:
        pytest.skip("ssh-keygen makes no key for this user")
    (person.home / ".gitconfig").write_text(
        f"[user]\n\tname = Ada\n\temail = ada@home\n\tsigningKey = {key}\n[gpg]\n\tformat = ssh\n"
    )
    program, mark = person.trap(ends="exit 1")
    person.configure(f'[gpg]\n\tprogram = {program}\n[gpg "ssh"]\n\tprogram = {program}\n[commit]\n\tgpgSign = true\n')
    repository = person.open()
    store = person.shadow().into_store(repository)
    tree, identity = repository.tree_of("HEAD"), read_identity(repository)
    signed = commit_tree(store, tree, [repository.commit("HEAD")], "m", identity, sign=True)
    assert "BEGIN SSH SIGNATURE" in person.git("cat-file", "commit", signed)
    unsigned = commit_tree(store, tree, [], "m", identity)
    assert "SIGNATURE" not in person.git("cat-file", "commit", unsigned)
    assert not mark.exists()
    key.unlink()
    with pytest.raises(GitFailed, match="could not be signed"):
        commit_tree(store, tree, [], "m", identity, sign=True)


def test_a_ref_moves_only_from_what_it_held(person: Person) -> None:
    first, second = person.commit(a="1\n"), person.commit(a="2\n")
    repository = person.open()
    ref = "refs/fairwitness/test/x"
    assert move_ref(repository, ref, first, None, why="t")
    assert not move_ref(repository, ref, second, None, why="t")
    assert not move_ref(repository, ref, first, second, why="t")
    assert move_ref(repository, ref, second, first, why="t")
    assert repository.ref(ref) == second
    assert not delete_ref(repository, ref, first)
    assert delete_ref(repository, ref, second)
    assert delete_ref(repository, ref, second), "gone is gone"
    for others in ("refs/remotes/origin/main", "refs/stash", "HEAD", "refs/tags/v1", "refs/notes/commits"):
        with pytest.raises(UsageError, match="not a ref of ours"):
            move_ref(repository, others, first, None, why="t")
        with pytest.raises(UsageError, match="not a ref of ours"):
            delete_ref(repository, others, first)


def test_a_run_has_one_baseline(person: Person) -> None:
    first, second = person.commit(a="1\n"), person.commit(a="2\n")
    repository = person.open()
    assert baselines.baseline(repository, RUN) is None
    for _ in range(2):
        assert baselines.keep_baseline(repository, RUN, first) == first
    assert person.git("rev-parse", "refs/fairwitness/baseline/2026-02-26T14-30-00Z") == first
    assert person.git("tag") == ""
    with pytest.raises(GitFailed, match="holds another commit already"):
        baselines.keep_baseline(repository, RUN, second)
    assert baselines.baseline(repository, RUN) == first
    baselines.keep_baseline(repository, RUN, first, tag=True)
    assert person.git("tag") == baseline_tag(RUN)
    with pytest.raises(UsageError, match="cannot name a ref"):
        baselines.keep_baseline(repository, "../x", first)


def test_quarantine_keeps_every_commit_once(person: Person) -> None:
    first, second = person.commit(a="1\n"), person.commit(a="2\n")
    repository = person.open()
    kept = quarantine.keep(repository, RUN, "task-01", first)
    assert quarantine.keep(repository, RUN, "task-01", first) == kept
    other = quarantine.keep(repository, RUN, "task-01", second)
    assert other.ref == f"{kept.ref}--2"
    third = quarantine.keep(repository, "run-2", "task-01", second)
    assert set(quarantine.kept(repository)) == {kept, other, third}
    assert quarantine.kept(repository, "run-2") == (third,)
    assert person.is_quarantined(first)
    assert not person.is_quarantined(person.commit(a="3\n"))
    with pytest.raises(UsageError, match="cannot name a ref"):
        quarantine.keep(repository, RUN, "a/b", first)
