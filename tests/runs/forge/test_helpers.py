"""Helpers: started by who may, one at a time, in the worktree of who waits; and never paid twice after a kill."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.common.budgets import BudgetCaps, Caps
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.errors import UsageError
from fairwitness.ledger.verify import verify
from fairwitness.runs.dispatch.budget_account import CANCELLED
from fairwitness.runs.forge.helpers import AttemptContext, Helpers, SpawningAgent
from fairwitness.runs.forge.subtasks import Subtasks
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from runs.forge.workshop import RUN, Workshop, agent, create, part, walkthrough
from runs.forge.workshop_killed import NODE, killed, record
from support.promises import sections_of

UNCAPPED = Caps(tokens=None, money_micros=None, milliseconds=None)


def helped(shop: Workshop, calls: list[tuple[str, dict[str, Any]]], node: str = NODE, *changed: str) -> str:
    """An attempt whose agent starts a helper, and tells what it changed; what it was told last."""
    role = Role.WORKER if node == "task-001" else Role.SUB_EXECUTOR
    shop.script(role, f"{node}-1", calls, {"walkthrough": walkthrough(*changed)} if changed else None)
    shop.work(node)
    return shop.results(f"{node}-1", "agent")[-1]


@pytest.mark.req("F8")
def test_a_helper_works_in_the_worktree_of_whoever_waits_for_it(shop: Workshop) -> None:
    shop.script(Role.THROWAWAY, "task-001-1-h1", [create("src/b.py")])
    calls = [create("src/a.py"), agent("worker-1", "Write b."), ("read_file", {"path": "src/b.py"})]
    told = helped(shop, calls, "task-001", "src/a.py", "src/b.py")
    assert told.startswith("completed\nfiles changed: src/b.py\n\n---\ntask_id: task-001\n")
    for said in ("confidence: 0.", "## Summary\n\nSummary of it.", "## Testing\n\nTesting of it."):
        assert said in told
    (helper, asker) = shop.ended()
    kept = shop.store.get(shop.layout.helper_walkthrough("task-001", 1, helper)).decode()
    assert kept.strip() in told
    assert asker == "task-001-1"
    assert helper.startswith("task-001-1-h1-")
    done = shop.result(asker)
    assert done.outcome.status is OutcomeStatus.OK
    assert [each.path for each in done.changed] == ["src/a.py", "src/b.py"]
    assert [each.path for each in shop.result(helper).changed] == ["src/b.py"]
    ((_, event),) = shop.events("helper.started")
    assert event == {
        "nodeId": "task-001",
        "attemptId": 1,
        "agent": "worker-1",
        "dispatch": helper,
        "task": "Write b.",
    }
    prompt = shop.prompt(helper)
    assert sections_of(prompt)["Task task-001, which this is part of"] == shop.log.document("task-001").strip()
    assert "Write b." in prompt
    assert "### Spec style" in prompt
    assert "You may write only: `src/**`" in prompt


@pytest.mark.req("F8")
def test_a_part_that_is_handed_out_is_the_helpers_brief_and_moves_on_with_it(shop: Workshop) -> None:
    shop.script(Role.WORKER, f"{NODE}-1-h1", [create("src/b.py")])
    told = helped(shop, [part("subtask-001", type_=2), agent("worker-2", "subtask-001"), ("read_subtasks", {})])
    assert told.startswith("completed\n")
    helper = shop.ended()[0]
    assert {"Subtask subtask-001", f"Task {NODE}, which this is part of"} <= sections_of(shop.prompt(helper)).keys()
    states = [(data["status"], data["agent"]) for _, data in shop.events("subtask.changed")]
    assert states == [("running", helper), ("completed", helper)]
    assert "subtask-001 (type 2, completed)" in shop.results(f"{NODE}-1", "read_subtasks")[0]
    assert shop.result(helper).outcome.answer is not None


@pytest.mark.req("F8")
def test_a_helper_may_start_one_of_its_own_if_its_role_may(shop: Workshop) -> None:
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1-h1", [create("src/c.py")])
    shop.script(Role.WORKER, f"{NODE}-1-h1", [create("src/b.py"), agent("worker-1", "Write c.")])
    helped(shop, [agent("worker-2", "Write b and c.")])
    inner, outer, asker = shop.ended()
    assert inner.startswith(f"{NODE}-1-h1-h1-")
    assert outer.startswith(f"{NODE}-1-h1-")
    assert [each.path for each in shop.result(outer).changed] == ["src/b.py", "src/c.py"]
    assert [each.path for each in shop.result(asker).changed] == ["src/b.py", "src/c.py"]
    assert [data["dispatch"] for _, data in shop.events("helper.started")] == [outer, inner]


def place(shop: Workshop, limits: ForgeTable | None = None, *writes: str) -> AttemptContext:
    return AttemptContext(
        caller=shop.caller,
        log=shop.log,
        order=shop.order(NODE),
        prepared=shop.prepared(),
        folder=shop.folder(NODE),
        base_tree=shop.repository.tree_of("HEAD"),
        scope=Scope(writes=writes or ("**",)),
        subtasks=Subtasks(shop.log, shop.store, shop.layout, NODE),
        store=shop.store,
        limits=limits or ForgeTable(),
    )


def started(shop: Workshop, task: str = "Do it.", *writes: str) -> str:
    """What a new try of the agent is told of its first helper."""
    helpers = Helpers(place(shop, None, *writes), SpawningAgent(Role.SUB_EXECUTOR, f"{NODE}-1", 0))
    return asyncio.run(helpers.start("worker-1", task))


def checks(shop: Workshop, reply: Reply | Callable[[Command], Reply]) -> None:
    """The helper runs the project's check, which does this."""
    shop.runner = ScriptedRunner([ScriptedAnswer("*", reply)], tier=SandboxTier.NAMESPACES)
    (shop.folder(NODE) / "check.sh").write_text("exit 0\n")
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1", [("run_in_terminal", {"command": "sh check.sh"})])


@pytest.mark.req("F8")
@pytest.mark.parametrize(
    ("wanted", "depth", "limits", "words"),
    [
        ("worker-3", 0, ForgeTable(), "worker-3 may start worker-1 or worker-2, not worker-3"),
        ("captain", 0, ForgeTable(), "not captain"),
        ("worker-1", 3, ForgeTable(), "3 deep"),
        ("worker-1", 0, ForgeTable(helpers=0), "no more helpers: 0 of 0"),
    ],
)
def test_who_may_not_start_a_helper_is_told_why(
    shop: Workshop, wanted: str, depth: int, limits: ForgeTable, words: str
) -> None:
    helpers = Helpers(place(shop, limits), SpawningAgent(Role.SUB_EXECUTOR, f"{NODE}-1", depth))
    with pytest.raises(UsageError, match=words):
        asyncio.run(helpers.start(wanted, "Do it."))
    assert shop.tries() == {}
    assert shop.events() == []


@pytest.mark.req("F8")
def test_so_many_helpers_and_no_more(shop: Workshop) -> None:
    helpers = Helpers(place(shop, ForgeTable(helpers=1)), SpawningAgent(Role.SUB_EXECUTOR, f"{NODE}-1", 0))
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1")
    asyncio.run(helpers.start("worker-1", "Do it."))
    with pytest.raises(UsageError, match="no more helpers: 1 of 1"):
        asyncio.run(helpers.start("worker-1", "Do it."))


@pytest.mark.req("F8")
def test_one_helper_at_a_time(shop: Workshop) -> None:
    helpers = Helpers(place(shop), SpawningAgent(Role.SUB_EXECUTOR, f"{NODE}-1", 0))
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1")

    async def both() -> tuple[str | BaseException, str | BaseException]:
        asked = (helpers.start("worker-1", "This."), helpers.start("worker-1", "That."))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second = asyncio.run(both())
    assert str(first).startswith("completed")
    assert isinstance(second, UsageError)
    assert second.what == "another helper is running; only one may run at a time"
    assert len(shop.ended()) == 1


@pytest.mark.req("F8")
def test_a_part_is_handed_out_to_its_own_type_and_in_its_turn(shop: Workshop) -> None:
    calls = [part("subtask-001"), part("subtask-002", after=["subtask-001"]), agent("worker-2", "subtask-001")]
    shop.script(Role.SUB_EXECUTOR, f"{NODE}-1", [*calls, agent("worker-1", "subtask-002")], fails=("agent",))
    assert shop.work(NODE).done
    assert shop.results(f"{NODE}-1", "agent") == [
        "subtask-001 cannot be assigned: it is for worker-1",
        "subtask-002 cannot be assigned: it waits for subtask-001",
    ]


@pytest.mark.req("F8")
def test_a_helper_that_is_not_done_is_told_and_ends_nobody_else(shop: Workshop) -> None:
    answer = {"walkthrough": walkthrough(status="failed")}
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1", [create("src/b.py")], answer)
    assert helped(shop, [part("subtask-001"), agent("worker-1", "subtask-001")], NODE, "src/b.py").startswith(
        "failed\nfiles changed: src/b"
    )
    assert shop.events("subtask.changed")[-1][1]["status"] == "failed"
    assert shop.result(f"{NODE}-1").outcome.status is OutcomeStatus.OK


def test_a_helper_without_a_recording_is_a_text(shop: Workshop) -> None:
    told = helped(shop, [part("subtask-001"), agent("worker-1", "subtask-001")])
    assert told.startswith("failed: agent_error: there is no recording")
    assert shop.events("subtask.changed")[-1][1]["status"] == "failed"
    assert shop.result(f"{NODE}-1").outcome.status is OutcomeStatus.OK


@pytest.mark.req("F8")
def test_a_helper_over_budget_is_a_text_and_was_never_started(shop: Workshop) -> None:
    run = Caps(tokens=4_100_000, money_micros=None, milliseconds=None)  # enough for the one that asks
    shop.caps = BudgetCaps(dispatch=UNCAPPED, phase=UNCAPPED, run=run)
    told = helped(shop, [agent("worker-1", "Do it.")])
    assert told.startswith("failed: over_budget: the run may use 4,100,000 tokens")
    assert shop.ended() == [f"{NODE}-1"]
    assert shop.events("helper.started") == []


@pytest.mark.req("F8")
def test_what_a_helper_changed_outside_its_limits_is_put_back_and_whoever_asked_goes_on(shop: Workshop) -> None:
    folder = shop.folder(NODE)
    (folder / "src" / "a.py").write_text("a = 1\n")
    checks(shop, Reply(files={"README.md": b"mine\n", "src/x.py": b"x\n"}))
    for _ in range(2):  # the second time it is taken over
        told = started(shop, "Do it.", "src/**")
        assert told.startswith("failed: refused: README.md")
        assert told.endswith("what it had changed was put back")
        assert (folder / "README.md").read_text() == "a shop\n"
        assert (folder / "src" / "a.py").read_text() == "a = 1\n"
        assert not (folder / "src" / "x.py").exists()
    assert list(shop.tries().values()) == [1]


def test_whoever_is_cancelled_leaves_no_helper_behind(shop: Workshop) -> None:
    begun = threading.Event()

    def slowly(_command: Command) -> Reply:
        begun.set()
        time.sleep(0.3)
        return Reply(files={"src/x.py": b"x\n"})

    checks(shop, slowly)
    helpers = Helpers(place(shop), SpawningAgent(Role.SUB_EXECUTOR, f"{NODE}-1", 0))

    async def cancelled() -> None:
        asking = asyncio.create_task(helpers.start("worker-1", "Do it."))
        await asyncio.to_thread(begun.wait)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancelled())
    (row,) = shop.ledger.observations(RUN, CANCELLED)  # what it had used is known, and it is still to be made
    assert (shop.folder(NODE) / "src" / "x.py").exists()
    (shop.folder(NODE) / "src" / "x.py").unlink()  # as when whoever asked is put back to its start
    assert started(shop).startswith("completed")
    assert shop.ended() == [row.subject]


def test_another_errand_or_another_worktree_is_another_dispatch(shop: Workshop) -> None:
    for number in (1, 2, 3):
        shop.script(Role.THROWAWAY, f"{NODE}-1-h1", number=number)
    started(shop)
    started(shop, "Do something else.")
    (shop.folder(NODE) / "src" / "new.py").write_text("n = 1\n")
    started(shop)
    assert len(set(shop.ended())) == 3


def test_a_helper_that_had_ended_is_taken_over_with_everything_it_left(shop: Workshop) -> None:
    folder = shop.folder(NODE)
    checks(shop, Reply(files={"src/x.py": b"x\n", "src/shop.py": b"price = 9\n"}))
    first = started(shop)
    (folder / "src" / "x.py").unlink()
    (folder / "src" / "shop.py").write_text("price = 1\n")
    assert started(shop) == first
    assert list(shop.tries().values()) == [1]
    assert (folder / "src" / "x.py").read_text() == "x\n"
    assert (folder / "src" / "shop.py").read_text() == "price = 9\n"
    assert len(shop.events("helper.started")) == 1


def test_what_is_ignored_does_not_make_it_another_one(shop: Workshop) -> None:
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1", [create("src/b.py")])
    started(shop)
    (shop.folder(NODE) / "src" / "b.py").unlink()
    (shop.folder(NODE) / "run.log").write_text("it took 0.3 s\n")
    started(shop)
    assert list(shop.tries().values()) == [1]
    assert (shop.folder(NODE) / "src" / "b.py").exists()


BEFORE = ("dispatch.started#1", "forge.subtask", "forge.subtask.stored#1", "forge.subtask.changed#1")
"""The helper was not asked yet."""
DURING = ("dispatch.started#2", "dispatch.driven#1")
"""It was asked, and has not answered."""
AFTER = (
    "dispatch.kept#1",
    "dispatch.finished#1",
    "forge.subtask.changed#2",
    "forge.subtask.stored#3",
    "dispatch.driven#2",
)
"""It has, and the agent that asked has not."""
OVER = ("dispatch.finished#2", "forge.walkthrough.stored", "forge.walkthrough")


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, dict[str, Any]]]:
    """The events of the attempt if nobody kills it."""
    shop = Workshop.make(tmp_path_factory.mktemp("unkilled"))
    record(shop)
    shop.work(NODE)
    events = shop.events()
    shop.ledger.close()
    assert [name for name, _ in events] == [
        "subtask.written",
        "subtask.changed",
        "helper.started",
        "subtask.changed",
        "walkthrough.written",
    ]
    return events


@pytest.fixture
def root(tmp_path: Path, own_home: None) -> Path:
    """A workshop that another process opens."""
    shop = Workshop.make(tmp_path)
    record(shop)
    shop.ledger.close()
    return tmp_path


def assert_whole(shop: Workshop, unkilled: list[tuple[str, dict[str, Any]]]) -> None:
    """It is as if nobody had killed it: told once, ended once, and everything is in the worktree."""
    assert shop.events() == unkilled
    helper = unkilled[2][1]["dispatch"]
    assert shop.ended() == [helper, f"{NODE}-1"]
    done = shop.result(f"{NODE}-1")
    assert done.outcome.status is OutcomeStatus.OK
    assert [each.path for each in done.changed] == ["src/a.py", "src/b.py", "src/c.py"]
    for name in "abc":
        assert (shop.folder(NODE) / "src" / f"{name}.py").is_file()
    assert b"status: completed" in shop.store.get(shop.layout.subtask(NODE, "subtask-001"))
    assert shop.store.exists(shop.layout.walkthrough(NODE, 1))
    assert verify(shop.ledger.database, RUN) == []


@pytest.mark.req("F8", "P16")
@pytest.mark.parametrize("point", [*BEFORE, *DURING, *AFTER, *OVER])
def test_whoever_is_killed_with_a_helper_begins_again_and_pays_for_no_helper_twice(
    root: Path, point: str, unkilled: list[tuple[str, dict[str, Any]]]
) -> None:
    killed(root, point)
    shop = Workshop.open(root)
    try:
        assert shop.work(NODE).done
        assert_whole(shop, unkilled)
        helper = unkilled[2][1]["dispatch"]
        assert shop.tries() == {f"{NODE}-1": 1 if point in OVER else 2, helper: 2 if point in DURING else 1}
    finally:
        shop.ledger.close()


@pytest.mark.req("F8", "P16")
def test_whoever_is_killed_again_while_a_helper_is_taken_over_loses_nothing(
    root: Path, unkilled: list[tuple[str, dict[str, Any]]]
) -> None:
    killed(root, "dispatch.finished#1")
    killed(root, "forge.helper.restored")
    shop = Workshop.open(root)
    try:
        assert shop.work(NODE).done
        assert_whole(shop, unkilled)
        assert sorted(shop.tries().values()) == [1, 3]
    finally:
        shop.ledger.close()


@pytest.mark.req("F8", "P16")
def test_whoever_goes_another_way_after_a_kill_gets_another_helper_for_the_same_part(root: Path) -> None:
    killed(root, "forge.subtask.stored#3")  # the part is completed by the files, and its work is put back
    shop = Workshop.open(root)
    try:
        record(shop, "src/other.py", number=2)
        assert shop.work(NODE).done
        first, second, asker = shop.ended()
        assert first != second
        assert [each.path for each in shop.result(asker).changed] == ["src/b.py", "src/c.py", "src/other.py"]
        told = [(data["status"], data["agent"]) for _, data in shop.events("subtask.changed")]
        assert told == [("running", first), ("completed", first), ("running", second), ("completed", second)]
    finally:
        shop.ledger.close()
