"""The command line as a stranger meets it: one clear sentence, the right exit code, nothing half done."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from cli.runner import FAIRWITNESS, fairwitness
from fairwitness import __version__
from fairwitness.cli.command_list import COMMANDS
from fairwitness.cli.exit_codes import ExitCode, exit_code_of
from fairwitness.errors import (
    BadDocument,
    DiskRefused,
    EventsBroken,
    FairWitnessError,
    InternalError,
    LedgerTampered,
    NotReady,
    Position,
    UsageError,
)
from fairwitness.kit.documents import Format, render
from support.fixtures import SEEDS, edited, value_of
from support.state import own_state


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    value: Any = value_of("000/plan-output.yaml")
    edited(value, "completion.status", "FINE")
    edited(value, "agent_output.payload.tasks[0].risk", "green")
    file = tmp_path / "plan-output.yaml"
    file.write_text(render(value, Format.YAML))
    return file


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_fits_eighty_columns_and_needs_no_argument(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = fairwitness(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert [line.split()[0] for line in done.stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()] == [
        command.name for command in COMMANDS
    ]


def test_version_is_one_line(tmp_path: Path) -> None:
    assert fairwitness("--version", cwd=tmp_path).stdout == f"fairwitness {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence", "next_step"),
    [
        (("stats",), "there is no command 'stats'. Did you mean `fairwitness status`?", "fairwitness --help"),
        (("frobnicate",), "there is no command 'frobnicate'.", "fairwitness --help"),
        (("schema", "check"), "missing argument 'FILE...'.", "fairwitness schema check --help"),
        (
            ("schema", "check", "--what", "x"),
            "no such option '--what'. Did you mean '--as'?",
            "fairwitness schema check --help",
        ),
        (
            ("schema", "check", "--as", "plan", "x.yaml"),
            "there is no contract called 'plan'",
            "fairwitness schema list",
        ),
        (("--wrong",), "no such option '--wrong'.", "fairwitness --help"),
    ],
)
def test_a_wrong_argument_gets_one_sentence_and_exit_two(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str, next_step: str
) -> None:
    done = fairwitness(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [f"fairwitness: {sentence}", f"next:  {next_step}"]


def test_a_broken_plan_is_refused_with_file_line_field_expected_and_found(plan: Path) -> None:
    done = fairwitness("schema", "check", plan.name, cwd=plan.parent)
    assert done.returncode == 1
    assert done.stdout == snapshot("""\
refused  plan-output.yaml (plan-output, 2 errors)
plan-output.yaml:28:7: error: agent_output.payload.tasks[0].risk: expected '🟢', '🟡' or '🔴'; found 'green'
plan-output.yaml:81:3: error: completion.status: expected 'DONE', 'NEEDS_REVISION' or 'ERROR'; found 'FINE'
""")
    assert done.stderr == "1 document: 0 valid, 1 refused\n"


def test_quiet_prints_violations_only(plan: Path) -> None:
    done = fairwitness("schema", "check", "--quiet", plan.name, cwd=plan.parent)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (1, 2, "")


def test_json_holds_the_same(plan: Path) -> None:
    done = fairwitness("schema", "check", "--json", plan.name, cwd=plan.parent)
    (report,) = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["contract"] == "plan-output"
    assert [violation["field"] for violation in report["violations"]] == [
        "agent_output.payload.tasks[0].risk",
        "completion.status",
    ]


def test_warnings_leave_zero_and_strict_makes_them_refuse(tmp_path: Path) -> None:
    file = SEEDS / "000" / "plan-output.yaml"
    assert fairwitness("schema", "check", file, cwd=tmp_path).returncode == 0
    assert fairwitness("schema", "check", "--strict", file, cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bomb.yaml", b"a: &a [*a]\n", "1:4: error: (document): expected a readable document; found anchors"),
        ("torn.json", b'{"a": ', "1:7: error: (document): expected a readable document; found not JSON"),
        ("bytes.yaml", b"a: \xff\n", "1:4: error: (document): expected a readable document; found the bytes here"),
        ("none.md", b"# no front matter\n", "1:1: error: (document): expected a readable document"),
    ],
)
def test_a_broken_file_is_one_violation_with_its_place(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = fairwitness("schema", "check", name, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{name}:{words}" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.yaml", "missing.yaml"),
        ("unknown.yaml", "cannot tell which contract"),
        ("x.txt", "unsupported file type"),
    ],
)
def test_what_cannot_be_checked_is_said_and_leaves_two(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "unknown.yaml").write_text("x: 1\n")
    (tmp_path / "x.txt").write_text("x: 1\n")
    done = fairwitness("schema", "check", name, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def test_terminal_codes_in_a_document_are_spelled_out(tmp_path: Path) -> None:
    value = edited(value_of("000/plan-output.yaml"), "completion.status", "\x1b[2J\u202eDONE")
    (tmp_path / "plan.json").write_text(json.dumps(value))
    done = fairwitness("schema", "check", "plan.json", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\x1b[2J\\u202eDONE" in done.stdout


def test_a_reader_that_goes_away_gets_no_traceback_and_is_no_success() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        done = subprocess.run([FAIRWITNESS, "schema", "list"], stdout=nobody, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_list_and_export_agree(tmp_path: Path) -> None:
    listed = json.loads(fairwitness("schema", "list", "--json", cwd=tmp_path).stdout)
    done = fairwitness("schema", "export", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert sorted(json.loads(done.stdout)["written"]) == sorted(
        f"{row['name']}-{row['version']}.json" for row in listed
    )
    (tmp_path / "out" / "plan-output-1.0.json").write_text("{}")
    again = fairwitness("schema", "export", "out", cwd=tmp_path)
    assert again.returncode == 1
    assert "refused    plan-output-1.0.json" in again.stdout


def test_status_in_a_fresh_repository_says_what_comes_next(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    inner = tmp_path / "src"
    inner.mkdir()
    done = fairwitness("status", cwd=inner)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"No runs in {tmp_path} yet.\n",
        "next:  fairwitness demo\n",
    )
    assert json.loads(fairwitness("status", "--json", cwd=inner).stdout) == {"root": str(tmp_path), "runs": []}
    assert not (tmp_path / ".fairwitness").exists()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be one" * 50, None])
def test_a_foreign_evidence_database_is_refused_and_not_written_to(tmp_path: Path, content: bytes | None) -> None:
    import sqlite3

    own_state(tmp_path)
    database = tmp_path / ".fairwitness" / "evidence.db"
    if content is None:
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE other (x)")
        connection.close()
    else:
        database.write_bytes(content)
    before = database.read_bytes()
    done = fairwitness("status", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(f"fairwitness: {database}")
    assert database.read_bytes() == before


def test_a_terminal_without_colours_or_letters_still_gets_an_answer(tmp_path: Path) -> None:
    file = SEEDS / "000" / "plan-output.yaml"
    done = fairwitness("schema", "check", file, cwd=tmp_path, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "\\U0001f534" in done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (NotReady("x"), 3),
        (DiskRefused("x"), 3),
        (BadDocument("x", Position(1, 1)), 1),
        (EventsBroken("x"), 6),
        (LedgerTampered("x"), 6),
        (FairWitnessError("x"), 70),
        (InternalError("x"), 70),
    ],
)
def test_every_error_has_its_exit_code(error: FairWitnessError, code: int) -> None:
    assert exit_code_of(error) == ExitCode(code)
