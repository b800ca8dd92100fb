"""Every kind of agent in the real sandbox: what it asks for, what it does unasked, and what becomes of it."""

import json
import shutil

import pytest

from agents.acp.kit import BUILDER, READER, Ground, report, unanswered
from agents.jobs import GOOD
from fairwitness.contracts.agents.dispatch import EnforcementTier, Kind, Layer, Stop, UsageSource
from fairwitness.contracts.agents.profile import AgentLimits, Quirks, RoleKind
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role, Scope
from sandbox.kit import living

pytestmark = pytest.mark.req("X3")
roles = pytest.mark.parametrize("role", [BUILDER, READER])


def test_a_polite_builder_gets_what_its_role_may_have_and_nothing_more(ground: Ground) -> None:
    turn = ground.ask(ground.backend("polite", env={"SCRIPTED_COMMAND": "cat src/new.py"}))
    told = report(turn)
    assert told["read"] == "# A toy\nsecond line\nthird line\n"
    assert told["part"] == "second line\n"
    assert (told["may_write"], told["may_run"], told["may_escape"]) == (True, True, False)
    assert "new = 1" in told["run"]["output"]
    assert told["run"]["code"] == 0
    for refused in ("missing", "escape", "read_outside"):
        assert told[refused].startswith("refused: ")
    assert ground.changed() == {"src/new.py"}
    assert turn.stop is Stop.DONE
    assert (turn.usage.source, turn.usage.tokens_in, turn.usage.tokens_out) == (UsageSource.AGENT, 1000, 50)


def test_a_polite_reader_changes_nothing(ground: Ground) -> None:
    ours = ground.job(READER)
    told = report(ground.ask(ground.backend("polite"), ours))
    assert told["read"] == "# A toy\nsecond line\nthird line\n"
    assert (told["may_write"], told["may_run"], told["may_escape"]) == (False, False, False)
    assert told["write"].startswith("refused: ")
    assert told["run"].startswith("refused: ")
    assert ground.changed() == set()
    assert {denial.layer for denial in ours.tools.denials} == {Layer.DECISION}


@roles
def test_a_rogue_reaches_nothing_but_what_its_role_may_write(ground: Ground, role: Role) -> None:
    told = report(ground.ask(ground.backend("rogue"), ground.job(role)))
    assert ground.changed() == ({"src/new.py"} if role is BUILDER else set())
    assert list(ground.outside.iterdir()) == []
    for name in ("dot_git", "replace_git", "outside", "built", "secrets"):
        assert told[name].startswith("failed: "), (name, told[name])
    for name in ("built_by_shell", "network"):
        assert told[name].endswith("exit code 1"), (name, told[name])
    assert ground.orphans() == []


@roles
def test_an_agent_that_asks_nobody_is_held_by_the_sandbox_alone(ground: Ground, role: Role) -> None:
    ground.ask(ground.backend("unasked", tier=EnforcementTier.D), ground.job(role))
    assert ground.changed() == ({"src/new.py"} if role is BUILDER else set())


def test_a_worktree_whose_git_is_a_file_keeps_it(ground: Ground) -> None:
    shutil.move(ground.worktree / ".git", ground.folder / "main.git")
    (ground.worktree / ".git").write_text(f"gitdir: {ground.folder}/main.git\n")
    ground.before = ground.files()
    told = report(ground.ask(ground.backend("rogue")))
    assert told["dot_git"].startswith("failed: ")
    assert ground.changed() == {"src/new.py"}


def test_settings_of_a_hostile_repository_are_not_followed_when_the_agent_is_told_so(ground: Ground) -> None:
    plant(ground)
    off = {"scripted": {"repositorySettings": False, "tools": "{tools}"}}
    told = report(ground.ask(ground.backend("hostile", meta={RoleKind.READ: off}), ground.job(READER)))
    assert "hook" not in told
    assert told["tools"] == ["read_file", "write_file", "shell"]
    assert ground.changed() == set()


def test_settings_of_a_hostile_repository_that_are_followed_reach_only_what_the_role_can(ground: Ground) -> None:
    plant(ground)
    told = report(ground.ask(ground.backend("hostile"), ground.job(READER)))
    assert "Read-only" in told["hook"]
    assert told["write"].startswith("failed: ")
    assert ground.changed() == set()
    assert list(ground.outside.iterdir()) == []


def plant(ground: Ground) -> None:
    hook = f"echo ran; touch {ground.worktree}/hooked; touch {ground.outside}/hooked"
    (ground.worktree / ".scripted").mkdir()
    (ground.worktree / ".scripted" / "settings.json").write_text(json.dumps({"hook": hook}))
    ground.before = ground.files()


def test_what_is_printed_beside_the_frames_is_skipped(ground: Ground) -> None:
    assert ground.ask(ground.backend("banner")).stop is Stop.DONE
    assert "Welcome to the agent!" in ground.notes()
    assert "\x1b" not in ground.notes()


def test_an_agent_that_ends_in_the_middle_is_a_failed_turn_that_says_how(ground: Ground) -> None:
    turn = ground.ask(ground.backend("crash"), ground.job(endpoint=unanswered(ground.folder)))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.AGENT_ERROR)
    assert turn.error == "it ended in the middle (exit code 3): out of luck with [token]"
    assert turn.text == "about to"


def test_a_dead_agent_fails_again_when_it_is_asked_again(ground: Ground) -> None:
    turn = ground.ask(ground.backend("crash"), times=2)
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.AGENT_ERROR)


def test_requests_that_do_not_say_what_for_are_refused(ground: Ground) -> None:
    told = report(ground.ask(ground.backend("kindless")))
    assert told | {"mode": "", "asked": 0} == {
        **{"mode": "", "asked": 0, "bare": "no", "located": "no", "odd": "no"},
        **{"forever": "cancelled", "no_options": "cancelled", "allowed": "once"},
    }


def test_an_end_without_an_answer_is_an_end_without_an_answer(ground: Ground) -> None:
    turn = ground.ask(ground.backend("silent"))
    assert (turn.stop, turn.text) == (Stop.DONE, "")
    assert turn.usage.source is UsageSource.NOT_REPORTED


def test_big_frames_pass_both_ways(ground: Ground) -> None:
    told = report(ground.ask(ground.backend("big")))
    assert told["read"] == 200_000
    assert len((ground.worktree / "src" / "new.py").read_text()) == 200_000


def test_a_line_without_an_end_ends_the_session(ground: Ground) -> None:
    turn = ground.ask(ground.backend("flood"))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.AGENT_ERROR)
    assert "MiB" in turn.error


def test_garbage_breaks_nothing_and_wins_nothing(ground: Ground) -> None:
    turn = ground.ask(ground.backend("garbage"))
    told = report(turn)
    assert turn.stop is Stop.DONE
    asked = {name: value for name, value in told.items() if name not in ("mode", "asked")}
    assert len(asked) == 10
    assert all(str(value).startswith("refused: ") for value in asked.values()), asked
    assert ground.changed() == set()
    assert "half � sign" in ground.kept.texts(Kind.THOUGHT)[0]


def test_words_that_come_late_are_waited_for(ground: Ground) -> None:
    assert json.dumps(GOOD) in ground.ask(ground.backend("late")).text


def test_a_second_prompt_goes_to_the_same_session(ground: Ground) -> None:
    turn = ground.ask(ground.backend("learns"), times=2)
    assert report(turn)["asked"] == 2
    assert json.dumps(GOOD) in turn.text


def test_the_usage_of_two_turns_is_added_up(ground: Ground) -> None:
    assert ground.ask(ground.backend("answers"), times=2).usage.tokens_in == 2000


def test_the_mode_of_the_role_is_set(ground: Ground) -> None:
    assert report(ground.ask(ground.backend("answers")))["mode"] == "ask"
    assert "mode" not in report(ground.ask(ground.backend("answers", modes={})))
    assert "mode" not in report(ground.ask(ground.backend("answers", modes={RoleKind.BUILD: "free"})))


def test_a_mode_can_also_be_an_option(ground: Ground) -> None:
    assert report(ground.ask(ground.backend("options")))["mode"] == "how=ask"
    assert "mode" not in report(ground.ask(ground.backend("options", modes={RoleKind.BUILD: "free"})))


def test_an_agent_that_wants_to_be_told_who_we_are_is_told(ground: Ground) -> None:
    assert report(ground.ask(ground.backend("answers", authenticate="api-key")))["authenticated"] == "api-key"


def test_an_agent_that_has_no_modes_at_all_is_not_used_where_one_is_wanted(ground: Ground) -> None:
    assert ground.ask(ground.backend("modeless")).cause is ErrorCause.NOT_FOUND
    assert ground.ask(ground.backend("modeless", modes={})).stop is Stop.DONE


def test_an_agent_without_the_mode_of_the_role_is_not_used(ground: Ground) -> None:
    turn = ground.ask(ground.backend("answers", modes={RoleKind.BUILD: "careful"}))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.NOT_FOUND)
    assert "careful" in turn.error


def test_another_version_of_the_protocol_is_not_spoken(ground: Ground) -> None:
    turn = ground.ask(ground.backend("other-version"))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.NOT_FOUND)


def test_an_agent_that_is_never_ready_is_given_up(ground: Ground) -> None:
    turn = ground.ask(ground.backend("stuck-start", limits=AgentLimits(start_s=1.0)))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.TIMEOUT)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (429, ErrorCause.RATE_LIMITED),
        (529, ErrorCause.SERVER_ERROR),
        (401, ErrorCause.PERMISSION_DENIED),
        (404, ErrorCause.NOT_FOUND),
        (-32000, ErrorCause.PERMISSION_DENIED),
        (-32603, ErrorCause.AGENT_ERROR),
    ],
)
def test_an_error_has_the_cause_that_it_shows(ground: Ground, code: int, cause: ErrorCause) -> None:
    turn = ground.ask(ground.backend("fails", env={"SCRIPTED_CODE": str(code)}))
    assert (turn.stop, turn.cause) == (Stop.FAILED, cause)
    assert "the model is not well" in turn.error


def test_the_gateways_cut_is_a_limit_of_ours(ground: Ground) -> None:
    assert ground.ask(ground.backend("fails", env={"SCRIPTED_CODE": "402"})).stop is Stop.LIMIT


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("refusal", Stop.REFUSED),
        ("cancelled", Stop.CANCELLED),
        ("max_tokens", Stop.FAILED),
        ("max_turn_requests", Stop.FAILED),
        ("something_new", Stop.FAILED),
    ],
)
def test_why_a_turn_ended_is_read_strictly(ground: Ground, reason: str, stop: Stop) -> None:
    turn = ground.ask(ground.backend("stops", env={"SCRIPTED_STOP": reason}))
    assert turn.stop is stop
    assert turn.text == "that is all"


def test_a_turn_that_a_refusal_ended_can_be_followed_by_another(ground: Ground) -> None:
    assert ground.ask(ground.backend("gives-up")).stop is Stop.CANCELLED
    patient = ground.backend("gives-up", quirks=Quirks(turn_ends_on_refusal=True))
    assert ground.ask(patient).stop is Stop.DONE
    assert report(ground.ask(patient, times=2))["asked"] == 2


def test_a_command_can_be_killed_by_who_started_it(ground: Ground) -> None:
    seconds = f"60{abs(hash(ground.mark)) % 10**6}"
    told = report(ground.ask(ground.backend("terminal-kill", env={"SCRIPTED_COMMAND": f"sleep {seconds}"})))
    assert told["running"] == {"output": "", "truncated": False}
    assert told["killed"] == {"exitCode": None, "signal": "SIGKILL"}
    assert told["gone"].startswith("refused: ")


def test_a_command_that_was_forgotten_ends_with_the_session(ground: Ground) -> None:
    line = f"sleep 6{abs(hash(ground.mark)) % 10**6}"
    ours = ground.job(scope=Scope())
    assert ground.ask(ground.backend("terminal-left", env={"SCRIPTED_COMMAND": line}), ours).stop is Stop.DONE
    assert living(line.partition(" ")[2]) == []
