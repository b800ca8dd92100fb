"""Sections of a report: tasks with their evidence, gates, reviews, calls, cost, known issues."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fairwitness.app.report.html import (
    Child,
    Html,
    agents_words,
    code,
    el,
    fields,
    folded,
    joined,
    moment,
    table,
    text,
    word,
)
from fairwitness.app.report.model import Check, GateEvaluation, ReportedCall, ReportFacts, ReviewAnswer, TaskAttempt
from fairwitness.kit.durations import took

_SHORT = 12
SECTIONS = 200
"""The maximum number of tasks or reviewers with their own section."""
NO_TASK = "the run"


class GateFact(NamedTuple):
    """The last result of a gate."""

    gate: str
    about: str
    is_open: bool
    counted: int
    threshold: int
    because: str
    sql: str
    values: str


def tasks_part(facts: ReportFacts) -> Html:
    """Return every task with its attempts and checks."""
    by_task: dict[str, list[Check]] = {attempt.task: [] for attempt in facts.attempts.values()}
    for check in facts.checks:
        if check.phase != "review":
            by_task.setdefault(check.task or NO_TASK, []).append(check)
    if not by_task:
        return el("p", "No task was begun and no check was run; the implement step begins them.", class_="empty")
    parts = [_task(facts, name, checks) for name, checks in list(by_task.items())[:SECTIONS]]
    if len(by_task) > SECTIONS:
        parts.append(el("p", f"and {len(by_task) - SECTIONS:,} more tasks: fairwitness events {facts.run_id}"))
    if facts.left_out:
        parts.append(el("p", f"{facts.left_out:,} older rows are not shown: fairwitness ledger query --list"))
    return joined(parts)


def _task(facts: ReportFacts, name: str, checks: list[Check]) -> Html:
    attempts = [attempt for attempt in facts.attempts.values() if attempt.task == name]
    tried = table(
        ("Attempt", "State", "Branch", "Agent", "Tree", "Reason"), map(_attempt, attempts), nothing="No attempt."
    )
    ran = table(
        ("Check", "When", "Result", "Source", "Command and what it printed", "Exit", "Tree", "Sandbox", "Took"),
        map(_check, checks),
        nothing="No evidence: nothing was run for it.",
        more="fairwitness ledger query --list",
    )
    passed = sum(check.passed for check in checks)
    summary = el("p", f"{passed} of {len(checks)} rows passed.")
    return el("section", el("h3", text(name, 200)), tried if attempts else None, summary, ran)


def _attempt(attempt: TaskAttempt) -> tuple[Child, ...]:
    return (
        attempt.number,
        word(attempt.word),
        code(attempt.branch, 200),
        text(attempt.agent, 100),
        _short(attempt.tree),
        attempt.reason,
    )


def _check(check: Check) -> tuple[Child, ...]:
    result = "passed" if check.passed else check.assessment or "failed"
    shown = f"fairwitness evidence show {check.execution}" if check.execution is not None else ""
    printed = folded("output", el("pre", check.snippet), el("p", code(shown)) if shown else None)
    return (
        text(f"{check.name} {check.instance or ''}".strip(), 200),
        f"{check.phase}, round {check.round}",
        word("fail" if result == "failed" else result),
        word(check.provenance or "no source"),
        joined((code(check.command) if check.command else text(""), printed if check.snippet else text(""))),
        check.exit_code,
        _short(check.tree),
        check.sandbox,
        took(check.duration_ms / 1000) if check.duration_ms is not None else None,
    )


def _short(commit: str | None) -> Html | None:
    return None if commit is None else el("code", text(commit[:_SHORT]), title=commit[:80])


def gates_in_decisions(facts: ReportFacts) -> list[GateFact]:
    """Return the result of each gate at the last decision that used it."""
    found: dict[tuple[str, str], GateFact] = {}
    for decision in facts.decisions:
        for answer in _dicts(decision.decision.get("gates")):
            gate = gate_fact(answer)
            found.pop((gate.gate, gate.about), None)  # keeps the order of the last evaluation
            found[gate.gate, gate.about] = gate
    return list(found.values())


def gate_fact(answer: Mapping[str, Any]) -> GateFact:
    """Return the result of a gate from plain values."""
    query = answer.get("query")
    query = query if isinstance(query, dict) else {}
    values = query.get("values")
    values = values if isinstance(values, list | tuple) else ()
    missing = ", ".join(map(str, answer.get("missing") or ()))
    because = "; missing: ".join(filter(None, (str(answer.get("because") or ""), missing)))
    return GateFact(
        gate=str(answer.get("gate")),
        about=str(values[1]) if len(values) > 1 else "",
        is_open=answer.get("answer") == "open",
        counted=_number(answer.get("count")),
        threshold=_number(answer.get("threshold")),
        because=because,
        sql=str(query.get("sql") or "not on record"),
        values=", ".join(map(repr, values)),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def gates_part(gates: list[GateFact], asked: list[GateEvaluation]) -> Html:
    """Return the count of each gate and its exact query."""
    statements = list(dict.fromkeys(gate.sql for gate in gates))
    listed = table(
        ("Gate", "About", "Answer", "Counted", "Needed", "Why", "Question", "Values"),
        (
            (
                gate.gate,
                gate.about,
                word("open" if gate.is_open else "SHUT"),
                gate.counted,
                "0, exactly" if gate.gate == "EG-4" else f"at least {gate.threshold}",
                gate.because,
                f"SQL {statements.index(gate.sql) + 1}",
                code(gate.values, 300),
            )
            for gate in gates
        ),
        nothing="No gate was asked yet; a gate is asked before the run goes on from what it guards.",
    )
    queries = [folded(f"SQL {number}", el("pre", sql)) for number, sql in enumerate(statements, 1)]
    history = table(
        ("When", "Gate", "About", "Answer", "Counted", "Needed", "Missing"),
        (
            (
                moment(one.at),
                one.gate,
                one.task,
                word("open" if one.is_open else "SHUT"),
                one.counted,
                one.threshold,
                one.missing,
            )
            for one in asked
        ),
        nothing="",
    )
    spelled = folded(f"asked {len(asked)} times while the run went on", history) if asked else Html("")
    return joined((listed, *queries, spelled))


def reviews_part(facts: ReportFacts) -> Html:
    """Return each reviewer's verdicts, which are claims, and its findings."""
    rows = [check for check in facts.checks if check.phase == "review"]
    if not rows:
        return el("p", "No review is on record; design review and code review make them.", class_="empty")
    verdicts = table(
        ("About", "Round", "Reviewer", "Judged", "Verdict", "Severity"),
        ((row.task, row.round, row.instance, row.name, word(row.verdict or "no source"), row.severity) for row in rows),
        nothing="",
    )
    return joined((el("p", "Verdicts are claims; gates count them, and one blocker is never outvoted."), verdicts,
                   *(_said(said) for said in facts.said[-SECTIONS:])))  # fmt: skip


def _said(said: ReviewAnswer) -> Html:
    who = f"{said.agent} {said.instance or ''}".strip()
    findings = list(_dicts(said.body.get("findings")))
    title = el("h3", text(f"{said.task or NO_TASK}, round {said.round}: {who}", 200))
    summary = agents_words(who, said.body["summary"]) if said.body.get("summary") else None
    if not findings:
        return el("section", title, summary, el("p", "No finding.", class_="empty"))
    listed = table(
        ("Finding", "Severity", "Category", "What", "Where", "Rests on", "Recommended"),
        (_finding(finding) for finding in findings),
        nothing="",
    )
    return el("section", title, summary, el("p", "Written by the reviewer; claims:", class_="label"), listed)


def _finding(finding: Mapping[str, Any]) -> tuple[Child, ...]:
    spelled = joined((el("b", text(finding.get("title", ""), 300)), el("br"), text(finding.get("description", ""))))
    return (
        text(finding.get("id", ""), 60),
        word(str(finding.get("severity", ""))[:40]),
        text(finding.get("category", ""), 60),
        spelled,
        _listed(finding.get("artifacts")),
        _listed(finding.get("evidence")),
        text(finding.get("recommendation", "")),
    )


def _listed(values: object) -> Html:
    return text(", ".join(map(str, values[:20])) if isinstance(values, list | tuple) else values or "", 600)


def calls_part(facts: ReportFacts) -> Html:
    """Return every finished call of an agent."""
    return table(
        ("Step", "Agent", "Instance", "Began", "Took", "Ended", "Dispatch", "Retries", "Notes"),
        map(_call, facts.calls),
        nothing="No call of an agent has ended.",
        more="fairwitness ledger query --list",
    )


def _call(call: ReportedCall) -> tuple[Child, ...]:
    return (
        call.step,
        call.agent,
        call.instance,
        moment(call.started_at),
        _length(call.started_at, call.completed_at),
        word(call.status or "under way"),
        call.dispatch_count,
        call.retry_count,
        text(call.notes, 300) if call.notes else None,
    )


def _length(start: str, end: str | None) -> str | None:
    if end is None:
        return None
    try:
        return took(max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))
    except (TypeError, ValueError):
        return None


def cost_part(facts: ReportFacts) -> Html:
    """Return the counted usage and which part of the run it covers; missing numbers are not estimated."""
    used = facts.used
    if not used.calls:
        return el("p", "Nothing was counted: no call of an agent has ended.", class_="empty")
    dollars, rest = divmod(used.cost_micros, 1_000_000)
    cost = f"{dollars}.{rest:06} USD, known for {used.priced} of {used.calls} calls"
    return fields(
        (
            ("Calls", f"{used.calls:,}"),
            ("Tokens in", f"{used.tokens_in:,}, counted for {used.counted} of {used.calls} calls"),
            ("Tokens out", f"{used.tokens_out:,}, counted for {used.counted} of {used.calls} calls"),
            ("Cost", cost if used.priced else "not known"),
            ("Models", ", ".join(used.models[:20]) or "not reported"),
        )
    )


def _dicts(values: object) -> Iterator[Mapping[str, Any]]:
    for value in values if isinstance(values, list | tuple) else ():
        if isinstance(value, dict):
            yield value


def issues_part(facts: ReportFacts, gates: list[GateFact]) -> Html:
    """Return all open issues; findings of reviewers are marked as claims."""
    found = list(_all_issues(facts, gates))
    return table(("Kind", "What", "Rests on"), found, nothing="None is on record.")


def _all_issues(facts: ReportFacts, gates: list[GateFact]) -> Iterator[Sequence[Child]]:
    given_up = _given_up(facts)
    for gate in gates:
        if not gate.is_open and gate.about not in given_up:
            yield "gate shut", f"{gate.gate} {gate.about}: {gate.because}", "the ledger"
    after = [check for check in facts.checks if check.phase == "after"]
    rounds: dict[str | None, int] = {}
    for check in after:
        rounds[check.task] = max(check.round, rounds.get(check.task, 0))
    for check in {(check.task, check.name, check.instance): check for check in after}.values():
        if not check.passed and check.round == rounds[check.task]:
            yield (
                "check",
                f"{check.task or ''} {check.name}: {check.assessment or 'failed'}",
                word(check.provenance or "no source"),
            )
    newest = {said.task: max(one.round for one in facts.said if one.task == said.task) for said in facts.said}
    for said in facts.said:
        for finding in said.body.get("findings") or ():
            if said.round == newest[said.task] and isinstance(finding, dict):
                spelled = f"{finding.get('severity')}: {finding.get('title')}"
                yield "finding", text(f"{said.instance or said.agent}: {spelled}", 400), word("claimed")
    if facts.feature is not None:
        for kind, detail in facts.feature.degradations:
            yield "went on with less", f"{kind}: {detail}", word("observed")
        for used_up in facts.feature.exhausted:
            yield "budget used up", used_up, word("observed")
        if facts.feature.refused:
            yield "refused calls", f"{facts.feature.refused}: agents asked for what they may not do", word("observed")
    if facts.graph is not None:
        for node in facts.graph.exhausted():
            yield "task failed for good", f"{node.name}: {node.error or 'no reason is known'}", word("observed")


def _given_up(facts: ReportFacts) -> set[str]:
    """Return the started tasks that the last decision no longer contains: they were replaced by others."""
    tasks = facts.decisions[-1].facts.get("tasks") if facts.decisions else None
    known = {str(task.get("task")) for task in tasks if isinstance(task, dict)} if isinstance(tasks, list) else set()
    return {attempt.task for attempt in facts.attempts.values()} - known if known else set()
