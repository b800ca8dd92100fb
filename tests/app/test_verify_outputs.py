"""A verification as SARIF, as JUnit and for GitHub: whatever a change wrote into its names, the form stays whole."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.app.verification.formats import MOST, annotations, junit, markdown, sarif, write_junit, write_sarif
from fairwitness.contracts.common.evidence import EvidenceQuery, SandboxTier
from fairwitness.contracts.common.gates import Blocked, Gate, Open
from fairwitness.contracts.verify.report import CheckLine, FindingLine, MissingLine, Side, VerifyReport
from fairwitness.contracts.verify.results import Evidence, ItemChange, Moved

QUERY = EvidenceQuery(sql="SELECT 1", values=())
TREE = "a" * 40
BLOCKED = Blocked(
    gate=Gate.CHANGE_HOLDS,
    missing=("tests pytest (regressed)",),
    because="1 check says no",
    count=0,
    threshold=1,
    query=QUERY,
)
OPEN = Open(gate=Gate.CHANGE_HOLDS, evidence=(1,), count=1, threshold=1, query=QUERY)


def check(**differs: Any) -> CheckLine:
    ordinary: dict[str, Any] = {
        "id": "pytest",
        "name": "tests",
        "tool": "pytest",
        "tier": 2,
        "required": True,
        "baseline": Evidence.PASSED,
        "after": Evidence.PASSED,
    }
    return CheckLine(**(ordinary | differs))


def report(**differs: Any) -> VerifyReport:
    ordinary: dict[str, Any] = {
        "run_id": "verify-1",
        "base": Side(ref="main", commit="b" * 40, tree=TREE),
        "head": Side(ref="HEAD", commit="c" * 40, tree=TREE),
        "sandbox": SandboxTier.NAMESPACES,
        "warnings": (),
        "answer": OPEN,
        "checks": (check(),),
        "findings": (),
        "missing": (),
        "notes": (),
        "changed": 1,
        "duration_ms": 1200,
        "ledger_head": "7:" + "a" * 64,
        "anchored": "in git and in the user's state directory",
        "next": "fairwitness ledger gates verify-1",
    }
    return VerifyReport(**(ordinary | differs))


def finding(text: str = "an assertion was dropped", path: str = "tests/test_a.py", **differs: Any) -> FindingLine:
    ordinary: dict[str, Any] = {"check": "oracle-files", "rule": "assertions-dropped", "line": 3, "blocks": True}
    return FindingLine(path=path, text=text, **(ordinary | differs))


BROKEN = check(
    after=Evidence.FAILED,
    reason="tests/test_a.py::test_b broken",
    moved=(Moved(id="tests/test_a.py::test_b", move=ItemChange.BROKEN, message="assert 1 == 2"),),
)
MISSING = MissingLine(check="lint ruff", reason="ruff is not installed", excused=False)


@pytest.mark.req("X5")
def test_sarif_places_every_finding_and_everything_that_got_worse(tmp_path: Path) -> None:
    told = report(answer=BLOCKED, checks=(BROKEN,), findings=(finding(),), missing=(MISSING,))
    write_sarif(told, tmp_path / "fairwitness.sarif")
    written = json.loads((tmp_path / "fairwitness.sarif").read_text())
    assert written == sarif(told)
    (run,) = written["runs"]
    assert [(one["ruleId"], one["level"]) for one in run["results"]] == [
        ("assertions-dropped", "error"),
        ("tests-broken", "error"),
        ("no-evidence", "error"),
    ]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "tests/test_a.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3},
    }
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {one["ruleId"] for one in run["results"]}


def test_what_a_person_accepted_is_a_note() -> None:
    (run,) = sarif(report(findings=(finding(accepted="the price changed"),)))["runs"]
    assert [one["level"] for one in run["results"]] == ["note"]


@pytest.mark.req("X5")
def test_junit_counts_what_it_lists(tmp_path: Path) -> None:
    told = report(answer=BLOCKED, checks=(check(), BROKEN), findings=(finding(), finding()), missing=(MISSING,))
    write_junit(told, tmp_path / "fairwitness.xml")
    suite = ElementTree.parse(tmp_path / "fairwitness.xml").getroot()[0]
    cases = list(suite)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
        "skipped": "0",
    }
    assert len(cases) == 4
    assert [case[0].tag if len(case) else "passed" for case in cases] == ["passed", "failure", "error", "failure"]


def test_an_excused_check_is_skipped_in_junit() -> None:
    silent = check(after=Evidence.NONE, reason="ruff is not installed", excused=True)
    assert "<skipped" in junit(report(checks=(silent,)))


def test_github_gets_the_answer_first_and_at_most_ten_of_a_kind() -> None:
    many = tuple(finding(text=f"number {number}") for number in range(30))
    lines = annotations(report(answer=BLOCKED, findings=many)).splitlines()
    assert lines[0] == "::error::blocked: 1 check says no: tests pytest (regressed)"
    assert lines[1] == "::error file=tests/test_a.py,line=3::assertions-dropped: number 0"
    assert sum(line.startswith("::error") for line in lines) == MOST
    assert annotations(report()).startswith("::notice::the change holds")


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_no_text_of_a_change_breaks_out_of_its_place(text: str) -> None:
    told = report(answer=BLOCKED, findings=(finding(text=text, path=text),), notes=(text,), checks=(BROKEN,))
    assert all(line.startswith("::") for line in annotations(told).split("\n")[:-1])
    ElementTree.fromstring(junit(told))
    json.dumps(sarif(told)).encode(errors="surrogatepass")
    for line in markdown(told).split("\n"):
        assert line == "" or line.startswith(("#", "|", "- "))
