"""The demo as a stranger plays it: a request becomes a commit with its evidence, and a lie becomes nothing."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import fairwitness as fairwitness_package
from app.report_pages import demo_page
from cli.runner import fairwitness
from fairwitness.app.views.ledger import open_ledger
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective
from fairwitness.store.layout.feature import FeatureLayout
from support import demo_feature as demo
from support.gates import assert_gates_are_explained
from support.state import take_for_the_same
from support.summaries import assert_summaries

pytestmark = pytest.mark.timeout(300)  # the fixtures play whole runs, on a machine that may be busy

SOURCE = Path(fairwitness_package.__file__).parent
BRANCH = f"feature/{demo.DEMO.slug}"
LAYOUT = FeatureLayout(demo.DEMO.slug)
TASKS = ("task-01", "task-02", "task-03", "task-04")
FILES = {
    *(LAYOUT.initial_request, LAYOUT.ledger, LAYOUT.knowledge, LAYOUT.decisions, LAYOUT.evidence_bundle),
    *(LAYOUT.spec, LAYOUT.spec_companion, LAYOUT.design, LAYOUT.design_companion, LAYOUT.plan, LAYOUT.plan_companion),
    *(LAYOUT.research(focus) for focus in Focus),
    *(LAYOUT.task(task) for task in TASKS),
    *(LAYOUT.implementation_report(task) for task in TASKS),
    *(LAYOUT.verification_report(task) for task in TASKS),
    *(LAYOUT.review_findings(scope, each) for scope in ("design", "code") for each in Perspective),
    *(LAYOUT.review_verdict(scope, each) for scope in ("design", "code") for each in Perspective),
}
DATED = (r"agent-metrics/\d{4}-\d\d-\d\d-run-log\.md", rf"post-mortems/\d{{4}}-\d\d-\d\d-{demo.DEMO.slug}\.md")


@dataclass(frozen=True)
class Played:
    """A demo that came to its end."""

    repository: Path
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """What a person saw."""
        return (self.stdout + self.stderr).splitlines()

    @property
    def text(self) -> str:
        """The same without the breaks that a narrow terminal makes."""
        return " ".join(" ".join(self.lines).split())


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def play(folder: Path, *arguments: str) -> Played:
    done = fairwitness("demo", "--dir", folder, *arguments, cwd=folder.parent)
    return Played(folder / "till", done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The demo, played once; nobody changes it."""
    return play(tmp_path_factory.mktemp("demo") / "play")


@pytest.fixture(scope="module")
def lied(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The same with an implementer that lies."""
    return play(tmp_path_factory.mktemp("lie") / "play", "--lie")


@pytest.fixture
def copied(told: Played, tmp_path: Path) -> Iterator[Path]:
    """A copy of its repository, to be changed."""
    shutil.copytree(told.repository, tmp_path / "till", symlinks=True)
    take_for_the_same(tmp_path)
    yield tmp_path / "till"
    shutil.rmtree(tmp_path / "till")


def target_of(repository: Path) -> str:
    (ref,) = git(repository, "for-each-ref", "--format=%(refname)", "refs/heads/fairwitness").split()
    return ref


@pytest.mark.width("sample")  # one whole feature run
@pytest.mark.req("P11")
def test_the_demo_ends_in_a_commit_of_exactly_what_was_proven(told: Played) -> None:
    repository = told.repository
    assert told.code == 0, told.text
    assert git(repository, "rev-parse", f"{BRANCH}^{{tree}}") == git(
        repository, "rev-parse", f"{target_of(repository)}^{{tree}}"
    )
    assert git(repository, "rev-list", "--count", f"main..{BRANCH}") == "1"
    assert git(repository, "rev-parse", f"{BRANCH}^") == git(repository, "rev-parse", "main")
    assert git(repository, "diff", "--name-only", "main", BRANCH).splitlines()
    assert not git(repository, "ls-tree", "-r", "--name-only", BRANCH, "docs")


@pytest.mark.req("P11")
def test_the_commit_names_its_run_and_the_bytes_of_its_evidence(told: Played) -> None:
    repository = told.repository
    trailers = dict(
        line.split(": ", 1)
        for line in git(repository, "log", "-1", "--format=%(trailers:only,unfold)", BRANCH).splitlines()
    )
    bundle = (repository / LAYOUT.evidence_bundle).read_bytes()
    assert trailers["Evidence-Sha256"] == hashlib.sha256(bundle).hexdigest()
    assert trailers["Run-Id"] in told.text
    assert {"Assisted-by", "Co-authored-by"} <= trailers.keys()
    subject = git(repository, "log", "-1", "--format=%s", BRANCH)
    assert re.fullmatch(r"feat: \S.{0,66}", subject)


@pytest.mark.req("P11")
def test_the_checkout_is_switched_and_clean_and_nothing_else_is_left(told: Played) -> None:
    repository = told.repository
    assert git(repository, "symbolic-ref", "--short", "HEAD") == BRANCH
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert sorted(path.name for path in (told.repository.parent).iterdir()) == ["recordings", "till"]
    assert f"repository  {repository}" in told.lines


@pytest.mark.width("sample")
@pytest.mark.parametrize("database", ["engine.db", "evidence.db"])
def test_no_journal_holds_a_module_path(told: Played, database: str) -> None:
    """A run that was begun before a module moved goes on after it."""
    journal = (told.repository / ".fairwitness" / database).read_bytes()
    packages = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert not re.findall(rb"fairwitness\.(?:%s)\b" % "|".join(packages).encode(), journal)


def test_every_file_of_the_feature_folder_is_there_and_no_other(told: Played) -> None:
    folder = told.repository / LAYOUT.folder
    found = {str(path.relative_to(told.repository)) for path in folder.rglob("*") if path.is_file()}
    assert found >= FILES
    others = sorted(path.removeprefix(f"{LAYOUT.folder}/") for path in found - FILES)
    assert len(others) == len(DATED)
    assert all(re.fullmatch(pattern, path) for pattern, path in zip(DATED, others, strict=True))


def test_every_gate_is_printed_with_what_it_counted(told: Played) -> None:
    for subject, word, counted in (
        ("task-01", "open", r"EG-1: \d+ baseline checks, 1 required"),
        ("task-03", "open", r"EG-2: \d+ passed checks, 3 required"),
        (
            "task-04",
            "blocked",
            r"EG-2: \d+ passed checks, 2 required; not proven: tests \(regressed\): tests",
        ),
        ("task-04", "open", r"EG-2: \d+ passed checks, 2 required"),
        ("code-review", "open", "EG-3: 3 reviewers, 3 required"),
        ("design-review", "open", "EG-4: 0 blockers"),
        ("design-review", "open", "EG-5: 3 full reviews, 3 required"),
        ("design-review", "open", "EG-6: 2 approvals, 2 required"),
    ):
        assert re.search(f"gate +{subject} +{word} +{counted}", told.stdout), (subject, counted)


@pytest.mark.req("F5")
@pytest.mark.parametrize("how", ["told", "lied"])
def test_no_gate_is_told_twice_with_the_same_words(how: str, request: pytest.FixtureRequest) -> None:
    played: Played = request.getfixturevalue(how)
    gates = [line.split("  ", 1)[1] for line in played.lines if re.match(r"\S+Z  gate ", line)]
    assert len(gates) > 10
    assert len(gates) == len(set(gates))


@pytest.mark.req("F5")
@pytest.mark.parametrize("how", ["told", "lied"])
def test_whatever_is_refused_has_a_reason(how: str, request: pytest.FixtureRequest) -> None:
    played: Played = request.getfixturevalue(how)
    refused = [line for line in played.lines if re.search(r"Z  \w+ +\S+ +(failed|blocked|refused) ", line)]
    assert len(refused) >= 2
    assert all(re.search(r"(no retry left|retrying|not proven|: ).*\w", line) for line in refused), refused


@pytest.mark.req("P7")
@pytest.mark.parametrize("how", ["told", "lied"])
def test_every_gate_of_an_event_is_explained_under_its_name_and_as_it_was_decided(
    how: str, request: pytest.FixtureRequest
) -> None:
    played: Played = request.getfixturevalue(how)
    listed = json.loads(fairwitness("ledger", "gates", "last", "--json", cwd=played.repository).stdout)
    known = {gate["name"].replace(":", ".", 1): gate for gate in listed}
    events = json.loads(fairwitness("events", "last", "--json", cwd=played.repository).stdout)
    said = [event["data"] for event in events if event["type"] == "gate_evaluated"]
    assert len(said) > 10
    for data in said:  # the last one counts
        last = [other for other in said if other["gate"] == data["gate"]][-1]
        gate = known[data["gate"]]
        assert (gate["answer"] == "open", gate["count"], gate["threshold"]) == (
            last["open"],
            last["count"],
            last["threshold"],
        )
    assert {"gate-post-planning", "EG-1.task-04", "EG-2.task-04"} <= assert_gates_are_explained(
        played.repository
    ).keys()


@pytest.mark.req("F5", "P7")
def test_log_report_and_closing_block_name_the_failing_test_and_why_it_failed(lied: Played) -> None:
    test, why = "tests.test_receipt.Cash.test_a_receipt_for_cash", "AssertionError"
    for line in (r"task +task-04 +failed", r"gate +task-04 +blocked +EG-2"):
        assert re.search(rf"Z  {line}.*{re.escape(test)} \({why}", lied.stdout), line
    block = " ".join(lied.stdout.rpartition("\n\n")[2].split())
    assert f"passed before the change and fails now: tests: {test} ({why}" in block
    assert f"failed task-04, after 3 attempts: tests (regressed): {test} ({why}" in block
    run_id = json.loads(fairwitness("status", "last", "--json", cwd=lied.repository).stdout)["run_id"]
    assert f"explain fairwitness gate explain {run_id} EG-2:task-04" in block
    explained = fairwitness("gate", "explain", run_id, "EG-2:task-04", cwd=lied.repository)
    assert explained.returncode == 1
    assert re.search(
        rf"^failed +tests \(regressed\): .*\n +- {re.escape(test)}\n +{why}", explained.stdout, re.MULTILINE
    )
    shown = json.loads(fairwitness("task", "show", "task-04", "--json", cwd=lied.repository).stdout)
    assert [test in attempt["reason"] for attempt in shown["attempts"]] == [True] * 3
    assert "The receipt shows vouchers" in shown["document"]
    _, page = demo_page(lied.repository)
    assert f"{test} ({why}" in " ".join(page.text.split())
    for text in (LAYOUT.evidence_bundle, LAYOUT.verification_report("task-04")):
        assert test in (lied.repository / text).read_text()


def test_the_demo_shows_what_it_promises(told: Played) -> None:
    """A revised design, a task that fails and is planned anew, a reviewer that dissents, and an end in few lines."""
    assert "revise    the reviewers request changes to the design" in told.stdout
    assert "replan    iteration 2: a new plan for task-04" in told.stdout
    assert re.search(r"review +code #1 +revise +[a-z-]+: architecture", told.stdout)
    block = told.stdout.rpartition("\n\n")[2]
    assert re.match(r"COMMITTED: gift-vouchers, confidence \w+\n", block)
    for line in (
        r"asked +Gift vouchers: Customers want to pay",
        "done +4 of 4 tasks merged in 2 iterations$",
        r"proven +(\d+) of \1 checks passed on the whole change, run by Fair Witness$",
        "review +2 of 3 reviewers approve$",
        r"cost +30 agent calls, [\d,]+ tokens$",
        r"time +(\d+m )?\d+s$",
        f"result +commit [0-9a-f]{{12}} on {BRANCH}$",
        f"evidence +{LAYOUT.evidence_bundle}$",
        "undo +fairwitness rollback ",
    ):
        assert re.search(f"^{line}", block, re.MULTILINE), (line, block)


def test_the_next_command_works_when_it_is_pasted(told: Played, lied: Played) -> None:
    for played in (told, lied):
        (line,) = [line for line in played.stderr.splitlines() if line.startswith("next:  ")]
        go, _, command = line.removeprefix("next:  ").partition(" && ")
        assert go == f"cd {played.repository}"
        done = fairwitness(*command.split()[1:], cwd=Path(go.removeprefix("cd ")))
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["told", "lied"])
def test_the_demo_fits_eighty_columns_but_for_reasons(how: str, request: pytest.FixtureRequest) -> None:
    """A line is one event, so that it can be searched; only a line with a reason may be longer than a terminal."""
    played: Played = request.getfixturevalue(how)
    reasons = r"Z  (task +\S+ +failed|gate +\S+ +blocked|revise|degraded|run +not committed)"
    wide = [line for line in played.lines if len(line) > 80 and str(played.repository) not in line]
    assert [line for line in wide if not re.search(reasons, line)] == []
    assert "\x1b" not in played.stdout


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = fairwitness("demo", "--dir", tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fairwitness: {tmp_path} is not empty\nnext:  ")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.req("X1")
def test_a_lie_is_stopped_by_a_gate_that_says_so_and_nothing_is_committed(lied: Played) -> None:
    repository = lied.repository
    assert lied.code == 1, lied.text
    assert "reports failing tests as passed" in lied.text
    assert re.search(r"gate +task-\d\d +blocked +EG-2: \d+ passed checks, \d required; not proven: tests ", lied.stdout)
    assert re.search(r"^NOT COMMITTED: gift-vouchers, confidence Low$", lied.stdout, re.MULTILINE)
    assert re.search(r"^because +without enough evidence: task-04 ", lied.stdout, re.MULTILINE)
    assert re.search(r" result nothing is committed; branch \S+ holds the merged tasks", lied.text)
    assert git(repository, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(repository, "branch", "--list", "feature*") == ""
    assert git(repository, "rev-list", "--count", "main") == "1"
    (base,) = git(repository, "for-each-ref", "--format=%(objectname)", "refs/fairwitness/baseline").split()
    assert git(repository, "rev-parse", "main") == base
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.parametrize("how", ["told", "lied"])
def test_the_ledger_of_a_demo_is_as_it_was_written(how: str, request: pytest.FixtureRequest) -> None:
    played: Played = request.getfixturevalue(how)
    done = fairwitness("ledger", "verify", cwd=played.repository)
    assert done.returncode == 0, done.stdout
    assert "all as written" in done.stderr
    assert "rebuilt" not in done.stdout
    with closing(open_ledger(played.repository)) as ledger:
        assert_summaries(ledger)


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("status",), (0, 0)),
        (("status", "last"), (0, 0)),
        (("watch", "last"), (0, 1)),
        (("resume", "last"), (0, 1)),
        (("resume",), (2, 2)),
        (("inbox",), (0, 0)),
        (("report", "last"), (0, 0)),
        (("events", "last"), (0, 0)),
        (("evidence", "show", "1"), (0, 0)),
        (("rollback", "none"), (2, 2)),
    ],
)
def test_every_command_knows_a_run_that_ended(
    told: Played, lied: Played, arguments: tuple[str, ...], codes: tuple[int, int]
) -> None:
    for played, code in zip((told, lied), codes, strict=True):
        done = fairwitness(*arguments, cwd=played.repository)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert git(told.repository, "status", "--porcelain") == ""


def test_what_the_commands_say_is_what_happened(told: Played, lied: Played) -> None:
    assert "committed" in fairwitness("status", cwd=told.repository).stdout
    assert "No approvals pending." in fairwitness("inbox", cwd=told.repository).stdout
    shown = json.loads(fairwitness("status", "last", "--json", cwd=told.repository).stdout)
    assert shown["status"] == "committed"
    failed = json.loads(fairwitness("status", "last", "--json", cwd=lied.repository).stdout)
    assert failed["status"] == "low_confidence"
    assert failed["reason"].startswith("nothing is committed: at most Low: without enough evidence: task-04")
    kinds = [line.split()[2] for line in fairwitness("events", "last", cwd=told.repository).stdout.splitlines()]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")


@pytest.mark.parametrize(
    ("how", "begins", "numbers"),
    [
        ("told", "Committed Confidence: Medium", "Tasks 4 of 4 merged Criteria 11 of 11 met"),
        ("lied", "Refused: nothing was committed Confidence: Low", "Tasks 3 of 4 merged Criteria 8 of 11 met"),
    ],
)
def test_the_report_begins_with_the_outcome_and_has_the_numbers_of_the_screen(
    how: str, begins: str, numbers: str, request: pytest.FixtureRequest
) -> None:
    played: Played = request.getfixturevalue(how)
    source, page = demo_page(played.repository)
    header = page.header.split(f"feature run {demo.DEMO.slug} ")[1]
    assert header.startswith(begins)
    assert numbers in header
    (checks,) = re.findall(r"proven +(\d+ of \d+) checks passed on the whole", played.text)
    (tokens,) = re.findall(r"calls, ([\d,]+) tokens", played.text)
    assert f"Checks of the whole {checks} passed" in header
    assert f"Tokens {tokens} Ledger intact" in header
    assert "python -m unittest -v tests.test_split" in page.text
    assert "def main(" not in source  # the programs of checks are named, not printed
    assert "<ins>+ class Voucher:" in source


@pytest.mark.req("X1")
def test_the_report_of_a_lie_says_first_that_it_was_refused_and_why(lied: Played) -> None:
    _, page = demo_page(lied.repository)
    header = page.header
    said = "the report says that tests passed after the change; it failed when Fair Witness ran it"
    lie = f"task-04, attempts 1, 2, 3: {said}."
    places = [header.index(part) for part in ("Refused", "did not commit it.", lie, "Without enough evidence: task-04")]
    assert places == sorted(places)
    assert "Refused: task-04, attempt 3; not part of the result" in page.text.split("What changed")[2]


@pytest.mark.req("P11")
def test_a_rollback_restores_what_was_there_before_and_the_second_one_says_so(copied: Path) -> None:
    made = git(copied, "rev-parse", BRANCH)
    done = fairwitness("rollback", "last", cwd=copied)
    assert done.returncode == 0, done.stderr
    assert git(copied, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(copied, "status", "--porcelain") == ""
    assert git(copied, "branch", "--list", "feature*") == ""
    for path in git(copied, "ls-tree", "-r", "--name-only", "main").splitlines():
        assert (copied / path).read_bytes() == subprocess.run(
            ["git", "show", f"main:{path}"], cwd=copied, check=True, capture_output=True
        ).stdout
    added = git(copied, "diff", "--name-only", "--diff-filter=A", "main", made).splitlines()
    assert added
    assert not [path for path in added if (copied / path).exists()]
    assert (copied / LAYOUT.evidence_bundle).exists()
    kept = git(copied, "for-each-ref", "--format=%(objectname)", "refs/fairwitness/rolled-back")
    assert kept == made
    again = fairwitness("rollback", "last", cwd=copied)
    assert again.returncode == 0
    assert again.stdout.startswith("it was rolled back before\n")
    assert fairwitness("ledger", "verify", cwd=copied).returncode == 0


def test_a_lie_has_nothing_to_be_rolled_back(lied: Played) -> None:
    done = fairwitness("rollback", "last", cwd=lied.repository)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("fairwitness: ")
    assert "\nnext:  " in done.stderr


def _prompt(repository: Path, role: str, instance: str, number: int) -> str:
    """The first prompt of the n-th dispatch of a role, from its stored transcript."""
    with closing(open_ledger(repository)) as ledger:
        (run_id,) = ledger.runs()
        ended = [row.detail for row in ledger.observations(run_id, "dispatch-ended")]
    own = [each for each in ended if (each["role"], each["instance"]) == (role, instance)]
    digest = own[number - 1]["transcript"].removeprefix("sha256:")
    lines = (repository / ".fairwitness" / "outputs" / digest).read_text().splitlines()
    return next(str(entry["text"]) for entry in map(json.loads, lines) if entry["kind"] == "prompt")


@pytest.mark.req("P9")
def test_a_retry_and_the_planner_are_told_why_the_attempt_before_failed(told: Played) -> None:
    first, second = (_prompt(told.repository, "implementer", "task-04", number) for number in (1, 2))
    broken = "tests.test_receipt.Cash.test_a_receipt_for_cash"
    assert broken not in first
    for prompt in (second, _prompt(told.repository, "planner", "planner", 2)):
        assert broken in prompt
        assert "AssertionError" in prompt
        assert 'File "tests/test_receipt.py", line ' in prompt
        assert "The change that failed" in prompt
        assert "+++ b/till/receipt.py" in prompt
        assert "What reviewers said about the last attempt" in prompt
