"""A report as one HTML page without script or network: everything the ledger says of a run, in the order of reading."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from fairwitness.app.feature_steps import STEPS
from fairwitness.app.report_evidence import (
    GateFact,
    calls_part,
    cost_part,
    gates_part,
    reviews_part,
    tasks_part,
)
from fairwitness.app.report_html import Child, Html, code, el, fields, folded, joined, moment, table, text, word
from fairwitness.app.report_issues import issues_part
from fairwitness.app.report_model import Decision, RunFacts, Visit
from fairwitness.app.report_style import STYLE
from fairwitness.contracts.common.decisions import Graded
from fairwitness.kit.durations import took

MARK = '<meta name="generator" content="fairwitness report">'
"""What tells a report from any other file."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_OUTCOMES = {"advanced": "done"}


class Checked(NamedTuple):
    """What was found beside the rows themselves."""

    gates: list[GateFact]
    tampering: tuple[str, ...]
    """Everything in the run that is not as it was written."""
    graded: Graded | None
    """The confidence that the facts of the last decision allow; None if they are not on record."""


def page(facts: RunFacts, checked: Checked) -> str:
    """The page; the same ledger gives the same bytes."""
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


def outcome_of(facts: RunFacts) -> str:
    """How the run ended, or where it stands, in a word or two."""
    if facts.feature is not None:
        return facts.feature.word
    return facts.graph.word if facts.graph is not None else "checks only"


def _title(facts: RunFacts) -> str:
    name = facts.feature.slug if facts.feature is not None and facts.feature.slug else facts.run_id
    return f"{facts.workflow} {name}"


def _header(facts: RunFacts, checked: Checked) -> Iterator[Html]:
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


def _about(facts: RunFacts) -> Iterator[tuple[str, Child]]:
    look, graph = facts.feature, facts.graph
    yield "Run", code(facts.run_id)
    if look is not None:
        ending = look.ending
        yield "Reason", ending.reason if ending is not None else None
        yield "Commit", code(look.commit) if look.commit else "none"
        yield "To undo it", code(look.rollback) if look.rollback else "nothing was committed"
        yield "Began", moment(look.began)
        yield "Took" if look.is_over else "Took so far", took(look.seconds())
        yield "Mode", look.mode
        yield "Begun from", code(look.base)
        yield "Iterations", look.iteration
        yield "Tokens", f"{look.tokens:,}"
    elif graph is not None:
        yield "Reason", graph.reason
        yield "Began", moment(graph.began)
        yield "Last event", moment(graph.last_time)
        counts = graph.counts()
        yield "Tasks", f"{counts['merged']} of {counts['total']} merged, {counts['failed']} failed for good"


def _confidence(facts: RunFacts, checked: Checked) -> Iterator[Html]:
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


def _steps(facts: RunFacts) -> Html:
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


def _readers(facts: RunFacts) -> Iterator[Sequence[Child]]:
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


def _agents(facts: RunFacts, visit: Visit) -> str:
    """The calls that began in this visit."""
    assert facts.feature is not None
    begin, end = _seconds(visit.started), _seconds(visit.finished) if visit.finished else float("inf")
    own = [call for call in facts.feature.calls.values() if call.step == visit.step]
    calls = [call for call in own if begin <= _seconds(call.since) <= end]
    good = sum(call.status in ("DONE", "NEEDS_REVISION") for call in calls)
    return f"{good} of {len(calls)}" if calls else ""


def _state(facts: RunFacts, visit: Visit) -> str:
    if visit.outcome is None:
        return "stopped" if facts.feature is not None and facts.feature.is_over else "running"
    return _OUTCOMES.get(visit.outcome, visit.outcome)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _decisions(facts: RunFacts) -> Html:
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


def _answers(facts: RunFacts) -> Html:
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


def _documents(facts: RunFacts) -> Html:
    listed = table(
        ("Document", "Kept under"),
        ((code(path, 300), code(digest, 80)) for path, digest in facts.documents.items()),
        nothing="No document was stored.",
        more=f"fairwitness events {facts.run_id}",
    )
    return folded(f"{len(facts.documents)} documents", listed) if facts.documents else listed


def _ledger(facts: RunFacts, checked: Checked) -> Html:
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
