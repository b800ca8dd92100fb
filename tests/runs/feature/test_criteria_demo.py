"""The criteria of the demo, judged as its recorded verifiers propose: green where it works, red where it does not."""

import threading
from pathlib import Path

import pytest

from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.demo.sessions import RecordedCall
from fairwitness.errors import NotReady
from fairwitness.ledger.verify import verify
from fairwitness.runs.feature.evidence import judge_report
from git.person import Person
from support import demo_feature as demo
from verify.subjects import RUN, World


def carry_out(folder: Path, *calls: RecordedCall) -> None:
    for call in calls:
        file = folder / call.args["path"]
        if call.tool is Tool.CREATE_FILE:
            file.write_text(call.args["content"])
        else:
            text = file.read_text()
            assert call.args["old_string"] in text
            file.write_text(text.replace(call.args["old_string"], call.args["new_string"], 1))


def report_of(task: demo.Task) -> VerificationReport:
    """What the recorded verifier says of the receipt's second attempt, with the criteria of any task."""
    (session,) = (each for each in demo.SECOND_ITERATION if each.role is Role.VERIFIER)
    report = VerificationReport.model_validate(session.answer)
    plain = report.plain()
    plain["agent_output"]["payload"] |= {
        "task_id": task.id,
        "criteria": [{"criterion": each.text, "command": each.command} for each in task.criteria],
    }
    return VerificationReport.model_validate(plain)


@pytest.mark.req("P9")
def test_the_demos_criteria_are_met_by_its_code_and_not_by_its_lie(tmp_path: Path) -> None:
    folder = demo.DEMO.lay_out(tmp_path / "repo")
    (tmp_path / "home").mkdir()
    person = Person(folder, tmp_path / "home")
    carry_out(folder, *(call for task in demo.TASKS[:3] for call in demo.CALLS[task.id]))
    person.commit("three tasks")
    for name, calls in (("right", demo.CALLS_AGAIN), ("lie", demo.LYING_CALLS)):
        person.git("checkout", "-q", "-b", name, "main")
        carry_out(folder, *calls)
        person.commit(name)
    person.git("checkout", "-q", "main")
    try:
        with World.open(tmp_path) as here:

            def judged(task: demo.Task, head: str, round_: int) -> tuple[str, ...]:
                criteria = [each.text for each in task.criteria]
                sides = {"base": here.side("main"), "head": here.side(head)}
                return judge_report(
                    here.deps, RUN, task.id, round_, criteria, report_of(task), **sides, stop=threading.Event()
                )

            for task in (*demo.TASKS[:3], demo.RECEIPT_AGAIN):
                assert judged(task, "right", 1) == (), task.id
            told = judged(demo.TASKS[3], "lie", 2)
            assert [each.partition(":")[0] for each in told] == ["ac-1 is unmet", "ac-2 is unmet"], told
            assert verify(here.deps.ledger.database, RUN) == []
    except NotReady as error:
        pytest.skip(f"no sandbox: {error.what}")
