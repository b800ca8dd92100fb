"""Walkthroughs: one file per attempt that is never overwritten, told once, and held against what was seen."""

from typing import Any

import pytest

from fairwitness.contracts.common.evidence import Execution, Phase, SandboxTier
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.forge.documents import Walkthrough
from fairwitness.contracts.graph.orders import Collision
from fairwitness.errors import AlreadyWritten
from fairwitness.kit.documents import Format, read
from fairwitness.rules.claims import SeenAttempt
from fairwitness.runs.forge.walkthroughs import (
    dispute,
    keep_walkthrough,
    last_walkthrough,
    red_checks,
    walkthrough_of,
)
from runs.forge.workshop import MOMENT, RUN, TARGET, Workshop, walkthrough
from support.fixtures import check_value


def told(node: str, attempt: int, *files: str, **more: Any) -> Walkthrough:
    known = {"task_id": node, "branch": f"fairwitness/{RUN}/{node}/attempt-{attempt}", "base_ref": TARGET}
    return Walkthrough.model_validate({**known, **walkthrough(*files, **more)})


def keep(shop: Workshop, said: Walkthrough, *changed: str, attempt: int = 1) -> None:
    order = shop.order(said.task_id, attempt)
    keep_walkthrough(shop.log, shop.store, shop.layout, order, said, changed)


@pytest.mark.req("F2")
def test_a_walkthrough_stands_in_a_file_that_fits_its_format(shop: Workshop) -> None:
    said = told("task-001", 1, "src/a.py", risks=["it is slow"])
    keep(shop, said, "src/a.py")
    text = shop.store.get(shop.layout.walkthrough("task-001", 1))
    value = read(text, Format.MARKDOWN).value
    assert check_value(value, Format.MARKDOWN, "forge-walkthrough") == ()
    assert Walkthrough.model_validate(value) == said
    assert shop.events() == [
        (
            "walkthrough.written",
            {
                "nodeId": "task-001",
                "attemptId": 1,
                "status": "completed",
                "confidence": 0.9,
                "path": shop.layout.walkthrough("task-001", 1),
            },
        )
    ]


@pytest.mark.req("F2")
def test_each_attempt_has_its_own_and_the_last_one_is_known(shop: Workshop) -> None:
    first, second = told("task-001", 1), told("task-001", 2, "src/b.py")
    keep(shop, second, "src/b.py", attempt=2)
    keep(shop, first)
    assert walkthrough_of(shop.log, "task-001", 1) == first
    assert walkthrough_of(shop.log, "task-001", 3) is None
    last = last_walkthrough(shop.log, "task-001")
    assert last is not None
    assert (last.attempt, last.said, last.changed) == (2, second, ("src/b.py",))
    assert last_walkthrough(shop.log, "task-002") is None


@pytest.mark.req("F2")
def test_what_was_kept_is_taken_over_after_a_kill_and_nothing_is_told_twice(shop: Workshop) -> None:
    said = told("task-001", 1)
    path = shop.layout.walkthrough("task-001", 1)
    keep(shop, said)
    once, content = shop.events(), shop.store.get(path)
    keep(shop, said)
    assert shop.events() == once
    (shop.store.root / path).unlink()  # killed between the two is killed before the file stood
    keep(shop, said)
    assert shop.store.get(path) == content


@pytest.mark.req("F2")
def test_a_walkthrough_is_never_overwritten(shop: Workshop) -> None:
    keep(shop, told("task-001", 1))
    before = shop.store.get(shop.layout.walkthrough("task-001", 1))
    with pytest.raises(AlreadyWritten):
        keep(shop, told("task-001", 1, "src/other.py"))
    assert shop.store.get(shop.layout.walkthrough("task-001", 1)) == before
    assert len(shop.events()) == 1


def test_a_body_that_no_file_can_hold_is_spelled_out(shop: Workshop) -> None:
    said = told("task-001", 1)
    keep(shop, said.model_copy(update={"body": said.body + "a bell: \a\n"}))
    assert b"a bell: \\x07" in shop.store.get(shop.layout.walkthrough("task-001", 1))


def test_a_worker_that_is_unsure_is_worth_a_look(shop: Workshop) -> None:
    keep(shop, told("task-001", 1, confidence=0.6))
    keep(shop, told("task-003", 1, confidence=0.59))
    assert shop.events("review.low_confidence") == [
        ("review.low_confidence", {"nodeId": "task-003", "confidence": 0.59})
    ]


@pytest.mark.req("F2")
def test_two_running_tasks_that_changed_the_same_file_are_told_of(shop: Workshop) -> None:
    shop.begin("task-001", "task-003")
    keep(shop, told("task-001", 1), "src/a.py", "src/b.py")
    assert shop.events("conflict.potential") == []  # nobody knows yet what the other one changes
    keep(shop, told("task-002", 1), "src/a.py")  # which does not run
    keep(shop, told("task-003", 1), "src/b.py", "src/c.py")
    ((_, found),) = [each for each in shop.events("conflict.potential") if each[1]["nodeId"] == "task-003"]
    assert found == {"nodeId": "task-003", "otherNodeId": "task-001", "files": ["src/b.py"]}


@pytest.mark.req("F2")
def test_a_walkthrough_that_is_not_what_was_seen_is_disputed_once(shop: Workshop) -> None:
    said = told("task-001", 1, "src/a.py", tests=[{"name": "test_a", "result": "pass"}])
    keep(shop, said, "src/b.py")
    order = shop.order("task-001")
    found = dispute(shop.log, order, SeenAttempt(["src/b.py"], red={"tests"}))
    assert found == (
        "the walkthrough names files that did not change: src/a.py",
        "files changed that the walkthrough does not name: src/b.py",
        "the walkthrough says that test_a pass; tests failed when Fair Witness ran them",
    )
    dispute(shop.log, order, SeenAttempt(["src/b.py"], red={"tests"}))
    ((_, event),) = shop.events("walkthrough.disputed")
    assert event == {"nodeId": "task-001", "attemptId": 1, "differences": list(found)}
    last = last_walkthrough(shop.log, "task-001")
    assert last is not None
    assert f"The harness saw something else:\n- {found[0]}" in last.text


def test_a_true_walkthrough_is_not_disputed(shop: Workshop) -> None:
    keep(shop, told("task-001", 1, "src/a.py"), "src/a.py")
    assert dispute(shop.log, shop.order("task-001"), SeenAttempt(["src/a.py"])) == ()
    assert dispute(shop.log, shop.order("task-003"), SeenAttempt(["src/a.py"])) == ()  # it told nothing
    assert shop.events("walkthrough.disputed") == []


def test_whoever_settles_a_conflict_leaves_the_walkthrough_of_the_attempt_alone(shop: Workshop) -> None:
    keep(shop, told("task-001", 1))
    commit = shop.repository.commit("HEAD")
    order = shop.order("task-001", conflict=Collision(commit=commit, onto=commit, paths=()))
    keep_walkthrough(shop.log, shop.store, shop.layout, order, told("task-001", 1, "src/x.py"), ["src/x.py"])
    assert dispute(shop.log, order, SeenAttempt(["src/x.py"])) == ()
    assert walkthrough_of(shop.log, "task-001", 1) == told("task-001", 1)


def checked(shop: Workshop, name: str, assessment: Assessment, *, round_: int = 1, key: str = "") -> None:
    nothing = f"sha256:{'0' * 64}"
    execution = Execution(
        run_id=RUN,
        task_id="task-001",
        key=key or f"{name}:{round_}",
        argv=("sh", "check.sh"),
        cwd=".",
        env_digest=nothing,
        tool="sh",
        tool_version=None,
        tree="0" * 40,
        sandbox=SandboxTier.NAMESPACES,
        started_at=MOMENT,
        duration_ms=1,
        exit_code=0 if assessment is Assessment.PASS else 1,
        signal=None,
        stdout=nothing,
        stderr=nothing,
        assessment=assessment,
    )
    shop.ledger.record(RUN, lambda to: to.executed(execution, phase=Phase.AFTER, check_name=name, round_=round_))


def test_red_are_the_checks_that_failed_in_this_round_and_were_not_green_since(shop: Workshop) -> None:
    checked(shop, "tests", Assessment.FAIL)
    checked(shop, "lint", Assessment.FAIL)
    checked(shop, "lint", Assessment.PASS, key="again")
    checked(shop, "build", Assessment.PASS)
    checked(shop, "types", Assessment.FAIL, round_=2)
    assert red_checks(shop.ledger, RUN, "task-001", 1) == {"tests"}
    assert red_checks(shop.ledger, RUN, "task-002", 1) == frozenset()
