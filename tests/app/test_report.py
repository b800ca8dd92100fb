"""A report is one valid page that tells everything the ledger holds, and nothing in it acts."""

import hashlib
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.graph_walk import Walk, dag_of
from app.report_ledgers import COMMIT, HOSTILE, RUN, TREE, FeatureWalk, finished, going
from app.report_pages import SECTIONS, Page, is_sound, reaches_nothing
from fairwitness.app.report.builder import OBSERVED, read_run, write_report
from fairwitness.app.report.html import ROWS, el, fields, folded, table, text
from fairwitness.app.report.page import LARGEST_PAGE, MARK, STYLE
from fairwitness.app.report.page import page as page_of
from fairwitness.app.report.raw_evidence import SECTIONS as MOST_TASKS
from fairwitness.app.views.checks import Check, judged_checks
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Workflow
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.contracts.forge import events as happened
from fairwitness.errors import DatabaseUnusable, EventsBroken, UsageError
from fairwitness.kit.durations import seconds_between, took
from fairwitness.ledger.feature_summary import HARNESS
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.fold_feature import fold_feature


def report_of(root: Path, wanted: str = RUN) -> tuple[str, Page]:
    """The report of a run: its source, and taken apart."""
    source = write_report(root, wanted).path.read_text()
    return source, Page(source)


@pytest.mark.req("F5")
def test_a_feature_run_is_told_from_its_request_to_its_commit(tmp_path: Path) -> None:
    finished(tmp_path, text="please add a login").close()
    source, page = report_of(tmp_path)
    assert is_sound(page), page.wrong
    assert source.startswith("<!DOCTYPE html>")
    for told in (
        "please add a login",
        "Committed",
        "Medium",
        "The code was not reviewed (at most",
        "1 of 2 reviewers approve",
        f"git revert {COMMIT}",
        "fewer_researchers",
        "a reviewer wants another design",
        "the run begins",
        "fairwitness/task-01/attempt-2",
        "check lint --all",
        "executed",
        TREE[:12],
        "SELECT c.id, c.check_name",
        "EG-6",
        "security-sentinel",
        "needs_revision",
        "claimed by security-sentinel",
        "12,000",
        "counted for 6 of 6 calls",
        "0.01 USD",
        "model-a",
        "gate-post-planning",
        "docs/feature/login/plan.md",
        "fairwitness ledger verify",
        "fairwitness evidence show 1",
    ):
        assert told in page.text, told


def test_the_outcome_comes_first_and_the_raw_evidence_last(tmp_path: Path) -> None:
    finished(tmp_path, text="please add a login").close()
    source, page = report_of(tmp_path)
    assert page.titles == SECTIONS
    assert page.header.split("report, feature run login ")[1].startswith("Committed Confidence: Medium .")
    assert "please add a login" not in page.header
    assert source.count("<details open") == 0  # nothing is unfolded but diffs, and this run has none
    assert "nav, .raw { display: none; }" in STYLE


def test_every_number_is_the_one_that_other_screens_show(tmp_path: Path) -> None:
    walk = finished(tmp_path)
    state = fold_feature(walk.ledger.events(RUN))
    assert isinstance(state, FeatureState)
    walk.close()
    page = report_of(tmp_path)[1]
    calls = [call for call in state.dispatches.values() if call.agent.value != HARNESS]
    merged = sum(task.merged is not None for task in state.tasks.values())
    assert f"Tokens {sum(call.tokens for call in calls):,} " in page.header
    assert f"Tasks {merged} of {len(state.tasks)} merged " in page.header
    assert f"Took {took(seconds_between(state.started_at, state.updated_at))} " in page.header
    assert f" all {len(calls)} " in " ".join(page.text.split("What it cost")[-1].split())


def _repository(folder: Path, before: dict[str, str], after: dict[str, str]) -> tuple[str, str]:
    """Two commits of a repository."""
    commits = []
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], check=True)
    for content in (before, after):
        for name, text_ in content.items():
            (folder / name).write_text(text_)
        subprocess.run([*git, "add", "--", *content], check=True)
        subprocess.run([*git, "commit", "-qm", "x"], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        commits.append(done.stdout.strip())
    return commits[0], commits[1]


def _committed(folder: Path, base: str, head: str) -> None:
    """A run that turned one commit into another."""
    walk = FeatureWalk(folder)
    walk.see("order", "order", {"order": {"request": "x", "slug": "login", "base_commit": base}})
    walk.tell("run_started", slug="login", mode="interactive", base_commit=base, baseline_tag="t", settings_hash="s")
    walk.tell("committed", commit=head, rollback_command="undo")
    walk.close()


@pytest.mark.req("F5")
def test_the_diff_shows_what_changed_and_no_name_or_line_acts(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    changed = [*lines[:9], "a </pre><script>alert(1)</script>", *lines[10:20], "new", *lines[20:]]
    hostile = "<img src=x onerror=alert(2)>.py"
    base, head = _repository(
        tmp_path, {"a.txt": "\n".join(lines) + "\n"}, {"a.txt": "\n".join(changed) + "\n", hostile: "x = 1\n"}
    )
    _committed(tmp_path, base, head)
    source, page = report_of(tmp_path)
    assert is_sound(page), page.wrong
    assert "2 files" in page.text
    assert hostile in page.text
    assert "<del>- line 10</del><ins>+ a &lt;/pre&gt;&lt;script&gt;" in source
    shown = source.split('<pre class="diff">')[1].split("</pre>")[0]
    context = [number for number in range(1, 31) if f"  line {number}<" in shown]
    assert context == [7, 8, 9, 11, 12, 13, 18, 19, 20, 21, 22, 23]
    assert "<i>line 7</i>" in shown
    assert "<i>line 18</i>" in shown
    assert "<span>  line 20</span><ins>+ new</ins><span>  line 21</span>" in shown


def test_a_diff_that_is_not_here_is_named(tmp_path: Path) -> None:
    _committed(tmp_path, "a" * 40, "b" * 40)
    assert "git diff aaaaaaaaaaaa bbbbbbbbbbbb" in report_of(tmp_path)[1].text
    base, _ = _repository(tmp_path, {"a": "1"}, {"a": "2"})
    assert f"git diff {'a' * 12}" in report_of(tmp_path)[1].text
    assert base[:12] not in report_of(tmp_path)[1].text


@pytest.mark.req("F5")
def test_a_page_stays_below_its_limit_and_says_where_the_rest_is(tmp_path: Path) -> None:
    base, head = _repository(tmp_path, {"a": "1"}, {"a": '"<&>"\n' * 200_000, "b": "'\n" * 100_000})
    _committed(tmp_path, base, head)
    walk = FeatureWalk(tmp_path)
    for number in range(400):
        walk.check(f"task-{number % 20}", f"tests-{number}", passed=bool(number % 3), output='"<&>"' * 400)
        walk.tell("artifact_written", path=f"docs/{number}/" + '"' * 200, sha256="sha256:" + "0" * 64)
        walk.tell("degraded", kind="fewer_researchers", detail='"' * 2000)
    walk.review("security-sentinel", CategoryVerdict.NEEDS_REVISION, '"' * 3000)
    walk.close()
    source, page = report_of(tmp_path)
    assert is_sound(page), page.wrong
    assert len(source.encode()) <= LARGEST_PAGE
    assert page.titles == SECTIONS
    for rest in (f"more lines:  git diff {base[:12]} {head[:12]} -- a", "more rows: fairwitness ledger query --list"):
        assert rest in page.text, rest


def _task_document(folder: Path, criterion: str) -> str:
    path = folder / "docs/feature/login/tasks/task-01.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"task:\n  id: task-01\n  title: Log in\n  acceptance_criteria:\n  - {criterion}\n")
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.req("F5")
def test_a_criterion_is_shown_with_its_result_and_only_as_it_was_recorded(tmp_path: Path) -> None:
    walk = going(tmp_path)
    walk.check("task-01", "ac-1", passed=False)
    walk.ledger.record(RUN, lambda record: record.observation(_observed(walk, "task-01")))
    digest = _task_document(tmp_path, "Nobody enters without a password.")
    walk.tell("artifact_written", path="docs/feature/login/tasks/task-01.yaml", sha256=digest)
    walk.close()
    page = report_of(tmp_path)[1]
    assert "0 of 1 criteria are met." in page.text
    assert "Nobody enters without a password. unmet check ac-1 --all" in " ".join(page.text.split())
    _task_document(tmp_path, "Everybody enters.")
    page = report_of(tmp_path)[1]
    assert "Everybody enters" not in page.text
    assert "ac-1 unmet" in " ".join(page.text.split())


def _observed(walk: FeatureWalk, task: str) -> Observation:
    return Observation(
        run_id=RUN,
        task_id=task,
        key=f"criteria:{task}:2",
        kind="criteria",
        subject="x",
        holds=False,
        detail={"judged": [{"check": "ac-1", "met": False, "text": "it fails"}]},
        tree=None,
        observed_at=walk.now,
    )


@pytest.mark.req("F5")
def test_a_claim_that_the_evidence_contradicts_is_said_before_everything_else(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    for attempt in (1, 2):
        found = {"found": ["the report says that tests passed; they failed <b>"]}
        walk.see(f"discrepancy:task-01:{attempt}", "discrepancy", found)
    walk.tell("run_finished", outcome="low_confidence", confidence="Low", commit=None, reason="too little evidence")
    walk.close()
    header = report_of(tmp_path)[1].header
    assert "Refused: nothing was committed Confidence: Low" in header
    assert header.index("task-01, attempts 1, 2: the report says that tests passed; they failed <b>.") < header.index(
        "too little evidence"
    )


def test_it_needs_no_network_no_script_and_no_font(tmp_path: Path) -> None:
    finished(tmp_path).close()
    source, page = report_of(tmp_path)
    assert "default-src 'none'" in source
    assert reaches_nothing(source, page)
    assert "://" not in source
    assert STYLE.count("{") == STYLE.count("}")
    for deps in ("prefers-color-scheme: dark", "@media print"):
        assert deps in STYLE


@pytest.mark.req("F5")
def test_hostile_text_neither_acts_nor_hides(tmp_path: Path) -> None:
    finished(tmp_path, text=HOSTILE).close()
    source, page = report_of(tmp_path)
    assert is_sound(page), page.wrong
    assert "<script>alert(1)</script>" in page.text  # shown as it is, and only shown
    for sign in ("<script", "<img", "\x1b", "\x07", "\u202e", "\x9b"):
        assert sign not in source
    assert r"\u202e" in page.text
    assert all(sign == "\n" or sign.isprintable() for sign in source)
    assert "more characters" in page.text
    assert len(source) < 100_000


def test_the_same_ledger_gives_the_same_bytes(tmp_path: Path) -> None:
    going(tmp_path).close()
    assert report_of(tmp_path)[0] == report_of(tmp_path)[0]


def test_a_run_in_the_middle_says_what_has_not_begun_and_what_waits(tmp_path: Path) -> None:
    walk = going(tmp_path)
    walk.tell("approval_requested", gate_id="gate-post-planning", options=["approve", "abort"])
    walk.close()
    _, page = report_of(tmp_path)
    assert is_sound(page)
    assert "Not begun: verify, code review, knowledge, evidence, commit." in page.text
    assert "Nothing was committed so far." in page.header
    assert "waiting for you" in page.header
    assert f"fairwitness answer {RUN} approve|abort" in page.header
    assert "not graded" in page.text


def test_a_run_without_recorded_decisions_is_told_from_its_events(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    walk.tell("decided", number=1, kind="halt", reason="nobody is there")
    walk.close()
    _, page = report_of(tmp_path)
    assert is_sound(page)
    assert "nobody is there" in page.text


def test_the_gates_of_a_decision_are_shown_as_it_saw_them(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    answer = {
        "answer": "blocked",
        "gate": "EG-2",
        "missing": ["tests"],
        "because": "too little",
        "count": 1,
        "threshold": 3,
        "query": {"sql": "SELECT <1>", "values": [RUN, "task-77", "after", 1]},
    }
    decision = {"kind": "replan", "reason": "again", "gates": [answer]}
    walk.see("decision:1", "decision", {"facts": {"step": "step-6", "iteration": 2}, "decision": decision})
    walk.close()
    _, page = report_of(tmp_path)
    assert is_sound(page)
    for told in ("task-77", "too little; missing: tests", "SELECT <1>", "verify, iteration 2", "replan"):
        assert told in page.text, told


ODD: tuple[Any, ...] = (None, 3, "x", [], [3, {}, "y", None], {}, {"a": {}})
"""Values that no field is supposed to have."""


def _odd_details() -> Iterator[dict[str, Any]]:
    """Details in which one field, or all of them, are not what they should be."""
    names = ("findings", "answer", "order", "judged", "found", "documents", "document", "text", "outcome", "missing")
    for value in ODD:
        yield dict.fromkeys(names, value)
        yield {"document": dict.fromkeys(("said", "concerns", "criterion", "assessment"), value)}
        yield {"order": dict.fromkeys(("roadmap", "options", "policy", "base_commit", "request", "target"), value)}
        yield {"order": {"roadmap": {"phases": [{"id": value, "criteria": value}, {"criteria": [{"text": value}]}]}}}
        yield {"outcome": {"usage": value, "model": value}, "role": value}
        yield {"documents": {"task-01": f"---\nacceptance_criteria: {value}\n---\n"}}
        yield {"issues": value, "decision": {"gates": value}, "facts": {"tasks": value, "step": value}}


@pytest.mark.parametrize("workflow", list(Workflow))
def test_what_was_recorded_in_any_shape_can_be_shown(tmp_path: Path, workflow: Workflow) -> None:
    walk = FeatureWalk(tmp_path)
    kind = "run_started" if workflow is Workflow.FEATURE else "checkpoint_written"
    started = {"slug": "login", "mode": "interactive", "base_commit": "abc1234"}
    walk.ledger.record(RUN, lambda record: record.event(workflow, kind, started, timestamp=walk.now))
    for number, detail in enumerate(_odd_details()):
        for seen in sorted(OBSERVED):
            key = (f"{seen}:verify-{number}:1", f"{seen}{number}", f"{seen}:verify{number}")[number % 3]
            walk.see(f"{key}", seen, detail)
    walk.close()
    page = report_of(tmp_path)[1]
    assert is_sound(page), page.wrong


def test_a_run_of_a_graph_has_a_report_too(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-7", {"x": (), "y": ("x",)}), request=HOSTILE, max_attempts=1)
    walk.tell(happened.ForgeRunStarted())
    walk.start("x")
    walk.fail("x", HOSTILE)
    walk.tell(happened.RunFailed(reason="no attempt left for x"))
    walk.close()
    _, page = report_of(tmp_path, "run-7")
    assert is_sound(page), page.wrong
    for told in ("Failed: 0 of 2 tasks merged", "No attempt left for x", "task failed for good"):
        assert told in page.text, told


def test_a_run_that_holds_only_an_observation_has_one_as_well(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path, "run-0")
    seen = Observation(
        run_id="run-0",
        task_id="x",
        key="k",
        kind="file",
        subject="a",
        holds=True,
        detail={},
        tree=None,
        observed_at=walk.now,
    )
    walk.ledger.record("run-0", lambda record: record.observation(seen))
    walk.close()
    written = write_report(tmp_path, "run-0")
    assert written.outcome == "checks only"
    assert is_sound(Page(written.path.read_text()))


def _edit(root: Path, sql: str) -> None:
    """Edits the ledger as anybody with the file could."""
    with sqlite3.connect(root / ".fairwitness" / "evidence.db") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(sql)
    connection.close()


@pytest.mark.req("F5")
def test_a_ledger_that_was_edited_is_said_first(tmp_path: Path) -> None:
    finished(tmp_path).close()
    _edit(tmp_path, "UPDATE anvil_checks SET passed = 1")
    written = write_report(tmp_path, RUN)
    page = Page(written.path.read_text())
    assert not written.is_sound
    assert page.text.index("NOT TO BE TRUSTED") < page.text.index("Confidence")
    assert is_sound(page)


def test_events_that_cannot_be_read_make_no_report(tmp_path: Path) -> None:
    finished(tmp_path).close()
    _edit(tmp_path, "UPDATE events SET data = '{}' WHERE type = 'step_finished'")
    with pytest.raises(EventsBroken):
        write_report(tmp_path, RUN)
    assert not (tmp_path / ".fairwitness" / "reports").exists()


def test_a_file_that_is_no_report_is_not_replaced(tmp_path: Path) -> None:
    finished(tmp_path).close()
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>" + " " * 2000 + MARK)
    with pytest.raises(UsageError, match="is not a report"):
        write_report(tmp_path, RUN, out=mine)
    assert mine.read_text().startswith("<p>mine</p>")
    write_report(tmp_path, RUN, out=mine, force=True)
    write_report(tmp_path, RUN, out=mine)  # it is one now
    assert MARK in mine.read_text()
    assert not list(tmp_path.glob(".*tmp"))


def test_places_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    finished(tmp_path).close()
    (tmp_path / "link.html").symlink_to(tmp_path / "elsewhere.html")
    for out in (tmp_path, tmp_path / "no" / "such.html", tmp_path / "link.html"):
        with pytest.raises(UsageError):
            write_report(tmp_path, RUN, out=out)
    assert not (tmp_path / "elsewhere.html").exists()


def test_without_a_ledger_or_such_a_run_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable):
        write_report(tmp_path, RUN)
    finished(tmp_path).close()
    with pytest.raises(UsageError):
        write_report(tmp_path, "nobody")


def test_many_rows_are_counted_and_not_shown() -> None:
    drawn = table(("n",), ((number,) for number in range(ROWS + 5)), nothing="", more="elsewhere")
    assert drawn.count("<tr>") == ROWS + 1
    assert "and 5 more rows: elsewhere" in drawn
    assert table(("n",), (), nothing="none") == '<p class="soft">none</p>'


def test_values_are_escaped_wherever_they_stand() -> None:
    bad = '"><script>\ud800'
    for made in (el("p", bad), el("p", title=bad), folded(bad, bad), fields([(bad, bad)]), text(bad)):
        assert "<script" not in made
        made.encode()


def test_a_ledger_on_a_server_tells_the_same(ledger: Ledger, tmp_path: Path) -> None:
    finished(ledger)
    facts, checked = read_run(ledger, tmp_path, RUN)
    assert is_sound(Page(page_of(facts, checked)))
    assert (len(facts.checks), len(facts.said), len(facts.calls), checked.tampering) == (8, 2, 6, ())


def test_more_tasks_than_anybody_reads_are_counted(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    for number in range(MOST_TASKS + 3):
        walk.check(f"task-{number}", "tests")
    walk.close()
    _, page = report_of(tmp_path)
    assert is_sound(page)
    assert "and 3 more tasks" in page.text


def test_a_gate_that_opened_later_or_whose_task_was_replaced_is_no_known_issue(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()

    def answer(task: str, round_: int, word: str) -> dict[str, object]:
        query = {"sql": "SELECT 1", "values": [RUN, task, "after", round_]}
        return {"answer": word, "gate": "EG-2", "count": 1, "threshold": 1, "because": "b", "query": query}

    for number, gates, tasks in (
        (1, [answer("task-01", 1, "blocked"), answer("task-02", 1, "blocked")], ["task-01", "task-02"]),
        (2, [answer("task-02", 2, "open"), answer("task-03", 1, "blocked")], ["task-02", "task-03"]),
    ):
        facts = {"tasks": [{"task": task} for task in tasks]}
        decision = {"kind": "replan", "reason": "again", "gates": gates}
        walk.see(f"decision:{number}", "decision", {"facts": facts, "decision": decision})
    for task in ("task-01", "task-02", "task-03"):
        walk.attempt(task, 1, fails="no")
    walk.close()
    issues = report_of(tmp_path)[1].text.split("Open issues")[-1].split("What it cost")[0]
    assert "EG-2 task-03" in issues
    assert "task-01" not in issues
    assert "task-02" not in issues


@pytest.mark.req("P9")
def test_a_check_of_the_page_passes_only_if_its_row_proves_it() -> None:
    def check(id_: int, phase: str, *, passed: bool, sandbox: str | None = "ns", **differs: Any) -> Check:
        plain: dict[str, Any] = {
            **{"task": "t", "round": int(phase == "after"), "name": "tests" if phase == "after" else "baseline-tests"},
            **dict.fromkeys(("instance", "verdict", "severity", "command", "exit_code", "snippet", "execution")),
            **{"provenance": "executed", "assessment": "pass" if passed else "fail", "tree": "a" * 40},
            **{"duration_ms": 1, "sandbox": sandbox},
        }
        return Check(**(plain | {"id": id_, "phase": phase, "passed": int(passed)} | differs))

    def worth(*checks: Check) -> list[tuple[bool, str | None]]:
        return [(bool(each.passed), each.worth and each.worth.value) for each in judged_checks(checks)]

    assert worth(check(1, "after", passed=True)) == [(True, "passed")]
    assert worth(check(1, "after", passed=True, sandbox="none")) == [(False, "ran outside a sandbox")]
    assert worth(check(1, "after", passed=True, provenance=None)) == [(False, "no evidence")]
    red_before = (check(1, "baseline", passed=False), check(2, "after", passed=False))
    assert worth(*red_before) == [(False, "holds"), (False, "failed before the change too")]
    green_before = (check(1, "baseline", passed=True), check(2, "after", passed=False))
    assert worth(*green_before) == [(True, "holds"), (False, "regressed")]
