"""The work ends as one commit with the very tree that was proved; nothing of the person's is lost for it."""

import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed
from fairwitness.kit.text import cells
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import verify
from fairwitness.runs.feature.commit import SUBJECT_LIMIT, CommittedWork, subject_of
from fairwitness.runs.feature.setup import begin_files
from git.person import Person, picture
from runs.feature.contexts import RUN
from runs.feature.git_runs import HASH, WORK, Land, dies, land, points

BRANCH = "feature/gift-vouchers"
FOLDER = "docs/feature/gift-vouchers"


def check_landed(run: Land, landed: CommittedWork, branch: str = BRANCH) -> None:
    """One commit on the branch, with the tree of the work, on the base."""
    git = run.person.git
    assert landed.branch == branch
    assert git("rev-parse", f"{branch}^{{tree}}") == git("rev-parse", "fairwitness/target^{tree}")
    assert git("rev-list", f"began..{branch}").split() == [landed.commit]
    assert git("rev-parse", f"{branch}^1") == git("rev-parse", "began")


def check_switched(run: Land, branch: str = BRANCH) -> None:
    """The checkout is on the branch, whole and clean."""
    git, folder = run.person.git, run.person.folder
    assert git("symbolic-ref", "HEAD") == f"refs/heads/{branch}"
    assert git("status", "--porcelain") == ""
    assert {path: (folder / path).read_text() for path in WORK} == WORK
    assert not (folder / "old.txt").exists()
    assert not (folder / ".git" / "index.lock").exists()


@pytest.mark.req("P11")
def test_the_work_is_one_commit_and_the_checkout_is_on_it(tmp_path: Path) -> None:
    run = land(tmp_path)
    run.person.write("debug.log", "ignored\n")
    landed = run.commit()
    assert landed == CommittedWork(run.person.git("rev-parse", BRANCH), BRANCH, True, None, f"git switch {BRANCH}")
    check_landed(run, landed)
    check_switched(run)
    assert (run.person.folder / "debug.log").read_text() == "ignored\n"
    assert run.person.git("rev-parse", "main") == run.person.git("rev-parse", "began")
    assert run.commit() == landed, "repeated, it finds itself"
    check_landed(run, landed)
    run.person.git("fsck", "--strict")


@pytest.mark.req("P11")
def test_the_message_names_run_evidence_and_who_helped(tmp_path: Path) -> None:
    run = land(tmp_path)
    commit = run.commit().commit
    assert run.person.git("log", "-1", "--format=%s", commit) == "feat: add gift vouchers"
    assert run.person.git("log", "-1", "--format=%(trailers)", commit).splitlines() == [
        f"Run-Id: {RUN}",
        f"Evidence-Sha256: {HASH}",
        "Assisted-by: claude:opus",
        "Assisted-by: codex:gpt",
        "Co-authored-by: pipeline",
    ]
    other = land(tmp_path / "other", finish={"co_author": False})
    assert "Co-authored-by" not in other.person.git("log", "-1", "--format=%B", other.commit().commit)


@pytest.mark.parametrize(
    ("title", "files", "subject"),
    [
        ("Gift vouchers", (), "feat: Gift vouchers"),
        ("Adds gift vouchers.", ("src/a.py",), "feat: Adds gift vouchers"),
        ("feat(shop): let people pay", (), "feat: let people pay"),
        ("## Remove the old API\nbecause", (), "feat: Remove the old API"),
        ("#\n\n- CSV export", ("docs/a.md", "README.md"), "docs: CSV export"),
        ("Cover the parser", ("tests/test_a.py",), "test: Cover the parser"),
        ("", (), "feat: complete the feature"),
        ("\x1b[31mred", (), "feat: \\x1b[31mred"),
        ("Größenänderung von Fenstern erlauben", (), "feat: Größenänderung von Fenstern erlauben"),
        ("添加礼品券", (), "feat: 添加礼品券"),
        ("أضف قسائم الهدايا.", (), "feat: أضف قسائم الهدايا"),
        ("می‌خواهم پرداخت کنم", (), "feat: میخواهم پرداخت کنم"),
        ("🎁 vouchers for 👨‍👩‍👧", (), "feat: 🎁 vouchers for 👨👩👧"),
        ("\u202eabc", (), "feat: \\u202eabc"),
    ],
)
def test_the_subject_is_one_conventional_line(title: str, files: tuple[str, ...], subject: str) -> None:
    assert subject_of(title, files) == subject


def test_a_long_subject_ends_at_a_word() -> None:
    long = "As a customer I want to buy as many gift vouchers as I like and to send them to my friends"
    assert subject_of(long) == "feat: As a customer I want to buy as many gift vouchers as I like and…"
    assert subject_of(long, titles=("Sell vouchers",)) == "feat: Sell vouchers"
    assert subject_of(f"Sell vouchers. {long}") == "feat: Sell vouchers"
    assert len(subject_of("x" * 200)) <= SUBJECT_LIMIT


@pytest.mark.parametrize(
    "request_",
    [
        "顾客可以在结账时使用礼品券支付全部或部分金额并且可以查看剩余余额以及有效期限还可以把礼品券转赠给朋友使用",
        "يمكن للعملاء استخدام قسائم الهدايا عند الدفع لسداد المبلغ كله أو بعضه ورؤية الرصيد المتبقي وتاريخ الانتهاء",
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnungsänderungsantragsformular für alle",
        "👨‍👩‍👧‍👦🇩🇪👍🏽" * 30,
        "นักท่องเที่ยวสามารถใช้บัตรของขวัญเมื่อชำระเงินทั้งหมดหรือบางส่วนและดูยอดคงเหลือและวันหมดอายุของบัตรได้เสมอ",
    ],
)
def test_a_subject_of_any_script_fits_by_its_width_and_is_cut_between_characters(request_: str) -> None:
    subject = subject_of(request_)
    assert cells(subject) <= SUBJECT_LIMIT
    kept = subject.removeprefix("feat: ").removesuffix("…")
    joined = request_.replace("\u200d", "")
    assert subject.endswith("…")
    assert joined.startswith(kept)
    rest = joined[len(kept) :]
    assert unicodedata.category(rest[0]) not in ("Mn", "Mc", "Me"), "a mark belongs to its letter"
    assert not 0x1F3FB <= ord(rest[0]) <= 0x1F3FF, "a tone belongs to its hand"
    assert sum(0x1F1E6 <= ord(sign) <= 0x1F1FF for sign in kept) % 2 == 0, "a flag has two parts"


def test_a_taken_branch_is_left_alone(tmp_path: Path) -> None:
    run = land(tmp_path)
    for name in (BRANCH, f"{BRANCH}-2"):
        run.person.git("branch", name, "main")
    landed = run.commit()
    check_landed(run, landed, f"{BRANCH}-3")
    check_switched(run, f"{BRANCH}-3")
    assert run.commit() == landed
    assert run.person.git("rev-parse", BRANCH) == run.person.git("rev-parse", "began")


@pytest.mark.parametrize(("there", "branch"), [("feature", "feature-gift-vouchers"), (f"{BRANCH}/old", f"{BRANCH}-2")])
def test_a_branch_that_git_cannot_hold_beside_another_gets_another_name(
    tmp_path: Path, there: str, branch: str
) -> None:
    run = land(tmp_path)
    run.person.git("branch", there, "main")
    landed = run.commit()
    check_landed(run, landed, branch)
    assert run.commit() == landed
    run.rollback()
    assert run.person.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/").split() == sorted(
        ["fairwitness/target", there, "main"]
    )


def differently(person: Person, how: str) -> None:
    """Something about the checkout that a switch would lose or not understand."""
    match how:
        case "changed":
            person.write("same.txt", "mine\n")
        case "staged":
            person.write("same.txt", "mine\n")
            person.git("add", "same.txt")
            person.write("same.txt", "same\n")
        case "deleted":
            (person.folder / "same.txt").unlink()
        case "executable":
            (person.folder / "same.txt").chmod(0o755)
        case "untracked":
            person.write("mine.txt")
        case "ignored":
            person.write("new/voucher.py", "mine\n")
            person.configure("/new/\n", ".git/info/exclude")
        case "ignored link":
            (person.folder / "new").symlink_to("/tmp")
            person.configure("/new\n", ".git/info/exclude")
        case "hidden":
            person.write("same.txt", "mine\n")
            person.git("update-index", "--assume-unchanged", "same.txt")
        case "moved":
            person.commit("later", **{"later.txt": "x\n"})
        case "elsewhere":
            person.git("checkout", "-q", "-b", "elsewhere")
        case "detached":
            person.git("checkout", "-q", "--detach")
        case "merging":
            person.git("merge", "--no-commit", "--no-ff", "fairwitness/target")
        case "sparse":
            person.git("sparse-checkout", "set", "--no-cone", "/*", "!same.txt")
        case "attributes":
            person.write(".git/info/attributes", "*.py filter=lfs\n")
        case "locked":
            person.write(".git/index.lock", "")
        case _:
            raise AssertionError(how)


HOW = (
    *("changed", "staged", "deleted", "executable", "untracked", "ignored", "ignored link", "hidden"),
    *("moved", "elsewhere", "detached", "merging", "sparse", "attributes", "locked"),
)


@pytest.mark.req("P11")
@pytest.mark.parametrize("how", HOW)
def test_a_checkout_that_could_lose_something_is_left_as_it_is(tmp_path: Path, how: str) -> None:
    run = land(tmp_path)
    differently(run.person, how)
    before = picture(run.person.folder)
    landed = run.commit()
    check_landed(run, landed)
    assert not landed.switched
    assert landed.why_not
    after = picture(run.person.folder)
    changed = {path for path in before if before[path] != after.get(path)}
    changed |= after.keys() - before.keys()
    assert all("/objects/" in path or "/refs/" in path for path in changed), changed
    assert landed.command == f"git switch {BRANCH}"


def test_the_settings_can_leave_the_checkout(tmp_path: Path) -> None:
    run = land(tmp_path, finish={"checkout": False})
    landed = run.commit()
    assert (landed.switched, landed.why_not) == (False, "the settings leave the checkout where it is")
    assert run.person.git("symbolic-ref", "HEAD") == "refs/heads/main"
    run.person.git(*landed.command.split()[1:])
    check_switched(run)


def test_a_linked_worktree_is_switched_and_the_other_is_not(tmp_path: Path) -> None:
    run = land(tmp_path)
    linked = tmp_path / "linked"
    run.person.git("worktree", "add", "-q", "-b", "side", str(linked), "main")
    side = Land(run.person, run.state, folder=linked, order={"base_branch": "side"})
    before = (run.person.folder / ".git" / "HEAD").read_bytes()
    landed = side.commit()
    assert landed.switched, landed.why_not
    assert run.person.git("status", "--porcelain", "-b", cwd=linked) == f"## {BRANCH}"
    assert (run.person.folder / ".git" / "HEAD").read_bytes() == before
    assert run.person.git("status", "--porcelain") == ""


@pytest.mark.req("P11")
def test_neither_hooks_nor_filters_of_the_repository_run(tmp_path: Path) -> None:
    run = land(tmp_path)
    program, mark = run.person.trap()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        shutil.copy(program, run.person.folder / ".git" / "hooks" / hook)
    run.person.configure(
        f'[filter "trap"]\n\tsmudge = {program}\n\tclean = {program}\n[core]\n\tfsmonitor = {program}\n'
    )
    assert run.commit().switched
    assert not mark.exists()
    check_switched_by_files(run)
    filtered = land(tmp_path / "filtered")
    filtered.person.configure(f'[filter "trap"]\n\tsmudge = {program}\n\tclean = {program}\n')
    filtered.person.git("checkout", "-q", "fairwitness/target")
    filtered.person.write(".gitattributes", "*.py filter=trap\n")
    filtered.person.commit("attributes")
    filtered.person.git("checkout", "-q", "main")
    mark.unlink(missing_ok=True)
    landed = filtered.commit()
    assert not mark.exists()
    assert landed.why_not is not None
    assert "filter trap" in landed.why_not


def check_switched_by_files(run: Land) -> None:
    """As above without calling git, which would run what is planted."""
    assert (run.person.folder / ".git" / "HEAD").read_text() == f"ref: refs/heads/{BRANCH}\n"
    assert {path: (run.person.folder / path).read_text() for path in WORK} == WORK


def test_line_ends_and_a_split_index_are_as_the_person_has_them(tmp_path: Path) -> None:
    run = land(tmp_path)
    run.person.configure("[core]\n\tautocrlf = true\n\tsplitIndex = true\n")
    run.person.git("update-index", "--split-index")
    landed = run.commit()
    assert landed.switched, landed.why_not
    assert (run.person.folder / "app.py").read_bytes() == b"print(2)\r\n"
    assert run.person.git("status", "--porcelain") == ""


def test_every_kind_of_change_is_switched_to_and_back(tmp_path: Path) -> None:
    run = land(tmp_path)
    person = run.person
    person.write("folder/inner.txt", "inner\n")
    person.write("file", "a file\n")
    person.commit("more")
    person.git("tag", "-f", "began")
    before = _looks(person)
    person.git("checkout", "-q", "fairwitness/target")
    person.git("rebase", "-q", "main")
    person.git("rm", "-qr", "folder", "file")
    person.write("folder", "a file now\n")
    person.write("file/inner.txt", "a folder now\n")
    (person.folder / "same.txt").chmod(0o755)
    (person.folder / "link").unlink()
    (person.folder / "link").symlink_to("same.txt")
    person.write("späße/a b\n.txt", "odd\n")
    person.commit("everything")
    meant = _looks(person)
    person.git("checkout", "-q", "main")
    landed = run.commit()
    assert landed.switched, landed.why_not
    assert _looks(person) == meant
    assert person.git("status", "--porcelain") == ""
    run.rollback()
    assert _looks(person) == before
    assert person.git("status", "--porcelain", "-b") == "## main"


def _looks(person: Person) -> dict[str, tuple[int, bytes]]:
    """Every file of the checkout with its mode and content."""
    found = picture(person.folder).items()
    return {path: (mode, content) for path, (mode, _, content) in found if "/.git/" not in path}


def artifacts(root: Path) -> Land:
    """A run that commits its documents too, and has begun."""
    run = land(root, finish={"artifacts": "separate-commit"})
    with run.context() as context:
        begin_files(context)
        context.put(context.layout.spec, "a: 1\n")
    return run


def check_artifacts(run: Land, landed: CommittedWork) -> None:
    """The documents and the ledger stand in a second commit, and nothing else."""
    git = run.person.git
    assert landed.switched, landed.why_not
    assert git("rev-list", f"began..{BRANCH}").split()[1:] == [landed.commit]
    assert git("rev-parse", f"{landed.commit}^{{tree}}") == git("rev-parse", "fairwitness/target^{tree}")
    assert git("diff", "--name-status", landed.commit, BRANCH).split() == [
        *("A", f"{FOLDER}/initial-request.md", "A", f"{FOLDER}/spec-output.yaml"),
        *("A", f"{FOLDER}/verification-ledger.db"),
    ]
    assert git("status", "--porcelain") == ""


@pytest.mark.req("P11")
def test_the_documents_are_committed_apart_if_that_is_wished(tmp_path: Path) -> None:
    run = artifacts(tmp_path)
    landed = run.commit()
    check_artifacts(run, landed)
    ledger = Ledger.read_only(run.person.folder / FOLDER / "verification-ledger.db")
    assert verify(ledger.database, RUN) == []
    ledger.close()
    assert run.commit() == landed


def test_documents_of_an_earlier_run_that_are_committed_do_not_stop_the_switch(tmp_path: Path) -> None:
    run = land(tmp_path)
    run.person.write(f"{FOLDER}/spec-output.yaml", "an earlier one\n")
    run.person.commit("documents")
    run.person.git("tag", "-f", "began")
    run.person.git("checkout", "-q", "fairwitness/target")
    run.person.git("rebase", "-q", "main")
    run.person.git("checkout", "-q", "main")
    with run.context() as context:
        begin_files(context)
        context.put(context.layout.spec, "a: 1\n")
    landed = run.commit()
    assert landed.switched, landed.why_not
    assert (run.person.folder / FOLDER / "spec-output.yaml").read_text() == "a: 1\n"
    assert run.person.git("status", "--porcelain") == f"M {FOLDER}/spec-output.yaml"


def test_another_tree_is_never_committed_for_the_same_run(tmp_path: Path) -> None:
    run = land(tmp_path)
    run.commit()
    run.person.git("checkout", "-q", "fairwitness/target")
    run.person.commit("unproved", **{"app.py": "print(666)\n"})
    with pytest.raises(GitFailed, match="holds other files"):
        run.commit()


@pytest.mark.req("P16")
@pytest.mark.parametrize("make", [land, artifacts])
def test_a_commit_that_was_killed_anywhere_is_made_once(tmp_path: Path, make: Callable[[Path], Land]) -> None:
    first = make(tmp_path / "first")
    rooms = ("feature.", "git.") if make is land else ("feature.",)
    for number, point in enumerate(points(first.commit, tmp_path / "log", of=rooms)):
        run = make(tmp_path / str(number))
        assert dies(run.commit, at=point), point
        landed = run.commit()
        if make is land:
            check_landed(run, landed)
        else:
            check_artifacts(run, landed)
        assert landed.switched, (point, landed.why_not)
        check_switched(run)
        assert run.person.git("branch", "--list", "feature/*").split() == ["*", BRANCH]


def test_a_switch_that_was_killed_half_way_is_ended(tmp_path: Path) -> None:
    run = land(tmp_path)
    assert dies(run.commit, at="git.switch.locked")
    run.person.write("app.py", WORK["app.py"])  # as git had begun to write
    (run.person.folder / "old.txt").unlink()
    landed = run.commit()
    assert landed.switched, landed.why_not
    check_switched(run)


def test_a_run_without_its_base_is_refused(tmp_path: Path) -> None:
    run = land(tmp_path, base_commit="f" * 40)
    with pytest.raises((UsageError, GitFailed)):
        run.commit()
