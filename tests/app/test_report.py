"""A report is one valid page that tells everything the ledger holds, and nothing in it acts."""

import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.graph_walk import Walk, dag_of
from app.report_ledgers import COMMIT, HOSTILE, RUN, TREE, FeatureWalk, finished, going
from fairwitness.app.report.builder import read_run, write_report
from fairwitness.app.report.html import ROWS, agents_words, el, fields, table, text
from fairwitness.app.report.page import MARK, STYLE
from fairwitness.app.report.page import page as page_of
from fairwitness.app.report.sections import SECTIONS
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.forge import events as happened
from fairwitness.errors import DatabaseUnusable, EventsBroken, UsageError
from fairwitness.ledger.ledger import Ledger

VOID = {"meta", "br", "hr"}
ALLOWED = {
    *("html", "head", "title", "style", "body", "header", "nav", "main", "footer", "section", "div", "span", "p", "b"),
    *("h1", "h2", "h3", "a", "ul", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"),
    *("details", "summary", "blockquote", *VOID),
}
ATTRIBUTES = {
    *("class", "id", "href", "lang", "charset", "name", "content", "http-equiv", "style", "title", "scope", "role"),
    "aria-label",
}


class Page(HTMLParser):
    """A page taken apart: what is open, what is in it, and everything that is not as it should be."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES or name.startswith("on"):
                self.wrong.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.add(value or "")
            if name == "href":
                self.links.add(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that is to be read."""
        return " ".join(self.words)


def report_of(root: Path, wanted: str = RUN) -> tuple[str, Page]:
    """The report of a run: its source, and taken apart."""
    source = write_report(root, wanted).path.read_text()
    return source, Page(source)


def is_sound(page: Page) -> bool:
    """Whether the page is balanced and holds nothing but what a report is made of."""
    return not page.open and not page.wrong and {link.removeprefix("#") for link in page.links} <= page.ids


@pytest.mark.req("F5")
def test_a_feature_run_is_told_from_its_request_to_its_commit(tmp_path: Path) -> None:
    finished(tmp_path, text="please add a login").close()
    source, page = report_of(tmp_path)
    assert is_sound(page), page.wrong
    assert source.startswith("<!DOCTYPE html>")
    for told in (
        "please add a login",
        "committed",
        "Medium",
        "at most Low: 0 of 3 reviewers approve",
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
        "a claim, not evidence",
        "12,000, counted for 6 of 6 calls",
        "0.009000 USD",
        "model-a",
        "gate-post-planning",
        "docs/feature/login/plan.md",
        "fairwitness ledger verify",
        "fairwitness evidence show 1",
    ):
        assert told in page.text, told


def test_it_needs_no_network_no_script_and_no_font(tmp_path: Path) -> None:
    finished(tmp_path).close()
    source, page = report_of(tmp_path)
    assert "default-src 'none'" in source
    assert not re.search(r"https?://|//cdn|@import|url\(|<script|javascript:", source)
    assert all(link.startswith("#") for link in page.links)
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
    assert "nothing was committed" in page.text
    assert "waits for an answer" in page.text
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


@pytest.mark.parametrize("body", [{}, {"findings": "none"}, {"answer": 3}, {"findings": [3, {}]}])
def test_a_claim_of_any_shape_can_be_shown(tmp_path: Path, body: dict[str, object]) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    walk.see("decision:x", "decision", body)
    walk.see("dispatch:1", "dispatch-ended", body)
    walk.close()
    assert is_sound(report_of(tmp_path)[1])


def test_a_run_of_a_graph_has_a_report_too(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-7", {"x": (), "y": ("x",)}), request=HOSTILE, max_attempts=1)
    walk.tell(happened.ForgeRunStarted())
    walk.start("x")
    walk.fail("x", HOSTILE)
    walk.tell(happened.RunFailed(reason="no attempt left for x"))
    walk.close()
    _, page = report_of(tmp_path, "run-7")
    assert is_sound(page), page.wrong
    for told in ("failed", "no attempt left for x", "0 of 2 merged, 1 failed for good", "task failed for good"):
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
    assert table(("n",), (), nothing="none") == '<p class="empty">none</p>'


def test_values_are_escaped_wherever_they_stand() -> None:
    bad = '"><script>\ud800'
    for made in (el("p", bad), el("p", title=bad), agents_words(bad, bad), fields([(bad, bad)]), text(bad)):
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
    for number in range(SECTIONS + 3):
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
    issues = report_of(tmp_path)[1].text.split("Known issues")[-1]
    assert "EG-2 task-03" in issues
    assert "task-01" not in issues
    assert "task-02" not in issues
