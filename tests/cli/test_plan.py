"""`fairwitness plan`: a plan is looked at, edited and approved; what does not fit is told with its place."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.graph_ledgers import fits
from fairwitness.app.runs.plan import approve_plan, edit_plan
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.forge.events import RunFailed
from fairwitness.contracts.graph.forge_order import ForgeOrder
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import write_plan
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from runs.forge.planroom import ADA, RUN, as_plan, planned
from support.graph.team import lay_out

_CALL = """
import sys
from fairwitness.cli.exit_codes import exit_code_of
from fairwitness.cli.commands.plan import command
from fairwitness.errors import FairWitnessError
try:
    sys.exit(int(command.main(sys.argv[1:], prog_name="fairwitness plan", standalone_mode=False) or 0))
except FairWitnessError as error:
    print(error.what, error.next_step, sep="\\n", file=sys.stderr)
    sys.exit(exit_code_of(error))
"""
LAYOUT = ForgeLayout(RUN)


@dataclass
class Checkout:
    """A repository with a forge run, and a person in it."""

    top: Path
    ledger: Ledger

    @property
    def log(self) -> ForgeLog:
        return ForgeLog(self.ledger, RUN)

    @property
    def folder(self) -> Path:
        return self.top / LAYOUT.folder

    def plan(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "EDITOR")}
        return subprocess.run(
            [sys.executable, "-c", _CALL, *arguments],
            cwd=self.top,
            capture_output=True,
            text=True,
            check=False,
            env={**own, **environment},
        )

    def propose(self, **more: Any) -> None:
        plan = as_plan(planned(**more))
        write_plan(Store(self.top), LAYOUT, plan)
        self.log.propose(plan, asked=1 if plan.questions else None)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    repository = Repository.open(lay_out(tmp_path / "repo"))
    made = Checkout(tmp_path / "repo", ledger_in(state_of(repository), repository))
    order = ForgeOrder(
        request="Open a shop.",
        slug="shop",
        mode=ApprovalMode.INTERACTIVE,
        base_commit=repository.commit("HEAD"),
        options=GraphOptions(target="fairwitness/target"),
        verify=VerifySettings(),
        settings_hash=f"sha256:{'0' * 64}",
        started_by=ADA,
    )
    made.log.create(order, repo_url="file:///shop", model="cassette")
    yield made
    made.ledger.close()


def editor(tmp_path: Path, script: str) -> str:
    """An editor that does one thing to the file it is given."""
    program = tmp_path / "my editor.py"
    program.write_text(f"import sys, pathlib\nfile = pathlib.Path(sys.argv[-1])\n{script}\n")
    return f"'{sys.executable}' '{program}' --wait"


@pytest.mark.req("F9")
def test_a_plan_is_shown_with_its_specs_tasks_and_what_was_assumed(checkout: Checkout) -> None:
    checkout.propose()
    done = checkout.plan("show", "last")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{RUN}  not approved yet",
        "request  Open a shop.",
        "spec  api: # The interface",
        "task-001  type 2  small  The part task-001",
        "    - a test is green",
        "task-002  type 2  small  The part task-002",
        "    after task-001",
        "    - a test is green",
        "refinery-001  refinery",
        "    after task-001, task-002",
        "assumed  the till stays as it is",
        "2 tasks, 1 refinery",
        f"files    {checkout.folder}",
    ]
    assert done.stderr == f"next:  fairwitness plan approve {RUN}\n"


@pytest.mark.req("F9")
def test_machines_are_told_the_same(checkout: Checkout) -> None:
    checkout.propose(questions=["Which currency?"])
    plain = json.loads(checkout.plan("show", "--json").stdout)
    assert plain["plan"] == as_plan(planned(questions=["Which currency?"])).plain()
    assert plain["order"] == ["task-001", "task-002", "refinery-001"]
    assert (plain["run_id"], plain["is_sealed"], plain["problem"]) == (RUN, False, None)
    assert plain["folder"] == str(checkout.folder)
    assert plain["next"] == "fairwitness inbox"


def test_text_of_others_does_nothing_to_a_terminal_and_fits(checkout: Checkout) -> None:
    plan = as_plan(planned(specs={"api": f"# {'long ' * 60}\n"}, questions=["\x1b]0;pwned\x07 who?"]))
    write_plan(Store(checkout.top), LAYOUT, plan)
    checkout.log.propose(plan)
    done = checkout.plan("show", COLUMNS="60")
    assert "\x1b" not in done.stdout
    assert "\\x1b]0;pwned" in done.stdout
    assert fits("\n".join(line for line in done.stdout.splitlines() if not line.startswith("files ")), 60)


@pytest.mark.req("F9")
def test_before_there_is_a_plan_that_is_said(checkout: Checkout) -> None:
    done = checkout.plan("show")
    assert done.returncode == 2
    assert done.stderr == f"the captain of {RUN} has no plan to show yet\nfairwitness watch {RUN}\n"
    with pytest.raises(UsageError, match="has no plan to show yet"):
        approve_plan(checkout.top, None)
    with pytest.raises(UsageError, match="has no plan to show yet"):
        edit_plan(checkout.top, RUN, "dag.json", None)


@pytest.mark.req("F9", "F3")
def test_a_file_is_edited_in_the_persons_editor(checkout: Checkout, tmp_path: Path) -> None:
    checkout.propose()
    done = checkout.plan("edit", RUN, "specs/mine.md", EDITOR=editor(tmp_path, "file.write_text('# Mine\\n')"))
    assert (done.returncode, done.stdout) == (0, f"{checkout.folder}/specs/mine.md: the plan is consistent\n")
    assert "spec  mine: # Mine" in checkout.plan("show").stdout


@pytest.mark.req("F9", "F3")
def test_an_edit_that_does_not_fit_is_told_with_its_place_and_kept(checkout: Checkout, tmp_path: Path) -> None:
    checkout.propose()
    script = "file.write_text(file.read_text().replace('\"totalTasks\": 2', '\"totalTasks\": 7'))"
    done = checkout.plan("edit", RUN, VISUAL=editor(tmp_path, script), EDITOR="false")
    assert done.returncode == 2
    assert "dag.json:" in done.stderr
    assert "metadata.totalTasks: expected the number of nodes, 2; found 7" in done.stderr
    assert '"totalTasks": 7' in (checkout.folder / "dag.json").read_text()
    shown = checkout.plan("show")
    assert "does not fit" in shown.stdout
    assert shown.stderr == f"next:  fairwitness plan edit {RUN}\n"
    refused = checkout.plan("approve")
    assert refused.returncode == 2
    assert "expected the number of nodes" in refused.stderr
    assert not checkout.log.course().is_approved


@pytest.mark.req("F9")
def test_a_file_is_replaced_by_another(checkout: Checkout, tmp_path: Path) -> None:
    checkout.propose()
    (tmp_path / "other.md").write_text("# Other\n")
    named = f"{LAYOUT.folder}/specs/api.md"
    done = checkout.plan("edit", RUN, named, "--with", tmp_path / "other.md", "--json")
    assert json.loads(done.stdout) == {"run_id": RUN, "file": f"{checkout.top}/{named}", "fits": True}
    assert (checkout.folder / "specs" / "api.md").read_text() == "# Other\n"
    assert checkout.plan("edit", RUN, "specs/api.md", "--with", tmp_path / "none.md").returncode == 3


@pytest.mark.parametrize(
    "file", ["run-state.json", "../other/dag.json", "specs/../../x.md", "/etc/passwd", "specs/a.txt"]
)
def test_only_files_of_the_plan_are_edited(checkout: Checkout, file: str) -> None:
    checkout.propose()
    with pytest.raises(UsageError, match="is not a file of a plan"):
        edit_plan(checkout.top, RUN, file, checkout.top / "fairwitness.toml")


def test_without_an_editor_or_with_one_that_fails_a_sentence_is_said(checkout: Checkout) -> None:
    checkout.propose()
    for environment, told in (
        ({}, "no editor is set"),
        ({"EDITOR": "false"}, "the editor ended with 1"),
        ({"EDITOR": "no-such-editor"}, "the editor 'no-such-editor' does not start"),
    ):
        done = checkout.plan("edit", RUN, **environment)
        assert done.returncode == 2
        assert told in done.stderr


@pytest.mark.req("F9", "F7")
def test_a_plan_is_approved_once_and_sealed_from_then_on(checkout: Checkout) -> None:
    checkout.propose()
    done = checkout.plan("approve", "--json")
    assert json.loads(done.stdout) == {"run_id": RUN, "answer": "approve", "is_carried": False}
    assert done.stderr == f"next:  fairwitness resume {RUN}\n"
    assert checkout.log.course().is_approved
    again = checkout.plan("approve", RUN)
    assert (again.returncode, again.stderr.splitlines()[0]) == (2, f"the plan of {RUN} is approved")
    edited = checkout.plan("edit", RUN, EDITOR="true")
    assert edited.returncode == 2
    assert edited.stderr.splitlines()[0] == "specs and graph are sealed; file a change request"
    (checkout.folder / "dag.json").write_text("{}")
    shown = checkout.plan("show")
    assert shown.stdout.startswith(f"{RUN}  sealed\n")
    assert shown.stderr == f"next:  fairwitness status {RUN}\n"


@pytest.mark.req("F9")
def test_an_open_interview_is_not_answered_by_approving(checkout: Checkout) -> None:
    checkout.propose(questions=["Which currency?"])
    done = checkout.plan("approve")
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [f"{RUN} waits for something else, interview.1", "fairwitness inbox"],
    )
    assert not checkout.log.course().is_approved


@pytest.mark.req("F10")
def test_a_run_that_has_ended_is_not_edited(checkout: Checkout) -> None:
    checkout.propose()
    checkout.log.write(lambda _now: (RunFailed(reason="abandoned"),))
    done = checkout.plan("edit", RUN, EDITOR="true")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"{RUN} has ended")
    assert checkout.plan("show", RUN).returncode == 0
