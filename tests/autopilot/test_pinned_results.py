"""A remediation that pins a wrong result in a test is not merged; its honest twin, which adds a right test, is."""

from pathlib import Path

import pytest

from autopilot.grounds import CHECK, Document, Grounds
from autopilot.loops import PATIENT, cycle, history, scored
from autopilot.team import part
from fairwitness.app.views.run import WatchEnd
from feature.grounds import call, git

RUN_TESTS = 'for test in tests/*; do sh "$test" || { echo "$test failed"; exit 1; }; done\n'


def expects(name: str, content: str) -> str:
    """A test that expects this content of a part."""
    return f'test "$(cat parts/{name})" = {content}\n'


def pins(name: str, content: str) -> tuple[str, Document]:
    """Writes such a test."""
    return call("create_file", path=f"tests/{name}.sh", content=expects(name, content))


@pytest.mark.req("A2", "A3", "A13", "X1")
@pytest.mark.timeout(300)
@pytest.mark.width("sweep")
def test_a_remediation_that_pins_a_wrong_result_is_stopped_and_its_honest_twin_is_merged(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, breaker=PATIENT)
    grounds.commit("check.sh", CHECK.replace("echo OK\n", f"{RUN_TESTS}echo OK\n"))
    grounds.commit("tests/first.sh", expects("first", "good"))
    for phase in (1, 2):
        grounds.plays(f"rate-{phase}-1-1", scored(8.5))
    lies = {2: "1-part", 3: "first"}  # a new test that expects the wrong result, and one of the base that is changed
    for graph, name in lies.items():
        node = f"p1-cycle-{graph}"
        grounds.plays(node, whole=grounds.good("p1-cycle-1"), calls=[part(name, "bad\n"), pins(name, "bad")])
        for number in (0, 1, 2, 3):
            grounds.plays(f"{node}-check-{number}", whole=grounds.good("p1-cycle-1-check-0"), calls=())
            grounds.plays(f"{node}-debug-{number}", whole=grounds.good("p1-part-1-debug-1"), calls=())
    cycle(grounds, 2, 2, 2, 9.4)
    grounds.plays("p2-cycle-2", whole=grounds.good("p2-cycle-1"), calls=[pins("2-part", "good")])
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED

    # the phase's criterion stops one lie, the base's own test the other
    first, second = (each["error"] for each in run.events("task_failed", task="p1-cycle"))
    assert first.startswith("The part 1-part is a good one (`sh check.sh parts/1-part`): it ended with fail")
    assert "oracle-tests tests (failed)" in second

    # neither was merged, verified or rated, and phase 1 keeps the score that it had
    assert git(run.top, "diff", "--name-only", "main", run.target).split() == [
        *("parts/1-part", "parts/2-part", "tests/2-part.sh"),
    ]
    assert {step for name, step, _ in run.steps() if name in ("1-2", "1-3")} == {"preflight", "execute"}
    assert history(run, "1") == [(8.5, "initial", 0)]
    assert run.state().phases["1"].force_incomplete

    # the honest twin is
    assert history(run, "2") == [(8.5, "initial", 0), (9.4, "remediation", 1)]
    assert not run.state().phases["2"].force_incomplete
