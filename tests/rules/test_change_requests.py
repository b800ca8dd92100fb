"""Change requests: the whole table of verdicts, nobody decides about his own, and what is added fits or is refused."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.forge.dag import Dag, NodeState
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.change_requests import AFTER, RequestDecision, extension_problems, next_number, verdict_problem
from fairwitness.rules.dag import apply_overlay, dag_problems

GENERATED = settings(max_examples=200)
MOMENT = "2026-02-26T14:30:00Z"
STATUSES, VERDICTS = st.sampled_from(ChangeRequestStatus), st.sampled_from(RequestDecision)
ACTORS = st.sampled_from(["captain", "Ada <ada@example.org>", "fairwitness", "refinery-01"])
ENDED = (ChangeRequestStatus.REJECTED, ChangeRequestStatus.APPLIED)
BODY = "## Description\nWhat.\n## Context\nWhy.\n## Instructions\nHow.\n"


def node(name: str, *others: str) -> dict[str, Any]:
    return {"id": name, "type": "task", "agentType": 2, "dependencies": list(others), "status": "PENDING"}


def task(name: str, *others: str) -> dict[str, Any]:
    return {
        "id": name,
        "title": "One more",
        "type": 2,
        "dependencies": list(others),
        "acceptance_criteria": ["It is there."],
        "estimated_complexity": "small",
        "status": "PENDING",
        "branch": None,
        "attemptId": None,
        "body": BODY,
    }


def dag() -> Dag:
    """a, then b, then c."""
    return Dag.model_validate(
        {
            "version": 1,
            "runId": "run-1",
            "nodes": [node("a"), node("b", "a"), node("c", "b")],
            "metadata": {"createdAt": MOMENT, "createdBy": "captain", "totalTasks": 3, "totalRefineries": 0},
        }
    )


def status(**states: str) -> DagStatus:
    """All of them wait, unless said otherwise."""
    nodes = {
        name: NodeStatus(taskId=name, status=NodeState(states.get(name, "PENDING")), currentAttempt=1, maxAttempts=3)
        for name in "abc"
    }
    return DagStatus(runId="run-1", updatedAt=MOMENT, nodes=nodes)


def answer(
    *nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...] = (), specs: dict[str, str] | None = None
) -> CaptainReturn:
    """What a captain adds: nodes with what each waits for, and edges."""
    waits = {name: [*others, *(start for start, end in edges if end == name)] for name, *others in nodes}
    return CaptainReturn.model_validate(
        {
            "specs": [{"name": name, "body": body} for name, body in (specs or {}).items()],
            "tasks": [task(name, *waits[name]) for name, *_ in nodes],
            "overlay": {
                "crId": "cr-001",
                "appliedAt": MOMENT,
                "addedNodes": [node(*each) for each in nodes],
                "addedEdges": [{"from": start, "to": end} for start, end in edges],
            },
            "assumptions": [],
            "open_questions": [],
        }
    )


def problems(said: CaptainReturn, *, cr_id: str = "cr-001", **states: str) -> list[str]:
    found = extension_problems(said, cr_id, dag(), status(**states), {"api": "As it is."})
    return [f"{'.'.join(map(str, each.where))}: {each.expected}; {each.found}" for each in found]


@pytest.mark.req("F4")
def test_where_every_verdict_leads_from_every_status() -> None:
    table = {f"{before.value} {verdict.value}": after and after.value for (before, verdict), after in AFTER.items()}
    assert table == snapshot(
        {
            "pending approve": "approved",
            "pending reject": "rejected",
            "pending apply": None,
            "approved approve": None,
            "approved reject": "rejected",
            "approved apply": "applied",
            "rejected approve": None,
            "rejected reject": None,
            "rejected apply": None,
            "applied approve": None,
            "applied reject": None,
            "applied apply": None,
        }
    )


@pytest.mark.req("F4")
def test_the_table_is_total_and_ends() -> None:
    assert set(AFTER) == set(product(ChangeRequestStatus, RequestDecision))
    for (before, _), after in AFTER.items():
        assert after is not before
        assert after is not ChangeRequestStatus.PENDING
        if before in ENDED:
            assert after is None


@pytest.mark.req("F4")
@given(STATUSES, VERDICTS, ACTORS, st.booleans())
@GENERATED
def test_a_verdict_is_given_where_the_table_says_so_and_refused_in_words_everywhere_else(
    before: ChangeRequestStatus, verdict: RequestDecision, actor: str, is_refused: bool
) -> None:
    problem = verdict_problem(before, verdict, actor=actor, emitted_by="refinery-02", is_refused=is_refused)
    leads = AFTER[before, verdict] is not None
    takes_back = before is ChangeRequestStatus.APPROVED and verdict is RequestDecision.REJECT
    assert (problem is None) == (leads and (is_refused or not takes_back))
    assert problem in (None, f"the request is {before.value}")


@pytest.mark.req("F4")
@given(STATUSES, VERDICTS, ACTORS, st.booleans(), st.sampled_from(["", " ", "\t"]), st.booleans())
@GENERATED
def test_whoever_emitted_a_request_decides_nothing_about_it_however_he_spells_himself(
    before: ChangeRequestStatus, verdict: RequestDecision, actor: str, is_refused: bool, space: str, is_loud: bool
) -> None:
    spelled = f"{space}{actor.upper() if is_loud else actor}{space}"
    problem = verdict_problem(before, verdict, actor=spelled, emitted_by=actor, is_refused=is_refused)
    assert problem == f"{spelled} emitted the request and cannot decide about it"


@pytest.mark.req("F5", "F9")
def test_what_fits_has_no_problems() -> None:
    assert problems(answer(("d", "a"), edges=(("d", "c"),), specs={"more": "New."}), a="RUNNING", b="RUNNING") == []
    assert problems(answer(("d",), specs={"api": "As it is."})) == []  # the same words change nothing


@pytest.mark.req("F5", "F7")
def test_what_does_not_fit_is_refused_with_its_place() -> None:
    whole = answer(("d",)).plain() | {"overlay": None, "dag": dag().plain(), "tasks": [task("a"), task("b", "a")]}
    whole["tasks"].append(task("c", "b"))
    rejected = answer().plain() | {"overlay": None, "rejected": "No."}
    told = {
        "a sealed spec": problems(answer(("d",), specs={"api": "Changed."})),
        "nothing": problems(answer()),
        "about another": problems(answer(("d",)), cr_id="cr-002"),
        "a taken id": problems(answer(("a",))),
        "an unknown node": problems(answer(("d",), edges=(("d", "x"),))),
        "an unknown dependency": problems(answer(("d", "x"))),
        "a ring": problems(answer(("d", "c"), edges=(("d", "a"),))),
        "a node that runs": problems(answer(("d",), edges=(("d", "b"),)), b="RUNNING"),
        "a whole plan": problems(CaptainReturn.model_validate(whole)),
        "a refusal": problems(CaptainReturn.model_validate(rejected)),
    }
    assert told == snapshot(
        {
            "a sealed spec": ["specs.0.name: a new name, since existing specifications are sealed; api"],
            "nothing": ["overlay: at least one node or edge; nothing"],
            "about another": ["overlay.crId: cr-002; cr-001"],
            "a taken id": ["addedNodes.0.id: an id that is not taken; a"],
            "an unknown node": ["addedEdges.0.to: a node of the graph or of this overlay; x"],
            "an unknown dependency": ["addedEdges: a node of this graph; x"],
            "a ring": ["addedEdges: nodes that do not wait for each other in a ring; a → d → c → b → a"],
            "a node that runs": ["addedEdges.0.to: a node that is PENDING; b, RUNNING"],
            "a whole plan": ["overlay: an overlay, or rejected; a whole new plan"],
            "a refusal": ["overlay: an overlay, or rejected; a whole new plan"],
        }
    )


@pytest.mark.req("F5")
@given(
    st.lists(st.sampled_from("defg"), unique=True, max_size=4),
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")), max_size=4, unique=True),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([state.value for state in NodeState]), max_size=3),
)
@GENERATED
def test_whatever_is_found_to_fit_leaves_a_sound_graph_and_touches_nothing_that_began(
    added: list[str], edges: list[tuple[str, str]], states: dict[str, str]
) -> None:
    said = answer(*((name,) for name in added), edges=tuple(edges))
    if problems(said, **states):
        return
    assert said.overlay is not None
    grown = apply_overlay(dag(), said.overlay)
    assert dag_problems(grown) == ()
    assert added or edges
    before = {each.id: each.dependencies for each in dag().nodes}
    for each in grown.nodes:
        if states.get(each.id, "PENDING") != "PENDING":
            assert each.dependencies == before[each.id]


@pytest.mark.req("F4")
@given(st.lists(st.integers(1, 999_998).map(lambda number: f"cr-{number:03d}"), max_size=8))
@GENERATED
def test_the_next_number_is_new_and_higher_than_all(taken: list[str]) -> None:
    new = next_number(taken)
    assert new not in taken
    assert all(int(new[3:]) > int(name[3:]) for name in taken)
    assert next_number([]) == "cr-001"


@pytest.mark.req("F5", "F9")
def test_an_added_task_writes_no_file_of_a_task_that_may_run_beside_it() -> None:
    mine = {"writes": ["src/a.py"]}
    graph = dag()
    graph = graph.model_copy(
        update={"nodes": tuple(each.model_copy(update={"metadata": mine}) for each in graph.nodes)}
    )
    said = answer(("d",))
    assert said.overlay is not None
    (new,) = said.overlay.addedNodes
    overlay = said.overlay.model_copy(update={"addedNodes": (new.model_copy(update={"metadata": mine}),)})
    said = said.model_copy(update={"overlay": overlay})
    places = [each.where for each in extension_problems(said, "cr-001", graph, status(a="MERGED"), {})]
    assert places == [("tasks", 0, "writes"), ("tasks", 0, "writes")]  # b and c; a is over
    assert extension_problems(said, "cr-001", graph, status(a="MERGED", b="MERGED", c="MERGED"), {}) == ()


@pytest.mark.req("F5")
def test_a_spec_replaces_one_that_exists_under_a_new_name() -> None:
    def replaced(name: str, old: str) -> list[str]:
        said = answer(("d",), specs={name: "As it is."})
        (spec,) = said.specs
        return problems(said.model_copy(update={"specs": (spec.model_copy(update={"replaces": old}),)}))

    assert replaced("api-2", "api") == []
    assert [each.partition(":")[0] for each in replaced("api-2", "nothing")] == ["specs.0.replaces"]
    assert [each.partition(":")[0] for each in replaced("api", "api")] == ["specs.0.replaces"]
