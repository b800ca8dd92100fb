"""What a person reads about budgets holds: of a role, of a run, of an unknown price, and before a run begins."""

import json
import re
from pathlib import Path

import pytest

from cli.graph_grounds import NEEDS_SANDBOX
from cli.runner import FAIRWITNESS, fairwitness
from cli.test_feature import Terminal
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.common.tools import Role
from fairwitness.rules.budgets import sized
from fairwitness.runs.dispatch.budget_account import limits_of
from support import demo_feature as demo

pytestmark = [pytest.mark.timeout(300), pytest.mark.req("P12")]

LOCAL = '[agents.backend.mine]\nprovider = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m-1"\n'
PRICE = '[agents.prices."m-1"]\ninput = 3.0\noutput = 15.0\n'


@pytest.fixture
def till(tmp_path: Path) -> Path:
    return demo.DEMO.lay_out(tmp_path / "till")


def home(tmp_path: Path, text: str) -> dict[str, str]:
    """A user configuration."""
    own = tmp_path / "config" / "fairwitness" / "fairwitness.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.mark.parametrize(("agent", "kind"), [("goose", "acp"), ("mine", "api")])
def test_what_agents_show_prints_is_what_is_enforced(tmp_path: Path, till: Path, agent: str, kind: str) -> None:
    goose = tmp_path / "bin" / "goose"
    goose.parent.mkdir()
    goose.write_text("#!/bin/sh\necho goose 1.34.0\n")
    goose.chmod(0o755)
    own = home(tmp_path, f'[agents]\ndefault = "{agent}"\n{LOCAL}')
    path = f"{goose.parent}:/usr/bin:/bin"
    enforced = limits_of(sized(ROLES[Role.JUDGE], kind))
    shown = fairwitness("agents", "show", "judge", cwd=till, PATH=path, OPENAI_API_KEY="a-long-openai-key", **own)
    assert shown.returncode == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    assert f"{enforced.tokens:,} tokens" in said
    assert f"{enforced.turns} model calls" in said
    assert ("400,000 tokens are for the prompt that goose itself sends" in said) is (kind == "acp")
    plain = json.loads(fairwitness("agents", "show", "judge", "--json", cwd=till, PATH=path, **own).stdout)["role"]
    assert plain["budget"]["tokens"] == enforced.tokens
    assert plain["turns"] == enforced.turns
    if kind == "api":
        assert "dollars not counted, since the price of its model is unknown" in said


@NEEDS_SANDBOX
@pytest.mark.width("full")
def test_a_cap_in_dollars_needs_a_known_price_also_on_loopback(tmp_path: Path, till: Path) -> None:
    own = home(tmp_path, f"{LOCAL}[budget]\ndollars = 5.0\n")
    done = fairwitness("feature", "Add a thing", "--agents", "mine", cwd=till, **own)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "budget.dollars is set, and the price of m-1 (mine) is unknown" in said
    assert 'set its dollars for a million tokens in [agents.prices."m-1"]' in said
    assert "no runs" in fairwitness("status", cwd=till, **own).stdout.lower()
    priced = home(tmp_path, f"{LOCAL}{PRICE}[budget]\ndollars = 5.0\n")
    begun = fairwitness("feature", "Add a thing", "--agents", "mine", cwd=till, **priced)
    assert begun.returncode == 3  # it begins, and its server is down
    assert "it cannot be reached" in begun.stderr


@NEEDS_SANDBOX
@pytest.mark.width("full")
def test_a_cap_that_is_too_small_says_what_would_be_needed(tmp_path: Path, till: Path) -> None:
    own = home(tmp_path, f"{LOCAL}[budget]\ntokens = 5000\n")
    done = fairwitness("feature", "Add a thing", "--agents", "mine", "--plain", cwd=till, **own)
    assert done.returncode == 5, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert (
        "the run may use 5,000 tokens, none of them used or reserved; a call of intake reserves 200,000 tokens" in said
    )
    assert "a cap of 200,000 is needed" in said


@NEEDS_SANDBOX
@pytest.mark.parametrize(("arguments", "settings"), [(("--light",), ""), ((), '[policy]\npath = "auto"\n')])
def test_the_estimate_of_a_light_run_says_what_both_paths_use(
    tmp_path: Path, till: Path, arguments: tuple[str, ...], settings: str
) -> None:
    own = home(tmp_path, f"{LOCAL}{PRICE}{settings}")
    done = fairwitness("feature", "Add a thing", "--agents", "mine", *arguments, cwd=till, **own)
    amount = r"[\d,]+ to [\d,]+ tokens, [\d.]+ to [\d.]+ dollars"
    assert re.match(
        rf"estimate: 5 to 11 calls of agents, {amount} on the light path, 17 to 32 calls of agents, {amount} "
        r"if it leaves it \(from its roles and the size of the repository\)\n",
        done.stderr,
    ), done.stderr


@NEEDS_SANDBOX
def test_an_estimate_comes_first_and_a_large_one_is_a_question_at_a_terminal(tmp_path: Path, till: Path) -> None:
    own = home(tmp_path, f"{LOCAL}{PRICE}")
    done = fairwitness("feature", "Add a thing", "--agents", "mine", cwd=till, **own)
    said = done.stderr.splitlines()[0]
    number = r"[\d,]+"
    assert re.fullmatch(
        rf"estimate: 17 to 32 calls of agents, {number} to {number} tokens, [\d.]+ to [\d.]+ dollars "
        r"\(from its roles and the size of the repository\)",
        said,
    ), said
    own = home(tmp_path, f"{LOCAL}{PRICE}[budget]\nask_above_dollars = 0.1\n")
    command: list[str | Path] = ["env", f"XDG_CONFIG_HOME={own['XDG_CONFIG_HOME']}", FAIRWITNESS]
    with Terminal([*command, "feature", "Add another", "--agents", "mine"], till) as terminal:
        terminal.wait_for("Begin?")
        terminal.type("n\n")
        assert terminal.end() == 5
    assert "nothing was begun" in terminal.said
