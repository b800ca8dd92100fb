"""The report as one HTML page without scripts or network access."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from fairwitness.app.report.html import (
    NONE,
    Child,
    Html,
    code,
    el,
    fields,
    folded,
    joined,
    moment,
    soft,
    table,
    text,
    word,
)
from fairwitness.app.report.model import ReportFacts
from fairwitness.app.report.raw_evidence import GateFact, calls_part, dicts, evidence_part, gates_part, mapping
from fairwitness.app.report.sections import (
    changes_part,
    cost_part,
    issues_part,
    proven_part,
    reviews_part,
    spent,
    task_states,
    timeline_part,
)
from fairwitness.app.views.agent_usage import total
from fairwitness.contracts.common.decisions import Graded
from fairwitness.kit.durations import seconds_between, took

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --box: #f4f6f8; --line: #d0d7de;
  --good: #116329; --bad: #a40e26; --warn: #7d4e00; --bar: #0a58b3; --ins: #dafbe1; --del: #ffebe9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa6b2; --paper: #0f1419; --box: #1a2129; --line: #38424d; --good: #57d27a;
    --bad: #ff8f98; --warn: #e8b04a; --bar: #6cb2ff; --ins: #12351d; --del: #431a1e; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header { padding: 1rem 1.3rem; background: var(--box); border-left: .6rem solid var(--soft); border-radius: 6px; }
header.good { border-color: var(--good); } header.bad { border-color: var(--bad); }
header.warn { border-color: var(--warn); }
h1 { font-size: 2rem; line-height: 1.2; margin: .2rem 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-bottom: .2rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p, ul { margin: .4rem 0; } ul { padding-left: 1.2rem; }
a { color: var(--bar); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .8rem 0 0; }
dl { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: .8rem 0; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; }
header dd { font-size: 1.1rem; }
code, pre { font: .85em/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; margin: 0; }
code { background: var(--box); padding: .05em .3em; border-radius: 3px; }
.asked { font: inherit; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .6rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  min-width: 4.5rem; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; } td:first-child { min-width: 7rem; }
td ul { margin: 0; padding-left: 1rem; }
.wide td { overflow-wrap: break-word; } .wide td code { overflow-wrap: anywhere; }
details { margin: .3rem 0; } summary { cursor: pointer; }
details > :not(summary) { margin-left: 1rem; }
.box { margin: .5rem 0; padding: .3rem .8rem; background: var(--box); border: 1px solid var(--line);
  border-radius: 4px; }
.state { white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); } .soft { color: var(--soft); }
header.good, header.bad, header.warn { color: inherit; }
header.good h1 { color: var(--good); } header.bad h1 { color: var(--bad); } header.warn h1 { color: var(--warn); }
.diff { border: 1px solid var(--line); border-radius: 4px; padding: .3rem 0; }
.diff > * { display: block; padding: 0 .6rem 0 1.7rem; text-indent: -1.1rem; text-decoration: none;
  min-height: 1.45em; }
.diff ins { background: var(--ins); } .diff del { background: var(--del); } .diff i { color: var(--soft); }
.lane { position: relative; min-width: 9rem; height: 1rem; margin-top: .25rem; background: var(--box); }
.lane span { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--bar); border-radius: 2px; }
footer { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--line); color: var(--soft); }
@media (max-width: 45rem) {
  body { padding: .7rem; } h1 { font-size: 1.5rem; } header { padding: .7rem .8rem; }
  details > :not(summary) { margin-left: 0; }
  .cards thead { display: none; } .cards tr, .cards td { display: block; padding: .1rem 0; border: 0; }
  .cards tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .cards td::before { content: attr(data-of) ": "; color: var(--soft); font-size: .85rem; }
}
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --box: #fff; --line: #999; --good: #000; --bad: #000;
    --warn: #000; --bar: #555; --ins: #fff; --del: #fff; }
  body { max-width: none; padding: 0; font-size: 9.5pt; } h1 { font-size: 18pt; } h2 { margin-top: 1.2rem; }
  nav, .raw { display: none; } .raw-note { display: block; }
  h2, h3, summary { break-after: avoid; } tr, .box { break-inside: avoid; }
  .diff { font-size: 8pt; border: 0; }
  .lane span { print-color-adjust: exact; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
@media screen { .raw-note { display: none; } }
"""

MARK = '<meta name="generator" content="fairwitness report">'
"""The mark by which a report is recognised."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LARGEST_PAGE = 400_000
"""The maximum size of a page in bytes; the largest sections are left out of a larger one."""
_TITLES = {
    "committed": ("Committed", "good"),
    "low confidence": ("Refused: nothing was committed", "bad"),
    "abandoned": ("Ended by you: nothing was committed", "warn"),
    "halted": ("Halted: nothing was committed", "bad"),
    "error": ("Failed: nothing was committed", "bad"),
    "out of budget": ("Out of budget: nothing was committed", "bad"),
    "waiting for you": ("Waiting for your answer", "warn"),
    "completed": ("Completed", "good"),
    "failed": ("Failed", "bad"),
    "waiting": ("Waiting for you", "warn"),
    "paused": ("Paused", "warn"),
}


class LedgerFindings(NamedTuple):
    """Results of gates, ledger verification and grading."""

    gates: list[GateFact]
    tampering: tuple[str, ...]
    """Every sign of tampering in the run."""
    graded: Graded | None
    """The confidence that the facts of the last decision allow; None if they are not recorded."""


class PagePart(NamedTuple):
    """A section of the page, and the command that prints its content."""

    id: str
    title: str
    content: Html
    command: str


def page(facts: ReportFacts, checked: LedgerFindings) -> str:
    """Return the page; the same ledger gives the same bytes."""
    run = facts.run_id
    raw = (evidence_part(facts), gates_part(checked.gates, facts.asked), calls_part(facts), _documents(facts))
    sections = [
        PagePart("asked", "What was asked", _asked(facts), f"fairwitness status {run}"),
        PagePart("changed", "What changed", changes_part(facts), f"fairwitness status {run}"),
        PagePart("proven", "What was proven", proven_part(facts), f"fairwitness status {run}"),
        PagePart("reviews", "What reviewers said", reviews_part(facts), f"fairwitness events {run}"),
        PagePart("issues", "Open issues", issues_part(facts, checked.gates), f"fairwitness events {run}"),
        PagePart("cost", "What it cost", cost_part(facts), f"fairwitness status {run}"),
        PagePart("timeline", "Timeline", timeline_part(facts), f"fairwitness events {run}"),
        PagePart("evidence", "Raw evidence", joined((_ledger(facts, checked), *raw)), f"fairwitness events {run}"),
    ]
    for _ in sections:
        if len(_drawn(facts, checked, sections).encode()) <= LARGEST_PAGE:
            break
        at = max(range(len(sections)), key=lambda number: len(sections[number].content))
        left = soft(f"Left out, because the page would exceed {LARGEST_PAGE:,} bytes: ", code(sections[at].command))
        sections[at] = sections[at]._replace(content=left)
    return _drawn(facts, checked, sections)


def _drawn(facts: ReportFacts, checked: LedgerFindings, sections: list[PagePart]) -> str:
    head = el(
        "head",
        el("meta", charset="utf-8"),
        Html(MARK),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        el("title", text(f"{_name(facts)}: {_title(facts, checked)[0]} (Fair Witness report)", 200)),
        Html(f"<style>{STYLE}</style>"),
    )
    body = el(
        "body",
        el("header", *_header(facts, checked), class_=_title(facts, checked)[1]),
        el("nav", *(el("a", part.title, href=f"#{part.id}") for part in sections), aria_label="Sections"),
        el("main", *(el("section", el("h2", part.title), part.content, id=part.id) for part in sections)),
        el("footer", "The same in a terminal: ", code(f"fairwitness status {facts.run_id}"), ", ",
           code(f"fairwitness events {facts.run_id}")),
    )  # fmt: skip
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def outcome_of(facts: ReportFacts) -> str:
    """Return the outcome or status of the run in a word or two."""
    if facts.feature is not None:
        return facts.feature.word
    return facts.graph.word if facts.graph is not None else "checks only"


def _name(facts: ReportFacts) -> str:
    return str(facts.order.get("slug") or facts.run_id)


def _title(facts: ReportFacts, checked: LedgerFindings) -> tuple[str, str]:
    """Return the outcome as a heading, and its colour."""
    if checked.tampering:
        return "NOT TO BE TRUSTED: the ledger was changed", "bad"
    outcome = outcome_of(facts)
    title, colour = _TITLES.get(outcome, (outcome.capitalize(), "plain"))
    return (f"{title}: {_progress(facts)}" if facts.graph is not None else title), colour


def _progress(facts: ReportFacts) -> str:
    if facts.graph is not None and facts.graph.phases.wanted:
        counts = facts.graph.phases.counts()
        return f"{counts['completed']} of {counts['total']} phases completed"
    merged, every = facts.merged
    return f"{merged} of {every} tasks merged" if every else ""


def _header(facts: ReportFacts, checked: LedgerFindings) -> Iterator[Html]:
    yield soft("Fair Witness report, ", text(f"{facts.workflow} run ", 60), code(_name(facts), 200))
    yield el("h1", _title(facts, checked)[0])
    if checked.tampering:
        yield el("p", f"Recorded outcome: {outcome_of(facts)}. The following does not fit the record:")
        yield el("ul", *(el("li", text(found, 300)) for found in checked.tampering[:50]), role="alert")
    reasons = [_contradictions(facts), _confidence(facts, checked)]
    if _title(facts, checked)[1] == "good":
        reasons.reverse()
    yield from chain(_level(facts, checked), *reasons)
    yield fields(_numbers(facts, checked))
    yield from _next(facts)


def _level(facts: ReportFacts, checked: LedgerFindings) -> Iterator[Html]:
    if facts.feature is None:
        return
    level = facts.feature.feature.confidence or "not graded"
    yield el("p", "Confidence: ", word(level), ". ", _MEANING.get(level))
    if checked.graded is not None and checked.graded.level.value != level:
        yield el("p", "The facts of the last decision allow: ", word(checked.graded.level.value), ".")


def _confidence(facts: ReportFacts, checked: LedgerFindings) -> Iterator[Html]:
    """Yield every reason why the run failed, or why its confidence is not High."""
    if facts.feature is None:
        yield from _failures(facts)
    elif checked.graded is not None:
        details = {kind.replace("_", " "): detail for kind, detail in facts.feature.feature.degradations}
        yield el("ul", *(_limit(reason, details) for reason in checked.graded.because))
    elif facts.feature.is_over:
        yield el("p", text(facts.feature.reason, 600))


def _failures(facts: ReportFacts) -> Iterator[Html]:
    """Yield why a forge or autopilot run did not reach its goal."""
    if facts.graph is None:
        return
    if facts.graph.reason:
        yield el("p", text(facts.graph.reason[:1].upper() + facts.graph.reason[1:], 600), ".")
    failed = [
        (one.name, one.reason) for one in facts.visits if one.name.startswith("phase ") and one.reason is not None
    ]
    failed += [(node.name, node.error or "no reason is known") for node in facts.graph.exhausted()]
    if failed:
        reasons = (text(f"{name} {facts.titles.get(name, '')}".strip() + f": {why}", 500) for name, why in failed[:20])
        yield el("ul", *(el("li", reason) for reason in reasons))


_MEANING = {
    "High": "Everything that was asked for is proven.",
    "Medium": "It is proven as far as listed here; read these points before you rely on it.",
    "Low": "The evidence does not carry the change, so Fair Witness did not commit it.",
}


def _limit(reason: str, details: Mapping[str, str]) -> Html:
    """Return a reason such as `at most Low: tests fail` with its level as a coloured word."""
    level, colon, why = reason.removeprefix("at most ").partition(": ")
    if not colon or level not in _MEANING:
        return el("li", text(reason, 400))
    kind = why.rpartition(": ")[2]
    why = details.get(kind, why)
    return el("li", text(why[:1].upper() + why[1:], 400), " (at most ", word(level), ")")


def _contradictions(facts: ReportFacts) -> Iterator[Html]:
    """Yield the claims that the evidence contradicts, once each."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in facts.contradictions:
        found.setdefault((one.task, one.found), []).append(one.attempt)
    if not found:
        return
    states = task_states(facts)
    yield el("p", el("b", "Claims of agents that the evidence contradicts:"))
    yield el(
        "ul",
        *(
            el(
                "li",
                text(f"{task}, attempt{'s' if len(tries) > 1 else ''} {', '.join(tries)}: {what}. ", 500),
                "A later attempt was verified and merged." if states.get(task) == "merged" else None,
            )
            for (task, what), tries in list(found.items())[:20]
        ),
    )


def _numbers(facts: ReportFacts, checked: LedgerFindings) -> Iterator[tuple[str, Child]]:
    graph, view = facts.graph, facts.feature
    merged, every = facts.merged
    undone = f", {len(facts.taken_back)} taken back" if facts.taken_back else ""
    yield "Tasks", f"{merged} of {every} merged{undone}" if every else None
    met, criteria = facts.criteria_met
    yield "Criteria", f"{met} of {criteria} met" if criteria and facts.workflow != "forge" else None
    final = facts.final_checks
    yield "Checks of the whole", f"{sum(check.passed for check in final)} of {len(final)} passed" if final else None
    if view is not None and view.began is not None:
        yield "Took" if view.is_over else "Took so far", took(view.seconds())
    elif graph is not None and (began := graph.started or graph.began):
        yield "Took" if graph.is_over else "Took so far", took(seconds_between(began, facts.last_moment))
    used = total(facts.used.values())
    yield "Tokens", f"{used.tokens:,}{' or more' if used.interrupted else ''}" if used.counted else None
    yield "Interrupted calls", f"{used.interrupted:,}" if used.interrupted else None
    yield "Cost", spent(used)
    yield "Ledger", word("NOT TO BE TRUSTED") if checked.tampering else word("intact")


def _next(facts: ReportFacts) -> Iterator[Html]:
    view = facts.feature
    target = facts.order.get("target") or mapping(facts.order.get("options")).get("target")
    if view is not None and view.feature.commit:
        yield el("p", "Commit ", code(view.feature.commit), ". To undo it: ", code(view.feature.rollback or ""))
    elif facts.head_commit and target:
        yield el("p", "What was proven is on branch ", code(target), ".")
    elif view is not None and not view.is_over:
        yield soft("Nothing was committed so far.")
    if view is not None and view.feature.question is not None:
        question = view.feature.question
        yield el("p", word("waiting for you"), " ", code(question.gate), text(f" since {question.since}: "),
                 code(f"fairwitness answer {facts.run_id} {'|'.join(question.options)}", 400))  # fmt: skip


def _asked(facts: ReportFacts) -> Html:
    asked = str(facts.order.get("request") or (facts.graph.request if facts.graph is not None else ""))
    view, roadmap = facts.feature or facts.graph, _roadmap(facts)
    request = el("pre", text(asked, 8000), class_="asked") if asked else soft("No request is on record.")
    return joined(
        (
            roadmap or request,
            fields(
                (
                    ("Run", code(facts.run_id)),
                    ("Began", moment(view.began) if view is not None else None),
                    ("From commit", code(str(facts.order.get("base_commit") or "")[:12] or "not recorded")),
                    ("Mode", text(str(facts.order.get("mode") or ""), 40)),
                    ("Path", _path(facts)),
                    ("Iterations", facts.feature.feature.iteration if facts.feature is not None else None),
                )
            ),
            _answers(facts),
        )
    )


def _path(facts: ReportFacts) -> Html | None:
    if facts.feature is None:
        return None
    pipeline = facts.feature.feature
    return text(pipeline.path if pipeline.left_path is None else f"{pipeline.path}: {pipeline.left_path}", 400)


def _roadmap(facts: ReportFacts) -> Html:
    items = [
        el("li", el("b", text(f"phase {one.get('id')} {one.get('name')}", 200)), ": ", text(one.get("goal") or "", 400))
        for one in dicts(mapping(facts.order.get("roadmap")).get("phases"))
    ]
    return el("ul", *items[:100]) if items else NONE


def _answers(facts: ReportFacts) -> Html:
    if not facts.answers:
        return NONE
    return table(
        ("Question", "Answer", "By", "When", "In words"),
        (
            (
                text(one.gate, 100),
                text(one.option, 100),
                word("decided automatically") if one.is_auto else text(one.actor, 100),
                moment(one.at),
                text(one.said, 600) if one.said else None,
            )
            for one in facts.answers
        ),
        nothing="",
    )


def _documents(facts: ReportFacts) -> Html:
    if not facts.documents:
        return NONE
    listed = table(
        ("Document", "SHA-256"),
        ((code(path, 300), code(digest.removeprefix("sha256:"), 80)) for path, digest in facts.documents.items()),
        nothing="",
        more=f"fairwitness events {facts.run_id}",
        is_wide=True,
    )
    return folded(f"Documents: {len(facts.documents)}", listed, is_raw=True)


def _ledger(facts: ReportFacts, checked: LedgerFindings) -> Html:
    state = word("NOT TO BE TRUSTED") if checked.tampering else word("intact")
    return joined(
        (
            el("p", "This page was read from the ledger of the run, which was verified for it: ", state,
               f", {facts.links:,} links, {facts.events:,} events. To verify it yourself: ",
               code("fairwitness ledger verify"), f"; link {facts.links} of this run has the hash ",
               code(facts.head), "."),
            el("p", "The folded parts are not printed.", class_="raw-note"),
        )
    )  # fmt: skip
