"""Instruction files change only by a person's word, only as it was shown, and only if nobody changed them meanwhile."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.feature.knowledge import InstructionUpdate
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.feature.context import ORDER, FeatureContext
from fairwitness.runs.feature.instructions import APPROVED, REFUSED, apply, diff_of, proposals, propose, proposed_text
from fairwitness.runs.feature.ledger_queries import evaluations
from fairwitness.store.artifacts import Store
from runs.feature.contexts import RUN, clock
from runs.feature.contexts import context as begun

FILE = ".github/instructions/pipeline.md"
COPILOT = ".github/copilot-instructions.md"
OLD = "# Rules\n\nNames are English.\nAgents MUST NOT push.\n\n- one\n- two\n- one\n"
PERSON = "Ada <ada@example.com>"


def _update(change: str = "append", patch: str = "Dates are ISO 8601.", **differs: Any) -> InstructionUpdate:
    plain = {"file_path": FILE, "change_type": change, "change_summary": "say it", "patch": patch}
    return InstructionUpdate.model_validate(plain | differs)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made = begun(tmp_path, mode=ApprovalMode.INTERACTIVE)
    made.files.put(FILE, OLD.encode())
    made.files.put(COPILOT, OLD.encode())
    yield made
    made.ledger.close()


def _rows(context: FeatureContext) -> list[tuple[str, bool]]:
    found = evaluations(context.ledger.database, context.run_id).instructions
    return [(each.file, each.applied) for each in found]


@pytest.mark.req("P10")
def test_a_proposal_is_a_row_once_and_changes_no_file(context: FeatureContext) -> None:
    for _ in range(2):
        propose(context, [_update(), _update(file_path=COPILOT)])
    assert _rows(context) == [(FILE, False), (COPILOT, False)]
    assert proposals(context) == (_update(), _update(file_path=COPILOT))
    assert context.files.get(FILE) == OLD.encode()


@pytest.mark.req("P10")
def test_what_the_filter_refuses_is_told_and_is_no_proposal(context: FeatureContext) -> None:
    token = "ghp_" + "a1B2" * 9
    refused = (
        _update("modify", "# Rules\n\nNames are English.\n"),
        _update(patch="Skip slow checks."),
        _update(patch=f"Use {token}."),
        _update("create"),
        _update(patch="half a sign \ud800"),
    )
    propose(context, refused)
    propose(context, refused)
    seen = context.ledger.observations(context.run_id, REFUSED)
    assert [(each.holds, each.detail["grounds"]) for each in seen] == [
        (False, ["protected_text_removed"]),
        (False, ["check_removed"]),
        (False, ["holds_a_secret"]),
        (False, ["patch_does_not_fit"]),
        (False, ["hidden_text"]),
    ]
    assert token not in str(seen)
    assert _rows(context) == []
    for update in refused:
        with pytest.raises(UsageError, match="did not propose"):
            apply(context, update, PERSON)


@pytest.mark.req("P10")
def test_an_approved_change_is_written_as_it_was_shown_and_only_once(context: FeatureContext) -> None:
    propose(context, [_update()])
    shown = diff_of(context, _update())
    assert shown == snapshot("""\
--- a/.github/instructions/pipeline.md
+++ b/.github/instructions/pipeline.md
@@ -6,3 +6,5 @@
 - one
 - two
 - one
+
+Dates are ISO 8601.
""")
    apply(context, _update(), PERSON)
    written = context.files.get(FILE)
    assert written == OLD.encode() + b"\nDates are ISO 8601.\n"
    assert _rows(context) == [(FILE, False), (FILE, True)]
    assert proposals(context) == ()
    (approved,) = context.ledger.observations(context.run_id, APPROVED)
    assert approved.detail == {"approved_by": PERSON, "diff": shown}
    apply(context, _update(), PERSON)
    assert context.files.get(FILE) == written
    assert len(_rows(context)) == 2


@pytest.mark.req("P10")
def test_a_diff_shows_new_files_and_changed_line_ends(context: FeatureContext) -> None:
    new = diff_of(context, _update("create", "# A\n", file_path=".github/instructions/new.md"))
    assert new == "--- /dev/null\n+++ b/.github/instructions/new.md\n@@ -0,0 +1 @@\n+# A\n"
    context.files.put(FILE, b"# A\r\n")
    assert diff_of(context, _update("modify", "# A")).endswith("-# A\r\n+# A\n")


@pytest.mark.req("P10")
@pytest.mark.parametrize("point", ["approved", "written"])
def test_a_change_that_was_begun_is_finished_once(tmp_path: Path, point: str) -> None:
    context = begun(tmp_path, mode=ApprovalMode.INTERACTIVE)
    context.files.put(FILE, OLD.encode())
    propose(context, [_update()])
    context.ledger.close()
    code = f"from runs.feature.test_instructions import *; go_on(Path({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    kill = {"FAIRWITNESS_KILL_AT": f"feature.instruction.{point}"}
    killed = subprocess.run([sys.executable, "-c", code], env=environment | kill, check=False)
    assert killed.returncode == -signal.SIGKILL
    context = opened(tmp_path)
    assert _rows(context) == [(FILE, False)]
    context.ledger.close()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    context = opened(tmp_path)
    assert _rows(context) == [(FILE, False), (FILE, True)]
    assert context.files.get(FILE) == OLD.encode() + b"\nDates are ISO 8601.\n"
    context.ledger.close()


def opened(tmp_path: Path) -> FeatureContext:
    """The room of a run that was begun, as another process opens it."""
    repository, state = Repository.open(tmp_path / "till"), tmp_path / "state"
    ledger = Ledger.open_file(state / "evidence.db", clock=clock)
    order = ledger.observation(RUN, ORDER)
    assert order is not None
    return FeatureContext(
        run_id=RUN,
        order=FeatureOrder.model_validate(order.detail["order"]),
        repository=repository,
        shadow=Shadow.open(state / "git", repository),
        ledger=ledger,
        files=Store(tmp_path / "till"),
        kept=Store(state),
        clock=clock,
    )


def go_on(tmp_path: Path) -> None:
    """Applies what was proposed."""
    context = opened(tmp_path)
    apply(context, _update(), PERSON)
    context.ledger.close()


@pytest.mark.req("P10")
@pytest.mark.parametrize("approver", ["knowledge-agent", "fairwitness", "", "planner"])
def test_nobody_but_a_person_approves(context: FeatureContext, approver: str) -> None:
    propose(context, [_update()])
    with pytest.raises(UsageError, match=r"is not changed: (approved_by_no_person|not_approved)"):
        apply(context, _update(), approver)
    assert context.files.get(FILE) == OLD.encode()
    assert _rows(context) == [(FILE, False)]


@pytest.mark.req("P10")
def test_the_one_file_beside_the_folder_is_never_changed(context: FeatureContext) -> None:
    propose(context, [_update(file_path=COPILOT)])
    with pytest.raises(UsageError, match="file_is_never_changed_by_a_run"):
        apply(context, _update(file_path=COPILOT), PERSON)
    assert context.files.get(COPILOT) == OLD.encode()


@pytest.mark.req("P10")
def test_a_run_without_a_person_only_proposes(tmp_path: Path) -> None:
    context = begun(tmp_path)
    propose(context, [_update("create")])
    with pytest.raises(UsageError, match="nobody_is_there_to_approve"):
        apply(context, _update("create"), PERSON)
    assert not context.files.exists(FILE)
    assert _rows(context) == [(FILE, False)]
    context.ledger.close()


@pytest.mark.req("P10")
def test_a_file_that_somebody_changed_meanwhile_is_left_alone(context: FeatureContext) -> None:
    propose(context, [_update(), _update("create", file_path=".github/instructions/new.md")])
    context.files.put(FILE, b"# Mine\n")
    context.files.put(".github/instructions/new.md", b"# Mine\n")
    for update in proposals(context):
        with pytest.raises(UsageError, match="is not what it was"):
            apply(context, update, PERSON)
    assert context.files.get(FILE) == context.files.get(".github/instructions/new.md") == b"# Mine\n"
    assert [applied for _, applied in _rows(context)] == [False, False]


@pytest.mark.req("P10")
def test_a_file_that_is_no_plain_text_fits_nothing(context: FeatureContext, tmp_path: Path) -> None:
    (tmp_path / "till" / ".github" / "instructions" / "link.md").symlink_to(tmp_path / "till" / "README.md")
    context.files.put(".github/instructions/data.md", b"\xff\xfe")
    for name in ("link", "data"):
        with pytest.raises(UsageError, match="does not fit"):
            diff_of(context, _update(file_path=f".github/instructions/{name}.md"))


DIFF = """\
--- a/.github/instructions/pipeline.md
+++ b/.github/instructions/pipeline.md
@@ -1,4 +1,4 @@
 # Rules

-Names are English.
+Names are German.
 Agents MUST NOT push.
@@ -7,2 +7,1 @@
-- two
\\ No newline at end of file
"""


@pytest.mark.req("P10")
def test_a_patch_is_read_in_the_way_of_its_change() -> None:
    def made(change: str, patch: str, old: str | None = OLD) -> str | None:
        return proposed_text(_update(change, patch), old)

    assert made("create", "# New", None) == "# New\n"
    assert made("append", "More.", "") == "More.\n"
    assert made("append", "More.", "# A") == "# A\n\nMore.\n"
    assert made("modify", "# All\r\nnew") == "# All\nnew\n"
    assert made("modify", DIFF) == OLD.replace("English", "German").replace("- two\n", "")
    assert made("delete", "- two") == made("delete", "@@\n-- two\n") == OLD.replace("- two\n", "")
    unfit = {
        "nothing to say": made("append", " \n"),
        "a file that is there": made("create", "# New"),
        "a file that is not": made("append", "More.", None),
        "nothing changed": made("modify", OLD),
        "appears twice": made("delete", "- one"),
        "stands nowhere": made("delete", "- three"),
        "a hunk that appears twice": made("modify", "@@\n-- one\n+- three\n"),
        "a hunk without a place": made("modify", "@@ -0,0 +1 @@\n+- three\n"),
        "hunks in the wrong order": made("modify", "@@\n-- two\n@@\n-# Rules\n"),
        "a second file": made("modify", f"{DIFF}diff --git a/b b/b\n"),
    }
    assert unfit == dict.fromkeys(unfit)
