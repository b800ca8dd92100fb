"""The demo's world is real: its documents fit their contracts, its code does what its agents say or deny."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from fairwitness.agents.cassette_file import load, name_of
from fairwitness.agents.roles import ROLES
from fairwitness.agents.toolset.arguments import CreateFile, ReadFile, ReplaceString, as_judged, read_arguments
from fairwitness.agents.toolset.files import create_file, replace_string
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.evidence import CheckRow, EvidenceQuery, Phase, Provenance, Tally
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import Allowed, Role, Scope
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Risk, Severity
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind, ReviewFacts
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Category, ReviewReturn, ReviewScope
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.demo.bundle import HONEST, LYING
from fairwitness.demo.sessions import RecordedCall, RecordedSession
from fairwitness.kit.documents import Format, read
from fairwitness.rules.feature_plan import PointerTarget, plan_against_tasks, resolve_pointer
from fairwitness.rules.gates import check_names
from fairwitness.rules.review import (
    RESOLUTIONS,
    ReviewConsequence,
    Situation,
    category_verdict,
    rounds_left,
    situation_of,
)
from fairwitness.rules.risk import colour_of
from fairwitness.rules.tool_policy import may_call
from fairwitness.rules.validation import problems_in
from support import demo_feature as demo

EVERYBODY = tuple(
    pytest.param(session, id=f"{told}-{session.role.value}-{session.instance}-{session.number}")
    for told, sessions in (("honest", demo.HONEST_TEAM), ("lying", demo.LYING_TEAM))
    for session in sessions
)
TESTS = demo.CHECKS[0]
TASK_OF = {task.id: task for task in (*demo.TASKS_AGAIN, *demo.TASKS)}


def _run(repository: Path, argv: Iterable[str]) -> tuple[int, str]:
    words = [sys.executable if word == "python3" else word for word in argv]
    words.insert(1, "-B")
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _ran(text: str) -> tuple[int, int]:
    """How many tests were run, and how many of them failed."""
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    assert ran is not None, text
    return int(ran[1]), sum(int(count) for count in re.findall(r"(?:failures|errors)=(\d+)", text))


def _apply(repository: Path, calls: Iterable[RecordedCall]) -> None:
    """The calls by the very tools that a run uses; a replacement has to fit exactly once."""
    tree = WorktreeFiles(repository)
    for call in calls:
        asked = read_arguments(call.tool, call.args, str)
        match asked:
            case CreateFile():
                create_file(tree, asked)
            case ReplaceString():
                replace_string(tree, asked)
            case ReadFile():
                assert tree.kind(asked.path) == "file"
            case _:
                raise AssertionError(call.tool)


def _calls(session: RecordedSession) -> list[RecordedCall]:
    return [call for turn in session.turns for call in turn.calls]


def _of(sessions: Iterable[RecordedSession], role: Role) -> list[RecordedSession]:
    return [session for session in sessions if session.role is role]


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The repository as it stands before each task."""
    place = tmp_path_factory.mktemp("demo")
    trees = {"task-01": demo.DEMO.lay_out(place / "task-01")}
    for task, following in (("task-01", "task-02"), ("task-02", "task-03"), ("task-03", "task-04")):
        trees[following] = place / following
        shutil.copytree(trees[task], trees[following])
        _apply(trees[following], demo.CALLS[task])
    return trees


def _attempt(start: Path, calls: Iterable[RecordedCall], folder: Path) -> Path:
    shutil.copytree(start, folder)
    _apply(folder, calls)
    return folder


def test_the_repository_is_the_same_commit_everywhere(tmp_path: Path) -> None:
    heads = set()
    for name in ("one", "two"):
        repository = demo.DEMO.lay_out(tmp_path / "deep" / name)
        heads.add(subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True))
        assert subprocess.check_output(["git", "status", "--porcelain"], cwd=repository, text=True) == ""
    assert len(heads) == 1


def test_the_checks_of_the_repository_are_understood_and_pass(tmp_path: Path) -> None:
    repository = demo.DEMO.lay_out(tmp_path / "till")
    settings, _ = verify_settings(repository, user=tmp_path / "none.toml")
    declared = [tuple(word.replace("{python}", "python3") for word in check.argv) for check in settings.check]
    assert declared == list(demo.CHECKS[1:])
    for check in demo.CHECKS:
        code, text = _run(repository, check)
        assert code == 0, text


@pytest.mark.parametrize(
    ("path", "text", "check", "told"),
    [
        ("till/money.py", "import os\n", 1, "os is imported and not used"),
        ("till/money.py", "def add(a, b: int) -> int:\n    return a\n", 2, "add does not say its types: a"),
        ("till/money.py", "def add(a: 'Cent') -> int:\n    return a\n", 2, "error: add: name 'Cent' is not defined"),
        ("till/receipt.py", "def again() -> int:\n    return _vat(1)\n", 2, "this call of _vat does not fit"),
    ],
)
def test_the_linter_and_the_type_checker_notice_mistakes(
    tmp_path: Path, path: str, text: str, check: int, told: str
) -> None:
    repository = demo.DEMO.lay_out(tmp_path / "till")
    with (repository / path).open("a") as file:
        file.write(f"\n\n{text}")
    code, said = _run(repository, demo.CHECKS[check])
    assert code == 1
    assert told in said


@pytest.mark.parametrize("session", EVERYBODY)
def test_every_answer_fits_its_contract_and_the_rules(session: RecordedSession) -> None:
    spec = ROLES[session.role]
    assert spec.answer is not None
    assert problems_in(session.answer, entry_of(spec.answer), strict=True) == ()
    if spec.statuses:
        assert session.answer["completion"]["status"] in {status.value for status in spec.statuses}
    if spec.instances:
        assert session.instance in spec.instances


@pytest.mark.parametrize("session", EVERYBODY)
def test_nobody_asks_for_what_its_role_may_not(session: RecordedSession) -> None:
    task = TASK_OF.get(session.instance)
    scope = Scope(folder=demo.LAYOUT.folder, writes=tuple(path for path, _ in task.files) if task else ())
    for call in _calls(session):
        judged = as_judged(call.tool, read_arguments(call.tool, call.args, str))
        assert may_call(session.role.value, judged, scope) == Allowed(), call


@pytest.mark.parametrize(
    ("plan", "tasks"), [(demo.PLANNED.answer, demo.TASKS), (demo.REPLANNED.answer, demo.TASKS_AGAIN)]
)
def test_plan_and_task_documents_agree_and_point_somewhere(plan: demo.Document, tasks: tuple[demo.Task, ...]) -> None:
    session = next(each for each in _of(demo.HONEST_TEAM, Role.PLANNER) if each.answer is plan)
    written = {call.args["path"]: call.args["content"] for call in _calls(session)}
    assert list(written) == [demo.LAYOUT.task(task.id) for task in tasks]
    documents = {}
    for task, text in zip(tasks, written.values(), strict=True):
        value = read(text.encode(), Format.YAML).value
        assert problems_in(value, entry_of("task-schema"), strict=True) == ()
        documents[task.id] = TaskDocument.model_validate(value)
    assert plan_against_tasks(PlanOutput.model_validate(plan), documents) == ()
    known = {"spec-output.yaml": demo.SPEC.answer, "design-output.yaml": demo.DESIGN.answer}
    for context in (document.task.relevant_context for document in documents.values()):
        for pointer in (*context.design_sections, *context.spec_requirements):
            assert isinstance(resolve_pointer(pointer, known), PointerTarget), pointer


def test_tasks_have_the_colours_that_the_rules_give_them() -> None:
    for task in demo.TASKS_AGAIN:
        for path, risk in task.files:
            change = ChangeKind.MODIFIED if path in demo.DEMO.files else ChangeKind.ADDED
            assert colour_of(ChangedFile(path=path, change=change), Policy()) is risk, path
    assert [task.risk for task in demo.TASKS] == [Risk.GREEN, Risk.YELLOW, Risk.RED, Risk.YELLOW]


@pytest.mark.parametrize("sessions", [demo.HONEST_TEAM, demo.LYING_TEAM])
def test_implementers_touch_the_files_of_their_task_and_report_each(sessions: tuple[RecordedSession, ...]) -> None:
    for session in _of(sessions, Role.IMPLEMENTER):
        wrote = {call.args["path"] for call in _calls(session) if "path" in call.args and len(call.args) > 1}
        report = ImplementationReport.model_validate(session.answer).agent_output.payload
        assert {change.path for change in report.changes} == wrote
        assert wrote <= {path for path, _ in TASK_OF[session.instance].files}
        assert {change.path for change in report.changes if change.action == "modified"} == wrote & set(demo.DEMO.files)


def test_verifiers_judge_every_criterion_in_its_own_words() -> None:
    for session in (*_of(demo.HONEST_TEAM, Role.VERIFIER), *_of(demo.LYING_TEAM, Role.VERIFIER)):
        task = demo.RECEIPT_AGAIN if session.instance == "task-04" and session.number > 1 else TASK_OF[session.instance]
        report = VerificationReport.model_validate(session.answer).agent_output.payload
        assert [each.criterion for each in report.criteria or ()] == [each.text for each in task.criteria]
        assert all(each.command for each in report.criteria or ())


@pytest.mark.parametrize("task", demo.TASKS[:3], ids=lambda task: task.id)
def test_an_honest_task_leaves_everything_green(task: demo.Task, merged: dict[str, Path]) -> None:
    following = {"task-01": "task-02", "task-02": "task-03", "task-03": "task-04"}
    tree = merged[following[task.id]]
    for check in demo.CHECKS:
        code, text = _run(tree, check)
        assert code == 0, text
    for criterion in task.criteria:
        assert _run(merged[task.id], criterion.command.split())[0] == 1, "it fails before"
        code, text = _run(tree, criterion.command.split())
        assert code == 0, text


def test_the_first_receipt_passes_its_own_tests_and_breaks_an_old_one(merged: dict[str, Path], tmp_path: Path) -> None:
    tree = _attempt(merged["task-04"], demo.CALLS["task-04"], tmp_path / "wrong")
    code, text = _run(tree, TESTS)
    assert (code, _ran(text)) == (1, (demo.ALL_TESTS, 1))
    assert "FAIL: test_a_receipt_for_cash" in text
    assert [_run(tree, criterion.command.split())[0] for criterion in demo.TASKS[3].criteria] == [0, 0]
    assert [_run(tree, check)[0] for check in demo.CHECKS[1:]] == [0, 0]


@pytest.mark.parametrize("start", ["fresh", "after the first attempt"])
def test_the_second_receipt_is_right(merged: dict[str, Path], tmp_path: Path, start: str) -> None:
    before = () if start == "fresh" else demo.CALLS["task-04"]
    tree = _attempt(merged["task-04"], (*before, *demo.CALLS_AGAIN), tmp_path / "right")
    for check in (*demo.CHECKS, *(criterion.command.split() for criterion in demo.RECEIPT_AGAIN.criteria)):
        code, text = _run(tree, check)
        assert code == 0, text
    assert _ran(_run(tree, TESTS)[1]) == (demo.ALL_TESTS + 1, 0)


def test_the_lie_is_red_and_says_that_it_is_green(merged: dict[str, Path], tmp_path: Path) -> None:
    tree = _attempt(merged["task-04"], demo.LYING_CALLS, tmp_path / "lie")
    code, text = _run(tree, TESTS)
    assert (code, _ran(text)) == (1, (demo.ALL_TESTS, 3))
    assert [_run(tree, criterion.command.split())[0] for criterion in demo.TASKS[3].criteria] == [1, 1]
    liars = [each for each in _of(demo.LYING_TEAM, Role.IMPLEMENTER) if each.instance == "task-04"]
    assert [liar.number for liar in liars] == [1, 2, 3]
    for liar in liars:
        said = ImplementationReport.model_validate(liar.answer).agent_output.payload.self_check.test_summary
        assert said is not None
        assert (said.total, said.failed) == (demo.ALL_TESTS, 0)


def test_honest_implementers_report_what_their_tests_print(merged: dict[str, Path]) -> None:
    own = {"task-01": "test_vouchers", "task-02": "test_split", "task-03": "test_voucher_payment"}
    assert _ran(_run(merged["task-01"], TESTS)[1]) == (demo.BASE_TESTS, 0)
    for session in _of(demo.HONEST_TEAM, Role.IMPLEMENTER)[:3]:
        payload = ImplementationReport.model_validate(session.answer).agent_output.payload
        assert payload.baseline.test_summary is not None
        assert payload.self_check.test_summary is not None
        assert payload.baseline.test_summary.total == demo.BASE_TESTS
        following = {"task-01": "task-02", "task-02": "task-03", "task-03": "task-04"}[session.instance]
        added, _ = _ran(_run(merged[following], (*TESTS, f"tests.{own[session.instance]}"))[1])
        others = 0 if session.instance == "task-02" else _ran(_run(merged[session.instance], TESTS)[1])[0]
        # task-02 has its own worktree beside task-01 and does not see its tests
        assert payload.self_check.test_summary.total == (others or demo.BASE_TESTS) + added


def _situation(
    sessions: Iterable[RecordedSession], scope: ReviewScope, round: int
) -> tuple[Situation, ReviewConsequence]:
    """What the rules make of a round, from rows as the harness writes them."""
    rows: list[CheckRow] = []
    for session in sessions:
        said = ReviewReturn.model_validate(session.answer)
        assert (said.scope, said.round) == (scope, round)
        for category in Category:
            severities = [found.severity for found in said.findings if found.category is category]
            word = category_verdict(said, category)
            rows.append(
                CheckRow(
                    id=len(rows) + 1,
                    check_name=check_names(scope)[category],
                    phase=Phase.REVIEW,
                    round=round,
                    passed=word is CategoryVerdict.APPROVE,
                    verdict=word,
                    severity=min(severities, key=tuple(Severity).index, default=None),
                    instance=session.instance,
                    provenance=Provenance.CLAIMED,
                    assessment=None,
                    tree=None,
                    sandbox=None,
                )
            )
    tally = Tally(query=EvidenceQuery(sql="SELECT 1", values=()), rows=tuple(rows))
    facts = ReviewFacts(scope=scope, round=round, tally=tally, reviewers=())
    situation = situation_of(facts, Policy())
    return situation, RESOLUTIONS[(situation, rounds_left(facts, Policy()))]


def test_the_design_is_sent_back_once() -> None:
    first = _situation(demo.DESIGN_REVIEWS, ReviewScope.DESIGN, 1)
    assert first == (Situation.SECURITY_DISSENT, ReviewConsequence.REVISE)
    again = _situation(demo.DESIGN_REVIEWS_AGAIN, ReviewScope.DESIGN, 2)
    assert again == (Situation.UNANIMOUS, ReviewConsequence.GO)


@pytest.mark.parametrize("variant", [HONEST, LYING])
def test_one_reviewer_of_the_code_dissents_and_stops_nothing(variant: str) -> None:
    said = _situation(demo.CODE_REVIEWS[variant], ReviewScope.CODE, 1)
    assert said == (Situation.DISSENT, ReviewConsequence.GO_WITH_DISSENT)


def test_the_dissent_is_true(merged: dict[str, Path]) -> None:
    program = "from till.payment import Payment; hash(Payment(1, 1, 0))"
    assert _run(merged["task-01"], ("python3", "-c", program))[0] == 0
    assert "TypeError" in _run(merged["task-04"], ("python3", "-c", program))[1]


@pytest.mark.parametrize(("variant", "count"), [(HONEST, 30), (LYING, 33)])
def test_every_dispatch_of_a_run_has_its_cassette(tmp_path: Path, variant: str, count: int) -> None:
    folder = demo.DEMO.write_cassettes(tmp_path / "cassettes", variant)
    sessions = demo.DEMO.team(variant)
    assert {path.name for path in folder.iterdir()} == {
        name_of(session.role, session.instance, session.number) for session in sessions
    }
    assert len(sessions) == len(list(folder.iterdir())) == count
    for session in sessions:
        cassette = load(folder / name_of(session.role, session.instance, session.number))
        assert (cassette.header.role, cassette.header.instance) == (session.role, session.instance)
        assert cassette.header.answer == ROLES[session.role].answer
        assert cassette.turns[-1].submitted == session.answer
        assert {turn.seen for turn in cassette.turns} == {None}
        if session.number > 1:
            assert (folder / name_of(session.role, session.instance, session.number - 1)).exists()


def test_no_recording_speaks_of_a_worktree_by_accident(tmp_path: Path) -> None:
    for path in demo.DEMO.write_cassettes(tmp_path / "cassettes").iterdir():
        assert "{root" not in path.read_text(), path.name


def test_each_role_is_asked_as_often_as_the_story_says() -> None:
    asked = {role: len(_of(demo.HONEST_TEAM, role)) for role in {session.role for session in demo.HONEST_TEAM}}
    assert asked == {
        Role.INTAKE: 1,
        Role.RESEARCHER: len(Focus),
        Role.SPEC: 1,
        Role.DESIGNER: 2,
        Role.REVIEWER: 9,
        Role.PLANNER: 2,
        Role.IMPLEMENTER: 5,
        Role.VERIFIER: 5,
        Role.KNOWLEDGE: 1,
    }
