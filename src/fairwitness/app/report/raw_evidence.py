"""The raw evidence of a run: every check of every task, the gates with their queries, and the calls of agents."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairwitness.app.report.html import NONE, Child, Html, code, el, folded, joined, moment, soft, table, text, word
from fairwitness.app.report.model import GateEvaluation, ReportedCall, ReportFacts, TaskAttempt
from fairwitness.app.views.checks import Check
from fairwitness.kit.durations import seconds_between, took
from fairwitness.verify.shown_command import shown_command

_SHORT, _LINE = 12, 120
LARGEST_EVIDENCE = 110_000
"""The maximum number of characters of the evidence of all tasks."""
SECTIONS = 200
"""The maximum number of tasks with their own part."""
NO_TASK = "the run"


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping; another value is an empty one."""
    return value if isinstance(value, dict) else {}


def dicts(values: object) -> Iterator[Mapping[str, Any]]:
    """Return the mappings in a list; other values are left out."""
    for value in values if isinstance(values, list | tuple) else ():
        if isinstance(value, dict):
            yield value


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


def checks_by_task(facts: ReportFacts) -> dict[str, list[Check]]:
    by_task: dict[str, list[Check]] = {attempt.task: [] for attempt in facts.attempts.values()}
    for check in facts.checks:
        if check.phase != "review":
            by_task.setdefault(check.task or NO_TASK, []).append(check)
    return by_task


def evidence_part(facts: ReportFacts) -> Html:
    """Return the attempts and checks of every task, folded."""
    by_task = checks_by_task(facts)
    if not by_task:
        return soft("No task was begun and no check was run; the implement step begins them.")
    parts: list[Html] = []
    left, more = LARGEST_EVIDENCE, "fairwitness ledger query --list"
    for name, checks in list(by_task.items())[:SECTIONS]:
        parts.append(_task(facts, name, checks, max(0, left), more))
        left -= len(parts[-1])
    if len(by_task) > SECTIONS:
        parts.append(soft(f"and {len(by_task) - SECTIONS:,} more tasks: {more}"))
    if facts.left_out:
        parts.append(soft(f"{facts.left_out:,} older rows are not shown: {more}"))
    return joined(parts)


def _task(facts: ReportFacts, name: str, checks: list[Check], most: int, more: str) -> Html:
    attempts = [attempt for attempt in facts.attempts.values() if attempt.task == name]
    tried = table(
        ("Attempt", "State", "Branch", "Agent", "Tree", "Reason"), map(_attempt, attempts), nothing="", most=most
    ) if attempts else None  # fmt: skip
    ran = table(
        ("Check", "When", "Result", "Source", "Command and output", "Exit", "Tree", "Sandbox", "Took"),
        map(_check, sorted(checks, key=lambda check: check.passed)),
        nothing="No evidence: nothing was run for it.",
        more=more,
        most=most,
        is_wide=True,
    )
    passed = sum(check.passed for check in checks)
    return folded(text(f"{name}: {passed} of {len(checks)} rows passed", 200), tried, ran, is_raw=True)


def _attempt(attempt: TaskAttempt) -> tuple[Child, ...]:
    return (
        attempt.number,
        word(attempt.word),
        code(attempt.branch, 200),
        text(attempt.agent, 100),
        _short(attempt.tree),
        text(attempt.reason, 400) if attempt.reason else None,
    )


def _check(check: Check) -> tuple[Child, ...]:
    ended = check.assessment if check.assessment not in (None, "pass") else check.worth
    result = "passed" if check.passed else ended or "failed"
    instance = "" if check.instance in (None, check.name) else f" {check.instance}"
    return (
        text(f"{check.name}{instance}", 200),
        f"{check.phase}, round {check.round}",
        word(result),
        text(check.provenance or "no source"),
        joined((code(shown_command(check.command), 300) if check.command else NONE, _printed(check))),
        check.exit_code,
        _short(check.tree),
        check.sandbox,
        took(check.duration_ms / 1000) if check.duration_ms is not None else None,
    )


def _printed(check: Check) -> Html:
    """Return the beginning of what a check printed; a short line is not folded."""
    if not check.snippet:
        return NONE
    if check.execution is None and len(check.snippet) <= _LINE:
        return el("div", text(check.snippet))
    shown = code(f"fairwitness evidence show {check.execution}") if check.execution is not None else None
    return folded("output", el("pre", text(check.snippet, _LINE if check.passed else 1000)), el("p", shown))


def _short(commit: str | None) -> Html | None:
    return None if commit is None else el("code", text(commit[:_SHORT]), class_="state")


def gates_in_decisions(facts: ReportFacts) -> list[GateFact]:
    """Return the result of each gate at the last decision that used it."""
    found: dict[tuple[str, str], GateFact] = {}
    for decision in facts.decisions:
        for answer in dicts(decision.decision.get("gates")):
            gate = gate_fact(answer)
            found.pop((gate.gate, gate.about), None)  # keeps the order of the last evaluation
            found[gate.gate, gate.about] = gate
    return list(found.values())


def gate_fact(answer: Mapping[str, Any]) -> GateFact:
    """Return the result of a gate from plain values."""
    query = mapping(answer.get("query"))
    values = query.get("values")
    values = values if isinstance(values, list | tuple) else ()
    because = str(answer.get("because") or "")
    missing = ", ".join(str(one) for one in answer.get("missing") or () if str(one) not in because)
    because = "; missing: ".join(filter(None, (because, missing)))
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
    opened = sum(gate.is_open for gate in gates)
    statements = list(dict.fromkeys(gate.sql for gate in gates))
    listed = table(
        ("Gate", "About", "Answer", "Counted", "Needed", "Why", "Query", "Values"),
        (
            (
                gate.gate,
                gate.about,
                word("open" if gate.is_open else "blocked"),
                gate.counted,
                "0, exactly" if gate.gate == "EG-4" else f"at least {gate.threshold}",
                gate.because,
                f"SQL {statements.index(gate.sql) + 1}",
                code(gate.values, 300),
            )
            for gate in gates
        ),
        nothing="No gate was evaluated yet.",
        is_wide=True,
    )
    queries = [folded(f"SQL {number}", el("pre", sql)) for number, sql in enumerate(statements, 1)]
    history = table(
        ("When", "Gate", "About", "Answer", "Counted", "Needed", "Missing"),
        (
            (
                moment(one.at),
                one.gate,
                one.task,
                word("open" if one.is_open else "blocked"),
                one.counted,
                one.threshold,
                one.missing,
            )
            for one in asked
        ),
        nothing="",
        is_wide=True,
    )
    spelled = folded(f"evaluated {len(asked)} times during the run", history) if asked else NONE
    return folded(f"Gates: {opened} of {len(gates)} open", listed, *queries, spelled, is_raw=True)


def calls_part(facts: ReportFacts) -> Html:
    """Return every finished call of an agent."""
    drawn = table(
        ("Step", "Agent", "Instance", "Began", "Took", "Ended", "Dispatch", "Retries", "Notes"),
        map(_call, facts.calls),
        nothing="No call of an agent has ended.",
        more="fairwitness ledger query --list",
        is_wide=True,
    )
    return folded(f"Calls of agents: {len(facts.calls)}", drawn, is_raw=True)


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
    try:
        return took(seconds_between(start, end)) if end is not None else None
    except (TypeError, ValueError):
        return None
