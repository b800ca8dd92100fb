"""A small hostile document cannot make the checker work or remember without end."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairwitness.app.schemas import check
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.problems import ProblemLevel
from fairwitness.kit.documents import Format, render
from fairwitness.rules.validation import problems_in
from support.fixtures import value_of


@pytest.mark.parametrize(
    ("name", "content", "contract", "words"),
    [
        ("x.json", "[" + ",".join(["{}"] * 99_000) + "]", "autopilot-metrics", "more than 10000 values"),
        ("x.json", "[" + ",".join(["{}"] * 9_000) + "]", "autopilot-metrics", "more than 500 violations"),
        ("x.yaml", "decisions:\n" + "- {}\n" * 9_000, "decision-log", "more than 500 violations"),
        (
            "x.json",
            "{" + ",".join(f'"k{n}":1' for n in range(4_900)) + "}",
            "event-envelope",
            "more than 500 violations",
        ),
        ("x.jsonl", "{}\n" * 90_000, "autopilot-trace-span", "more than 500 violations"),
    ],
)
def test_a_document_wrong_in_a_million_places_is_refused_with_the_first_of_them(
    tmp_path: Path, name: str, content: str, contract: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    (report,) = check([tmp_path / name], contract=contract)
    assert 1 <= report.errors <= 501
    assert words in report.violations[0].found


def test_checking_the_worst_of_them_needs_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("[" + ",".join(["{}"] * 9_900) + "]")
    program = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from fairwitness.app.schemas import check\n"
        "check([Path(sys.argv[2])], contract='autopilot-metrics')\n"  # everything is loaded once
        "if os.fork() == 0:\n"  # a child's own high-water mark begins anew
        "    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    check([Path(sys.argv[1])], contract='autopilot-metrics')\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)\n"
        "    sys.stdout.flush()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    small = tmp_path / "small.json"
    small.write_text("[{}]")
    done = subprocess.run([sys.executable, "-c", program, file, small], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 * 1024


def test_a_document_with_a_few_hundred_mistakes_lists_them_all(tmp_path: Path) -> None:
    value = value_of("000/decisions.yaml")
    value["decisions"] = [{"id": f"DL-{number:03}"} for number in range(100)]
    (tmp_path / "decisions.yaml").write_text(render(value, Format.YAML))
    (report,) = check([tmp_path / "decisions.yaml"], contract="decision-log")
    assert report.errors == 300


@pytest.mark.req("P1")
def test_what_is_no_version_is_refused_once_and_not_warned_about() -> None:
    value = {"agent_output": {"schema_version": "one"}}
    found = [
        problem
        for problem in problems_in(value, entry_of("plan-output"), strict=True)
        if "schema_version" in problem.where
    ]
    assert [problem.level for problem in found] == [ProblemLevel.ERROR]
