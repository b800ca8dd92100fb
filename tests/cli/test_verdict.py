"""`fairwitness verdict` as a person types it: a word about a phase, written once, and refused where nobody asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.autopilot_grounds import RUN, begun, deferred, halted, lay_out, started, tell, types_of
from cli.graph_ledgers import fits
from cli.runner import fairwitness

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A run in which two phases wait for a person."""
    folder = lay_out(tmp_path / "shop")
    begun(folder, ("1", "2", "3.1"))
    tell(folder, started("1"), deferred("1"), started("3.1"), deferred("3.1"))
    return folder


def said(top: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    done = fairwitness("verdict", *arguments, cwd=top, COLUMNS="80")
    assert done.returncode == code, done.stderr
    assert "--json" in arguments or fits(done.stdout)
    return done.stdout, done.stderr


def plain(top: Path, *arguments: str) -> Any:
    return json.loads(said(top, *arguments, "--json")[0])


@pytest.mark.req("A19")
def test_a_verdict_is_written_down_and_the_next_one_asked_for(top: Path) -> None:
    out, err = said(top, "1", "pass")
    assert out == f"{RUN}: phase 1 pass\n"
    assert err == "2 of 2 phases were put to you\nnext:  fairwitness verdict 3.1 pass|fail|issues\n"
    out, err = said(top, "3.1", "issues", "--issue", "it is slow", "--issue", "it is grey")
    assert out == f"{RUN}: phase 3.1 issues found\n"
    assert err.endswith(f"next:  fairwitness resume {RUN}\n")
    state = json.loads((top / ".autopilot" / "state.json").read_text())
    assert state["phases"]["3.1"]["human_verdict"]["issues"] == ["it is slow", "it is grey"]
    assert types_of(top).count("human_verdict_recorded") == 2


@pytest.mark.req("A19")
def test_a_program_hears_what_followed(top: Path) -> None:
    told = plain(top, "1", "fail", "--run", RUN)
    assert told == {
        "run_id": RUN,
        "phase": "1",
        "verdict": "fail",
        "confidence_limit": {"before": 6.0, "after": 6.0},
        "warning": "2 of 2 phases were put to you",
        "waiting": ["3.1"],
        "is_carried": False,
        "next": "fairwitness verdict 3.1 pass|fail|issues",
    }


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("2", "pass"), "no phase 2 waits for a verdict"),
        (("2", "pass", "--run", RUN), f"phase 2 of {RUN} is not started and does not wait for a verdict"),
        (("9", "pass", "--run", RUN), f"{RUN} has no phase 9"),
        (("1", "maybe"), "maybe"),
        (("1", "issues"), "the verdict `issues` requires at least one"),
        (("1", "pass", "--run", "run-1"), "there is no run 'run-1'"),
        (("1",), "missing argument"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(top: Path, arguments: tuple[str, ...], told: str) -> None:
    out, err = said(top, *arguments, code=2)
    assert (out, told in err, "next:  " in err) == ("", True, True)
    assert "human_verdict_recorded" not in types_of(top)


@pytest.mark.req("A19")
def test_a_run_that_failed_may_still_hear_a_verdict(top: Path) -> None:
    tell(top, halted())
    said(top, "1", "pass")
    assert types_of(top)[-2:] != ["run_halted", "run_halted"]
    assert "human_verdict_recorded" in types_of(top)
