"""What a run left open: gates that stayed shut, checks that fail, findings, and everything it went on without."""

from collections.abc import Iterator, Sequence

from fairwitness.app.report_evidence import GateFact
from fairwitness.app.report_html import Child, Html, table, text, word
from fairwitness.app.report_model import RunFacts


def issues_part(facts: RunFacts, gates: list[GateFact]) -> Html:
    """Everything left open; of a finding only that somebody claims it."""
    found = list(_all_issues(facts, gates))
    return table(("Kind", "What", "Rests on"), found, nothing="None is on record.")


def _all_issues(facts: RunFacts, gates: list[GateFact]) -> Iterator[Sequence[Child]]:
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
                told = f"{finding.get('severity')}: {finding.get('title')}"
                yield "finding", text(f"{said.instance or said.agent}: {told}", 400), word("claimed")
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


def _given_up(facts: RunFacts) -> set[str]:
    """The tasks that were begun and that the last decision no longer knows: others were planned instead."""
    tasks = facts.decisions[-1].facts.get("tasks") if facts.decisions else None
    known = {str(task.get("task")) for task in tasks if isinstance(task, dict)} if isinstance(tasks, list) else set()
    return {attempt.task for attempt in facts.attempts.values()} - known if known else set()
