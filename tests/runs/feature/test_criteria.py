"""Acceptance criteria are judged in a real sandbox: by commands that are run, by places that are there, and once.

`python test_criteria.py ROOT HEAD COMMANDS` judges in a process of its own.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.evidence import CheckRow, Phase, Provenance
from fairwitness.contracts.common.gates import Open
from fairwitness.contracts.common.vocabulary import Assessment, Size
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.errors import NotReady, UsageError
from fairwitness.rules.gates import verification_sufficient
from fairwitness.runs.feature.evidence import judge_report
from fairwitness.verify.model import VerificationStopped
from verify.subjects import RUN, World, branch, make

TASK = "task-01"
CRITERIA = ("The price is more than nothing.", "Nothing is left to do.")
SETTINGS = """\
[verify]
mutants = 0

[[verify.check]]
name = "tests"
argv = ["sh", "tests/prices.sh"]

[[verify.check]]
name = "lint"
argv = ["sh", "tests/lint.sh"]

[[verify.check]]
name = "build"
argv = ["sleep", "0.1"]
timeout_s = 1
"""
LINT = "! grep -n TODO price\n"
PRICE = "sh tests/prices.sh"
LEFT = "sh tests/lint.sh price"
SLEEPS = "4321.75"
Opened = Callable[[], World]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Opened]:
    """Opens the world of a test, once its repository is there."""
    with ExitStack() as stack:

        def opened() -> World:
            try:
                return stack.enter_context(World.open(tmp_path))
            except NotReady as error:
                pytest.skip(f"no sandbox: {error.what}")

        yield opened


def report(*criteria: dict[str, Any], task: str = TASK) -> VerificationReport:
    """What a verifier says that believes everything is well."""
    counts = {"total_checks": 1, "passed": 1, "failed": 0}
    finding = {"check_name": "tests", "tier": 2, "phase": "after", "tool": "sh", "passed": True}
    payload = {
        "task_id": task,
        "run_id": "2026-02-26T14:30:00Z",
        "evidence_gate": {**counts, "gate_status": "passed"},
        "findings": [finding],
        "criteria": list(criteria),
    }
    header = {
        "agent": "verifier",
        "instance": task,
        "step": "step-6",
        "schema_version": "1.0",
        "started_at": "2026-02-26T14:30:00Z",
        "completed_at": "2026-02-26T14:31:00Z",
    }
    completion = {
        "status": "DONE",
        "summary": "It holds.",
        "severity": None,
        "findings_count": 0,
        "risk_level": None,
        "output_paths": ["x.yaml"],
    }
    return VerificationReport.model_validate({"agent_output": {**header, "payload": payload}, "completion": completion})


def commands(*proposed: str) -> VerificationReport:
    """A report that proposes a command for each criterion."""
    return report(*({"criterion": text, "command": each} for text, each in zip(CRITERIA, proposed, strict=False)))


def judged(
    here: World,
    said: VerificationReport | None,
    *,
    head: str = "good",
    round_: int = 1,
    criteria: tuple[str, ...] = CRITERIA,
    stop: threading.Event | None = None,
) -> tuple[str, ...]:
    sides = {"base": here.side("main"), "head": here.side(head)}
    return judge_report(here.deps, RUN, TASK, round_, criteria, said, **sides, stop=stop or threading.Event())


def rows(here: World, round_: int = 1) -> dict[str, CheckRow]:
    """The rows of the criteria by their names; there is one of each."""
    found = [row for row in here.deps.ledger.tally(RUN, TASK, Phase.AFTER, round_).rows if row.check_name[:3] == "ac-"]
    assert len({row.check_name for row in found}) == len(found)
    return {row.check_name: row for row in found}


def repository(root: Path, **branches: str) -> None:
    """`main`, and branches with a price each."""
    person = make(root, settings=SETTINGS)
    person.commit("a linter", **{"tests/lint.sh": LINT})
    for name, price in {"good": "2\n", **branches}.items():
        branch(person, name, price=price)


@pytest.mark.req("P9")
def test_commands_are_run_on_the_head_and_their_rows_open_the_gate(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    assert judged(here, commands(PRICE, LEFT)) == ()
    found = rows(here)
    assert list(found) == ["ac-1", "ac-2"]
    for row in found.values():
        assert (row.passed, row.provenance, row.assessment) == (True, Provenance.EXECUTED, Assessment.PASS)
        assert row.tree == here.side("good").tree
        assert row.sandbox is not None
    tally = here.deps.ledger.tally(RUN, TASK, Phase.AFTER, 1)
    answer = verification_sufficient(tally, size=Size.STANDARD, iteration=1, required=("ac-1", "ac-2"))
    assert not isinstance(answer, Open), "criteria carry no task by themselves"
    assert "ac" not in " ".join(answer.missing)
    (kept,) = here.deps.ledger.observations(RUN, "criteria")
    assert (kept.holds, kept.key, kept.detail["missing"]) == (True, "criteria:task-01:1", [])
    assert here.left() == []


@pytest.mark.req("P9", "X1")
def test_a_lying_verifier_is_found_out_by_its_own_command(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path, red="0\n")
    here = world()
    (said,) = judged(here, commands(PRICE, LEFT), head="red")
    assert said == "ac-1 is unmet: The price is more than nothing. (it fails: exit code 1)"
    found = rows(here)
    assert (found["ac-1"].passed, found["ac-1"].assessment) == (False, Assessment.FAIL)
    assert found["ac-2"].passed
    (kept,) = here.deps.ledger.observations(RUN, "criteria")
    assert not kept.holds


@pytest.mark.req("P9", "X1")
def test_what_may_not_be_run_is_unjudged_and_has_no_row(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    first, second = judged(here, commands("true", f"{PRICE} || true"))
    assert "ac-1 is unjudged" in first
    assert "no check of this project begins with true" in first
    assert "ac-2 is unjudged" in second
    assert "needs a shell" in second
    assert rows(here) == {}
    assert here.rows("executions") == []
    tally = here.deps.ledger.tally(RUN, TASK, Phase.AFTER, 1)
    answer = verification_sufficient(tally, size=Size.STANDARD, iteration=1, required=("ac-1", "ac-2"))
    assert not isinstance(answer, Open)
    assert {"ac-1 (not run)", "ac-2 (not run)"} <= set(answer.missing)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("price:1", None),
        ("./tests/prices.sh:1", None),
        ("price:2", "no line 2 in price, which has 1"),
        ("price:0", "no line 0"),
        ("prices.py:1", "no file prices.py"),
        ("tests:1", "no file tests"),
        ("../repo/price:1", "no file ../repo/price"),
        ("/etc/passwd:1", "no file /etc/passwd"),
    ],
)
def test_a_claim_is_taken_down_only_of_a_place_that_is_there(
    tmp_path: Path, world: Opened, place: str, reason: str | None
) -> None:
    repository(tmp_path)
    here = world()
    said = report({"criterion": CRITERIA[0], "location": place, "claim": "it is two"})
    missing = judged(here, said, criteria=CRITERIA[:1])
    if reason is None:
        assert missing == ()
        row = rows(here)["ac-1"]
        assert (row.passed, row.provenance, row.tree) == (True, Provenance.CLAIMED, None)
        ((body,),) = here.rows("claims", "body", "kind = 'criterion'")
        assert json.loads(body) == {
            "met": True,
            "criterion": CRITERIA[0],
            "place": place.removeprefix("./"),
            "claim": "it is two",
        }
    else:
        (told,) = missing
        assert told.startswith("ac-1 is unjudged")
        assert reason in told
        assert rows(here) == {}
        assert here.rows("claims") == []


@pytest.mark.req("P9")
def test_a_claim_that_a_criterion_is_not_met_shuts_the_gate(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    said = report({"criterion": CRITERIA[0], "location": "price:1", "claim": "it is two euros", "met": False})
    (told,) = judged(here, said, criteria=CRITERIA[:1])
    assert told.startswith("ac-1 is unmet")
    assert not rows(here)["ac-1"].passed
    tally = here.deps.ledger.tally(RUN, TASK, Phase.AFTER, 1)
    answer = verification_sufficient(tally, size=Size.STANDARD, iteration=1, required=("ac-1",))
    assert not isinstance(answer, Open)
    assert "ac-1 (failed)" in answer.missing


@pytest.mark.req("P9", "X1")
def test_without_a_report_or_with_another_tasks_nothing_is_judged(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    assert [each.partition(":")[0] for each in judged(here, None)] == ["ac-1 is unjudged", "ac-2 is unjudged"]
    assert here.rows("observations") == [], "a report that comes later is still heard"
    criteria = [{"criterion": text, "command": PRICE} for text in CRITERIA]
    told = judged(here, report(*criteria, task="task-02"))
    assert all("about task-02" in each for each in told)
    assert rows(here) == {}
    assert judged(here, commands(PRICE, LEFT), round_=2) == ()


@pytest.mark.req("P16")
def test_a_second_call_runs_nothing_and_adds_no_row(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path, red="0\n", other="3\n")
    here = world()
    place = {"criterion": CRITERIA[1], "location": "price:1", "claim": "a number"}
    said = report({"criterion": CRITERIA[0], "command": PRICE}, place)
    first = judged(here, said, head="red")
    before, head = here.content(), here.deps.ledger.head(RUN)
    assert judged(here, said, head="red") == first
    assert (here.content(), here.deps.ledger.head(RUN)) == (before, head)
    with pytest.raises(UsageError, match="judged for another tree"):
        judged(here, said, head="other")
    assert judged(here, said, head="other", round_=2) == ()


@pytest.mark.req("P9")
def test_a_command_that_a_check_ran_is_not_run_again_and_has_a_row_of_its_own(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    here.prove(TASK, 1, head="good")
    ran = here.rows("executions", "started_at")
    assert judged(here, commands(PRICE, PRICE)) == ()
    assert list(rows(here)) == ["ac-1", "ac-2"]
    assert {started for (started,) in here.rows("executions", "started_at")} == {started for (started,) in ran}
    with pytest.raises(UsageError, match="verified for another tree"):
        judged(here, commands(PRICE, PRICE), head="main")


@pytest.mark.req("P9", "X1")
def test_a_command_that_does_not_end_is_no_judgement_and_its_row_shuts_the_gate(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    here = world()
    (said,) = judged(here, commands(PRICE, f"sleep {SLEEPS}"))
    assert said == "ac-2 is unjudged: Nothing is left to do. (it did not end within 1 s)"
    assert rows(here)["ac-2"].assessment is Assessment.TIMEOUT


def spawned(root: Path, head: str, *proposed: str, kill_at: str | None = None) -> int:
    """A judging in a process of its own; how it ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if kill_at is not None:
        environment["FAIRWITNESS_KILL_AT"] = kill_at
    command = [sys.executable, __file__, str(root), head, *proposed]
    return subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode


POINTS = (
    "verify.turn.taken",
    "verify.ran.criterion-1",
    "verify.recorded.criterion-1",
    "verify.ran.criterion-2",
    "verify.recorded.criterion-2",
    "ledger.record.linked#3",
    "criteria.judged",
)


@pytest.mark.req("P16")
@pytest.mark.parametrize(("head", "second"), [("red", LEFT), ("good", f"sleep {SLEEPS}")])
def test_whoever_is_killed_leaves_what_a_repeat_makes_whole(
    tmp_path: Path, world: Opened, head: str, second: str
) -> None:
    repository(tmp_path, red="0\n")
    here = world()
    said = judged(here, commands(PRICE, second), head=head)
    assert len(said) == 1
    content, links = here.content(), here.deps.ledger.head(RUN).links
    for point in POINTS:
        for file in here.deps.state.glob("evidence.db*"):
            file.unlink()
        assert spawned(tmp_path, head, PRICE, second, kill_at=point) == -signal.SIGKILL, point
        with World.open(tmp_path) as again:
            assert judged(again, commands(PRICE, second), head=head) == said, point
            assert again.content() == content, point
            assert again.deps.ledger.head(RUN).links == links, point
            judged(again, commands(PRICE, second), head=head, round_=2)
            assert again.left() == [], point


@pytest.mark.req("P16")
def test_a_stop_ends_it_and_what_was_cut_off_is_on_no_record(tmp_path: Path, world: Opened) -> None:
    repository(tmp_path)
    person_settings = SETTINGS.replace("timeout_s = 1\n", "")
    (tmp_path / "repo" / "fairwitness.toml").write_text(person_settings)
    here = world()
    stop, ended = threading.Event(), list[BaseException]()

    def judging() -> None:
        try:
            judged(here, commands(f"sleep {SLEEPS}", PRICE), stop=stop)
        except VerificationStopped as error:
            ended.append(error)

    thread = threading.Thread(target=judging)
    thread.start()
    time.sleep(1.5)
    stop.set()
    thread.join(30)
    assert len(ended) == 1
    assert here.rows("executions") == []
    assert here.left() == []
    with pytest.raises(VerificationStopped):
        judged(here, commands(PRICE, LEFT), stop=stop)


UNIT = """\
import unittest
from shop import price


class Prices(unittest.TestCase):
    def test_two(self) -> None:
        self.assertEqual(price(), 2)

    @unittest.skip("later")
    def test_later(self) -> None:
        self.assertEqual(price(), 3)
"""


@pytest.mark.req("P9", "X1")
def test_tests_by_name_are_told_from_each_other_and_a_skipped_one_proves_nothing(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path, settings="[verify]\nmutants = 0\n")
    person.commit(
        "a project",
        **{
            "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
            "shop.py": "def price() -> int:\n    return 1\n",
            "tests/__init__.py": "",
            "tests/test_prices.py": UNIT,
        },
    )
    branch(person, "good", **{"shop.py": "def price() -> int:\n    return 2\n"})
    here = world()
    name = "tests.test_prices.Prices.test"
    criteria = ("two", "again two", "later", "gone", "none")
    proposed = (
        f"python3 -m unittest {name}_two",
        f"{name}_two",
        f"python3 -m unittest {name}_later",
        f"python3 -m unittest {name}_gone",
        "python3 -m unittest -k nothing_like_it",
    )
    said = report(*({"criterion": text, "command": each} for text, each in zip(criteria, proposed, strict=True)))
    later, gone, none = judged(here, said, criteria=criteria)
    assert later.startswith("ac-3 is unmet")
    assert "skipped" in later
    assert gone.startswith(("ac-4 is unmet", "ac-4 is unjudged"))
    assert none.startswith("ac-5 is unjudged")
    tally = here.deps.ledger.tally(RUN, TASK, Phase.AFTER, 1)
    required = tuple(f"ac-{number}" for number in range(1, 6))
    answer = verification_sufficient(tally, size=Size.STANDARD, iteration=1, required=required)
    assert not isinstance(answer, Open)
    shut = {each.partition(" ")[0] for each in answer.missing}
    assert {"ac-3", "ac-4", "ac-5"} <= shut
    assert not {"ac-1", "ac-2"} & shut
    before = here.content()
    assert judged(here, said, criteria=criteria) == (later, gone, none)
    assert here.content() == before


def main(root: str, head: str, *proposed: str) -> None:
    """Judges the criteria of the one task."""
    with World.open(Path(root)) as here:
        judged(here, commands(*proposed), head=head)


if __name__ == "__main__":
    main(*sys.argv[1:])
