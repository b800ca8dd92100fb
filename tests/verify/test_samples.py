"""Every honest change to a sample holds and every lie is blocked for the right reason, also where the base is red."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.runner import fairwitness
from verify.belongings import belongings, leave_things_about
from verify.samples import Change, Repository, Sample, build, cases
from verify.toolchains import installed, require, search_path

BAD = {"broken", "new and failing", "vanished", "silenced"}

pytestmark = [pytest.mark.timeout(600), pytest.mark.req("P9")]


def _cases(*, honest: bool) -> list[object]:
    return [
        pytest.param(sample, name, red, id=f"{sample.name}-{name}{'-on-red' if red else ''}", marks=marks)
        for sample, name, red, marks in cases(honest=honest)
    ]


class Workbench:
    """Repositories of samples, one for all changes of a sample, so that its environment is prepared once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[str, Repository] = {}

    def repository(self, sample: Sample) -> Repository:
        require(sample)
        installed(sample, self._folder / "packages")
        if sample.name not in self._built:
            self._built[sample.name] = build(sample, self._folder / sample.name)
            leave_things_about(self._folder / sample.name)
        return self._built[sample.name]


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(tmp_path_factory.mktemp("samples"))


def _verified(workbench: Workbench, sample: Sample, name: str, *, red: bool) -> tuple[int, dict[str, Any]]:
    """How `fairwitness verify` leaves and what it reports; the person's things stay as they are."""
    repository = workbench.repository(sample)
    before = belongings(repository.folder)
    done = fairwitness(
        *("verify", "--base", repository.base(red=red), "--head", repository.head(name, red=red)),
        *("--json", "--quiet", *sample.flags, *sample.changes[name].flags),
        cwd=repository.folder,
        PATH=search_path(),
    )
    assert belongings(repository.folder) == before
    assert done.stdout.startswith("{"), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


def _statements(report: dict[str, Any]) -> list[str]:
    """Everything that is held against a change, a sentence each."""
    answer = report["answer"]
    said = [answer.get("because", ""), *answer.get("missing", ())]
    said += [f"{lost['check']}: {lost['reason']}" for lost in report["missing"] if not lost["excused"]]
    said += [
        f"{found['check']} {found['rule']}: {found['text']} in {found['path']} {found.get('subject')}"
        for found in report["findings"]
        if found["blocks"] and found.get("accepted") is None
    ]
    said += [f"expectations {one['id']}: {one.get('message')}" for one in report.get("expectations", ())]
    for check in report["checks"]:
        said += [f"{check['name']} {check['id']}: {check['reason']}"] if "reason" in check else []
        said += [f"{check['name']} {moved['move']}: {moved['id']}" for moved in check["moved"] if moved["move"] in BAD]
    return said


def _names(statement: str, change: Change) -> bool:
    return all(word.lower() in statement.lower() for word in (change.reason, change.subject) if word is not None)


@pytest.mark.parametrize(("sample", "name", "red"), _cases(honest=True))
def test_an_honest_change_holds(workbench: Workbench, sample: Sample, name: str, red: bool) -> None:
    code, report = _verified(workbench, sample, name, red=red)
    assert (code, report["answer"]["answer"]) == (0, "open"), "\n".join(_statements(report))


@pytest.mark.parametrize(("sample", "name", "red"), _cases(honest=False))
def test_a_lie_is_blocked_for_what_it_is(workbench: Workbench, sample: Sample, name: str, red: bool) -> None:
    code, report = _verified(workbench, sample, name, red=red)
    statements = _statements(report)
    # a weakened test that hides nothing needs a person; everything else is wrong
    assert (code, report["answer"]["answer"]) in {(1, "blocked"), (4, "blocked")}, "\n".join(report["notes"])
    assert any(_names(statement, sample.changes[name]) for statement in statements), "\n".join(statements)
