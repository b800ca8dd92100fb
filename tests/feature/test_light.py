"""Whole runs on the light path: five calls and the same evidence; what is red or red-tested does not get through."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairwitness.app.runs.begin_feature import RunRequest, begin_feature
from fairwitness.app.runs.replay import replay_in
from fairwitness.app.views.ends import end_lines
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.common.decisions import Finish, FinishOutcome
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.vocabulary import Confidence
from fairwitness.demo.bundle import load
from fairwitness.demo.sessions import RecordedCall, RecordedSession, RecordedTurn
from fairwitness.demo.start import RECORDINGS
from feature.grounds import Grounds, Run, git
from feature.kills import ALONE, Play, settle
from feature.kills import Grounds as KillGrounds
from feature.remains import assert_clean, assert_same, content_of
from support import demo_feature as full
from support.trust import trust

pytestmark = pytest.mark.width("sweep")  # each is a whole run; those that CI always takes say so

LIGHT = load("light")
SESSIONS = LIGHT.sessions
ONE_ITERATION = "iterations = 1\n"
"""Appended to `[policy.verification]`, the last table of the settings."""


def lay_out(root: Path, team: tuple[RecordedSession, ...] = LIGHT.team(), *, settings: str = "") -> Grounds:
    """The repository of the demo, and the recordings of a team."""
    top = LIGHT.lay_out(root / "till")
    if settings:
        with (top / "fairwitness.toml").open("a") as file:
            file.write(settings)
        git(top, "commit", "-qam", "settings")
        trust(top)
    cassettes = root / "cassettes"
    cassettes.mkdir()
    for session in team:
        (cassettes / session.file_name).write_bytes(session.cassette())
    return Grounds(top, cassettes)


def begin(grounds: Grounds, *, slug: str = LIGHT.slug, is_light: bool = True) -> Run:
    """A run that is written down and not yet carried."""
    wanted = RunRequest(
        request=LIGHT.request,
        slug=slug,
        is_autonomous=True,
        agents="cassette",
        cassettes=grounds.cassettes,
        is_light=is_light,
    )
    return Run(grounds, begin_feature(grounds.top, wanted).run_id)


def agents(run: Run) -> list[str]:
    """The role of each call, in order, without those of the program itself."""
    told = (str(event.data["agent"]) for event in run.events("dispatch_started"))
    return [agent for agent in told if agent != Role.ORCHESTRATOR.value]


def ended(run: Run) -> Finish:
    """The last decision, which finished the run."""
    last = run.decisions()[-1]
    assert isinstance(last, Finish)
    return last


@pytest.mark.width("full")
@pytest.mark.req("P2", "P11", "P16")
def test_a_small_feature_takes_five_calls_and_has_all_its_evidence(tmp_path: Path) -> None:
    grounds = lay_out(tmp_path)
    run = begin(grounds)
    assert run.carry() is WatchEnd.COMPLETED
    assert agents(run) == ["intake", "planner", "implementer", "verifier", "adversarial-reviewer"]
    assert (ended(run).outcome, ended(run).confidence) == (FinishOutcome.COMMITTED, Confidence.MEDIUM)
    state = run.state()
    assert (state.path, state.left_path) == (RunPath.LIGHT, None)
    assert list(state.steps) == ["step-0", "step-4", "step-4a", "step-5", "step-6", "step-7", "step-8b", "step-9"]
    assert {name.partition(".")[0]: gate.open for name, gate in state.gates.items()} == dict.fromkeys(
        ("EG-1", "EG-2", "EG-3", "EG-4", "EG-5", "EG-6"), True
    )
    assert sum(call.tokens for call in state.dispatches.values()) <= 35_000
    assert not any(each.flips for each in replay_in(grounds.top, run.run_id)[1])
    files = {path.name for path in (grounds.top / "docs/feature" / LIGHT.slug).rglob("*") if path.is_file()}
    assert {
        "initial-request.md",
        "plan.md",
        "plan-output.yaml",
        "evidence-bundle.md",
        "verification-ledger.db",
    } <= files
    assert not {"feature.md", "design.md", "spec-output.yaml", "design-output.yaml", "knowledge-output.yaml"} & files
    assert any(name.endswith("-run-log.md") for name in files)
    bundle = (grounds.top / "docs/feature" / LIGHT.slug / "evidence-bundle.md").read_text()
    assert "On the light path, without `step-1`" in bundle
    assert "There was no design review: the light path has none." in bundle
    with follow_run(grounds.top, run.run_id) as followed:
        told = "\n".join(end_lines(followed))
        assert followed.plain()["path"] == "light"
    assert "light, without research, research gate, specification, design, design review, knowledge" in told
    assert "1 of 1 reviewer approves" in told


def test_what_the_agents_of_the_light_path_get(tmp_path: Path) -> None:
    run = begin(lay_out(tmp_path))
    run.carry()
    planner = run.transcript("step-4-1-planner-1")
    assert "There is no specification and no design" in planner
    assert "Split an amount of money into parts by weight" in planner
    assert "Understood as: till/money.py gets a function" in planner
    implementer = next(id_ for id_ in run.outcomes() if "step-5" in id_)
    assert "Split an amount of money into parts by weight" in run.transcript(implementer)
    assert "leads nowhere" not in run.transcript(implementer)


# --- a 🔴 plan leaves it


def red_team() -> tuple[RecordedSession, ...]:
    """The team of the full demo, whose first plan, with a 🔴 task, is made on the light path."""
    names = list(full.DEMO.teams["honest"])
    names.insert(1, "planner-1")
    return replace(full.DEMO, teams={"honest": tuple(names)}).team()


@pytest.mark.req("P2", "P7")
def test_a_plan_with_a_red_file_goes_on_as_a_full_run(tmp_path: Path) -> None:
    grounds = lay_out(tmp_path, red_team())
    run = begin(grounds, slug=full.DEMO.slug)
    assert run.carry() is WatchEnd.COMPLETED
    state = run.state()
    assert state.path is RunPath.FULL
    assert state.left_path is not None
    assert state.left_path.reason == "the run leaves the light path: 🔴 till/payment.py"
    asked = agents(run)
    assert asked[:6] == ["intake", "planner", *["researcher"] * 4]
    assert [asked.count(role) for role in ("spec", "designer", "planner", "knowledge-agent")] == [1, 2, 3, 1]
    assert asked.count("adversarial-reviewer") == 9
    assert {"step-1", "step-2", "step-3", "step-3b", "step-8"} <= set(state.steps)
    assert state.gates[f"EG-3.{full.DEMO.slug}-code-review"].threshold == 3
    assert not any(each.flips for each in replay_in(grounds.top, run.run_id)[1])
    bundle = (grounds.top / full.LAYOUT.evidence_bundle).read_text()
    assert "It began on the light path and left it: the run leaves the light path: 🔴" in bundle


# --- evidence decides, as on the full path


def broken(session: RecordedSession) -> RecordedSession:
    """An implementer that loses cents, and reports that all tests pass."""
    wrong = "for at in lost_most[:0]:"
    turns = tuple(
        RecordedTurn(
            turn.text,
            tuple(_swapped(call, "for at in lost_most[: amount - sum(parts)]:", wrong) for call in turn.calls),
        )
        for turn in session.turns
    )
    assert wrong in str(turns)
    return replace(session, turns=turns)


def _swapped(call: RecordedCall, old: str, new: str) -> RecordedCall:
    text = {name: value.replace(old, new) if isinstance(value, str) else value for name, value in call.args.items()}
    return RecordedCall(call.tool, text)


def breaking(session: RecordedSession) -> RecordedSession:
    """An implementer whose own tests pass, and that breaks a test of the base."""
    args = {
        "path": "till/money.py",
        "old_string": 'sign = "-" if amount < 0 else ""\n',
        "new_string": 'sign = "- " if amount < 0 else ""\n',
    }
    more = RecordedTurn("And a little more.", (RecordedCall(Tool.REPLACE_STRING, args),))
    return replace(session, turns=(*session.turns, more))


@pytest.mark.req("P2", "P4")
@pytest.mark.parametrize("spoil", [broken, breaking], ids=["lying", "breaking"])
def test_an_implementer_that_lies_or_breaks_something_commits_nothing(tmp_path: Path, spoil: object) -> None:
    assert callable(spoil)
    implementer = spoil(SESSIONS["implementer"])
    said = implementer.answer["agent_output"]["payload"]["self_check"]["test_summary"]
    assert said == {"total": 15, "passed": 15, "failed": 0}
    team = tuple(implementer if each.role is Role.IMPLEMENTER else each for each in LIGHT.team())
    grounds = lay_out(tmp_path, team, settings=ONE_ITERATION)
    before = grounds.refs()
    run = begin(grounds)
    assert run.carry() is WatchEnd.FAILED
    state = run.state()
    gate = state.gates["EG-2.task-01"]
    assert not gate.open
    assert any(name.startswith("tests") for name in gate.missing), gate.missing
    assert state.commit is None
    assert state.tasks["task-01"].merged is None
    last = run.decisions()[-1]
    assert not isinstance(last, Finish) or last.outcome is FinishOutcome.LOW_CONFIDENCE
    assert {name: value for name, value in grounds.refs().items() if name in before} == before


# --- the setting, and one reviewer who objects


@pytest.mark.req("P7")
def test_auto_stays_on_the_light_path_and_its_reviewer_sends_work_back(tmp_path: Path) -> None:
    objection = copy.deepcopy(SESSIONS["code-review"].answer)
    objection["findings"] = [
        {
            "id": "COR-1",
            "category": "correctness",
            "severity": "Major",
            "title": "The docstring does not name what is refused",
            "description": "Callers cannot know that a negative amount raises ValueError.",
            "artifacts": ["till/money.py"],
            "recommendation": "Say it.",
            "evidence": ["till/money.py: split"],
        }
    ]
    objection["clean_categories"] = ["security", "architecture"]
    content = copy.deepcopy(SESSIONS["code-review"].answer)
    content |= {"round": 2, "earlier_findings": [{"id": "COR-1", "resolution": "addressed"}]}
    old = "An amount in parts by weight that add up to it;"
    fixed = RecordedCall(
        Tool.REPLACE_STRING,
        {
            "path": "till/money.py",
            "old_string": old,
            "new_string": "Parts of an amount that is not negative, by weight;",
        },
    )
    report = copy.deepcopy(SESSIONS["implementer"].answer)
    payload = report["agent_output"]["payload"]
    payload["task_id"] = "task-00"
    payload["changes"] = [{"path": "till/money.py", "action": "modified", "description": "the docstring"}]
    payload["finding_answers"] = [
        {"id": "pragmatic-verifier/COR-1", "outcome": "fixed", "note": "the docstring says it"}
    ]
    team = (
        *LIGHT.team()[:-1],
        replace(SESSIONS["code-review"], answer=objection),
        RecordedSession(Role.IMPLEMENTER, "task-00", 1, report, "Said.", (RecordedTurn("The docstring.", (fixed,)),)),
        replace(SESSIONS["code-review"], answer=content, number=2),
    )
    grounds = lay_out(tmp_path, team, settings='[policy]\npath = "auto"\n')
    run = begin(grounds, is_light=False)
    end = run.carry()
    assert end is WatchEnd.COMPLETED, [decision.reason for decision in run.decisions()]
    assert run.state().path is RunPath.LIGHT
    assert agents(run).count("adversarial-reviewer") == 2
    assert (ended(run).outcome, ended(run).confidence) == (FinishOutcome.COMMITTED, Confidence.MEDIUM)
    rounds = [event.data["round"] for event in run.events("review_submitted")]
    assert rounds == [1, 2]


# --- killed at each step boundary


def _lay(root: Path, alone: bool) -> str:
    root.mkdir(parents=True)
    cassettes = LIGHT.write_cassettes(root / RECORDINGS)
    place = LIGHT.lay_out(root / LIGHT.repository.folder)
    if alone:
        settle(place, ALONE)
    wanted = RunRequest(
        request=LIGHT.request,
        slug=LIGHT.slug,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
        is_light=True,
    )
    return begin_feature(place, wanted).run_id


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillGrounds]:
    """Where light runs are killed."""
    play = Play(LIGHT.repository.folder, _lay, "COMMITTED", content_of, assert_clean)
    made = KillGrounds(tmp_path_factory.mktemp("kills"), play)
    yield made
    made.close()


@pytest.mark.req("P16")
@pytest.mark.timeout(1800)  # eleven processes, one after the other
def test_killed_after_every_decision_a_light_run_ends_as_if_nothing_had_happened(kills: KillGrounds) -> None:
    reference = kills.reference(alone=True)
    decisions = reference.passed.count("feature.decided")
    assert decisions == len(reference.content.decisions)
    drill = kills.drill(alone=True)
    for number in range(decisions):
        assert drill.live("feature.decided#1").is_killed, f"decision {number + 1} was not taken any more"
    assert_same(drill.end(), reference.content)
