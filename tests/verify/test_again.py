"""What failed is run again before it is believed: luck blocks nobody, and nothing that is broken passes for luck."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command
from fairwitness.contracts.verify.checks import (
    CheckSpec,
    Discovered,
    Language,
    OracleMode,
    Project,
    ReportFormat,
    VerifySettings,
)
from fairwitness.contracts.verify.report import Side
from fairwitness.contracts.verify.results import Comparison, Evidence, ItemChange, ItemOutcome, Moved, Ran, ReportItem
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from fairwitness.verify.cascade import CheckRuns
from fairwitness.verify.environment.model import Environment
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import ProposedChange
from fairwitness.verify.proofs import _noticed, is_no_worse
from fairwitness.verify.verification import VerificationResult, verify_change
from git.person import Person

ID = "t::luck"
NEW = "tests/test_new.py"
RUN = ("/bin/sh", "run", "{report}")
SPEC = CheckSpec(
    id="suite",
    name="tests",
    tier=2,
    root=".",
    language=Language.OTHER,
    tool="suite",
    argv=RUN,
    select=(*RUN, "{ids}"),
    report=ReportFormat.JUNIT,
    report_on="file",
    writes=True,
    required=True,
    found_in="run",
)
OFFERED = Discovered(projects=(), checks=(SPEC,), undiscovered=())
Passes = Callable[[str, bool, int], bool]
"""Whether the test passes: at `base`, `head` or `protected`, run alone or not, in which such run (from 1)."""


class Play:
    """A suite of two tests, one of which passes when the script says so."""

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self.runs: list[tuple[str, bool]] = []

    def __call__(self, command: Command) -> Reply:
        place = Path(command.confinement.worktree)
        code = (place / "shop.py").read_text()
        at = "base" if code == "old" else "head" if (place / NEW).exists() else "protected"
        run = (at, len(command.argv) > len(RUN))
        self.runs.append(run)
        passed = self.passes(*run, self.runs.count(run))
        luck = '<testcase classname="t" name="luck"/>'
        if not passed:
            luck = luck.replace("/>", '><failure message="lost the race"/></testcase>')
        suite = f'<testsuite name="s" tests="2" failures="{1 - passed}"><testcase classname="t" name="b"/>{luck}'
        return Reply(exit_code=1 - passed, files={command.argv[2]: f"{suite}</testsuite>".encode()})


@pytest.fixture
def proven(tmp_path: Path) -> Iterator[Callable[[Play], VerificationResult]]:
    """A change of code with a new test file, proven by a scripted suite."""
    person = Person.in_folder(tmp_path)
    person.write("shop.py", "old")
    person.commit("base")
    person.write("shop.py", "new")
    person.write(NEW, "")
    person.commit("head")
    repository = Repository.open(person.folder)
    shadow = Shadow.open(tmp_path / "shadow", repository)
    base, head = (
        Side(ref=ref, commit=repository.commit(ref), tree=repository.tree_of(repository.commit(ref)))
        for ref in ("HEAD~1", "HEAD")
    )
    change = ProposedChange(base, head, shadow.diff(base.tree, head.tree))

    def environment(project: Project, _tree: str) -> Environment:
        return Environment(project=project, language=Language.OTHER, digest="0" * 64, prepared_by="nobody")

    with closing(Ledger.open_file(tmp_path / "evidence.db", clock=system_clock)) as ledger:

        def prove(play: Play) -> VerificationResult:
            harness = Harness(
                runner=ScriptedRunner([ScriptedAnswer("*", play)], tier=SandboxTier.NAMESPACES),
                shadow=shadow,
                ledger=ledger,
                state=tmp_path / "state",
                work=tmp_path / "work",
                settings=VerifySettings(),
                run_id="verify-1",
                clock=system_clock,
                prepare=environment,
                use_cache=True,
            )
            return verify_change(
                harness,
                change,
                OFFERED,
                OFFERED,
                VerifySettings(),
                actor="Ada",
                strict=False,
                oracle=OracleMode.BASE,
                on_progress=lambda _progress: None,
                parallel=1,
            )

        yield prove


def _move(proven: VerificationResult) -> ItemChange | None:
    (line,) = proven.checks
    return next((moved.move for moved in line.moved if moved.id == ID), None)


LUCK: dict[str, Passes] = {
    "it passes in company the second time": lambda at, alone, turn: at != "head" or alone or turn > 1,
    "before the change it failed the second time": lambda at, alone, turn: at == "base" and not alone and turn == 1,
    "it fails once under the old tests": lambda at, alone, turn: at != "protected" or alone or turn > 1,
    "it passes by luck before and after, and fails under the old tests": (
        lambda at, alone, turn: at != "protected" and not alone and turn == 1
    ),
}
BROKEN: dict[str, tuple[Passes, str]] = {
    "it always fails": (lambda at, alone, turn: at == "base", "regressions suite (failed)"),
    "it fails in company": (lambda at, alone, turn: at == "base" or alone, "regressions suite (failed)"),
    "before the change it fails alone": (lambda at, alone, turn: at == "base" and not alone, "regressions suite"),
    "the old tests fail": (lambda at, alone, turn: at != "protected", "expectations suite (needs a person)"),
    "the old tests fail in company": (
        lambda at, alone, turn: at != "protected" or alone,
        "expectations suite (needs a person)",
    ),
}


@pytest.mark.req("P9")
@pytest.mark.parametrize("passes", LUCK.values(), ids=LUCK.keys())
def test_luck_blocks_nobody(passes: Passes, proven: Callable[[Play], VerificationResult]) -> None:
    told = proven(Play(passes))
    assert told.answer.answer == "open", told.answer
    assert _move(told) in (ItemChange.FLAKY, None)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(("passes", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_broken_does_not_pass_for_luck(
    passes: Passes, reason: str, proven: Callable[[Play], VerificationResult]
) -> None:
    answer = proven(Play(passes)).answer
    assert answer.answer == "blocked"
    assert any(missing.startswith(reason) for missing in answer.missing), answer.missing


def test_the_whole_suite_is_not_run_again_for_what_is_simply_broken(
    proven: Callable[[Play], VerificationResult],
) -> None:
    play = Play(lambda at, alone, turn: at == "base")
    proven(play)
    assert [at for at, alone in play.runs if not alone] == ["base", "head", "protected"]


def checked(after: Evidence, *moves: ItemChange | None) -> CheckRuns:
    project = Project(root=".", language=Language.OTHER, manifests=())
    comparison = Comparison(counts={}, moved=tuple(Moved(id=f"t::{move}", move=move) for move in moves if move))
    ran = Ran(check="suite", evidence=after, assessment=None)
    return CheckRuns(SPEC, project, SPEC, ran, ran, comparison=None if None in moves else comparison)


def test_new_tests_are_asked_about_also_where_the_base_was_red() -> None:
    assert is_no_worse(checked(Evidence.FAILED, ItemChange.STILL_BROKEN, ItemChange.NEW_PASSING))
    assert is_no_worse(checked(Evidence.FAILED, ItemChange.FLAKY))
    assert is_no_worse(checked(Evidence.PASSED, None))
    assert not is_no_worse(checked(Evidence.FAILED, ItemChange.STILL_BROKEN, ItemChange.BROKEN))
    assert not is_no_worse(checked(Evidence.FAILED, ItemChange.NEW_FAILING))
    assert not is_no_worse(checked(Evidence.NONE, None))


@pytest.mark.parametrize(
    ("outcomes", "noticed"),
    [
        ({"t::new": ItemOutcome.PASSED, "t::old": ItemOutcome.FAILED}, False),
        ({"t::new": ItemOutcome.FAILED, "t::old": ItemOutcome.FAILED}, True),
        ({"t::new": ItemOutcome.ERROR}, True),
        ({"t": ItemOutcome.ERROR}, None),
    ],
)
def test_a_mutant_is_judged_by_the_new_tests_alone(outcomes: dict[str, ItemOutcome], noticed: bool | None) -> None:
    items = tuple(ReportItem(id=id_, outcome=outcome) for id_, outcome in outcomes.items())
    ran = Ran(check="suite", evidence=Evidence.FAILED, assessment=None, items=items)
    assert _noticed(ran, frozenset({"t::new"})) is noticed
