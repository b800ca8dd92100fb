"""The autopilot demo's world is real: its roadmap and plans fit the rules, and its code does what the story says."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairwitness.agents.answer import read_answer, with_known
from fairwitness.agents.cassette_file import load, name_of
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.arguments import CreateFile, ReadFile, ReplaceString, as_judged, read_arguments
from fairwitness.agents.toolset.files import create_file, replace_string
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.autopilot.audit import SelfAuditReturn
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.integrity import IntegrityFacts
from fairwitness.contracts.autopilot.plan import PhasePlan, TaskKind
from fairwitness.contracts.autopilot.rating import RatingReturn
from fairwitness.contracts.autopilot.returns import ExecutorReturn, JudgeReturn, PlanCheckerReturn
from fairwitness.contracts.autopilot.roadmap import CommandKind, DetailedPhase, ProjectConfig, Roadmap
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, Recommendation, RunFlag
from fairwitness.contracts.common.tools import Allowed, Role, Scope
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.demo.sessions import RecordedCall, RecordedSession
from fairwitness.rules.claims import claim_differences, mini_differences
from fairwitness.rules.diagnostics import diagnostic_problems, usable_paths
from fairwitness.rules.integrity import integrity
from fairwitness.rules.integrity_evidence import has_place, is_shown
from fairwitness.rules.next_pass_step import PLAN_CONFIDENCE
from fairwitness.rules.phase_plan import is_too_large, plan_problems
from fairwitness.rules.phases import read_range
from fairwitness.rules.rating import improvement_paths, settle
from fairwitness.rules.roadmap import read_roadmap
from fairwitness.rules.scores import DEFERRAL_START, flag_conflicts, may_defer, tenths
from fairwitness.rules.tool_policy import may_call
from fairwitness.runs.autopilot.pages_judgement import judge_page
from fairwitness.runs.autopilot.task_checks import executor_differences, task_commands, unfinished
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.mutants import mutants
from support import demo_autopilot as demo

OF = {session.instance: session for session in demo.TEAM}
EVERYBODY = tuple(pytest.param(session, id=session.instance) for session in demo.TEAM)
CYCLE = "p2-cycle-2"
TASK_OF = {f"p{task.phase}-{task.id}-1": task for task in demo.TASKS}
EVERY_TASK = tuple(pytest.param(task, id=task.id) for task in demo.TASKS)
RATED = {"1-1": 9.2, "2-1": 8.4, "2-2": 9.3}
TIP = "a" * 40
READABLE = "A printed slip can be read at the shelf, an arm's length away"


def _phases() -> dict[int, DetailedPhase]:
    return {int(phase.id): phase for phase in _roadmap().phases}


def _roadmap() -> Roadmap:
    reading = read_roadmap(demo.DEMO.files[".planning/ROADMAP.md"])
    assert reading.problems == ()
    assert reading.roadmap is not None
    return reading.roadmap


def _known(session: RecordedSession) -> dict[str, Any]:
    """What the harness fills in."""
    known: dict[Role, dict[str, Any]] = {
        Role.EXECUTOR: {"commit_shas": []},
        Role.MINI_VERIFIER: {"task_id": session.instance.rpartition("-check")[0]},
        Role.PHASE_VERIFIER: {"verification_duration_seconds": 0.0},
    }
    return known.get(session.role, {})


def _answer(instance: str) -> dict[str, Any]:
    return with_known(OF[instance].answer, _known(OF[instance]))


def _calls(session: RecordedSession) -> list[RecordedCall]:
    return [call for turn in session.turns for call in turn.calls]


def _plan(phase: int) -> PhasePlan:
    return PhasePlan.model_validate(_answer(f"plan-{phase}-1-1"))


# --- documents


@pytest.mark.parametrize("session", EVERYBODY)
def test_every_answer_fits_its_contract_once_the_harness_has_filled_it_in(session: RecordedSession) -> None:
    name = ROLES[session.role].answer
    assert name is not None
    known = _known(session)
    form_of(name, known)  # refuses a field that nobody can fill in
    assert read_answer("", session.answer, name, known).problems == ()
    assert known.keys().isdisjoint(session.answer), "no recording can know that"


@pytest.mark.parametrize("session", EVERYBODY)
def test_nobody_asks_for_what_its_role_may_not(session: RecordedSession) -> None:
    task = TASK_OF.get(session.instance)
    scope = Scope(writes=("larder/**", "tests/**") if task is None else task.writes)
    for call in _calls(session):
        judged = as_judged(call.tool, read_arguments(call.tool, call.args, str))
        assert may_call(session.role.value, judged, scope) == Allowed(), call


def test_every_dispatch_of_a_run_has_one_cassette(tmp_path: Path) -> None:
    folder = demo.DEMO.write_cassettes(tmp_path / "deep" / "cassettes")
    assert {path.name for path in folder.iterdir()} == {name_of(each.role, each.instance, 1) for each in demo.TEAM}
    assert len(demo.TEAM) == len(OF) == 38
    for session in demo.TEAM:
        cassette = load(folder / name_of(session.role, session.instance, 1))
        assert cassette.header.answer == ROLES[session.role].answer
        assert cassette.turns[-1].submitted == session.answer


def test_the_roadmap_says_what_waits_for_what() -> None:
    phases = _phases()
    assert {number: phase.depends_on for number, phase in phases.items()} == {
        1: (),
        2: ("1",),
        3: ("1",),
        4: ("3",),
        5: ("2",),
    }
    written = demo.DEMO.files[".planning/REQUIREMENTS.md"]
    named = [each.id for phase in phases.values() for each in phase.requirements]
    assert named == re.findall(r"^- \*\*(LAR-\d+)\*\*: ", written, re.MULTILINE)
    by_a_person = {
        number: [each.text for each in phase.criteria if each.command is None] for number, phase in phases.items()
    }
    assert by_a_person == {1: [], 2: [], 3: [], 4: [], 5: [READABLE]}


def test_what_is_asked_for_can_be_asked_for() -> None:
    assert read_range(demo.PLAN.phases, _roadmap(), frozenset()).problems == ()
    assert flag_conflicts(frozenset(map(RunFlag, demo.PLAN.flags))) == ()
    assert {phase.id for phase in _roadmap().phases} == set(demo.PLAN.ends)
    assert set(map(PhaseStatus, demo.PLAN.ends.values())) == {
        PhaseStatus.COMPLETED,
        PhaseStatus.FAILED,
        PhaseStatus.SKIPPED,
    }
    config = ProjectConfig.model_validate_json(demo.DEMO.files[".planning/config.json"])
    assert config.project.commands == {CommandKind(kind): line for kind, line in demo.COMMANDS.items()}
    assert set(config.project.spec_paths or ()) < set(demo.DEMO.files)


@pytest.mark.parametrize("number", demo.PLANNED)
def test_a_plan_fits_the_rules_and_its_checker_is_sure_enough(number: int) -> None:
    plan, phase = _plan(number), _phases()[number]
    assert plan_problems(phase, plan) == ()
    assert not is_too_large(plan)
    wanted = {*(each.id for each in phase.requirements), *(each.text for each in phase.criteria)}
    assert {named for task in plan.tasks for named in task.requirements} == wanted
    checked = PlanCheckerReturn.model_validate(_answer(f"plan_check-{number}-1-1"))
    assert checked.pass_
    assert checked.confidence >= PLAN_CONFIDENCE


def test_the_first_plan_has_two_tasks_side_by_side_and_the_last_one_for_a_person() -> None:
    assert [(task.id, task.wave) for task in _plan(1).tasks] == [("stock", 1), ("days", 1)]
    assert [task.kind for task in _plan(int(demo.PLAN.verdict_phase)).tasks] == [TaskKind.AUTO, TaskKind.HUMAN_VERIFY]


@pytest.mark.parametrize("task", EVERY_TASK)
def test_an_executor_changes_what_its_task_names_and_says_that_it_is_done(task: demo.Task) -> None:
    node = f"p{task.phase}-{task.id}-1"
    said = ExecutorReturn.model_validate(_answer(node))
    assert unfinished(said) is None
    assert [(each.task_id, len(each.criteria_met)) for each in said.evidence] == [(task.id, len(task.criteria))]
    assert all(map(has_place, said.evidence[0].criteria_met))
    planned = next(each for each in _plan(task.phase).tasks if each.id == task.id)
    changed = {call.args["path"] for call in _calls(OF[node]) if call.tool.value != "read_file"}
    assert changed == set(planned.files)


# --- judgements


def _ran(commands: Mapping[str, str], *, red: str | None = None) -> tuple[ExecutionResult, ...]:
    """How the commands of some criteria end: all well, but for one."""
    return tuple(
        ExecutionResult(
            criterion=criterion,
            command=command,
            exit_code=1 if criterion == red else 0,
            stdout_truncated="",
            stderr_truncated="",
            duration_ms=100,
            sandbox_violation=False,
            assessment=Assessment.FAIL if criterion == red else Assessment.PASS,
        )
        for criterion, command in commands.items()
    )


@pytest.mark.parametrize(("name", "score"), RATED.items())
def test_a_rating_is_settled_at_its_own_score(name: str, score: float) -> None:
    rating = RatingReturn.model_validate(_answer(f"rate-{name}-1"))
    phase = _phases()[int(name[0])]
    assert [item.criterion for item in rating.scorecard] == [each.text for each in phase.criteria]
    runs = _ran({item.criterion: item.verification_command for item in rating.scorecard})
    settled = settle(rating, runs)
    assert (settled.score, settled.discrepancies) == (score, ())
    assert json.dumps(OF[f"rate-{name}-1"].answer["alignment_score"]) == f"{score:.1f}"


def test_the_rating_below_nine_names_one_way_up_that_can_be_worked_on() -> None:
    rating = RatingReturn.model_validate(_answer("rate-2-1-1"))
    assert [item.score for item in rating.scorecard if item.score < 9.0] == [7.9]
    known = {"larder/shopping.py", *demo.DEMO.files}
    items = improvement_paths(rating, {}, known)
    assert [item.file for item in items] == ["larder/shopping.py"]
    assert usable_paths(items, known).refused == ()
    assert diagnostic_problems(84, items, known) == ()
    assert items[0].deficiency == demo.GAP


def test_the_verifier_of_the_slip_may_put_it_to_a_person() -> None:
    said = VerifierReturn.model_validate(_answer("verify-5-1-1"))
    assert said.pass_
    assert said.autonomous_confidence == 4
    assert may_defer(said.autonomous_confidence, DEFERRAL_START)
    assert [each.criterion for each in said.deferral_evidence or ()] == [READABLE]


def test_the_judge_of_the_recipes_wants_back_what_their_verifier_passed() -> None:
    said = VerifierReturn.model_validate(_answer("verify-3-1-1"))
    judge = JudgeReturn.model_validate(_answer("judge-3-1-1"))
    assert said.pass_
    assert (judge.recommendation, judge.verifier_agreement) == (Recommendation.ROLLBACK, False)
    assert all(map(is_shown, judge.independent_evidence))


def _steps(score: float | None) -> dict[str, Any]:
    done = {"status": "completed", "agent_spawned": True}
    passed = {"status": "pass", "agent_spawned": True}
    return {
        "preflight": {"status": "pass", "agent_spawned": False},
        "triage": {"status": "full_pipeline", "agent_spawned": False},
        **dict.fromkeys(("research", "plan", "execute"), done),
        **dict.fromkeys(("plan_check", "verify", "judge"), passed),
        "rate": {"status": "skipped", "agent_spawned": False} if score is None else passed | {"alignment_score": score},
    }


def _facts(number: int, pass_: int, score: float | None) -> IntegrityFacts:
    """What the checks would be told of a pass in which everything ends as the recordings say."""
    phase, plan, name = _phases()[number], _plan(number), f"{number}-{pass_}-1"
    verification = VerifierReturn.model_validate(_answer(f"verify-{name}"))
    judge = JudgeReturn.model_validate(_answer(f"judge-{name}"))
    rating = None if score is None else RatingReturn.model_validate(_answer(f"rate-{name}"))
    auto = [task for task in plan.tasks if task.kind is TaskKind.AUTO]
    asked = next((task for task in plan.tasks if task.kind is TaskKind.HUMAN_VERIFY), None)
    runs = _ran({each.text: each.command for each in phase.criteria if each.command is not None})
    files = [path for task in auto for path in task.files]
    checks = {"compile": True, "lint": True}
    tasks = f"{len(auto)}/{len(auto)}"
    returned: dict[str, Any] = {
        "phase": phase.id,
        "status": "completed" if asked is None else "needs_human_verification",
        "alignment_score": score,
        "tasks_completed": tasks,
        "tasks_failed": f"0/{len(auto)}",
        "commit_shas": [TIP],
        "automated_checks": checks | {"build": "n/a"},
        "issues": [],
        "debug_attempts": 0,
        "replan_attempts": 0,
        "recommendation": "proceed",
        "summary": "all steps are done",
        "checkpoint_sha": TIP,
        "verification_duration_seconds": 1.0,
        "evidence": {
            "files_checked": files,
            "commands_run": [f"{run.command} -> pass" for run in runs],
            "git_diff_summary": "",
        },
        "pipeline_steps": _steps(score),
    }
    if asked is not None:
        returned["human_verify_justification"] = {
            "checkpoint_task_id": asked.id,
            "task_description": f"{asked.action} ({asked.criteria[0].criterion})",
            "auto_tasks_passed": len(auto),
            "auto_tasks_total": len(auto),
        }
    items = None if rating is None else improvement_paths(rating, {}, files)
    steps = ("plan", "execute", "verify", "judge", *(() if score is None else ("rate",)))
    return IntegrityFacts.model_validate(
        {
            "returned": returned,
            "phase_type": phase.type.value,
            "seen": {
                "ran": [{"step": step, "session": f"{step}-{name}"} for step in steps],
                "phase_seconds": 10.0,
                "verification_seconds": 1.0,
                "commits": [TIP] * len(auto),
                "checks": checks | {"tests": True},
                "executions": [run.plain() for run in runs],
            },
            "said": {
                "verification": verification.plain(),
                "judgement": judge.plain(),
                "judge_report": judge_page(phase, judge, verification),
                "written_score": None if score is None else f"{score:.1f}",
            },
            "planned": {
                "checkpoints": [] if asked is None else [asked.id],
                "auto_passed": len(auto),
                "auto_total": len(auto),
            },
            "standing": {
                "earlier_tenths": [tenths(RATED["1-1"])] if number > 1 else [],
                "threshold_tenths": 90,
                "cycles": pass_ - 1,
                "cycle_limit": 2,
                "deferral_limit": DEFERRAL_START,
                "category": None,
                "way_up": None if items is None else [item.plain() for item in items],
                "paths": files,
                "enforced": False,
            },
            "settings": {"quick_phase_seconds": 0, "minimum_verification_seconds": 0},
        }
    )


@pytest.mark.parametrize(("name", "score"), [*RATED.items(), ("5-1", None)])
def test_nothing_is_said_against_the_integrity_of_a_pass_that_ends_well(name: str, score: float | None) -> None:
    number, pass_ = map(int, name.split("-"))
    found = integrity(_facts(number, pass_, score)).findings
    # nothing else could be left once all commands pass, and it is no more than a warning
    expected = ["all automatic tasks passed, and a person is asked"] if score is None else []
    assert [each.because for each in found] == expected


def test_the_audit_shows_every_requirement_of_the_completed_phases() -> None:
    said = SelfAuditReturn.model_validate(_answer("self-audit-1"))
    shown = {each.phase_id: [one.requirement_id for one in each.requirements_checked] for each in said.audit_results}
    phases = _phases()
    assert shown == {str(number): [each.id for each in phases[number].requirements] for number in (1, 2, 5)}
    assert said.aggregate.gaps_found == 0
    assert all(has_place(one.file_line_evidence) for each in said.audit_results for one in each.requirements_checked)


# --- the same on real files

STAGES = {
    "before": (),
    "stock": ("p1-stock-1", "p1-days-1"),
    "shopping": ("p2-shopping-1",),
    "mended": (CYCLE,),
    "recipes": ("p3-recipes-1",),
    "slip": ("p5-slip-1",),
}
"""What is added by whom; the slip stands on what was before the recipes, which were taken back."""
AFTER = {"stock": "before", "shopping": "stock", "mended": "shopping", "recipes": "mended", "slip": "mended"}
STAGE_OF = {1: "stock", 2: "shopping", 3: "recipes", 5: "slip"}


class Ground:
    """The repository at each stage of the story, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for stage, instances in STAGES.items():
            if stage in AFTER:
                shutil.copytree(self.at(AFTER[stage]), self.at(stage))
            else:
                demo.DEMO.lay_out(self.at(stage))
            for instance in instances:
                _play(self.at(stage), OF[instance])

    def at(self, stage: str) -> Path:
        return self._folder / stage

    def run(self, stage: str, command: str) -> tuple[int, str]:
        """How a command ends, in the words of `sh`."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ("/bin/sh", "-c", command),
            cwd=self.at(stage),
            env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


def _play(folder: Path, session: RecordedSession) -> None:
    """The calls by the very tools that a run uses."""
    tree = WorktreeFiles(folder)
    for call in _calls(session):
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


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("autopilot"))


def test_the_checks_of_the_repository_are_green_at_every_stage(ground: Ground) -> None:
    for stage in STAGES:
        for check in demo.CHECKS:
            code, text = ground.run(stage, " ".join(check))
            assert code == 0, f"{stage}: {text}"
    settings, _ = verify_settings(ground.at("before"), user=ground.at("before") / "none.toml")
    declared = [" ".join(check.argv).replace("{python}", "python3") for check in settings.check]
    assert declared == [demo.COMMANDS["lint"]]


@pytest.mark.parametrize("number", _phases())
def test_no_criterion_of_a_phase_holds_before_it(number: int, ground: Ground) -> None:
    stage = AFTER[STAGE_OF.get(number, "recipes")]
    for each in _phases()[number].criteria:
        assert each.command is None or ground.run(stage, each.command)[0] != 0, each.text


@pytest.mark.parametrize("task", EVERY_TASK)
def test_all_that_is_run_for_a_task_passes_and_everybody_tells_the_truth_about_it(
    task: demo.Task, ground: Ground
) -> None:
    planned = next(each for each in _plan(task.phase).tasks if each.id == task.id)
    stage = STAGE_OF[task.phase]
    for asked in task_commands(planned):
        code, text = ground.run(stage, asked.command)
        assert code == 0, text
        assert "FAIL" not in text
        assert ground.run(AFTER[stage], asked.command)[0] != 0, "it fails as long as the task is not done"
    runs = _ran({each.criterion: each.command for each in planned.criteria})
    node = f"p{task.phase}-{task.id}-1"
    assert executor_differences(ExecutorReturn.model_validate(_answer(node)), runs) == ()
    assert mini_differences(MiniVerifierReturn.model_validate(_answer(f"{node}-check-0")), runs) == ()


@pytest.mark.parametrize(("number", "stage"), [(1, "stock"), (2, "shopping"), (2, "mended"), (5, "slip")])
def test_every_criterion_of_a_phase_that_ends_well_holds_after_it(number: int, stage: str, ground: Ground) -> None:
    for each in _phases()[number].criteria:
        assert each.command is None or ground.run(stage, each.command)[0] == 0, each.text


def test_the_recipes_meet_the_criterion_of_their_plan_and_not_that_of_the_roadmap(ground: Ground) -> None:
    (exact,) = _phases()[3].criteria
    assert exact.command is not None
    assert ground.run("recipes", demo.WEAK["command"])[0] == 0
    code, text = ground.run("recipes", exact.command)
    assert (code, "AssertionError" in text) == (1, True)
    said = VerifierReturn.model_validate(_answer("verify-3-1-1"))
    runs = _ran({exact.text: exact.command, demo.WEAK["criterion"]: demo.WEAK["command"]}, red=exact.text)
    assert claim_differences(said.commands_run, runs) == (), "it believes too much, and says nothing untrue"


def test_the_gap_that_the_rater_names_is_there_and_the_cycle_closes_it(ground: Ground) -> None:
    program = "from larder.stock import Stock; from larder.shopping import missing; "
    program += "print(missing({'Rice': 1, ' rice': 2}, Stock()))"
    assert ground.run("shopping", f'python3 -c "{program}"') == (0, "{'rice': 2}\n")
    assert ground.run("mended", f'python3 -c "{program}"') == (0, "{'rice': 3}\n")
    shutil.copy(ground.at("mended") / "tests/test_shopping.py", ground.at("shopping") / "tests/test_gap.py")
    code, text = ground.run("shopping", "python3 -m unittest tests.test_gap")
    (ground.at("shopping") / "tests/test_gap.py").unlink()
    assert (code, "test_spellings_of_one_item_are_added_up" in text) == (1, True)


def _told() -> Iterator[tuple[str, str]]:
    """Every text of an answer about a phase, with the stage that it is about."""
    for session in demo.TEAM:
        phase = re.search(r"(?:p|-)([1-9])-", session.instance)
        if session.instance.startswith("research") or phase is None:
            continue
        is_after = session.instance.startswith((CYCLE, "verify-2-2", "judge-2-2", "rate-2-2"))
        yield "mended" if is_after else STAGE_OF[int(phase[1])], json.dumps(session.answer)


def test_every_place_that_somebody_names_is_there(ground: Ground) -> None:
    named = 0
    for stage, text in (*_told(), ("slip", json.dumps(OF["self-audit-1"].answer))):
        for path, number, line in re.findall(r"([\w./]+\.py):(\d+)(?: -- ((?:[^\"\\;]|\\.)+))?", text):
            if stage == "mended" and line == "":  # the check repeats where the gap was
                continue
            stands = (ground.at(stage) / path).read_text().splitlines()[int(number) - 1].strip()
            said = json.loads(f'"{line}"').strip()
            assert said == "" or stands.startswith(said) or said.startswith(stands), f"{stage} {path}:{number} {said}"
            named += 1
    assert named > 40


@pytest.mark.parametrize("task", EVERY_TASK)
def test_the_tests_of_a_task_notice_wrong_forms_of_it(task: demo.Task, ground: Ground) -> None:
    folder = ground.at(STAGE_OF[task.phase])
    changed = []
    for path in task.writes:
        after = (folder / path).read_text()
        changed.append(ChangedText(path, None, after, tuple(range(1, len(after.splitlines()) + 1)), ()))
    survivors = []
    for mutant in mutants(changed, limit=6, seed=0):
        right = (folder / mutant.path).read_text()
        (folder / mutant.path).write_text(mutant.content)
        if ground.run(folder.name, "python3 -m unittest")[0] == 0:
            survivors.append(f"{mutant.path}:{mutant.line} {mutant.description}")
        (folder / mutant.path).write_text(right)
    assert survivors == []
