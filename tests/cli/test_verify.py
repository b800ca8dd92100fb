"""`fairwitness verify` on a plain clone: what it says, what it leaves alone, one sentence for everything that is wrong."""  # noqa: E501

import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS, fairwitness
from fairwitness.kit.documents import Format, render
from fairwitness.ledger.ledger import Ledger
from support.fixtures import SEEDS, value_of
from support.state import own_state
from verify.belongings import belongings

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}
SHOP = "def price(total, rate=0):\n    return total - total * rate // 100\n"
TESTS = "from shop import price\n\n\ndef test_full_price():\n    assert price(100) == 100\n"
HONEST = {
    "shop.py": SHOP + "\n\ndef shipping(total):\n    if total >= 50:\n        return 0\n    return 5\n",
    "test_shipping.py": (
        "from shop import shipping\n\n\ndef test_free_above_fifty():\n    assert shipping(50) == 0\n\n\n"
        "def test_small_orders_pay():\n    assert shipping(49) == 5\n"
    ),
}


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=repository, env={**os.environ, **GIT}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def write(repository: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(content)


def commit(repository: Path, files: dict[str, str], message: str = "change") -> str:
    write(repository, files)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small Python project with one commit."""
    repository = tmp_path / "shop"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    commit(repository, {"shop.py": SHOP, "test_shop.py": TESTS, "pytest.ini": "[pytest]\n"}, "begin")
    return repository


def verify(repository: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return fairwitness("verify", *arguments, cwd=repository, PATH=path, **{**GIT, **environment})


@pytest.mark.req("X5")
def test_an_honest_change_holds_and_nothing_of_the_person_is_touched(shop: Path) -> None:
    commit(shop, HONEST)
    write(shop, {"notes.txt": "untracked"})
    git(shop, "stash", "push", "-q", "--include-untracked")
    git(shop, "stash", "apply", "-q")
    before = belongings(shop)
    done = verify(shop, "--head", "HEAD")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HOLDS: 1 of 1 required checks hold" in done.stdout
    assert "next:" in done.stderr
    assert belongings(shop) == before
    assert stat.S_IMODE((shop / ".fairwitness").stat().st_mode) == 0o700
    assert git(shop, "status", "--porcelain") == "?? notes.txt"


@pytest.mark.req("X5")
@pytest.mark.parametrize("tier", ["ns", "ll", "uid", "none"])
def test_every_tier_proves_the_same_but_none_opens_no_gate(shop: Path, tier: str) -> None:
    commit(shop, HONEST)
    done = verify(shop, "--tier", tier, "--json")
    if done.returncode == 3:
        pytest.skip(done.stderr.splitlines()[0])
    report = json.loads(done.stdout)
    assert report["sandbox"] == tier
    (ran,) = (check for check in report["checks"] if check["id"] == "pytest")
    if tier == "uid" and ran["after"] == "no evidence" and "python3 of this machine" in ran["reason"]:
        pytest.skip(f"another user has no interpreter with pytest here: {ran['reason']}")
    assert ran["after"] == "passed", ran
    assert report["answer"]["answer"] == ("blocked" if tier == "none" else "open"), report["answer"]


@pytest.mark.req("X5")
def test_a_lie_is_caught_and_the_gate_says_the_same_tomorrow(shop: Path) -> None:
    broken = SHOP.replace("return total", "return 1 + total")
    commit(shop, {"shop.py": broken, "test_shop.py": TESTS.replace("== 100", ">= 100")})
    done = verify(shop, "--json")
    assert done.returncode == 4, done.stderr
    report = json.loads(done.stdout)
    assert report["answer"]["answer"] == "blocked"
    assert report["answer"]["missing"] == ["expectations pytest (needs a person)"]
    (changed,) = report["expectations"]
    assert changed["id"] == "test_shop.py::test_full_price"
    assert changed["before"] == ["assert price(100) == 100"]
    assert changed["after"] == ["assert price(100) >= 100"]
    asked_again = fairwitness("gate", "explain", report["run_id"], "verify", "--json", cwd=shop)
    assert asked_again.returncode == 1
    assert json.loads(asked_again.stdout)["missing"] == report["answer"]["missing"]
    assert fairwitness("ledger", "verify", cwd=shop).returncode == 0


@pytest.mark.req("X5")
def test_the_same_question_is_not_run_twice_and_no_cache_answers_the_same(shop: Path) -> None:
    commit(shop, HONEST)
    first, second, third = (json.loads(verify(shop, "--json", *flags).stdout) for flags in ((), (), ("--no-cache",)))
    assert [check["cached"] for check in second["checks"]] == [True] * len(second["checks"])
    assert not any(check["cached"] for check in (*first["checks"], *third["checks"]))
    outcomes = [
        [(check["id"], check["baseline"], check["after"], check["counts"]) for check in report["checks"]]
        for report in (first, second, third)
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert {report["answer"]["answer"] for report in (first, second, third)} == {"open"}


@pytest.mark.req("X5")
def test_staged_and_working_tree_changes_are_verified_as_they_are(shop: Path) -> None:
    write(shop, HONEST)
    refused = verify(shop)
    assert refused.returncode == 2
    assert "uncommitted changes" in refused.stderr
    assert "--worktree" in refused.stderr
    assert verify(shop, "--worktree").returncode == 0
    write(shop, {"shop.py": HONEST["shop.py"].replace(">=", ">")})
    git(shop, "add", "-A")
    write(shop, HONEST)
    assert verify(shop, "--staged").returncode == 1, "the index holds the broken form"
    assert verify(shop, "--worktree").returncode == 0, "the files hold the good one"


@pytest.mark.req("X5")
def test_a_person_may_accept_a_changed_test_and_it_goes_on_record(shop: Path) -> None:
    commit(
        shop,
        {
            "shop.py": SHOP.replace("// 100", "// 100 + 1"),
            "test_shop.py": TESTS.replace("== 100", "== 101"),
        },
    )
    refused = verify(shop)
    assert refused.returncode == 4
    (pasted,) = (line.removeprefix("next:  ") for line in refused.stderr.splitlines() if line.startswith("next:  "))
    program, *words = shlex.split(pasted)
    assert (program, words[0]) == ("fairwitness", "verify")
    assert fairwitness(*words, cwd=shop).returncode == 0, "the command that is printed works"
    done = verify(shop, "--accept", "test_shop.py", "--reason", "prices now end in one", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["answer"]
    assert {one["accepted"] for one in report["findings"] if one["blocks"]} == {"prices now end in one"}
    assert verify(shop, "--accept", "test_shop.py").returncode == 2


KEPT = {
    "reformatted": TESTS.replace("assert price(100) == 100", "result = price(100)\n    assert result == 100"),
    "parametrized": (
        "import pytest\nfrom shop import price\n\n\n@pytest.mark.parametrize('amount', [100, 200])\n"
        "def test_full_price(amount):\n    assert price(amount) == amount\n"
    ),
    "deleted": TESTS[: TESTS.index("def test_full_price")] + "def test_other():\n    assert price(200) == 200\n",
    "skipped": "import pytest\n" + TESTS.replace("def test_full", "@pytest.mark.skip\ndef test_full"),
}


@pytest.mark.req("X1", "X5")
@pytest.mark.parametrize("tests", KEPT.values(), ids=KEPT.keys())
def test_a_test_may_change_if_its_old_form_passes_unless_the_mode_is_strict(shop: Path, tests: str) -> None:
    commit(shop, {"test_shop.py": tests})
    done = verify(shop, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["answer"]
    assert any("test_shop.py::test_full_price" in note for note in report["notes"]), report["notes"]
    strict = verify(shop, "--oracle", "strict", "--json")
    answer = json.loads(strict.stdout)["answer"]
    assert strict.returncode == 4, answer
    assert answer["missing"] == answer["asks"]


@pytest.mark.req("X1", "X5")
def test_a_test_may_be_renamed_unless_the_mode_is_strict(shop: Path) -> None:
    commit(shop, {"test_shop.py": TESTS.replace("test_full_price", "test_no_rebate")})
    done = verify(shop, "--json")
    assert done.returncode == 0, json.loads(done.stdout)["answer"]
    assert verify(shop, "--oracle", "strict").returncode == 4


@pytest.mark.req("X1", "X5")
def test_a_test_that_fails_in_both_forms_is_blocked_and_not_asked_about(shop: Path) -> None:
    broken = SHOP.replace("return total", "return 1 + total")
    commit(shop, {"shop.py": broken, "test_shop.py": TESTS.replace("== 100", "== 100  # as ever")})
    done = verify(shop, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["expectations"] == []


@pytest.mark.req("X5")
def test_the_record_names_the_settings_the_run_went_by(shop: Path) -> None:
    commit(shop, HONEST)
    settings = "[verify.sandbox]\nprocesses = 90\n"
    (shop / "fairwitness.toml").write_text(settings)
    report = json.loads(verify(shop, "--head", "HEAD", "--json").stdout)
    with closing(Ledger.open_file(own_state(shop) / "evidence.db")) as ledger:
        noted = ledger.observation(report["run_id"], "settings")
    assert noted is not None
    read = len(settings).to_bytes(8, "big") + settings.encode()
    assert noted.detail["sha256"] == hashlib.sha256(read).hexdigest()
    assert noted.detail["in_force"]["sandbox"]["processes"] == 90


@pytest.mark.req("X5")
def test_a_file_too_large_to_be_looked_through_is_named_and_blocks_until_accepted(shop: Path) -> None:
    commit(shop, {**HONEST, "prices.csv": "100,99\n" * 400_000})
    done = verify(shop, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(one["path"], one["rule"]) for one in report["findings"] if one["blocks"]] == [("prices.csv", "unreadable")]
    assert verify(shop, "--accept", "prices.csv", "--reason", "the supplier's list").returncode == 0


@pytest.mark.req("X5")
def test_a_plan_allows_what_it_declares_unless_the_change_brought_it(shop: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("files:\n  - shop.py\n")
    commit(shop, HONEST)
    report = json.loads(verify(shop, "--plan", str(plan), "--json").stdout)
    assert [one["path"] for one in report["findings"] if one["check"] == "scope"] == ["test_shipping.py"]
    plan.write_text("files:\n  - shop.py\n  - test_*.py\n")
    assert verify(shop, "--plan", str(plan)).returncode == 0
    commit(shop, {"plan.yaml": plan.read_text()})
    own = verify(shop, "--base", "HEAD~2", "--plan", "plan.yaml")
    assert own.returncode == 2
    assert "part of the change it would allow" in own.stderr


@pytest.mark.req("X5")
def test_a_published_plan_declares_the_files_of_the_tasks_beside_it(shop: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan-output.yaml"
    shutil.copy(SEEDS / "000" / "plan-output.yaml", plan)
    commit(shop, HONEST)
    assert "declares no files" in verify(shop, "--plan", str(plan)).stderr
    task = value_of("000/task-schema.yaml")
    task["task"]["relevant_context"]["files_to_modify"] = [{"path": "shop.py", "risk": "🟢"}, {"path": "test_*.py"}]
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "task-01.yaml").write_text(render(task, Format.YAML))
    assert verify(shop, "--plan", str(plan)).returncode == 0


@pytest.mark.req("X5")
def test_a_check_that_hangs_is_no_evidence(shop: Path) -> None:
    hangs = '[[verify.check]]\nname = "smoke-execution"\nargv = ["sleep", "60"]\ntimeout_s = 1.0\n'
    commit(shop, HONEST)
    (shop / "fairwitness.toml").write_text(hangs)
    done = verify(shop, "--head", "HEAD", "--json")
    assert done.returncode == 1
    (silent,) = json.loads(done.stdout)["missing"]
    assert silent["reason"] == "it did not end within 1 s"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--base", "nowhere"], 2, "unknown ref 'nowhere'"),
        (["--base", "-x"], 2, "cannot be a ref"),
        (["--base", "other"], 2, "is not an ancestor of"),
        (["--head", "HEAD", "--staged"], 2, "exclude each other"),
        (["--plan", "missing.yaml"], 2, "there is no plan"),
        (["--reason", "because"], 2, "go together"),
    ],
)
@pytest.mark.req("X5")
def test_bad_input_gets_one_sentence_and_nothing_is_written(
    shop: Path, arguments: list[str], code: int, words: str
) -> None:
    git(shop, "checkout", "-q", "--orphan", "other")
    git(shop, "commit", "-qm", "apart")
    git(shop, "checkout", "-q", "main")
    commit(shop, HONEST)
    before = belongings(shop)
    done = verify(shop, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert belongings(shop) == before


@pytest.mark.req("X5")
def test_outside_a_repository_and_without_commits_it_says_so(tmp_path: Path) -> None:
    nowhere = verify(tmp_path)
    assert nowhere.returncode == 2
    assert "is not in a git repository" in nowhere.stderr
    git(tmp_path, "init", "-q")
    empty = verify(tmp_path)
    assert empty.returncode == 2
    assert "no commits yet" in empty.stderr


@pytest.mark.req("X5")
def test_a_repository_without_checks_is_blocked_never_passed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    commit(tmp_path, {"README.md": "one\n"})
    commit(tmp_path, {"README.md": "two\n"})
    done = verify(tmp_path)
    assert done.returncode == 1
    assert "no tests were found" in done.stdout


@pytest.mark.req("X5")
def test_a_read_only_repository_keeps_its_state_with_the_person(shop: Path, tmp_path: Path) -> None:
    commit(shop, HONEST)
    before = belongings(shop)
    script = 'mount --bind . . && mount -o remount,ro,bind . . && cd "$PWD" && "$0" verify && "$0" ledger verify'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(FAIRWITNESS)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **GIT, "PATH": path, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert belongings(shop) == before
    assert not (shop / ".fairwitness").exists()
    assert list((tmp_path / "state").rglob("evidence.db"))
    assert "1 run checked, all as written" in done.stderr, "and every other command finds it there"


def test_evidence_is_shown_by_its_number(shop: Path) -> None:
    commit(shop, {"shop.py": SHOP.replace("return total", "return 1 + total")})
    report = json.loads(verify(shop, "--json").stdout)
    number = next(check["execution"] for check in report["checks"] if check["id"] == "pytest")
    shown = fairwitness("evidence", "show", str(number), cwd=shop)
    assert shown.returncode == 0
    assert "assert" in shown.stdout
    assert "command    python -m pytest" in shown.stdout, "as a person types it"
    assert "came to    fail" in shown.stdout
    assert fairwitness("evidence", "show", "99999", cwd=shop).returncode == 2


def test_doctor_says_what_there_is(shop: Path) -> None:
    done = fairwitness("doctor", "--json", cwd=shop)
    assert done.returncode == 0
    found = {finding["what"]: finding["health"] for finding in json.loads(done.stdout)}
    assert found["git"] == "ok"
    assert found["sandbox"] in ("ok", "degraded")


WIDE = "# ruff: noqa\nimport os\n\n\ndef price(total, rate=0):\n    return total - total * rate // 100\n"


@pytest.mark.req("X1", "X5")
@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (WIDE, 1),
        (WIDE.replace("# ruff: noqa\nimport os", "import os  # noqa: F401"), 0),
        (WIDE.replace("import os\n", ""), 0),
        (WIDE.replace("# ruff: noqa\nimport os\n", "").replace("100\n", "100  # type: ignore\n"), 4),
    ],
    ids=["wide and hides an unused import", "one line and one code", "wide and hides nothing", "of a tool not in use"],
)
def test_a_suppression_is_judged_by_what_it_hides(shop: Path, code: str, exit_code: int) -> None:
    commit(shop, {"ruff.toml": 'lint.select = ["F"]\n'})
    git(shop, "switch", "-qc", "work")
    commit(shop, {"shop.py": code})
    done = verify(shop, "--base", "main", "--json")
    report = json.loads(done.stdout)
    assert next(check for check in report["checks"] if check["tool"] == "ruff")["after"] == "passed", report["missing"]
    assert done.returncode == exit_code, report["answer"]


RED = "from shop import price\n\n\ndef test_rounds():\n    assert price(199, 50) == 99\n"


@pytest.mark.req("X1", "X5")
@pytest.mark.parametrize(
    ("files", "exit_code"),
    [
        ({"test_rounds.py": ""}, 4),
        ({"test_rounds.py": RED.replace("== 99", "== 100")}, 4),
        ({"test_rounds.py": RED.replace("def test", "import pytest\n\n\n@pytest.mark.skip\ndef test")}, 4),
        ({"test_rounds.py": RED.replace("test_rounds():", "test_rounds():\n    # known")}, 0),
        ({"test_rounds.py": RED + "\n", "shop.py": SHOP.replace("* rate // 100", "* rate // 100 + 1 - 1")}, 0),
    ],
    ids=["deleted", "expects what there is", "skipped", "red as before", "red as before, with a change"],
)
def test_a_test_that_was_red_is_not_made_green_by_changing_it(
    shop: Path, files: dict[str, str], exit_code: int
) -> None:
    commit(shop, {"test_rounds.py": RED})
    git(shop, "switch", "-qc", "work")
    commit(shop, files)
    done = verify(shop, "--base", "main", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == exit_code, report["answer"]
    assert [one["id"] for one in report["expectations"]] == (["test_rounds.py::test_rounds"] if exit_code else [])
    assert not [note for note in report["notes"] if "no objection" in note and "test_rounds" in note and exit_code]


@pytest.mark.req("X1", "X5")
@pytest.mark.parametrize(("to", "exit_code"), [(RED, 0), (RED.replace("== 99", "== 100"), 4)], ids=["moved", "mended"])
def test_a_test_that_was_red_may_move_but_not_become_green_by_it(shop: Path, to: str, exit_code: int) -> None:
    commit(shop, {"test_rounds.py": RED})
    git(shop, "switch", "-qc", "work")
    (shop / "unit").mkdir()
    git(shop, "mv", "test_rounds.py", "unit/test_rounds.py")
    commit(shop, {"unit/test_rounds.py": to})
    done = verify(shop, "--base", "main", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == exit_code, report["answer"]
