"""Sections of a report: what changed, what was proven, what reviewers said, open issues, cost, timeline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from fairwitness.app.report.model import (
    Decision,
    Difference,
    FileDiff,
    JudgedCriterion,
    Opinion,
    ReportFacts,
    ReviewAnswer,
    SubjectResult,
    Visit,
)
from fairwitness.app.report.raw_evidence import NO_TASK, SECTIONS, GateFact, checks_by_task, dicts
from fairwitness.app.views.agent_usage import AgentUsage, interrupted_text, total
from fairwitness.app.views.checks import Check
from fairwitness.app.views.run import phase_status_text
from fairwitness.kit.durations import seconds_between, took
from fairwitness.ledger.feature_summary import STEPS
from fairwitness.rules.evidence_worth import LACKS, SHUTS

_SHORT = 12
LARGEST_DIFF = 80_000
"""The maximum number of characters of all diffs."""
OPEN_ROWS = 150
"""The number of lines of a diff that are unfolded."""


def changes_part(facts: ReportFacts) -> Html:
    """Return the diff of the result, then those of refused attempts."""
    if not any(difference.is_result for difference in facts.differences):
        nothing = soft("Nothing was changed: no work was merged.")
    else:
        nothing = NONE
    left = LARGEST_DIFF
    parts = [nothing]
    for difference in facts.differences:
        drawn = _difference(difference, left)
        left -= len(drawn)
        parts.append(drawn)
    return joined(parts)


def _difference(difference: Difference, most: int) -> Html:
    command = f"git diff {difference.base[:_SHORT]} {difference.head[:_SHORT]}"
    if difference.files is None:
        return soft(f"{difference.title}: the repository here does not hold these commits. Where it does: ",
                    code(command))  # fmt: skip
    added, removed = (sum(getattr(file, side) for file in difference.files) for side in ("added", "removed"))
    total = joined((_count(len(difference.files), "file"), Html(", "), _plus(added, removed)))
    drawn: list[Html] = []
    left = rows = 0
    for file in difference.files:
        rows += len(file.rows)
        if sum(map(len, drawn)) >= most:
            left += 1
        else:
            is_open = difference.is_result and rows <= OPEN_ROWS
            drawn.append(_file(file, most - sum(map(len, drawn)), command, is_open=is_open))
    rest = soft(f"and {left:,} more files: ", code(command)) if left else NONE
    if difference.is_result:
        return joined((el("p", total, " between ", code(difference.base[:_SHORT]), " and ",
                          code(difference.head[:_SHORT]), "."), *drawn, rest))  # fmt: skip
    return folded(joined((text(f"{difference.title} (", 300), total, Html(")"))), *drawn, rest)


def _count(number: int, what: str) -> Html:
    return text(f"{number:,} {what}{'' if number == 1 else 's'}")


def _plus(added: int, removed: int) -> Html:
    return joined((el("b", f"+{added:,}", class_="good"), Html(" "), el("b", f"−{removed:,}", class_="bad")))


def _file(file: FileDiff, most: int, command: str, *, is_open: bool) -> Html:
    title = joined((code(file.path, 300), text(f" {file.change} ", 300), _plus(file.added, file.removed)))
    lines: list[Html] = []
    size = 0
    for row in file.rows:
        if size >= most:
            break
        lines.append(_ROWS[row.sign](text(f"{row.sign} {row.text}" if row.sign != "@" else f"line {row.number}", 400)))
        size += len(lines[-1])
    left = len(file.rows) - len(lines)
    rest = soft(f"and {left:,} more lines: ", code(f"{command} -- {file.path}", 400)) if left else None
    drawn = el("pre", *lines, class_="diff") if lines else None
    return folded(title, drawn, rest, is_open=is_open)


_ROWS = {
    "+": lambda line: el("ins", line),
    "-": lambda line: el("del", line),
    " ": lambda line: el("span", line),
    "@": lambda line: el("i", line),
}


def proven_part(facts: ReportFacts) -> Html:
    """Return the result of each criterion, and the checks of each task."""
    return joined((_criteria(facts), _tasks(facts)))


def _criteria(facts: ReportFacts) -> Html:
    if not facts.criteria:
        return soft("No acceptance criterion was judged.")
    met, every = facts.criteria_met
    counted = f"{met} of {every} criteria are met. Fair Witness ran the commands itself."
    drawn = table(
        ("For", "Criterion", "Result", "Evidence"),
        (
            (
                _named(facts, one.about) if one.about != before else text(one.about, 200),
                text(one.text, 600),
                word(one.result),
                _evidence_of(facts, one),
            )
            for before, one in zip(("", *(one.about for one in facts.criteria)), facts.criteria, strict=False)
        ),
        nothing="",
        more=f"fairwitness events {facts.run_id}",
    )
    return joined((el("p", counted), drawn))


def _evidence_of(facts: ReportFacts, one: JudgedCriterion) -> Html | None:
    shown = el("div", code(f"fairwitness evidence show {one.execution}")) if one.execution is not None else NONE
    if one.evidence:
        return joined((code(one.evidence, 300), shown))
    passed = _passed(_last_round(facts, one.about))
    return text(f"{passed} checks") if passed else None


def _named(facts: ReportFacts, name: str) -> Html:
    title = facts.titles.get(name)
    return joined((el("b", text(name, 200)), el("br"), text(title, 200))) if title else text(name, 200)


def task_states(facts: ReportFacts) -> dict[str, str]:
    """Return the state of every task."""
    if facts.feature is not None:
        return {task.name: task.word for task in facts.feature.started_tasks()}
    if facts.graph is not None:
        words = {
            name: "failed" if node.is_exhausted else node.state.lower() for name, node in facts.graph.nodes.items()
        }
        return words | dict.fromkeys(facts.taken_back & words.keys(), "reverted")
    return {name: _answer(facts.proofs.get(name)) for name in checks_by_task(facts)}


def _answer(proof: SubjectResult | None) -> str:
    return "checked" if proof is None else "passed" if proof.is_open else "blocked"


def _tasks(facts: ReportFacts) -> Html:
    rows = [_task_row(facts, name, state) for name, state in task_states(facts).items()]
    final = facts.final_checks
    if final:
        name = str(final[0].task)
        state = word(_answer(facts.proofs.get(name)))
        rows.append((el("b", "The whole result"), state, None, _passed(final), _lacks(facts, name)))
    return table(
        ("Task", "State", "Attempts", "Checks passed", "What is missing, and what was noticed"),
        rows,
        nothing="No task was begun.",
        more=f"fairwitness status {facts.run_id}",
    )


def _task_row(facts: ReportFacts, name: str, state: str) -> Sequence[Child]:
    node = facts.graph.nodes.get(name) if facts.graph is not None else None
    attempts = max((number for task, number in facts.attempts if task == name), default=node.attempt if node else None)
    return (
        _named(facts, name),
        word(state),
        attempts,
        _passed(_last_round(facts, name)),
        _lacks(facts, name),
    )


def _last_round(facts: ReportFacts, name: str) -> list[Check]:
    after = [check for check in facts.checks if check.task == name and check.phase == "after"]
    last = max((check.round for check in after), default=0)
    return [check for check in after if check.round == last]


def _passed(checks: Sequence[Check]) -> str:
    return f"{sum(check.passed for check in checks)} of {len(checks)}" if checks else ""


def _lacks(facts: ReportFacts, name: str) -> Html | None:
    proof = facts.proofs.get(name)
    if proof is None:
        return None
    lacks = [el("li", word("missing"), " ", text(one, 300)) for one in proof.missing[:20]]
    return el("ul", *lacks, *(el("li", text(one, 300)) for one in proof.notes[:10]))


def reviews_part(facts: ReportFacts) -> Html:
    """Return the verdicts and findings of reviewers, the last review first; they are claims."""
    rows = [check for check in facts.checks if check.phase == "review"]
    said = table(
        ("About", "By", "Verdict", "In their words"), map(_statement, facts.statements), nothing=""
    ) if facts.statements else NONE  # fmt: skip
    if not rows:
        return said or soft("No review is on record.")
    rounds: dict[tuple[str, int], list[Check]] = {}
    for row in rows:
        rounds.setdefault((row.task or NO_TASK, row.round), []).append(row)
    claims = soft("Verdicts are claims of agents. Gates count them; a blocker is never outvoted.")
    drawn = [_review(facts, *key, of) for key, of in list(rounds.items())[-SECTIONS:]]
    earlier = [folded(title, part) for title, part in reversed(drawn[:-1])]
    title, last = drawn[-1]
    return joined((claims, el("h3", title), last, *earlier, said))


def _statement(one: Opinion) -> Sequence[Child]:
    return text(one.about, 100), text(one.who, 100), word(one.verdict[:60]), text(one.words, 800)


def _review(facts: ReportFacts, task: str, number: int, rows: list[Check]) -> tuple[str, Html]:
    words = {said.instance: said for said in facts.said if (said.task or NO_TASK, said.round) == (task, number)}
    reviewers: dict[str | None, list[Check]] = {}
    for row in rows:
        reviewers.setdefault(row.instance, []).append(row)
    approve = sum(all(row.verdict == "approve" for row in of) for of in reviewers.values())
    kind = next((kind for kind in ("design", "code") if task.endswith(f"-{kind}-review")), task)
    title = f"{kind.capitalize()} review, round {number}: {approve} of {len(reviewers)} reviewers approve"
    drawn = table(
        ("Reviewer", "Verdicts", "In its words"),
        (
            (
                text(name, 100),
                joined(el("div", text(f"{row.name.rpartition('-')[2]} ", 60), _verdict(row)) for row in of),
                text(words[name].body.get("summary") or "", 600) if name in words else None,
            )
            for name, of in reviewers.items()
        ),
        nothing="",
    )
    findings = (_finding(said, finding) for said in words.values() for finding in dicts(said.body.get("findings")))
    return title, joined((drawn, *findings))


def _verdict(row: Check) -> Html:
    severity = text(f" ({row.severity})", 40) if row.severity else NONE
    return joined((word(row.verdict or "no source"), severity))


def _finding(said: ReviewAnswer, finding: Mapping[str, Any]) -> Html:
    severity, title = str(finding.get("severity", ""))[:40], text(finding.get("title", ""), 300)
    who = text(f"{finding.get('id', '')}, {finding.get('category', '')}; claimed by {said.instance or said.agent}", 300)
    return el(
        "div",
        el("p", word(severity), " ", el("b", title), " ", el("span", who, class_="soft")),
        el("p", text(finding.get("description", ""))),
        fields(
            (
                ("Where", _listed(finding.get("artifacts"))),
                ("Rests on", _listed(finding.get("evidence"))),
                ("Recommended", text(finding.get("recommendation", ""))),
            )
        ),
        class_="box",
    )


def _listed(values: object) -> Html:
    return text(", ".join(map(str, values[:20])) if isinstance(values, list | tuple) else values or "", 600)


def cost_part(facts: ReportFacts) -> Html:
    """Return the counted usage by role and which calls it covers; missing numbers are not estimated."""
    if not facts.used:
        return soft("Nothing was counted: no call of an agent has ended.")
    every = total(facts.used.values())
    rows = [*sorted(facts.used.items()), ("all", every)]
    drawn = table(
        ("Role", "Calls", "Interrupted", "Tokens in", "Tokens out", "Cost"),
        (
            (
                *(text(role, 100), f"{used.calls:,}", f"{used.interrupted:,}" if used.interrupted else None),
                *(f"{used.tokens_in:,}", f"{used.tokens_out:,}", spent(used) or None),
            )
            for role, used in rows
        ),
        nothing="",
    )
    models = ", ".join(facts.models[:20]) or "not reported"
    counted = f"Tokens are counted for {every.counted} of {every.calls} calls, cost for {every.priced}."
    lost = f" {interrupted_text(every)}; the table does not include them." if every.interrupted else ""
    return joined((drawn, soft(f"{counted}{lost} Models: ", text(models, 300), ".")))


def spent(used: AgentUsage) -> str:
    """Return the cost of calls, as far as it is known; empty if it is known for none."""
    if not used.priced:
        return ""
    is_all = used.priced == used.calls and not used.interrupted
    return f"{used.cost_micros / 1_000_000:.2f} USD{'' if is_all else ' or more'}"


def timeline_part(facts: ReportFacts) -> Html:
    """Return the steps, attempts or phases as bars, and the decisions."""
    drawn = table(
        ("Part", "State", "When", "Took", "Reason"),
        _bars(facts),
        nothing="Nothing was begun.",
        more=f"fairwitness events {facts.run_id}",
    )
    visited = {visit.name for visit in facts.visits}
    skipped, left = list[str](), list[str]()
    if facts.feature is not None:
        for step in facts.feature.feature.steps.values():
            if step.step not in visited:
                (skipped if facts.feature.state_of(step) == "skipped" else left).append(step.name)
    if facts.graph is not None:
        left = [f"phase {phase}: {phase_status_text(state)}" for phase, state in facts.graph.phases.statuses.items()
                if f"phase {phase}" not in visited]  # fmt: skip
    decisions = table(
        ("No", "When", "At step", "Decided", "Why", "Gates"),
        map(_decision, facts.decisions),
        nothing="",
        more=f"fairwitness events {facts.run_id}",
    )
    return joined(
        (
            drawn,
            soft(f"Skipped on the light path: {', '.join(skipped)}.") if skipped else NONE,
            soft(f"Not begun: {', '.join(left)}.") if left else NONE,
            folded(f"{len(facts.decisions)} decisions", decisions, is_raw=True) if facts.decisions else NONE,
        )
    )


def _bars(facts: ReportFacts) -> Iterator[Sequence[Child]]:
    whole = max(seconds_between(facts.visits[0].started, facts.last_moment), 0.001) if facts.visits else 0.001
    for visit in facts.visits:
        left = min(100.0, 100 * seconds_between(facts.visits[0].started, visit.started) / whole)
        length = seconds_between(visit.started, visit.finished or facts.last_moment)
        width = min(100.0 - left, 100 * length / whole)
        yield (
            _named(facts, STEPS.get(visit.name, visit.name)),
            word(_state(facts, visit)),
            el("div", el("span", style=f"left:{left:.1f}%;width:{width:.1f}%"), class_="lane"),
            took(length),
            text(visit.reason, 400) if visit.reason else None,
        )


def _state(facts: ReportFacts, visit: Visit) -> str:
    if visit.outcome is None:
        view = facts.feature or facts.graph
        return "stopped" if view is not None and view.is_over else "running"
    return "done" if visit.outcome == "advanced" else visit.outcome


def _decision(one: Decision) -> Sequence[Child]:
    step = str(one.facts.get("step") or "")
    to = one.decision.get("to") or one.decision.get("outcome") or one.decision.get("gate_id")
    asked = [str(gate.get("gate")) for gate in dicts(one.decision.get("gates"))]
    iteration = one.facts.get("iteration")
    return (
        one.number,
        moment(one.at),
        f"{STEPS.get(step, step)}{f', iteration {iteration}' if iteration not in (None, 1) else ''}",
        text(f"{one.kind} {STEPS.get(str(to), to) if to else ''}".strip(), 200),
        text(one.reason, 600),
        ", ".join(list(dict.fromkeys(asked))[:30]),
    )


def issues_part(facts: ReportFacts, gates: list[GateFact]) -> Html:
    """Return what is open at the end; findings of reviewers are in their section."""
    return table(("Kind", "What"), _all_issues(facts, gates), nothing="None is on record.")


def _all_issues(facts: ReportFacts, gates: list[GateFact]) -> Iterator[Sequence[Child]]:
    given_up = _given_up(facts)
    for gate in gates:
        if not gate.is_open and gate.about not in given_up:
            yield "gate blocked", text(f"{gate.gate} {gate.about}: {gate.because}", 600)
    after = [check for check in facts.checks if check.phase == "after" and check.task not in given_up]
    rounds = {check.task: check.round for check in sorted(after, key=lambda check: check.round)}
    failed: dict[str, list[str]] = {}
    for check in {(check.task, check.name, check.instance): check for check in after}.values():
        if check.worth in SHUTS | LACKS and check.round == rounds[check.task]:
            failed.setdefault(check.task or NO_TASK, []).append(f"{check.name} {check.instance or ''}".strip())
    for task, names in failed.items():
        yield "checks failed", text(f"{task}: {', '.join(names)}", 600)
    for kind, detail in facts.feature.feature.degradations if facts.feature is not None else ():
        yield "continued with less", text(f"{kind}: {detail}", 600)
    for used_up in facts.feature.feature.exhausted_budgets if facts.feature is not None else ():
        yield "budget used up", text(used_up, 300)
    if facts.feature is not None and facts.feature.feature.refused:
        yield "calls refused", f"{facts.feature.feature.refused}: agents asked for what they may not do"
    for node in facts.graph.exhausted() if facts.graph is not None else ():
        yield "task failed for good", text(f"{node.name}: {node.error or 'no reason is known'}", 600)


def _given_up(facts: ReportFacts) -> set[str]:
    """Return the started tasks that the last decision no longer contains: they were replaced by others."""
    tasks = facts.decisions[-1].facts.get("tasks") if facts.decisions else None
    known = {str(task.get("task")) for task in tasks if isinstance(task, dict)} if isinstance(tasks, list) else set()
    return {attempt.task for attempt in facts.attempts.values()} - known if known else set()
