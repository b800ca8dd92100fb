"""Whoever judges sees what it should and nothing that somebody claimed; whoever builds gets its task and its reach."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.agents.prompt_text import estimate_tokens, render
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.autopilot.audit import GapDetail
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.returns import ResearcherReturn
from fairwitness.contracts.autopilot.verification import VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.tools import POLICIES, Role, Scope
from fairwitness.errors import UsageError
from fairwitness.runs.autopilot.briefs import RatedCriterion
from fairwitness.runs.autopilot.context import ask_step
from fairwitness.runs.dispatch import DispatchPosition
from fairwitness.runs.shared.sections import CHANGE, list_section
from fairwitness.sandbox.scripted import ScriptedRunner
from runs.autopilot.site import ANSWER, GOAL, LESSON, RUN, SPEC, Site, pass_of, plan
from runs.autopilot.written import executed
from support.fixtures import value_of

NODE = "p5-05-01"
CLAIM = "CLAIM-4711: everything is done and tested"
"""What the executor says of itself."""
OPINION = "OPINION-4711: the verifier is content"
FINDING = "FINDING-4711: what research found"
MET = {"task_id": "05-01", "criteria_met": ["tokens carry lines -- src/token.py:12"], "commands_run": []}
EXECUTION = value_of("003/filled-executor-return.json") | {"deviations": [CLAIM], "evidence": [MET]}
RESEARCH = ResearcherReturn.model_validate(value_of("003/filled-researcher-return.json") | {"key_findings": [FINDING]})
VERIFICATION = value_of("003/filled-verifier-return.json") | {"commands_run": [OPINION], "execution_results": []}
RATING = value_of("003/filled-rating-return.json")
DIFF = "--- a/src/token.py\n+++ b/src/token.py\n@@ -1 +1 @@\n-line = 0\n+line = 1\n"
ITEM = PathItem(file="src/token.py", deficiency="no line", impact="one point")
GAP = GapDetail.model_validate(
    {
        "requirement_id": "REQ-02",
        "phase_id": "5",
        "gap_description": "there are no columns",
        "fix_complexity": "small",
        "suggested_fix": "add them",
    }
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site.make(tmp_path_factory.mktemp("site"))
    yield made
    made.ledger.close()


def _criteria(site: Site) -> tuple[RatedCriterion, ...]:
    return tuple(RatedCriterion(each.text, each.command) for each in site.log.order().roadmap.phases[0].criteria)


def _verifier(site: Site, asked: PhasePass) -> Brief:
    return site.briefs.verifier(asked, 1, plan(), DIFF, [executed()])


def _judge(site: Site, asked: PhasePass) -> Brief:
    return site.briefs.judge(asked, 1, plan(), DIFF, VerifierReturn.model_validate(VERIFICATION))


def _rater(site: Site, asked: PhasePass) -> Brief:
    return site.briefs.rater(asked, 1, _criteria(site), DIFF)


TOLD = "The change that failed"
BEFORE = (PromptSection(title=TOLD, text=DIFF),)

MAKERS: dict[str, Callable[[Site, PhasePass], Brief]] = {
    "researcher": lambda site, asked: site.briefs.researcher(asked, 1, BEFORE),
    "planner": lambda site, asked: site.briefs.planner(asked, 1, RESEARCH),
    "planner again": lambda site, asked: site.briefs.planner(asked, 2, RESEARCH, last=plan(), before=BEFORE),
    "plan checker": lambda site, asked: site.briefs.plan_checker(asked, 1, plan()),
    "plan checker again": lambda site, asked: site.briefs.plan_checker(asked, 2, plan(), before=BEFORE),
    "verifier": _verifier,
    "judge": _judge,
    "rater": _rater,
    "executor": lambda site, _: site.briefs.executor(NODE, 1, plan().tasks[0], (), ("src/token.py",), before=BEFORE),
    "cycle": lambda site, _: site.briefs.executor("p5-cycle", 2, None, (ITEM,), ("src/token.py",)),
    "mini-verifier": lambda site, _: site.briefs.mini_verifier(NODE, 1, 1, plan().tasks[0], DIFF),
    "cycle's check": lambda site, _: site.briefs.mini_verifier("p5-cycle", 2, 1, None, DIFF, items=(ITEM,)),
    "debugger": lambda site, _: site.briefs.debugger(NODE, 1, 2, plan().tasks[0], ("it prints 0",), before=BEFORE),
    "phase debugger": lambda site, _: site.briefs.debugger("p5-debug", 3, 1, None, ("it prints 0",)),
    "self-audit": lambda site, _: site.briefs.self_audit(1, site.log.order().roadmap.phases, {SPEC: "REQ-01: lines"}),
    "fixer": lambda site, _: site.briefs.fixer("audit-1", 1, GAP, ("src/token.py",)),
}

TITLES = {
    "researcher": (
        "The phase",
        "What a person said about the phase",
        "Lessons of this run",
        TOLD,
    ),
    "planner": ("The phase", "The research", "What a person said about the phase", "Lessons of this run"),
    "planner again": (
        "The phase",
        "The research",
        "What a person said about the phase",
        "Lessons of this run",
        "Your last plan",
        TOLD,
    ),
    "plan checker": ("The phase", "The plan"),
    "plan checker again": ("The phase", "The plan", TOLD),
    "verifier": ("The phase", "The plan", "The change", "What the program ran, and how it ended"),
    "judge": (
        "The phase",
        "The plan",
        "The change",
        "What the program ran, and how it ended",
        "The verifier's return",
    ),
    "rater": ("The acceptance criteria", "The requirements", "The change", "What the program ran, and how it ended"),
    "executor": ("The task", TOLD, "The requirements", "Lessons of this run"),
    "cycle": ("What to fix", "The requirements", "Lessons of this run"),
    "mini-verifier": ("The task", "The requirements", "The change"),
    "cycle's check": ("What to fix", "The requirements", "The change"),
    "debugger": ("The task", "What went wrong", "The requirements", TOLD),
    "phase debugger": ("What went wrong", "The requirements"),
    "self-audit": ("The phase", "The phase", "A specification, as it was frozen"),
    "fixer": ("The gap", "Lessons of this run"),
}
"""Everything that anybody is shown."""


def _tools(brief: Brief, worktree: Path) -> list[str]:
    tools = Toolbox(role=brief.role, scope=brief.scope, worktree=worktree, runner=ScriptedRunner(()))
    return [tool.name for tool in tools.offered()]


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize("name", MAKERS)
def test_everybody_is_shown_exactly_this(site: Site, name: str) -> None:
    brief = MAKERS[name](site, pass_of(site.base))
    assert tuple(box.title for box in brief.inputs) == TITLES[name]


@pytest.mark.parametrize("name", MAKERS)
def test_a_brief_is_one_that_its_role_can_be_asked_with(site: Site, tmp_path: Path, name: str) -> None:
    brief = MAKERS[name](site, pass_of(site.base))
    spec = ROLES[brief.role]
    assert spec.answer is not None
    assert form_of(spec.answer, brief.known).schema
    prompt = render(spec, brief, tools=_tools(brief, tmp_path))
    assert estimate_tokens(prompt) < spec.budget.tokens / 4
    assert brief == MAKERS[name](site, pass_of(site.base))


def test_no_two_briefs_share_a_dispatch(site: Site) -> None:
    ids = [maker(site, pass_of(site.base)).dispatch_id for maker in MAKERS.values()]
    assert len(set(ids)) == len(ids)
    assert {"rate-5-1-1", "p5-05-01-1", "p5-05-01-1-check-1", "p5-05-01-1-debug-2", "audit-1-1"} <= set(ids)


@pytest.mark.req("A3", "A20")
def test_nobody_who_judges_is_told_what_was_claimed(tmp_path: Path, own_home: None) -> None:
    """The whole way: an executor boasts, and each after it is really asked; the prompts are what was sent."""
    site = Site.make(tmp_path)
    asked = pass_of(site.base)
    site.script(Role.EXECUTOR, f"{NODE}-1", EXECUTION, [("create_file", {"path": "src/mine.py", "content": "x = 1\n"})])
    check = value_of("003/filled-mini-verifier-return.json") | {"concerns": ["CONCERN-4711"]}
    site.script(Role.MINI_VERIFIER, f"{NODE}-1-check-1", check)
    site.script(Role.PHASE_VERIFIER, "verify-5-1-1", VERIFICATION)
    site.script(Role.JUDGE, "judge-5-1-1", value_of("003/filled-judge-return.json") | {"notes": "NOTES-4711"})
    site.script(Role.RATER, "rate-5-1-1", RATING)

    async def run() -> None:
        folder, task = site.folder(NODE), plan().tasks[0]
        position = DispatchPosition("execute", phase="5", task=NODE, attempt=1)
        work = site.briefs.executor(NODE, 1, task, (), ("src/**",))
        done = await site.agent_caller.ask_in(work, position, folder, site.base)
        assert done.outcome.answer is not None
        assert CLAIM in done.outcome.answer["deviations"]
        assert done.tree is not None
        diff = site.briefs.diff(site.base, done.tree)
        assert "src/mine.py" in diff
        await site.agent_caller.ask_in(site.briefs.mini_verifier(NODE, 1, 1, task, diff), position, folder, site.base)
        verify = site.briefs.verifier(asked, 1, plan(), diff, [executed()])
        said = await ask_step(site.agent_caller, asked, StepName.VERIFY, 1, verify, at=site.base)
        judge = site.briefs.judge(asked, 1, plan(), diff, VerifierReturn.model_validate(said.outcome.answer))
        await ask_step(site.agent_caller, asked, StepName.JUDGE, 1, judge, at=site.base)
        rate = site.briefs.rater(asked, 1, _criteria(site), diff)
        await ask_step(site.agent_caller, asked, StepName.RATE, 1, rate, at=site.base)

    asyncio.run(run())
    prompts = {id_: site.prompt(id_) for id_ in site.ended()[1:]}
    assert list(prompts) == [f"{NODE}-1-check-1", "verify-5-1-1", "judge-5-1-1", "rate-5-1-1"]
    for id_, prompt in prompts.items():
        assert "src/mine.py" in prompt, id_
        assert CLAIM not in prompt, id_
        assert LESSON not in prompt, id_
        assert ANSWER not in prompt, id_
        assert (OPINION in prompt) == id_.startswith("judge-")
        assert "CONCERN-4711" not in prompt, id_
        assert "NOTES-4711" not in prompt, id_
    rated = prompts["rate-5-1-1"]
    assert "You have no tools: all you get is below." in rated
    assert "A token knows its line" in rated
    for hidden in (GOAL, "REQ-01", "Line numbers", "Carry the line in the token", FINDING, "05-01", NODE, RUN):
        assert hidden not in rated, hidden
    site.ledger.close()


@pytest.mark.req("A20")
def test_a_rater_has_no_tool_no_reach_and_nothing_to_tell_one_round_from_another(site: Site, tmp_path: Path) -> None:
    first = _rater(site, pass_of(site.base))
    late = site.briefs.rater(pass_of(site.base, number=3, kind="again", again=["rate"]), 2, _criteria(site), DIFF)
    assert _tools(first, tmp_path) == []
    assert first.scope == Scope()
    prompts = [render(ROLES[Role.RATER], brief, tools=()) for brief in (first, late)]
    assert prompts[0] == prompts[1]
    with pytest.raises(UsageError, match="no criterion"):
        site.briefs.rater(pass_of(site.base), 1, (), DIFF)


@pytest.mark.req("A20")
def test_a_command_of_several_lines_keeps_them(site: Site) -> None:
    wanted = (RatedCriterion("It holds", "set -e\nmake  test\n"), RatedCriterion("It builds", "make"))
    criteria, *_ = site.briefs.rater(pass_of(site.base), 1, wanted, DIFF).inputs
    assert criteria.text == ("1. It holds\n   command:\n      set -e\n      make  test\n2. It builds\n   command: make")


@pytest.mark.req("A20")
def test_a_criterion_stands_in_its_own_words(site: Site) -> None:
    criteria, *_ = _rater(site, pass_of(site.base)).inputs
    assert criteria.text.splitlines() == [
        "1. A token knows its line",
        "   command: pytest -q tests/test_token.py",
        "2. The manual says so",
    ]


@pytest.mark.req("A3", "A20")
def test_evidence_is_shown_as_it_was_run_to_all_who_judge(site: Site) -> None:
    asked, run = pass_of(site.base), executed().model_copy(update={"command": "a=1\n\nsh check.sh $a"})
    proven = ("tests (passed): `python -m pytest`, exit code 0", "no new test passes with this change")
    said = VerifierReturn.model_validate(VERIFICATION)
    briefs = (
        site.briefs.verifier(asked, 1, plan(), DIFF, [run], proven),
        site.briefs.judge(asked, 1, plan(), DIFF, said, [run], proven),
        site.briefs.rater(asked, 1, _criteria(site), DIFF, [run], proven),
    )
    for brief in briefs:
        shown = {box.title: box.text for box in brief.inputs}
        assert "      a=1\n      \n      sh check.sh $a\n" in shown["What the program ran, and how it ended"]
        checks = shown["What the project's checks said about this tree, run by the program"]
        assert checks.splitlines() == list(proven)


@pytest.mark.req("A2", "A3")
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("self-audit", "fixer")])
def test_everybody_reads_what_the_requirements_say(site: Site, name: str) -> None:
    shown = "\n".join(box.text for box in MAKERS[name](site, pass_of(site.base)).inputs)
    assert "tokens carry lines" in shown, "the roadmap says it"
    serves_all = name not in ("executor", "mini-verifier", "debugger")  # the others see those of their task
    assert ("the manual is read by people" in shown) == serves_all, "a specification says it"


@pytest.mark.req("A8")
@pytest.mark.parametrize("name", MAKERS)
def test_lessons_go_to_those_who_plan_and_build_and_to_nobody_who_judges(site: Site, name: str) -> None:
    brief = MAKERS[name](site, pass_of(site.base))
    told = any(LESSON in box.text for box in brief.inputs)
    assert told == (brief.role in (Role.PHASE_RESEARCHER, Role.PHASE_PLANNER, Role.EXECUTOR))


@pytest.mark.parametrize("name", MAKERS)
def test_only_builders_may_write_and_only_what_they_were_given(site: Site, name: str) -> None:
    brief = MAKERS[name](site, pass_of(site.base))
    assert brief.scope.folder == ""
    assert bool(brief.scope.writes) == POLICIES[brief.role].source


def test_a_debugger_keeps_to_its_task_and_without_one_to_what_is_no_specification(site: Site) -> None:
    assert MAKERS["debugger"](site, pass_of(site.base)).scope.writes == ("src/token.py", "tests/test_token.py")
    assert MAKERS["phase debugger"](site, pass_of(site.base)).scope.writes == ("README.md", "src/**", "tests/**")


def test_what_stands_on_the_runs_own_branch_may_be_mended(tmp_path: Path, own_home: None) -> None:
    site = Site.make(tmp_path)
    site.person.git("checkout", "-q", "-b", site.log.order().target)
    for path in ("lib/new.py", "odd*/x.py", ".autopilot/state.json", "docs/frozen/more.md", "fairwitness.toml"):
        site.person.write(path)
    site.person.commit()
    assert site.briefs.anywhere() == ("README.md", "lib/**", "src/**", "tests/**")
    site.ledger.close()


@pytest.mark.req("A3")
def test_a_part_is_judged_by_its_own_tasks(site: Site) -> None:
    part = pass_of(site.base, phase="5a", kind="part", tasks=["05-02"])
    for brief in (_verifier(site, part), _judge(site, part)):
        texts = {box.title: box.text for box in brief.inputs}
        assert texts["The phase"].startswith("Phase 5a: Line numbers\n")
        assert "05-02" in texts["The plan"]
        assert "id: 05-01" not in texts["The plan"]
        assert "part of the phase" in brief.task
    with pytest.raises(UsageError, match="no phase 9"):
        site.briefs.researcher(pass_of(site.base, phase="9"), 1)


def test_a_verification_of_what_was_there_before_has_no_plan_to_show(site: Site) -> None:
    brief = site.briefs.verifier(pass_of(site.base), 1, None, DIFF, ())
    assert [box.title for box in brief.inputs] == ["The phase", "The change", TITLES["verifier"][-1]]
    assert brief.inputs[-1].text == "(nothing)"


def test_a_brief_about_nothing_is_not_made(site: Site) -> None:
    nothing: list[Callable[[], Any]] = [
        lambda: site.briefs.executor("p5-cycle", 1, None, (), ("src/**",)),
        lambda: site.briefs.mini_verifier("p5-cycle", 1, 1, None, DIFF),
        lambda: site.briefs.debugger(NODE, 1, 1, plan().tasks[0], ()),
        lambda: site.briefs.self_audit(1, site.log.order().roadmap.phases, {}),
    ]
    for make in nothing:
        with pytest.raises(UsageError):
            make()


def test_attributes_of_a_change_hide_nothing_of_it(tmp_path: Path, own_home: None) -> None:
    site = Site.make(tmp_path)
    site.person.write(".gitattributes", "*.py -diff binary\n")
    site.person.write("src/token.py", "line = 'not as promised'\n")
    site.person.commit()
    diff = site.briefs.diff(site.base, "HEAD")
    assert "+line = 'not as promised'" in diff
    assert diff == site.briefs.diff(site.base, site.person.git("rev-parse", "HEAD^{tree}"))
    assert site.briefs.diff("HEAD", "HEAD") == "(nothing was changed)"
    assert "+a lexer" in site.briefs.diff(None, "HEAD")
    site.ledger.close()


def test_a_change_that_is_too_long_is_cut_and_says_what_is_missing(tmp_path: Path, own_home: None) -> None:
    site = Site.make(tmp_path)
    site.person.write("src/a.py", "x = 1\n" * CHANGE)
    for number in range(50):
        site.person.write(f"src/z{number:02}.py")
    site.person.commit()
    diff = site.briefs.diff(site.base, "HEAD")
    shown, cut, names = diff.rsplit("\n", 2)
    assert len(shown) == CHANGE
    assert cut.startswith("(cut here: ")
    assert names.startswith("(files of which nothing is shown: src/z00.py, ")
    assert names.endswith("src/z39.py and 10 more)")
    site.ledger.close()


def test_a_command_of_several_lines_stays_inside_its_entry() -> None:
    command = "for each in a b; do\n  test -e $each\ndone"
    (section,) = list_section("What went wrong", [f"it fails (`{command}`)", "more"])
    assert section.text.splitlines() == ["- it fails (`for each in a b; do", "    test -e $each", "  done`)", "- more"]
