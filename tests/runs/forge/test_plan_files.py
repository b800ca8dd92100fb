"""The files of a plan: what was proposed stands in them, and what a person makes of them is read strictly."""

import json
from pathlib import Path

import pytest

from fairwitness.contracts.forge.events import ForgeRunStarted
from fairwitness.errors import Immutable, StoreError, UsageError
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import broken_locks, lock_specs, plan_problems, read_plan, write_plan
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.store.seal import broken_seals
from runs.forge.planroom import ADA, RUN, PlanRoom, as_plan, planned, task

LAYOUT = ForgeLayout(RUN)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "checkout")


@pytest.fixture
def written(store: Store) -> Path:
    """The run's folder with a plan in it."""
    write_plan(store, LAYOUT, as_plan())
    return store.root / LAYOUT.folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refused(store: Store) -> str:
    with pytest.raises(UsageError) as refusal:
        read_plan(store, LAYOUT, as_plan())
    assert "\n" not in refusal.value.what
    assert refusal.value.next_step
    return refusal.value.what.removeprefix(f"{LAYOUT.folder}/")


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.req("F1", "F3")
def test_a_plan_is_read_back_as_it_was_proposed(store: Store, written: Path) -> None:
    own = ["specs/api.md", "tasks/task-001.md", "tasks/task-002.md"]
    assert names(written) == ["assumptions.md", "dag.json", *own]
    assert (written / "specs" / "api.md").read_text() == "# The interface\n\nOne call.\n"
    assert (written / "tasks" / "task-001.md").read_text().startswith("---\nid: task-001\n")
    assert json.loads((written / "dag.json").read_text()) == as_plan().dag.plain()
    assert read_plan(store, LAYOUT, as_plan()) == as_plan()


@pytest.mark.req("F3")
def test_an_extra_field_and_the_order_of_documents_survive(store: Store) -> None:
    answer = planned(specs={"zebra": "Z.", "ant": "# A\n"})
    answer["tasks"] = [task("task-002", "task-001", why="it is asked for"), task("task-001")]
    write_plan(store, LAYOUT, as_plan(answer))
    assert read_plan(store, LAYOUT, as_plan(answer)) == as_plan(answer)


@pytest.mark.req("F9")
def test_files_that_a_new_plan_lacks_are_gone(store: Store, written: Path) -> None:
    (written / "specs" / "mine.md").write_text("added by somebody\n")
    answer = planned({"task-001": (), "task-003": ("task-001",)}, specs={"rules": "# Rules\n"})
    write_plan(store, LAYOUT, as_plan(answer))
    write_plan(store, LAYOUT, as_plan(answer))
    own = ["specs/rules.md", "tasks/task-001.md", "tasks/task-003.md"]
    assert names(written) == ["assumptions.md", "dag.json", *own]
    assert read_plan(store, LAYOUT, as_plan(answer)) == as_plan(answer)


@pytest.mark.req("F9")
def test_a_person_may_edit_add_and_delete(store: Store, written: Path) -> None:
    (written / "specs" / "mine.md").write_text("# Mine\r\n")
    (written / "specs" / ".mine.md.swp").write_bytes(b"\x00")
    (written / "specs" / "mine.md~").write_text("older\n")
    (written / "tasks" / "task-002.md").unlink()
    replace(written / "tasks" / "task-001.md", "The part task-001", "The only part")
    graph = json.loads((written / "dag.json").read_text())
    graph["nodes"] = graph["nodes"][:1]
    graph["metadata"] |= {"totalTasks": 1, "totalRefineries": 0}
    (written / "dag.json").write_text(json.dumps(graph))
    plan = read_plan(store, LAYOUT, as_plan())
    assert [(spec.name, spec.body) for spec in plan.specs][1] == ("mine", "# Mine\n")
    assert [each.title for each in plan.tasks] == ["The only part"]
    assert [each.id for each in plan.dag.nodes] == ["task-001"]
    assert plan.assumptions == as_plan().assumptions


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("tasks/task-001.md", "small", "tiny", "tasks/task-001.md:8:1: estimated_complexity: expected 'small'"),
        ("tasks/task-001.md", "status: PENDING", "status: MERGED", "tasks/task-001.md:9:1: status: expected PENDING"),
        (
            "tasks/task-001.md",
            "branch: null\n",
            "",
            "tasks/task-001.md:1:1: branch: expected this field; found nothing",
        ),
        ("tasks/task-001.md", "## Context", "## Else", "body: expected the sections Description, Context"),
        ("tasks/task-001.md", "id: task-001", "id: task-007", "tasks/task-001.md:2:1: id: expected task-001, as its"),
        (
            "tasks/task-002.md",
            "- task-001",
            "- task-009",
            "dependencies: expected those of its node: task-001; found task-009",
        ),
        ("tasks/task-002.md", "---\n", "", "tasks/task-002.md:1:1: the document must begin with"),
        ("tasks/task-002.md", "title:", "title: [", "tasks/task-002.md:"),
        ("dag.json", '"totalTasks": 2', '"totalTasks": 3', "metadata.totalTasks: expected the number of nodes, 2"),
        ("dag.json", f'"runId": "{RUN}"', '"runId": "another-run"', f"runId: expected {RUN}, this run; found another-"),
        ("dag.json", '"version": 1', '"version": 2', "version: expected 1; found 2"),
        ("dag.json", "{", "", "dag.json:2:"),
        ("specs/api.md", "# The interface\n\nOne call.\n", " \n", "specs/api.md:1:1: body: expected text that is not"),
        ("specs/api.md", "One", "\x1b[31mOne", "specs/api.md:3:1: control character U+001B is refused"),
    ],
)
def test_what_does_not_fit_is_named_by_file_and_place(
    store: Store, written: Path, file: str, old: str, new: str, told: str
) -> None:
    replace(written / file, old, new)
    what = refused(store)
    assert told in what
    assert what.startswith(file.partition("/")[0])


@pytest.mark.req("F3")
def test_nodes_in_a_ring_are_refused(store: Store, written: Path) -> None:
    graph = json.loads((written / "dag.json").read_text())
    graph["nodes"][0]["dependencies"] = ["task-002"]
    (written / "dag.json").write_text(json.dumps(graph))
    replace(written / "tasks" / "task-001.md", "dependencies: []", "dependencies: [task-002]")
    assert "dag.json:1:" in (what := refused(store))
    assert "wait for each other in a ring; found task-001 → task-002 → task-001" in what


@pytest.mark.req("F3")
def test_a_document_without_node_and_a_node_without_document_are_refused(store: Store, written: Path) -> None:
    (written / "tasks" / "task-002.md").rename(written / "tasks" / "task-003.md")
    replace(written / "tasks" / "task-003.md", "id: task-002", "id: task-003")
    assert "tasks/task-003.md:2:1: id: expected the id of a node of the graph; found" in (what := refused(store))
    assert what.endswith("(and 1 more)")
    (written / "tasks" / "task-003.md").unlink()
    assert refused(store).startswith("dag.json:")


@pytest.mark.parametrize("gone", ["dag.json", "specs"])
def test_missing_files_are_told(store: Store, written: Path, gone: str) -> None:
    if gone == "specs":
        (written / "specs" / "api.md").unlink()
        assert read_plan(store, LAYOUT, as_plan()).specs == ()
    else:
        (written / gone).unlink()
        with pytest.raises(UsageError, match=r"the plan has no .*dag\.json"):
            read_plan(store, LAYOUT, as_plan())


def test_what_is_no_document_of_a_plan_is_refused(store: Store, written: Path) -> None:
    (written / "specs" / "notes.txt").write_text("and this?\n")
    assert refused(store) == "specs/notes.txt is not part of a plan"


@pytest.mark.req("F1")
def test_a_link_is_not_followed(store: Store, written: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("# Not ours\n")
    (written / "specs" / "api.md").unlink()
    (written / "specs" / "api.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(StoreError):
        read_plan(store, LAYOUT, as_plan())
    with pytest.raises(StoreError):
        write_plan(store, LAYOUT, as_plan())
    assert (tmp_path / "elsewhere.md").read_text() == "# Not ours\n"


@pytest.mark.req("F3")
def test_a_plan_that_files_cannot_hold_is_told_before_it_is_written() -> None:
    assert plan_problems(as_plan(), LAYOUT) == ()
    double = as_plan(planned(specs={"API": "# One\n", "api": "# Two\n"}))
    assert [problem.where for problem in plan_problems(double, LAYOUT)] == [("specs", 1, "name")]
    control = as_plan(planned(specs={"api": "a\x07b", "other": "a\rb"}))
    assert [problem.where for problem in plan_problems(control, LAYOUT)] == [("specs", 0, "body"), ("specs", 1, "body")]
    reserved = as_plan(planned({"specs": (), "captain-1": (), "captains": ()}))
    assert [problem.found for problem in plan_problems(reserved, LAYOUT)] == ["specs", "captain-1"]
    nothing = as_plan(planned({}))
    assert [problem.expected for problem in plan_problems(nothing, LAYOUT)] == ["at least one task"]


@pytest.fixture
def context(tmp_path: Path) -> PlanRoom:
    return PlanRoom.make(tmp_path)


def begun(context: PlanRoom) -> None:
    plan = as_plan()
    write_plan(context.store, context.layout, plan)
    context.log.propose(plan)
    context.log.seal(plan, ADA)
    lock_specs(context.store, context.layout, context.log.specs())
    context.log.write(lambda _now: (ForgeRunStarted(),))


@pytest.mark.req("F7")
def test_specs_are_sealed_once_the_run_executes(context: PlanRoom) -> None:
    begun(context)
    lock = json.loads(context.path("specs.lock.json").read_text())
    assert list(lock["files"]) == ["api.md"]
    assert broken_seals(context.store, context.layout.folder) == ()
    with pytest.raises(Immutable):
        context.store.put(context.layout.spec("api"), b"# Another\n")
    with pytest.raises(Immutable):
        write_plan(context.store, context.layout, as_plan(planned(specs={})))
    lock_specs(context.store, context.layout, context.log.specs())
    assert broken_locks(context.log, context.store, context.layout) == ()
    context.ledger.close()


@pytest.mark.req("F7")
def test_what_somebody_did_to_the_files_between_approval_and_start_is_not_sealed(context: PlanRoom) -> None:
    plan = as_plan()
    write_plan(context.store, context.layout, plan)
    context.log.propose(plan)
    context.log.seal(plan, ADA)
    context.path("specs", "api.md").write_text("# Something else\n")
    lock_specs(context.store, context.layout, context.log.specs())
    assert context.path("specs", "api.md").read_text() == plan.specs[0].body
    context.ledger.close()


@pytest.mark.req("F7")
def test_files_that_are_not_what_was_sealed_are_named(context: PlanRoom) -> None:
    begun(context)
    context.path("specs", "api.md").write_text("# Another interface\n")
    context.path("specs", "more.md").write_text("# More\n")
    context.path("tasks", "task-002.md").unlink()
    context.path("dag.json").write_text("{}")
    context.path("specs.lock.json").write_text("{}")
    named = [
        path.removeprefix(f"{context.layout.folder}/")
        for path in broken_locks(context.log, context.store, context.layout)
    ]
    assert named == ["dag.json", "specs.lock.json", "specs/api.md", "specs/more.md", "tasks/task-002.md"]
    context.ledger.close()


@pytest.mark.req("F7")
def test_before_the_run_executes_nothing_is_sealed(tmp_path: Path) -> None:
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    assert broken_locks(ForgeLog(ledger, RUN), Store(tmp_path), LAYOUT) == ()
    ledger.close()
