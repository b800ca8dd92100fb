"""Each agent is told what it needs and no more; what only the harness knows, the harness says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairwitness.agents.answer import read_answer, with_known
from fairwitness.agents.prompt_text import estimate_tokens, render
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.arguments import as_judged, read_arguments
from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.tools import Allowed, Role
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.demo.sessions import RecordedSession
from fairwitness.rules.tool_policy import may_call
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from runs.feature.contexts import context as new_context
from runs.feature.contexts import prompt_of, shown, store
from support import demo_feature as demo

FINDINGS = PromptSection(title="Findings", text="- id: security-sentinel/SEC-1\n")
DIFF = "--- a/till/payment.py\n+++ b/till/payment.py\n@@ -1 +1 @@\n-pay\n+pay with vouchers\n"
MEMORY = "receipts-are-read-by-machine: a receipt is compared to the last space"
LIE = "what an agent says of itself"


class Asked(NamedTuple):
    """One dispatch of the recorded run, with the brief that it would get."""

    session: RecordedSession
    brief: Brief


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FeatureContext, tuple[Asked, ...]]]:
    """The whole recorded run: each brief made when its time came, each answer stored as the harness does."""
    made = new_context(tmp_path_factory.mktemp("story"))
    briefs = FeatureBriefs(made, memories=(MEMORY,))
    with closing(made.ledger):
        asked = []
        for session in demo.HONEST_TEAM:
            asked.append(Asked(session, brief_for(briefs, made, session)))
            store(made, session)
        yield made, tuple(asked)


def brief_for(briefs: FeatureBriefs, context: FeatureContext, session: RecordedSession) -> Brief:
    """What the run asks at this point of its story."""
    name, answer = f"d-{session.role.value}-{session.instance}-{session.number}", session.answer
    again = session.number > 1
    match session.role:
        case Role.INTAKE:
            return briefs.intake(name, said=None)
        case Role.RESEARCHER:
            return briefs.researcher(name, Focus(session.instance.removeprefix("researcher-")), said=None)
        case Role.SPEC:
            return briefs.spec(name, mode=context.order.mode, said=None)
        case Role.DESIGNER:
            return briefs.designer(name, findings=(FINDINGS,) if again else (), said=None)
        case Role.REVIEWER:
            scope = ReviewScope(answer["scope"])
            return briefs.reviewer(
                name,
                Perspective(session.instance),
                scope,
                answer["round"],
                change=DIFF if scope is ReviewScope.CODE else None,
                earlier=(FINDINGS,) if answer["round"] > 1 else (),
            )
        case Role.PLANNER:
            failing = {"task-04": (PromptSection(title="Checks", text="tests: 1 failed"),)} if again else {}
            return briefs.planner(
                name, mode="replan" if again else "initial", findings=(), refused=(), failing=failing, said=None
            )
        case Role.IMPLEMENTER:
            before = (PromptSection(title="Checks", text="tests/test_receipt.py failed"),) if again else ()
            return briefs.implementer(name, task_in(context, session.instance), before=before)
        case Role.VERIFIER:
            return briefs.verifier(
                name,
                task_in(context, session.instance),
                changed=("till/money.py",),
                change=DIFF,
                seen="tests: 0",
                commands=("python3 -m unittest",),
            )
        case Role.KNOWLEDGE:
            return briefs.knowledge(name, summary="One task was replanned.")
        case _:
            raise AssertionError(session.role)


def task_in(context: FeatureContext, task: str) -> TaskDocument:
    return context.document(demo.LAYOUT.task(task), TaskDocument)


def at(value: Any, way: str) -> Any:
    for step in way.split("."):
        value = value[step]
    return value


def titles(brief: Brief) -> list[str]:
    return [box.title for box in brief.inputs]


def of(asked: tuple[Asked, ...], role: Role, number: int = 1) -> Brief:
    """The first brief of a role that is its n-th under a name."""
    return next(each.brief for each in asked if (each.session.role, each.session.number) == (role, number))


Story = tuple[FeatureContext, tuple[Asked, ...]]


def test_every_dispatch_of_the_recorded_run_has_a_brief_that_its_role_takes(story: Story, tmp_path: Path) -> None:
    context, asked = story
    assert len(asked) == len(demo.HONEST_TEAM)
    for session, brief in asked:
        assert (brief.role, brief.instance, brief.run_id) == (session.role, session.instance, context.run_id)
        prompt = prompt_of(brief, tmp_path)
        assert all(f"- `{way}`:" not in prompt for way in brief.known), brief.dispatch_id
        words = render(ROLES[brief.role], brief.model_copy(update={"inputs": ()}), tools=[])
        assert estimate_tokens(words) <= ROLES[brief.role].prompt_tokens, brief.dispatch_id


def test_every_recorded_answer_is_taken_and_has_the_harness_s_own_header(story: Story) -> None:
    _, asked = story
    for session, brief in asked:
        spec = ROLES[brief.role]
        assert spec.answer is not None
        assert form_of(spec.answer, brief.known).name == spec.answer
        header = {way: value for way, value in brief.known.items() if "[]" not in way}
        lying = with_known(session.answer, dict.fromkeys(header, LIE))
        for said in (session.answer, lying):
            read = read_answer(session.closing_text, said, spec.answer, brief.known, spec.statuses)
            assert read.problems == (), brief.dispatch_id
            assert {way: at(read.value, way) for way in header} == header
            assert LIE not in str(read.value)


def test_a_signed_document_s_whole_header_is_known(story: Story) -> None:
    _, asked = story
    brief = of(asked, Role.VERIFIER)
    moment = "2026-02-26T14:30:00.000000Z"
    assert brief.known == {
        "agent_output.agent": "verifier",
        "agent_output.instance": "task-01",
        "agent_output.step": "step-6",
        "agent_output.started_at": moment,
        "agent_output.completed_at": moment,
        "agent_output.schema_version": "1.0",
        "completion.output_paths": [demo.LAYOUT.verification_report("task-01")],
        "agent_output.payload.task_id": "task-01",
        "agent_output.payload.run_id": "2026-02-26T14:30:00Z",
        "agent_output.payload.artifact_evaluations[].artifact_path": demo.LAYOUT.implementation_report("task-01"),
    }


@pytest.mark.req("X3")
def test_everything_that_the_recorded_agents_do_is_within_their_reach(story: Story) -> None:
    _, asked = story
    for session, brief in asked:
        for call in [call for turn in session.turns for call in turn.calls]:
            judged = as_judged(call.tool, read_arguments(call.tool, call.args, str))
            assert may_call(brief.role.value, judged, brief.scope) == Allowed(), (brief.dispatch_id, call.args)


def test_each_role_is_shown_exactly_its_documents(story: Story) -> None:
    _, asked = story
    research = [f"Research: {focus.value}" for focus in Focus]
    notes = "Notes of earlier runs"
    four = ["Task of the plan"] * 4
    expected = {
        (Role.INTAKE, 1): ["The request"],
        (Role.RESEARCHER, 1): ["The request", notes],
        (Role.SPEC, 1): ["The request", *research],
        (Role.DESIGNER, 1): ["The specification", *research],
        (Role.DESIGNER, 2): ["The specification", *research, "Your design so far", "Findings"],
        (Role.REVIEWER, 1): ["The specification", "The design"],
        (Role.REVIEWER, 2): ["The specification", "The design", "Findings"],
        (Role.REVIEWER, 3): ["The request", "The specification", "The plan", *four, "The change"],
        (Role.PLANNER, 1): ["The specification", "The design"],
        (Role.PLANNER, 2): [
            "The specification",
            "The design",
            "The plan so far",
            *four,
            "task-04, which failed: Checks",
        ],
        (Role.VERIFIER, 1): [
            "The task",
            "Files that were changed",
            "The change",
            "The implementer's report",
            "What the program ran",
            "How the command of a criterion may begin",
        ],
        (Role.KNOWLEDGE, 1): ["The run", "The specification", "The design", "The plan"],
    }
    assert {key: titles(of(asked, *key)) for key in expected} == expected
    assert shown(of(asked, Role.PLANNER, 2), "task-04, which failed: Checks") == "tests: 1 failed"


def test_only_builders_write_source(story: Story) -> None:
    _, asked = story
    for _, brief in asked:
        assert bool(brief.scope.writes) is (brief.role is Role.IMPLEMENTER)
        # what is written into the tree under evidence is part of the change
        works_on_the_tree = brief.role in (Role.IMPLEMENTER, Role.VERIFIER, Role.INTAKE)
        assert brief.scope.folder == ("" if works_on_the_tree else demo.LAYOUT.folder)


def test_making_a_brief_again_makes_the_same_and_writes_nothing(story: Story) -> None:
    context, asked = story
    before = context.state().seq
    briefs = FeatureBriefs(context, memories=(MEMORY,))
    last = asked[-1]
    assert brief_for(briefs, context, last.session) == last.brief
    assert context.state().seq == before


@pytest.mark.req("P5")
def test_what_a_person_said_is_shown_to_whoever_is_asked_next(story: Story) -> None:
    context, _ = story
    briefs, said = FeatureBriefs(context), "Only vouchers of this shop."
    for brief in (
        briefs.intake("d", said=said),
        briefs.researcher("d", Focus.IMPACT, said=said),
        briefs.spec("d", mode=ApprovalMode.INTERACTIVE, said=said),
        briefs.designer("d", findings=(), said=said),
        briefs.planner("d", mode="initial", findings=(FINDINGS,), refused=("ARC-9",), failing={}, said=said),
    ):
        assert shown(brief, "What a person said") == said
        assert said not in brief.task
    assert shown(brief, "Findings") == FINDINGS.text
    assert shown(brief, "Why your last plan was refused") == "- ARC-9"
    assert "The plan so far" in titles(brief)
