"""`fairwitness agents` as a person meets it: lists, one role whole, and one dispatch on a small repository."""

import asyncio
import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.runner import fairwitness
from fairwitness.agents.cassette_file import Cassette, spell
from fairwitness.agents.gateway.modes import Grant, ModelAnswer, ModelRequest, TurnAnswer
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse
from fairwitness.contracts.common.tools import Role
from support.fixtures import value_of

INTAKE = value_of("000/intake-return.yaml")
REPORT = value_of("000/implementation-report.yaml")
SHIPPING = "\n\ndef shipping(total):\n    return 0 if total >= 50 else 5\n"
KEY = "upstream-key-0123456789"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A person without settings, keys or agents."""
    gone = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "")
    (tmp_path / "home").mkdir()
    path = "/usr/bin:/bin"
    return {**gone, "HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "PATH": path}


def said(answer: dict[str, Any]) -> str:
    return f"Done.\n```json\n{json.dumps(answer)}\n```\n"


def recorded(place: Path, role: Role, *turns: tuple[str, tuple[tuple[str, dict[str, Any]], ...]]) -> Path:
    """A recording of a session in which somebody said and called this."""
    header = CassetteHeader(cassette=1, role=role, instance=role.value, model="recorded-1", prompt=f"sha256:{'0' * 64}")
    lines = [
        CassetteTurn(
            turn=number,
            text=text,
            calls=tuple(CassetteCall(tool=tool, args=args) for tool, args in calls),
            usage=(1000, 50),
            ms=0,
            seen=None,
        )
        for number, (text, calls) in enumerate(turns)
    ]
    place.write_bytes(spell(Cassette(header, tuple(lines))))
    return place


def tried(home: dict[str, str], cwd: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return fairwitness("agents", "try", *arguments, cwd=cwd, **home)


EDITS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "replace_string_in_file",
        {"path": "shop.py", "old_string": "// 100\n", "new_string": f"// 100\n{SHIPPING}"},
    ),
    ("run_in_terminal", {"command": "python3 -m unittest"}),
    ("run_in_terminal", {"command": "git diff --stat"}),
)


def test_the_list_names_every_role_within_eighty_columns(home: dict[str, str], tmp_path: Path) -> None:
    done = fairwitness("agents", "list", cwd=tmp_path, **home)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {role.value for role in Role}
    assert "fairwitness doctor" in done.stderr


def test_the_list_as_json_has_all_there_is_to_know(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "fairwitness.toml").write_text('[agents]\ndefault = "goose"\n[agents.models]\nstrong = "big"\n')
    (tmp_path / ".git").mkdir()
    trusted = hashlib.sha256((tmp_path / "fairwitness.toml").read_bytes()).hexdigest()
    listed = json.loads(
        fairwitness("agents", "list", "--json", cwd=tmp_path, **{**home, "FAIRWITNESS_TRUST": trusted}).stdout
    )
    roles = {role["name"]: role for role in listed}
    assert set(roles) == {role.value for role in Role}
    implementer = roles["implementer"]
    assert (implementer["agent"], implementer["model"], implementer["answer"]) == (
        "goose",
        "big",
        "implementation-report",
    )
    assert implementer["writes"] == ["(declared)"]
    assert implementer["statuses"] == ["DONE", "ERROR"]
    assert set(implementer["budget"]) == {"tokens", "money_micros", "milliseconds"}
    assert roles["orchestrator"]["agent"] is None
    assert len(roles["adversarial-reviewer"]["instances"]) == 3


def test_one_role_is_shown_with_its_words_tools_and_form(home: dict[str, str], tmp_path: Path) -> None:
    shown = fairwitness("agents", "show", "reviewer", cwd=tmp_path, **home)
    assert shown.returncode == 0
    assert shown.stdout.startswith("Adversarial reviewer (adversarial-reviewer, feature)\n")
    assert "run_in_terminal (scoped)" in shown.stdout
    assert "## The form of its answer" in shown.stdout
    plain = json.loads(fairwitness("agents", "show", "judge", "--json", cwd=tmp_path, **home).stdout)
    assert plain["tools"]["run_in_terminal"] == "scoped"
    assert plain["schema"]["type"] == "object"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("show", "boss"), 2, "there is no role 'boss'"),
        (("try", "boss"), 2, "there is no role 'boss'"),
        (("try", "judge", "--agents", "nobody"), 2, "there is no agent 'nobody'"),
        (("try", "judge", "--cassette", "x"), 2, "--cassette requires --agents cassette"),
        (("try", "judge"), 3, "no agent can be used here"),
        (("try", "judge", "--agents", "goose"), 3, "goose lacks the program goose"),
        (("try", "reviewer", "--instance", "nobody"), 2, "adversarial-reviewer has no instance 'nobody'"),
        (("try", "orchestrator", "--agents", "api"), 2, "orchestrator is never dispatched"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    home: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = fairwitness("agents", *arguments, cwd=tmp_path, **home)
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "next:" in done.stderr


def test_roles_are_exported_once_and_a_persons_file_is_kept(home: dict[str, str], tmp_path: Path) -> None:
    export = ("agents", "export", "--target", "vscode", "--dir", str(tmp_path / "out"))
    assert fairwitness(*export, "--check", cwd=tmp_path, **home).returncode == 1
    assert not (tmp_path / "out").exists()
    first = json.loads(fairwitness(*export, "--json", cwd=tmp_path, **home).stdout)
    assert len(first["written"]) >= 9
    again = fairwitness(*export, "--check", cwd=tmp_path, **home)
    assert (again.returncode, again.stdout) == (0, "")
    edited = tmp_path / "out" / first["written"][0]
    edited.write_text(edited.read_text() + "mine\n")
    kept = fairwitness(*export, cwd=tmp_path, **home)
    assert kept.returncode == 1
    assert kept.stdout.startswith(f"kept       {first['written'][0]} was edited")


def test_settings_that_are_wrong_stop_everything(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "fairwitness.toml").write_text('[agents.boss]\nagent = "x"\n')
    done = fairwitness("agents", "list", cwd=tmp_path, **home)
    assert done.returncode == 2
    assert "fairwitness.toml: agents.boss: expected" in done.stderr


@pytest.mark.req("X3")
def test_a_recording_is_played_with_real_tools_in_a_real_worktree(home: dict[str, str], tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "c.jsonl", Role.IMPLEMENTER, ("", EDITS), (said(REPORT), ()))
    done = tried(home, tmp_path, "implementer", "--agents", "cassette", "--cassette", cassette, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    plain = json.loads(done.stdout)
    assert plain["outcome"]["status"] == "ok"
    assert plain["outcome"]["denials"] == []
    assert plain["changed"] == [{"path": "shop.py", "change": "modified", "allowed": True}]
    assert (plain["outcome"]["usage"]["source"], plain["outcome"]["usage"]["tokens_in"]) == ("cassette", 2000)
    assert plain["agent"]["tier"] == "A"


def test_a_trial_is_told_in_words_and_a_folder_can_be_kept(home: dict[str, str], tmp_path: Path) -> None:
    calls = (*EDITS, ("create_file", {"path": "README.md", "content": "mine\x1b[2J"}))
    cassette = recorded(tmp_path / "c.jsonl", Role.IMPLEMENTER, ("", calls), (said(REPORT), ()))
    done = tried(home, tmp_path, "implementer", "--agents", "cassette", "--cassette", cassette, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK after" in done.stdout
    assert "modified   shop.py" in done.stdout
    assert "refused    create_file README.md" in done.stdout
    assert "tokens     2000 in, 100 out" in done.stdout
    kept = Path(done.stderr.split("look into ")[1].strip())
    (worktree,) = [path for path in (kept / "worktrees").iterdir() if path.is_dir()]
    assert SHIPPING in (worktree / "shop.py").read_text()
    assert (kept / "shop" / "shop.py").read_text().count("def ") == 1


@pytest.mark.req("X3")
def test_a_reader_is_refused_what_it_may_not_and_its_answer_still_counts(home: dict[str, str], tmp_path: Path) -> None:
    calls = (("create_file", {"path": "shop.py", "content": ""}), ("read_file", {"path": "shop.py"}))
    cassette = recorded(tmp_path / "c.jsonl", Role.INTAKE, ("", calls), (said(INTAKE), ()))
    done = tried(home, tmp_path, "intake", "--agents", "cassette", "--cassette", cassette, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    plain = json.loads(done.stdout)
    assert [(each["layer"], each["tool"]) for each in plain["outcome"]["denials"]] == [("decision", "create_file")]
    assert plain["changed"] == []


@pytest.mark.req("P2")
def test_an_answer_that_is_none_shuts_the_gate(home: dict[str, str], tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "c.jsonl", Role.INTAKE, ("I think it is fine.", ()), ("Really.", ()))
    done = tried(home, tmp_path, "intake", "--agents", "cassette", "--cassette", cassette)
    assert done.returncode == 1
    assert "INVALID_ANSWER" in done.stdout
    assert "it said:\nReally." in done.stdout


def test_a_recording_of_another_role_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "c.jsonl", Role.INTAKE, (said(INTAKE), ()))
    done = tried(home, tmp_path, "judge", "--agents", "cassette", "--cassette", cassette)
    assert done.returncode == 1
    assert "is a recording of intake" in " ".join(done.stdout.split())


def test_a_session_is_recorded_and_its_recording_played_again(home: dict[str, str], tmp_path: Path) -> None:
    first = recorded(tmp_path / "c.jsonl", Role.IMPLEMENTER, ("", EDITS), (said(REPORT), ()))
    place = tmp_path / "new" / "again.jsonl"
    done = tried(home, tmp_path, "implementer", "--agents", "cassette", "--cassette", first, "--record", place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"--cassette {place}" in done.stderr
    again = tried(home, tmp_path, "implementer", "--agents", "cassette", "--cassette", place, "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [each["path"] for each in json.loads(again.stdout)["changed"]] == ["shop.py"]
    assert tried(home, tmp_path, "intake", "--record", place).returncode == 2


def test_nothing_of_a_trial_is_left_behind(home: dict[str, str], tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "c.jsonl", Role.INTAKE, (said(INTAKE), ()))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    own = {**home, "TMPDIR": str(temporary)}
    assert tried(own, tmp_path, "intake", "--agents", "cassette", "--cassette", cassette).returncode == 0
    assert [path.name for path in temporary.iterdir() if path.name.startswith("fairwitness-try-")] == []


class Upstream:
    """A provider: calls one tool, then answers, whatever it is asked."""

    name = "upstream"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        self.asked.append(asked)
        usage = ModelUsage(tokens_in=700, tokens_out=30)
        if not any(each.results for each in asked.messages):
            call = ToolUse(id="call-1", name="read_file", args={"path": "shop.py"})
            return TurnAnswer(ModelTurn(calls=(call,), usage=usage, model="m-1"))
        return TurnAnswer(ModelTurn(text=said(INTAKE), usage=usage, model="m-1"))


@pytest.fixture
def upstream(socket_enabled: None) -> Iterator[tuple[Upstream, str]]:
    """A provider on loopback, and its address."""
    from fairwitness.agents.gateway.app import gateway
    from fairwitness.agents.gateway.server import serving

    del socket_enabled
    provider, ready = Upstream(), threading.Event()
    address: list[str] = []
    ends: list[Callable[[], object]] = []
    grant = Grant(token=KEY, dispatch_id="anybody")

    async def serve() -> None:
        app = gateway(provider, lambda token: grant if token == KEY else None)
        async with serving(app, tcp=True) as served:
            assert served.url is not None
            address.append(served.url)
            over, loop = asyncio.Event(), asyncio.get_running_loop()
            ends.append(lambda: loop.call_soon_threadsafe(over.set))
            ready.set()
            await over.wait()

    serving_thread = threading.Thread(target=lambda: asyncio.run(serve()))
    serving_thread.start()
    assert ready.wait(20)
    yield provider, address[0]
    ends[0]()
    serving_thread.join()


@pytest.mark.req("X3")
def test_a_model_is_reached_through_the_gateway_and_counted_there(
    home: dict[str, str], tmp_path: Path, upstream: tuple[Upstream, str]
) -> None:
    provider, url = upstream
    own = tmp_path / "config" / "fairwitness" / "fairwitness.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        f'[agents.backend.mine]\nprovider = "openai"\nbase_url = "{url}/v1"\nmodel = "m-1"\nkey_env = "MY_KEY"\n'
    )
    done = tried({**home, "MY_KEY": KEY}, tmp_path, "intake", "--agents", "mine", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    plain = json.loads(done.stdout)
    assert plain["outcome"]["answer"] == INTAKE
    usage = plain["outcome"]["usage"]
    assert (usage["source"], usage["tokens_in"], usage["tokens_out"], usage["turns"]) == ("gateway", 1400, 60, 2)
    assert usage["cost_micros"] is None  # nobody knows the price of a model on this machine
    assert [asked.model for asked in provider.asked] == ["m-1", "m-1"]
    assert KEY not in done.stdout + done.stderr
    refused = tried({**home, "MY_KEY": "another-key-123"}, tmp_path, "intake", "--agents", "mine")
    assert refused.returncode == 3
    assert "the provider mine cannot be used: it does not accept the key (401: " in refused.stderr
    assert "set a valid key in place of the one of the environment variable MY_KEY" in " ".join(refused.stderr.split())


def test_doctor_says_which_agents_and_keys_there_are(home: dict[str, str], tmp_path: Path) -> None:
    goose = tmp_path / "bin" / "goose"
    goose.parent.mkdir()
    goose.write_text("#!/bin/sh\necho goose 1.34.0\n")
    goose.chmod(0o755)
    own = {**home, "PATH": f"{goose.parent}:{home['PATH']}", "ANTHROPIC_API_KEY": "anthropic-key-1"}
    done = fairwitness("doctor", "--json", cwd=tmp_path, **own)
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert (found["agent: goose"]["more"]["version"], found["agent: goose"]["more"]["tier"]) == ("1.34.0", "B")
    assert (found["agent: claude"]["health"], found["agent: claude"]["more"]["found"]) == ("missing", False)
    assert found["key: anthropic"]["found"] == "from the environment variable ANTHROPIC_API_KEY"
    assert found["key: openai"]["health"] == "missing"
    assert found["agent: api"]["health"] == "ok"
    assert "anthropic-key-1" not in done.stdout
    told = fairwitness("doctor", cwd=tmp_path, **own)
    assert "npm install" in found["agent: claude"]["mend"]
    assert "\nmissing   other agents" in told.stdout
    assert "\nREADY: this machine can produce evidence, and agents can be used\n" in told.stdout
    assert [line for line in told.stdout.splitlines() if len(line) > 80 and os.sep not in line] == []


@pytest.mark.parametrize(("role", "changes"), [("executor", {"shop.py", "test_shop.py"}), ("judge", set())])
@pytest.mark.req("X3")
def test_a_role_can_be_tried_without_any_agent_by_the_recording_that_comes_along(
    home: dict[str, str], tmp_path: Path, role: str, changes: set[str]
) -> None:
    done = tried(home, tmp_path, role, "--agents", "cassette", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert {each["path"] for each in shown["changed"]} == changes
    assert [denial["layer"] for denial in shown["outcome"]["denials"]] == ["decision"], "one refusal each, to be seen"
    none = tried(home, tmp_path, "captain", "--agents", "cassette")
    assert none.returncode == 2
    assert "try executor or judge" in none.stderr
