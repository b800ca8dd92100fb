"""A recorded command as it is shown: named programs instead of sources, no folders of Fair Witness."""

import shlex

import pytest

from fairwitness.verify.discovery.node import NODE_TEST
from fairwitness.verify.discovery.programs import PROGRAMS
from fairwitness.verify.environment.interpreters import BOOTSTRAP
from fairwitness.verify.shown_command import shown_command

STATE = "/home/a b/shop/.fairwitness"
PYTHON = f"{STATE}/env/668bb83b/try-3by7/venv/bin/python"
ROOM = f"{STATE}/work/turn-b24a/2717d55e"
STARTED = (PYTHON, str(BOOTSTRAP), "--checkout", f"{ROOM}/tree", "--origin", f"{ROOM}/report/o", "--packages", "a")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_our_own_is_shown_by_its_name(name: str) -> None:
    line = shlex.join(["tool", "-c", PROGRAMS[name], "src"])
    assert shown_command(line) == f"tool -c <{name}> src"


def test_a_reporter_inside_an_option_is_shown_by_its_name() -> None:
    report = f"{ROOM}/report/report.xml"
    line = shlex.join(["node", "--test", *(word.replace("{report}", report) for word in NODE_TEST)])
    assert shown_command(line) == (
        "node --test --test-reporter=<node_reporter.mjs> --test-reporter-destination=report.xml"
    )


def test_the_bootstrap_is_left_out() -> None:
    assert shown_command([*STARTED, "--", "unittest", "discover", "-v"]) == "python -m unittest discover -v"
    assert shown_command([*STARTED, "--", "tools/lint.py", "till", "--"]) == "python tools/lint.py till --"


def test_a_script_of_the_project_with_the_same_name_stays() -> None:
    assert shown_command("python tools/bootstrap.py -- x") == "python tools/bootstrap.py -- x"
    assert shown_command("python tools/bootstrap.py --checkout x") == "python tools/bootstrap.py --checkout x"


def test_folders_that_are_removed_afterwards_are_left_out() -> None:
    words = ["ruff", f"{ROOM}/tree/src", f"--cache={ROOM}/tree", f"{ROOM}/report/r.xml"]
    assert shown_command(words) == "ruff src --cache=. r.xml"


def test_a_source_that_is_not_ours_is_shown_by_its_length() -> None:
    assert shown_command(shlex.join(["python", "-c", "import sys\nsys.exit()\n"])) == "python -c <2 lines>"
    assert shown_command(["sh", "-c", "echo 'a b' | wc"]) == "sh -c 'echo '\"'\"'a b'\"'\"' | wc'"
    assert len(shown_command(["x" * 10_000])) < 210


def test_words_that_are_no_command_line_are_shown_as_one_line() -> None:
    assert shown_command("adversarial-review") == "adversarial-review"
    assert shown_command("it's\nbroken") == "it's broken"
