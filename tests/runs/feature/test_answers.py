"""What agents answered becomes files and rows once: whole, at the seeds' paths, or refused with every reason."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity
from fairwitness.contracts.feature.events import ReplanStarted
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.demo.sessions import RecordedSession
from fairwitness.kit import yaml_text
from fairwitness.ledger.verify import verify
from fairwitness.runs.dispatch.model import Dispatched
from fairwitness.runs.feature.answers import refusals, store
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.facts import review_subject
from runs.feature.contexts import context as made
from runs.feature.documents import finding, review
from runs.feature.git_runs import dies, points
from runs.feature.run_events import files_of, id_of, outcome_of, played, reopened, tree_of, tree_with
from support import demo_feature as demo


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    yield made_
    made_.ledger.close()


def _evaluations(context: FeatureContext) -> list[tuple[Any, ...]]:
    sql = "SELECT evaluator_agent, evaluator_instance, artifact_path FROM artifact_evaluations ORDER BY id"
    return [tuple(row) for row in context.ledger.database.read(sql)]


def _picture(context: FeatureContext) -> dict[str, bytes]:
    top = context.repository.top
    assert top is not None
    folder = top / context.layout.folder
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _rows(context: FeatureContext) -> tuple[int, int]:
    return context.ledger.head(context.run_id).links, len(tuple(context.ledger.events(context.run_id)))


def _before(context: FeatureContext, *sessions: RecordedSession) -> None:
    for session in sessions:
        played(context, session)


PLACES: list[tuple[RecordedSession, set[str]]] = [
    (demo.INTAKE, set()),
    *((session, {f"research/{focus.value}.yaml"}) for focus, session in zip(Focus, demo.GROUNDWORK[1:], strict=True)),
    (demo.SPEC, {"spec-output.yaml", "feature.md"}),
    (demo.FIRST_DESIGN, {"design-output.yaml", "design.md"}),
    (
        demo.PLANNED,
        {"plan-output.yaml", "plan.md", *(f"tasks/task-0{number}.yaml" for number in range(1, 5))},
    ),
    *(
        (session, {f"review-findings/design-{name}.md", f"review-verdicts/design-{name}.yaml"})
        for session in demo.DESIGN_REVIEWS
        for name in [session.instance]
    ),
    *(
        (session, {f"implementation-reports/{session.instance}.yaml"})
        for session in demo.FIRST_ITERATION
        if session.role is Role.IMPLEMENTER
    ),
    *((session, set[str]()) for session in demo.FIRST_ITERATION if session.role is Role.VERIFIER),
]


@pytest.mark.req("P6", "P16")
@pytest.mark.parametrize(("session", "paths"), PLACES, ids=[id_of(row[0]) for row in PLACES])
def test_each_answer_of_the_team_lands_where_the_seeds_have_it_and_once(
    context: FeatureContext, session: RecordedSession, paths: set[str]
) -> None:
    played(context, session)
    stored = _picture(context)
    assert set(stored) == paths
    assert {f"{context.layout.folder}/{path}" for path in paths} == set(context.state().artifacts)
    before = _rows(context), _evaluations(context)
    played(context, session)
    assert (_rows(context), _evaluations(context)) == before
    assert _picture(context) == stored


@pytest.mark.req("P10")
def test_what_was_learnt_is_stored_once(context: FeatureContext) -> None:
    session = demo.KNOWLEDGE
    played(context, session)
    assert {"knowledge-output.yaml", "decisions.yaml"} <= set(_picture(context))
    before = _rows(context), _evaluations(context), _picture(context)
    played(context, session)
    assert (_rows(context), _evaluations(context), _picture(context)) == before


@pytest.mark.req("P13")
def test_every_evaluation_of_the_whole_team_is_a_row_of_its_own(context: FeatureContext) -> None:
    expected = []
    for session in demo.HONEST_TEAM:
        payload = session.answer.get("agent_output", {}).get("payload", session.answer)
        rated = payload.get("artifact_evaluations") or ()
        expected += [(session.role.value, session.instance, each["artifact_path"]) for each in rated]
        played(context, session)
        played(context, session)
    assert expected
    assert _evaluations(context) == expected
    assert verify(context.ledger.database, context.run_id) == []


def test_an_answer_that_is_none_leaves_nothing(context: FeatureContext) -> None:
    before = _rows(context)
    store(context, Role.SPEC, "spec", Dispatched("step-2-1-spec-1", outcome=outcome_of(None)))
    assert _rows(context) == before
    assert _picture(context) == {}


@pytest.mark.req("P2")
@pytest.mark.parametrize("session", [demo.SPEC, demo.FIRST_DESIGN, demo.PLANNED], ids=id_of)
def test_a_document_of_an_agent_that_says_itself_that_it_failed_is_not_taken(
    context: FeatureContext, session: RecordedSession
) -> None:
    answer = {**session.answer, "completion": {**session.answer["completion"], "status": "ERROR"}}
    played(context, replace(session, answer=answer))
    assert _picture(context) == {}
    assert _evaluations(context) == []


@pytest.mark.parametrize("session", [demo.SPEC, demo.PLANNED, demo.DESIGN_REVIEWS[0]], ids=id_of)
def test_an_answer_that_was_killed_anywhere_is_stored_once(tmp_path: Path, session: RecordedSession) -> None:
    def store_in(folder: Path) -> None:
        """In a process of its own: with a ledger of its own, too."""
        there = reopened(folder)
        played(there, session)

    def whole(name: str) -> FeatureContext:
        folder = tmp_path / name
        folder.mkdir()
        begun = made(folder)
        begun.ledger.close()
        return begun

    whole("first")
    log = tmp_path / "log"
    for number, point in enumerate(points(lambda: store_in(tmp_path / "first"), log, of=("feature.",))):
        whole(str(number))
        assert dies(lambda number=number: store_in(tmp_path / str(number)), at=point), point  # type: ignore[misc]  # a default binds the loop's value
        there = reopened(tmp_path / str(number))
        played(there, session)
        expected = reopened(tmp_path / "first")
        assert _picture(there) == _picture(expected)
        assert _evaluations(there) == _evaluations(expected)
        assert _rows(there)[1] == _rows(expected)[1]
        for each in (there, expected):
            each.ledger.close()


Files = dict[str, str | bytes]


def _planned(context: FeatureContext, change: Callable[[dict[str, Any], Files], None]) -> tuple[str, ...]:
    """The demo's plan with something changed; why it was refused."""
    session = demo.PLANNED
    answer = yaml_text.parse(yaml_text.render(session.answer))
    files: Files = dict(files_of(session))
    assert isinstance(answer, dict)
    change(answer, files)
    done = Dispatched("step-4-1-planner-1", outcome=outcome_of(answer), tree=tree_with(context, files))
    for _ in range(2):
        store(context, Role.PLANNER, "planner", done)
    return refusals(context, "step-4-1-planner-1")


def _task(files: Files, task: str, change: Callable[[dict[str, Any]], None]) -> None:
    (path,) = [path for path in files if path.endswith(f"{task}.yaml")]
    content = files[path]
    assert isinstance(content, str)
    value = yaml_text.parse(content)
    assert isinstance(value, dict)
    change(value["task"])
    files[path] = yaml_text.render(value)


def _four_files(_answer: dict[str, Any], files: Files) -> None:
    many = [{"path": f"till/{name}.py", "risk": "🟢"} for name in "abcd"]
    _task(files, "task-01", lambda task: task["relevant_context"].update(files_to_modify=many))


def _three_dependencies(answer: dict[str, Any], files: Files) -> None:
    waits = ["task-01", "task-02", "task-03"]
    answer["agent_output"]["payload"]["tasks"][3]["depends_on"] = waits
    answer["agent_output"]["payload"].get("dependency_graph", {})["task-04"] = waits
    _task(files, "task-04", lambda task: task.update(depends_on=waits))


def _without(_answer: dict[str, Any], files: Files) -> None:
    for path in [path for path in files if path.endswith(("task-02.yaml", "task-03.yaml"))]:
        del files[path]


def _bad_yaml(_answer: dict[str, Any], files: Files) -> None:
    for path in files:
        if path.endswith("task-01.yaml"):
            files[path] = "task: [1, 2\n"
        if path.endswith("task-02.yaml"):
            files[path] = b"\xff\xfe"
        if path.endswith("task-03.yaml"):
            files[path] = "just words\n"
        if path.endswith("task-04.yaml"):
            files[path] = "task: {id: task-04}\n"


def _another_id(_answer: dict[str, Any], files: Files) -> None:
    _task(files, "task-02", lambda task: task.update(id="task-01"))


def _number_nought(answer: dict[str, Any], files: Files) -> None:
    _task(files, "task-04", lambda task: task.update(id="task-00"))
    (path,) = [path for path in files if path.endswith("task-04.yaml")]
    files[path.replace("task-04", "task-00")] = files.pop(path)
    payload = answer["agent_output"]["payload"]
    payload["tasks"][3]["id"] = "task-00"
    payload["waves"] = [
        {**wave, "tasks": [each.replace("task-04", "task-00") for each in wave["tasks"]]} for wave in payload["waves"]
    ]
    if payload.get("dependency_graph"):
        payload["dependency_graph"]["task-00"] = payload["dependency_graph"].pop("task-04")


def _another_size(_answer: dict[str, Any], files: Files) -> None:
    _task(files, "task-02", lambda task: task.update(size="Large"))


def _wrong_total(answer: dict[str, Any], _files: Files) -> None:
    answer["agent_output"]["payload"]["total_tasks"] = 9


REFUSED: list[tuple[Callable[[dict[str, Any], Files], None], list[str]]] = [
    (_four_files, ["tasks/task-01.yaml: task.relevant_context.files_to_modify: expected at most 3 files"]),
    (_three_dependencies, ["plan-output.yaml: agent_output.payload.tasks[3].depends_on: expected at most 2"]),
    (
        _without,
        [
            "tasks/task-02.yaml: expected a task document, found none",
            "tasks/task-03.yaml: expected a task document, found none",
        ],
    ),
    (
        _bad_yaml,
        ["tasks/task-01.yaml: ", "tasks/task-02.yaml: ", "tasks/task-03.yaml: ", "tasks/task-04.yaml: task.title: "],
    ),
    (_another_id, ["tasks/task-02.yaml: task.id: expected task-02, found task-01"]),
    (_number_nought, ["tasks/task-00.yaml: task.id: expected task-01 or a later one"]),
    (_another_size, ["plan-output.yaml: agent_output.payload.tasks[1].size: expected the same as in the task"]),
    (_wrong_total, ["plan-output.yaml: agent_output.payload.total_tasks: expected the number of tasks, 4"]),
]


@pytest.mark.req("P8")
@pytest.mark.parametrize(("change", "told"), REFUSED, ids=[row[0].__name__.strip("_") for row in REFUSED])
def test_a_plan_that_cannot_be_taken_is_refused_whole_and_says_why(
    context: FeatureContext, change: Callable[[dict[str, Any], Files], None], told: list[str]
) -> None:
    said = _planned(context, change)
    assert len(said) == len(told), said
    for each, beginning in zip(said, told, strict=True):
        assert each.startswith(beginning)
        assert ": : " not in each
    assert _picture(context) == {}
    assert _evaluations(context) == []
    (row,) = context.ledger.observations(context.run_id, "refused")
    assert not row.holds


@pytest.mark.req("P8")
def test_a_plan_that_can_be_taken_is_not_refused(context: FeatureContext) -> None:
    assert _planned(context, lambda _answer, _files: None) == ()
    assert refusals(context, "another") == ()


@pytest.mark.req("P8")
def test_a_planner_that_left_no_tree_brought_no_tasks(context: FeatureContext) -> None:
    done = Dispatched("step-4-1-planner-1", outcome=outcome_of(demo.PLANNED.answer))
    store(context, Role.PLANNER, "planner", done)
    assert len(refusals(context, "step-4-1-planner-1")) == 4


@pytest.mark.req("P9")
def test_tasks_that_are_not_planned_anew_stay_as_they_were(context: FeatureContext) -> None:
    played(context, demo.PLANNED)
    before = _picture(context)
    again = demo.replanned(2)
    left = {path: text for path, text in files_of(again).items() if path.endswith("task-04.yaml")}
    done = Dispatched("step-4-2-planner-1", outcome=outcome_of(again.answer), tree=tree_with(context, left))
    store(context, Role.PLANNER, "planner", done)
    after = _picture(context)
    for name in ("task-01.yaml", "task-02.yaml", "task-03.yaml", "task-04.yaml"):
        assert (after[f"tasks/{name}"] == before[f"tasks/{name}"]) is (name != "task-04.yaml")
        TaskDocument.model_validate(yaml_text.parse(after[f"tasks/{name}"].decode()))
    assert context.document(context.layout.plan, PlanOutput).plain() == PlanOutput.model_validate(again.answer).plain()


@pytest.mark.req("P9")
def test_a_plan_that_leaves_the_failed_task_as_it_was_is_refused(context: FeatureContext) -> None:
    def stored(session: RecordedSession, number: int) -> tuple[str, ...]:
        id_ = f"step-4-2-planner-{number}"
        tree = tree_with(context, files_of(session))
        store(context, Role.PLANNER, "planner", Dispatched(id_, outcome=outcome_of(session.answer), tree=tree))
        return refusals(context, id_)

    played(context, demo.PLANNED)
    event = ReplanStarted(iteration=2, failing=("task-04",))
    context.write(lambda record: write_events(record, (event,), context.now()))
    (problem,) = stored(demo.PLANNED, 1)
    assert problem.startswith("tasks/task-04.yaml: expected another document than the one that failed")
    assert stored(demo.replanned(2), 2) == ()


@pytest.mark.req("P7")
@pytest.mark.parametrize("scope", ReviewScope)
def test_a_review_is_three_rows_with_the_verdict_and_the_severity_of_its_worst_finding(
    context: FeatureContext, scope: ReviewScope
) -> None:
    said = review(
        finding("security", "Minor", id="S-1"),
        finding("security", "Blocker", id="S-2"),
        finding("security", "Major", id="S-3"),
        finding("correctness", "Minor", id="C-1"),
        scope=scope.value,
        round=2,
    )
    session = RecordedSession(Role.REVIEWER, said.reviewer_perspective.value, 1, said.plain(), "words")
    played(context, session)
    played(context, session)
    rows = context.ledger.tally(context.run_id, review_subject(context, scope), Phase.REVIEW, 2).rows
    assert [(row.check_name.rpartition("-")[2], row.verdict, row.severity, row.passed) for row in rows] == [
        ("security", CategoryVerdict.BLOCKER, Severity.BLOCKER, False),
        ("architecture", CategoryVerdict.APPROVE, None, True),
        ("correctness", CategoryVerdict.APPROVE, Severity.MINOR, True),
    ]
    assert {row.instance for row in rows} == {Perspective.SECURITY.value}
    (told,) = context.state().reviews
    assert (told.scope, told.round, told.perspective) == (scope, 2, Perspective.SECURITY)
    assert {category.value: verdict for category, verdict in told.verdicts.items()} == {
        "security": CategoryVerdict.BLOCKER,
        "architecture": CategoryVerdict.APPROVE,
        "correctness": CategoryVerdict.APPROVE,
    }
    assert verify(context.ledger.database, context.run_id) == []


def test_a_second_review_in_another_round_leaves_the_rows_of_the_first(context: FeatureContext) -> None:
    for session in (*demo.DESIGN_REVIEWS, *demo.DESIGN_REVIEWS_AGAIN):
        played(context, session)
    tally = context.ledger.tally
    counts = [
        len(tally(context.run_id, review_subject(context, ReviewScope.DESIGN), Phase.REVIEW, n).rows) for n in (1, 2)
    ]
    assert counts == [9, 9]
    assert tree_of(context, demo.PLANNED) == tree_of(context, demo.PLANNED)
