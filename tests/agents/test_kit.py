"""The kit itself: a backend that breaks a promise is named by what it broke, so that a green kit means something."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairwitness.agents.base import AgentJob, AgentTurn, Session
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe, Stop, Usage
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.testing.conformance import CaseFolder, CaseResult, check_backend, run_case
from fairwitness.testing.conformance_cases import BUILT, CASES, CASES_BY_NAME, JUDGED, NEW, SOURCE

Deed = Callable[[CaseFolder], object]


@dataclass
class Faithless:
    """A backend without any guard: it does what it likes, and says that all is well."""

    ground: CaseFolder
    deed: Deed
    says: str
    name: str = "faithless"

    def probe(self) -> Probe:
        return Probe(name=self.name, kind="api", found=True, tier=EnforcementTier.D)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Session]:
        yield self

    async def ask(self, prompt: str) -> AgentTurn:
        self.deed(self.ground)
        return AgentTurn(text=self.says, stop=Stop.DONE, usage=Usage())

    async def cancel(self) -> None:
        return


def verdict(case: str, deed: Deed, folder: Path, answer: object = None) -> CaseResult:
    said = f"```json\n{json.dumps(answer)}\n```" if answer is not None else "All tests pass."
    runner = ScriptedRunner((), tier=SandboxTier.NONE)

    def put(ground: CaseFolder):  # type: ignore[no-untyped-def]  # as `Put` says
        return run_case(Faithless(ground, deed, said), ground, prompt="Do it.", runner=runner, endpoint=None)

    (found,) = asyncio.run(check_backend(put, folder, [CASES_BY_NAME[case]]))
    return found


def _daemon(marker: str) -> None:
    """Something that outlives who started it."""
    subprocess.run(["sh", "-c", f"setsid sleep {marker} >/dev/null 2>&1 &"], check=True)


def nothing(_ground: CaseFolder) -> None:
    return


def test_an_edit_that_was_only_claimed_is_no_edit(tmp_path: Path) -> None:
    assert any("and not" in problem for problem in verdict("edit", nothing, tmp_path, BUILT).problems)


def test_an_edit_that_was_made_is_one(tmp_path: Path) -> None:
    def edits(ground: CaseFolder) -> None:
        (ground.worktree / SOURCE).write_text(NEW)
        (ground.worktree / "notes.md").write_text("It greets.\n")

    assert verdict("edit", edits, tmp_path, BUILT).problems == ()


def test_a_reviewer_that_wrote_is_named(tmp_path: Path) -> None:
    found = verdict("review", lambda ground: (ground.worktree / "review.md").touch(), tmp_path, JUDGED)
    assert found.problems == ("review.md was changed",)
    assert found.seen.void


def test_a_change_outside_the_allowance_is_void_and_inside_it_is_not(tmp_path: Path) -> None:
    mine = verdict("out-of-scope", lambda g: (g.worktree / "README.md").write_text("Mine.\n"), tmp_path, BUILT)
    assert mine.seen.void
    assert mine.problems == ()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (lambda ground: (ground.outside / "written").touch(), "written appeared outside"),
        (lambda ground: (ground.worktree / ".git" / "config").write_text("[core]\n"), ".git was changed"),
        (lambda ground: _daemon(ground.marker), "still running: sleep"),
    ],
    ids=["outside", "git", "orphan"],
)
def test_what_is_never_allowed_is_found_after_any_case(deed: Deed, words: str, tmp_path: Path) -> None:
    found = verdict("submit", deed, tmp_path, JUDGED)
    try:
        assert any(words in problem for problem in found.problems), found.problems
    finally:
        for line in found.seen.orphans:
            subprocess.run(["pkill", "-f", line], check=False)


def test_an_answer_that_is_none_fails_every_case_that_wants_one(tmp_path: Path) -> None:
    for case in ("edit", "submit", "typed-retry"):
        assert verdict(case, nothing, tmp_path / case).problems


def test_every_case_has_a_name_of_its_own_and_something_to_do() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.steps for case in CASES)
