"""`fairwitness trust` at a terminal, in a script and in CI, and what `verify` says without it."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS, fairwitness
from cli.test_verify import HONEST, SHOP, commit, git, verify

WEAKER = '[verify]\nmutants = 0\ndisable = ["pytest"]\n[verify.sandbox]\nmemory_mb = 512\n'
SETUP = '[verify.setup]\ncommands = [["./setup", "\\u001b[2Jgone"]]\n'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project whose test fails after the change, and whose settings would switch that test off."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    made = tmp_path / "shop"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    tests = "from shop import price\n\n\ndef test_full_price():\n    assert price(100) == 100\n"
    commit(made, {"shop.py": SHOP, "test_shop.py": tests, "pytest.ini": "[pytest]\n"}, "begin")
    commit(made, {"fairwitness.toml": WEAKER}, "settings")
    return made


@pytest.mark.req("X5")
def test_a_repository_cannot_switch_off_the_test_that_its_change_breaks(shop: Path) -> None:
    commit(shop, {"shop.py": SHOP.replace("return total - ", "return 7 - ")})
    done = verify(shop)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BLOCKED" in done.stdout
    said = " ".join(done.stdout.split())
    assert (
        "note: not in force until you trust fairwitness.toml: verify.mutants, verify.disable; "
        "to look at them: fairwitness trust" in said
    )
    assert fairwitness("trust", "--yes", cwd=shop).returncode == 0
    (switched_off,) = (
        one for one in json.loads(verify(shop, "--json").stdout)["missing"] if one["check"] == "tests pytest"
    )
    assert switched_off["reason"] == "switched off in fairwitness.toml"


@pytest.mark.req("X5")
def test_set_up_commands_without_trust_are_exit_3_and_are_shown_before_they_count(shop: Path) -> None:
    commit(shop, {"fairwitness.toml": SETUP}, "set-up")
    commit(shop, HONEST)
    refused = verify(shop)
    assert refused.returncode == 3
    (what, step) = refused.stderr.strip().splitlines()[-2:]
    assert what == (
        "fairwitness: fairwitness.toml sets verify.setup.commands, which only counts after you have trusted the file"
    )
    assert step.startswith("next:  fairwitness trust (where nobody can be asked: FAIRWITNESS_TRUST=")
    shown = fairwitness("trust", cwd=shop)
    assert shown.returncode == 4
    assert "runs these commands in the sandbox" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "not trusted" in shown.stderr
    named = step.split("FAIRWITNESS_TRUST=")[1].rstrip(")")
    tried = verify(shop, FAIRWITNESS_TRUST=named)
    assert tried.returncode == 1, "the command of the set-up does not exist"
    assert not (Path(os.environ["XDG_STATE_HOME"]) / "fairwitness" / "trust.jsonl").exists()


def test_a_change_of_the_settings_is_judged_by_the_trusted_settings_of_the_base(shop: Path) -> None:
    fairwitness("trust", "--yes", cwd=shop)
    base = git(shop, "rev-parse", "HEAD")
    commit(shop, {"fairwitness.toml": SETUP, **HONEST})
    in_force = json.loads(verify(shop, "--json").stdout)
    assert [one["check"] for one in in_force["missing"] if one["reason"].startswith("switched off")] == ["tests pytest"]
    fairwitness("trust", "--revoke", cwd=shop)
    (note,) = [note for note in json.loads(verify(shop, "--json").stdout)["notes"] if "not in force" in note]
    assert f"fairwitness trust --at {base[:12]}" in note
    pasted = note.split("to look at them: fairwitness ")[1].split()
    assert fairwitness(*pasted, "--yes", cwd=shop).returncode == 0
    assert not [note for note in json.loads(verify(shop, "--json").stdout)["notes"] if "not in force" in note]


def test_a_script_reads_the_hash_and_records_nothing(shop: Path) -> None:
    asked = fairwitness("trust", "--json", cwd=shop)
    assert asked.returncode == 4
    plain = json.loads(asked.stdout)
    assert (plain["trusted"], plain["file"]) == (False, "fairwitness.toml")
    assert [(one["name"], one["value"], one["without_it"]) for one in plain["settings"]] == [
        ("verify.mutants", 0, 10),
        ("verify.disable", ["pytest"], []),
    ]
    again = fairwitness("trust", "--json", cwd=shop, FAIRWITNESS_TRUST=plain["sha256"])
    assert (again.returncode, json.loads(again.stdout)["trusted"]) == (0, True)
    assert json.loads(fairwitness("trust", "--json", cwd=shop).stdout)["trusted"] is False
    kept = fairwitness("trust", "--json", "--yes", cwd=shop)
    assert (kept.returncode, json.loads(kept.stdout)["trusted"]) == (0, True)
    revoked = fairwitness("trust", "--revoke", "--json", cwd=shop)
    assert json.loads(revoked.stdout) == {"revoked": [plain["sha256"]]}
    assert fairwitness("trust", "--revoke", "--yes", cwd=shop).returncode == 2


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 4), ("n\n", 4)])
def test_at_a_terminal_it_asks_and_no_is_the_default(shop: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [FAIRWITNESS, "trust"], cwd=shop, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as asked:
            os.write(ours, answer.encode())
            out, err = asked.communicate(timeout=60)
        assert "Trust these settings?" in err
        assert "switches checks off" in out
        assert asked.returncode == code
    finally:
        os.close(ours)
        os.close(theirs)
    assert fairwitness("trust", cwd=shop).returncode == code


def test_without_a_file_and_with_a_harmless_one_there_is_nothing_to_trust(shop: Path) -> None:
    (shop / "fairwitness.toml").write_text("[verify.sandbox]\nmemory_mb = 512\n")
    done = fairwitness("trust", cwd=shop)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing in it needs your trust")
    (shop / "fairwitness.toml").unlink()
    done = fairwitness("trust", cwd=shop)
    assert done.returncode == 2
    assert "there is no fairwitness.toml in this repository" in done.stderr


def test_an_agent_that_only_the_repository_chose_is_exit_3(shop: Path) -> None:
    commit(shop, {"fairwitness.toml": '[agents]\ndefault = "claude"\n'}, "agents")
    done = fairwitness("feature", "x", cwd=shop)
    assert done.returncode == 3
    assert "fairwitness.toml sets agents.default, which only counts after you have trusted the file" in done.stderr
    listed = fairwitness("agents", "list", cwd=shop)
    assert listed.returncode == 0
    assert "not in force until you trust fairwitness.toml: agents.default" in listed.stderr
    found = json.loads(fairwitness("doctor", "--json", cwd=shop).stdout)
    (settings,) = (one for one in found if one["what"] == "agents: settings")
    assert (settings["health"], settings["mend"]) == ("degraded", "fairwitness trust")
