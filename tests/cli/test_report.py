"""`fairwitness report`: one file, its path on stdout, and an exit code that says whether it may be trusted."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from app.report_ledgers import RUN, finished
from app.report_pages import demo_page
from cli.runner import fairwitness
from support.gates import assert_gates_are_explained

PROGRAM = (
    "import sys\n"
    "from fairwitness.cli import group\n"
    "group._MODULES.setdefault('report', 'fairwitness.cli.commands.report')\n"  # whatever the table of commands says
    "sys.exit(group.run(['report', *sys.argv[1:]]))\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    finished(tmp_path).close()
    return tmp_path


def report(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What the command prints and how it leaves."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.req("F5")
def test_the_path_is_on_stdout_and_what_to_do_on_stderr(repository: Path) -> None:
    done = report("last", cwd=repository)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path == repository / ".fairwitness" / "reports" / f"{RUN.replace(':', '-')}.html"
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert "committed" in done.stderr
    assert "next:" in done.stderr


def test_as_json_it_is_one_object(repository: Path) -> None:
    done = report(RUN, "--out", "out.html", "--json", cwd=repository)
    said = json.loads(done.stdout)
    assert (done.returncode, said["path"]) == (0, str(repository / "out.html"))
    assert (said["run_id"], said["outcome"], said["ledger_is_sound"]) == (RUN, "committed", True)
    assert said["bytes"] == (repository / "out.html").stat().st_size


def test_somebody_elses_file_stays_unless_forced(repository: Path) -> None:
    (repository / "mine.txt").write_text("mine")
    done = report(RUN, "--out", "mine.txt", cwd=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--force" in done.stderr
    assert (repository / "mine.txt").read_text() == "mine"
    assert report(RUN, "--out", "mine.txt", "--force", cwd=repository).returncode == 0


def test_a_ledger_that_was_edited_leaves_with_six(repository: Path) -> None:
    with sqlite3.connect(repository / ".fairwitness" / "evidence.db") as connection:
        connection.execute("DROP TRIGGER anvil_checks_no_update")
        connection.execute("UPDATE anvil_checks SET passed = 1")
    connection.close()
    done = report(RUN, cwd=repository)
    assert done.returncode == 6
    assert "was tampered with" in done.stderr
    assert "NOT TO BE TRUSTED" in Path(done.stdout.strip()).read_text()


def test_without_such_a_run_or_a_ledger_there_is_none(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert report("nobody", cwd=repository).returncode == 2
    assert report("last", cwd=tmp_path_factory.mktemp("empty")).returncode == 3


@pytest.mark.width("sweep")  # one whole autopilot run
@pytest.mark.timeout(300)
def test_the_report_of_an_autopilot_run_says_which_phase_failed_and_why(tmp_path: Path) -> None:
    fairwitness("demo", "--autopilot", "--dir", tmp_path / "here", cwd=tmp_path)
    _, page = demo_page(tmp_path / "here" / "larder")
    assert "Failed: 3 of 5 phases completed Failed: phase 3; blocked by that: phase 4." in page.header
    assert "phase 3 Recipes: LAR-04: amounts are rounded down, so they are not scaled exactly" in page.header
    assert "Tasks 6 of 6 merged, 1 taken back Criteria 7 of 9 met" in page.header
    answers = assert_gates_are_explained(tmp_path / "here" / "larder")
    assert {name: answer["answer"] for name, answer in answers.items()} == {
        **{f"phase:{phase}": "open" for phase in (1, 2, 5)},
        **{f"phase:{phase}": "blocked" for phase in (3, 4)},
    }
    shown = fairwitness("task", "show", "p3-recipes", cwd=tmp_path / "here" / "larder")
    assert shown.stdout.startswith("p3-recipes  type 2  MERGED  attempt 1\n")
    assert "Scale recipes. Write larder/recipes.py" in shown.stdout
    words = " ".join(page.text.split())
    assert "p3-recipes reverted" in words
    assert "A printed slip can be read at the shelf, an arm's length away met decided by" in words
    assert "A dish can be cooked only if the stock holds all of its scaled recipe not run" in words
