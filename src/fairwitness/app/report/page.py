"""The report as one HTML page without scripts or network access."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from fairwitness.app.report.html import Child, Html, code, el, fields, folded, joined, moment, table, text, word
from fairwitness.app.report.model import Decision, ReportFacts, Visit
from fairwitness.app.report.sections import (
    GateFact,
    calls_part,
    cost_part,
    gates_part,
    issues_part,
    reviews_part,
    tasks_part,
)
from fairwitness.app.views.feature import STEPS
from fairwitness.contracts.common.decisions import Graded
from fairwitness.kit.durations import took

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --box: #f4f6f8;
  --line: #d0d7de; --good: #116329; --bad: #a40e26; --warn: #7d4e00; --bar: #0a58b3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa6b2; --paper: #0f1419; --box: #1a2129; --line: #38424d;
    --good: #57d27a; --bad: #ff8f98; --warn: #e8b04a; --bar: #6cb2ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--bar); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .6rem 1.5rem; margin: 1rem 0; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; }
code, pre { font: .85em/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; margin: 0; }
code { background: var(--box); padding: .05em .3em; border-radius: 3px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  min-width: 4rem; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
details { margin: .3rem 0; }
summary { cursor: pointer; color: var(--bar); }
blockquote, .box { margin: .5rem 0; padding: .5rem .8rem; background: var(--box); border: 1px solid var(--line);
  border-radius: 4px; }
blockquote { border-left: 4px dashed var(--soft); }
.label { display: block; color: var(--soft); font-size: .8rem; }
.state { white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.empty, .none { color: var(--soft); }
.alarm { border: 2px solid var(--bad); padding: .6rem .9rem; margin: 1rem 0; border-radius: 4px; }
.lane { position: relative; min-width: 12rem; height: 1rem; background: var(--box); border-radius: 2px; }
.lane span { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--bar); border-radius: 2px; }
footer { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--line); color: var(--soft); }
@media (max-width: 40rem) { body { padding: .8rem; } }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --box: #fff; --line: #999; --good: #000; --bad: #000;
    --warn: #000; --bar: #555; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  tr, blockquote { break-inside: avoid; }
  .wide { overflow: visible; }
  .lane span { print-color-adjust: exact; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""


MARK = '<meta name="generator" content="fairwitness report">'
"""The mark by which a report is recognised."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_OUTCOMES = {"advanced": "done"}


class LedgerFindings(NamedTuple):
    """Results of gates, ledger verification and grading."""

    gates: list[GateFact]
    tampering: tuple[str, ...]
    """Every sign of tampering in the run."""
    graded: Graded | None
    """The confidence that the facts of the last decision allow; None if they are not recorded."""


def page(facts: ReportFacts, checked: LedgerFindings) -> str:
    """Return the page; the same ledger gives the same bytes."""
    parts = (
        ("steps", "Steps", _steps(facts)),
        ("decisions", "Decisions", _decisions(facts)),
        ("tasks", "Tasks and evidence", tasks_part(facts)),
        ("gates", "Gates", gates_part(checked.gates, facts.asked)),
        ("reviews", "Reviews", reviews_part(facts)),
        ("answers", "Questions and answers", _answers(facts)),
        ("calls", "Agents' calls", calls_part(facts)),
        ("cost", "Cost", cost_part(facts)),
        ("issues", "Known issues", issues_part(facts, checked.gates)),
        ("documents", "Documents", _documents(facts)),
        ("ledger", "Ledger", _ledger(facts, checked)),
    )
    title = f"Fair Witness report: {_title(facts)}"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        Html(MARK),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        el("title", text(title, 200)),
        Html(f"<style>{STYLE}</style>"),
    )
    body = el(
        "body",
        el("header", *_header(facts, checked)),
        el("nav", *(el("a", name, href=f"#{place}") for place, name, _ in parts), aria_label="Parts"),
        el("main", *(el("section", el("h2", name), part, id=place) for place, name, part in parts)),
        el("footer", "The same in a terminal: ", code(f"fairwitness status {facts.run_id}"), ", ",
           code(f"fairwitness events {facts.run_id}")),
    )  # fmt: skip
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def outcome_of(facts: ReportFacts) -> str:
    """Return the outcome or status of the run in a word or two."""
    if facts.feature is not None:
        return facts.feature.word
    return facts.graph.word if facts.graph is not None else "checks only"


def _title(facts: ReportFacts) -> str:
    name = facts.feature.slug if facts.feature is not None and facts.feature.slug else facts.run_id
    return f"{facts.workflow} {name}"


def _header(facts: ReportFacts, checked: LedgerFindings) -> Iterator[Html]:
    yield el("h1", text(_title(facts), 200), ": ", word(outcome_of(facts)))
    if checked.tampering:
        yield el(
            "div",
            el("p", word("NOT TO BE TRUSTED"), ": the ledger is not as it was written."),
            el("ul", *(el("li", found) for found in checked.tampering[:50])),
            class_="alarm",
            role="alert",
        )
    asked = str(facts.order.get("request") or (facts.graph.request if facts.graph is not None else ""))
    if asked:
        yield el("div", el("span", "asked for", class_="label"), el("pre", text(asked, 8000)), class_="box")
    yield fields(_about(facts))
    yield from _confidence(facts, checked)


def _about(facts: ReportFacts) -> Iterator[tuple[str, Child]]:
    view, graph = facts.feature, facts.graph
    yield "Run", code(facts.run_id)
    if view is not None:
        ending = view.ending
        yield "Reason", ending.reason if ending is not None else None
        yield "Commit", code(view.commit) if view.commit else "none"
        yield "To undo it", code(view.rollback) if view.rollback else "nothing was committed"
        yield "Began", moment(view.began)
        yield "Took" if view.is_over else "Took so far", took(view.seconds())
        yield "Mode", view.mode
        yield "Begun from", code(view.base)
        yield "Iterations", view.iteration
        yield "Tokens", f"{view.tokens:,}"
    elif graph is not None:
        yield "Reason", graph.reason
        yield "Began", moment(graph.began)
        yield "Last event", moment(graph.last_time)
        counts = graph.counts()
        yield "Tasks", f"{counts['merged']} of {counts['total']} merged, {counts['failed']} failed for good"


def _confidence(facts: ReportFacts, checked: LedgerFindings) -> Iterator[Html]:
    if facts.feature is None:
        return
    ending = facts.feature.ending
    level = ending.confidence if ending is not None and ending.confidence else "not graded"
    yield el("p", "Confidence: ", word(level), ".")
    graded = checked.graded
    if graded is not None:
        if graded.level.value != level:
            yield el("p", "The facts of the last decision allow: ", word(graded.level.value), ".")
        yield el("ul", *(el("li", reason) for reason in graded.because or ("nothing on record speaks against it",)))
    for kind, detail in facts.feature.degradations:
        yield el("p", word("went on with less"), f": {kind}: ", text(detail))


def _steps(facts: ReportFacts) -> Html:
    if facts.feature is None:
        return el("p", "Only the feature workflow has these steps.", class_="empty")
    visited = {visit.step for visit in facts.visits}
    waiting = ", ".join(name for step, name in STEPS.items() if step not in visited)
    drawn = table(
        ("Step", "State", "When in the run", "Took", "Calls answered", "Reason"),
        _readers(facts),
        nothing="No step was begun.",
    )
    return joined((drawn, el("p", f"Not begun: {waiting}.", class_="empty") if waiting else Html("")))


def _readers(facts: ReportFacts) -> Iterator[Sequence[Child]]:
    first = _seconds(facts.visits[0].started) if facts.visits else 0.0
    end = facts.last_moment.timestamp()
    whole = max(end - first, 0.001)
    for visit in facts.visits:
        start, stop = _seconds(visit.started), _seconds(visit.finished) if visit.finished else end
        left = min(100.0, max(0.0, 100 * (start - first) / whole))
        width = min(100.0 - left, max(0.0, 100 * (stop - start) / whole))
        bar = el("span", style=f"left:{left:.2f}%;width:{width:.2f}%")
        yield (
            STEPS.get(visit.step, visit.step),
            word(_state(facts, visit)),
            el("div", bar, class_="lane", title=f"{visit.started} to {visit.finished or 'now'}"),
            took(max(0.0, stop - start)),
            _agents(facts, visit),
            visit.reason,
        )


def _agents(facts: ReportFacts, visit: Visit) -> str:
    """Return the calls that began in a visit."""
    assert facts.feature is not None
    begin, end = _seconds(visit.started), _seconds(visit.finished) if visit.finished else float("inf")
    own = [call for call in facts.feature.calls.values() if call.step == visit.step]
    calls = [call for call in own if begin <= _seconds(call.since) <= end]
    good = sum(call.status in ("DONE", "NEEDS_REVISION") for call in calls)
    return f"{good} of {len(calls)}" if calls else ""


def _state(facts: ReportFacts, visit: Visit) -> str:
    if visit.outcome is None:
        return "stopped" if facts.feature is not None and facts.feature.is_over else "running"
    return _OUTCOMES.get(visit.outcome, visit.outcome)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _decisions(facts: ReportFacts) -> Html:
    return table(
        ("No", "When", "At step", "Decided", "Why", "Gates asked"),
        map(_decision, facts.decisions),
        nothing="No decision is on record.",
        more=f"fairwitness events {facts.run_id}",
    )


def _decision(one: Decision) -> Sequence[Child]:
    step = str(one.facts.get("step") or "")
    to = one.decision.get("to") or one.decision.get("outcome") or one.decision.get("gate_id")
    gates = one.decision.get("gates")
    asked = [str(gate.get("gate")) for gate in gates if isinstance(gate, dict)] if isinstance(gates, list) else []
    iteration = one.facts.get("iteration")
    return (
        one.number,
        moment(one.at),
        f"{STEPS.get(step, step)}{f', iteration {iteration}' if iteration not in (None, 1) else ''}",
        text(f"{one.kind} {STEPS.get(str(to), to) if to else ''}".strip(), 200),
        one.reason,
        ", ".join(asked[:30]),
    )


def _answers(facts: ReportFacts) -> Html:
    answered = table(
        ("Question", "Answer", "By", "When", "Mode", "In words"),
        (
            (
                one.gate,
                one.option,
                word("nobody was asked") if one.is_auto else one.actor,
                moment(one.at),
                one.mode,
                one.said,
            )
            for one in facts.answers
        ),
        nothing="No answer is on record.",
    )
    question = facts.feature.question if facts.feature is not None else None
    if question is None:
        return answered
    waits = f" waits for an answer since {question.since}: {', '.join(question.options)}"
    return joined((el("p", word("QUESTION"), " ", code(question.gate), waits), answered))


def _documents(facts: ReportFacts) -> Html:
    listed = table(
        ("Document", "Kept under"),
        ((code(path, 300), code(digest, 80)) for path, digest in facts.documents.items()),
        nothing="No document was stored.",
        more=f"fairwitness events {facts.run_id}",
    )
    return folded(f"{len(facts.documents)} documents", listed) if facts.documents else listed


def _ledger(facts: ReportFacts, checked: LedgerFindings) -> Html:
    state = word("NOT TO BE TRUSTED") if checked.tampering else word("sound")
    return joined(
        (
            el("p", "Everything above was read from the run's chain, which was checked for this report: ", state, "."),
            fields(
                (
                    ("Links", f"{facts.links:,}"),
                    ("Events", f"{facts.events:,}"),
                    ("Head", code(facts.head)),
                )
            ),
            el("p", "To check it yourself: ", code("fairwitness ledger verify"),
               f"; link {facts.links} of this run must have the hash above."),
        )
    )  # fmt: skip
