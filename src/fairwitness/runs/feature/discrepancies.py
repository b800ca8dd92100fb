"""What an implementer says, held against what the harness saw: files, its own checks, and the baseline.

Numbers of tests are never compared: skipped ones, parameters and what others merged meanwhile make them differ. What is
compared is whether something passed.
"""

from collections.abc import Iterator, Sequence

from fairwitness.contracts.agents.dispatch import Change, ChangedPath
from fairwitness.contracts.common.evidence import Observation, Phase, Tally
from fairwitness.contracts.feature.implementation import Baseline, ChangeAction, ImplementationReport, SelfCheck
from fairwitness.errors import RowRefused
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.policy import baseline_results, is_evidence, latest
from fairwitness.runs.feature.context import FeatureContext

KIND = "discrepancy"
"""The kind of observation that says that a report was compared, and what came of it."""
BASELINE = "baseline-discrepancy"
"""The check that shuts a gate: the reported baseline was not true."""
_SAID = {
    ChangeAction.CREATED: Change.ADDED,
    ChangeAction.MODIFIED: Change.MODIFIED,
    ChangeAction.DELETED: Change.DELETED,
}


def compare(
    report: ImplementationReport, changed: Sequence[ChangedPath], baseline: Tally, after: Tally
) -> tuple[str, ...]:
    """Everything in which a report and what was seen differ, in words; the tallies are those of one round."""
    return (*_files(report, changed), *_self_check(report, after), *untrue_baseline(report, baseline))


def untrue_baseline(report: ImplementationReport, baseline: Tally) -> tuple[str, ...]:
    """In what the reported baseline is not what the harness saw there; what it did not run is not compared."""
    seen: dict[str, bool] = {}
    for (name, _), passed in baseline_results(baseline).items():
        seen[name] = passed and seen.get(name, True)  # several of one name passed if all did
    payload = report.agent_output.payload
    said = list(_claimed(payload.baseline).items())
    said += [(each.check_name.removeprefix("baseline-"), each.passed) for each in payload.verification_entries or ()]
    return tuple(
        f"the report says that {name} {_word(claimed)} before the change; it {_word(seen[name])} for the harness"
        for name, claimed in dict.fromkeys(said)
        if name in seen and seen[name] != claimed
    )


def _word(passed: bool) -> str:
    return "passed" if passed else "failed"


def _claimed(said: Baseline | SelfCheck) -> dict[str, bool]:
    """What was said of each check; nothing of what was not run."""
    claims: dict[str, bool] = {}
    if said.build_exit_code is not None:
        claims["build"] = said.build_exit_code == 0
    tests = said.test_summary
    if tests is not None and tests.total:
        claims["tests"] = tests.failed == 0
    return claims


def _self_check(report: ImplementationReport, after: Tally) -> Iterator[str]:
    """Only a claimed green is compared: who says that something is red has said enough."""
    last = max((row.round for row in after.rows), default=0)
    red = {
        row.check_name
        for row in latest(after.rows)
        if row.phase is Phase.AFTER and row.round == last and is_evidence(row) and not row.passed
    }
    check = report.agent_output.payload.self_check
    green = {name for name, passed in _claimed(check).items() if passed}
    if check.ide_diagnostics.errors == 0:
        green |= {"ide-diagnostics", "syntax-check"}
    for name in sorted(green & red):
        yield f"the report says that {name} passed after the change; it failed for the harness"


def _files(report: ImplementationReport, changed: Sequence[ChangedPath]) -> Iterator[str]:
    seen = {each.path: each.change for each in changed}
    said: dict[str, set[Change]] = {}
    for each in report.agent_output.payload.changes:
        said.setdefault(each.path.removeprefix("./"), set()).add(_SAID[each.action])
    for path in sorted(said.keys() | seen.keys()):
        if path not in seen:
            yield f"the report names {path}, which is as it was"
        elif path not in said:
            yield f"{path} was {seen[path].value}, and the report does not name it"
        elif seen[path] not in said[path]:
            words = " and ".join(sorted(change.value for change in said[path]))
            yield f"the report says that {path} was {words}; it was {seen[path].value}"


def record(
    context: FeatureContext,
    task: str,
    round_: int,
    found: Sequence[str],
    *,
    baseline: Sequence[str],
    tree: str | None = None,
) -> None:
    """Writes once what a comparison found, also if that is nothing.

    `baseline` is what `untrue_baseline` found: anything there is a check of its own that shuts the task's gate.
    """
    key = f"{KIND}:{task}:{round_}"
    if context.ledger.observation(context.run_id, key) is not None:
        return
    now = context.now()

    def observation(of: str, kind: str, *, holds: bool, said: Sequence[str]) -> Observation:
        return Observation(
            run_id=context.run_id,
            task_id=task,
            key=of,
            kind=kind,
            subject=task,
            holds=holds,
            detail={"found": list(said)},
            tree=tree,
            observed_at=now,
        )

    def write(record: Record) -> None:
        record.observation(observation(key, KIND, holds=not found, said=found))
        if baseline:
            untrue = observation(f"{BASELINE}:{task}:{round_}", BASELINE, holds=False, said=baseline)
            record.observed(untrue, phase=Phase.AFTER, check_name=BASELINE, round_=round_, output="\n".join(baseline))

    try:
        context.write(write)
    except RowRefused:
        if context.ledger.observation(context.run_id, key) is None:
            raise
        return  # another process compared the same, and was a moment quicker
    killpoint("feature.discrepancy")
