"""Pages about what a run's agents cost and returned: the run log of a day, and the post-mortem of a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from fairwitness.contracts.common.evidence import Dispatch
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.kit.durations import seconds_between, took
from fairwitness.kit.markdown import (
    Markdown,
    cell,
    code,
    counted,
    items,
    line,
    listed,
    page,
    table,
)

SLOWEST = 3


@dataclass(frozen=True, slots=True)
class RatingAverage:
    """The average of a group of evaluations, by evaluator or by document."""

    name: str
    usefulness: float
    clarity: float


@dataclass(frozen=True, slots=True)
class InstructionProposal:
    """An instruction change that the run proposed or applied."""

    file: str
    change: str
    summary: str
    applied: bool


@dataclass(frozen=True, slots=True)
class Evaluations:
    """How agents rated each other's documents, and which instruction changes they proposed."""

    count: int
    by_evaluator: tuple[RatingAverage, ...]
    worst: tuple[RatingAverage, ...]
    """The documents rated least useful."""
    missing: tuple[tuple[str, str], ...]
    """Pairs of a document and what an agent did not find in it."""
    instructions: tuple[InstructionProposal, ...]


def seconds(row: Dispatch) -> float:
    """Return how long a call took."""
    return seconds_between(row.started_at, row.completed_at)


def slowest_steps(rows: Sequence[Dispatch]) -> tuple[tuple[str, float], ...]:
    """Return the steps that took longest, all their calls together."""
    by_step: dict[str, float] = {}
    for row in rows:
        by_step[row.step] = by_step.get(row.step, 0.0) + seconds(row)
    return tuple(sorted(by_step.items(), key=lambda each: (-each[1], each[0]))[:SLOWEST])


def statuses(rows: Sequence[Dispatch]) -> Markdown:
    """Return the number of calls by status, including statuses that did not occur."""
    counted = Counter(row.status for row in rows)
    return Markdown(", ".join(f"{counted[status.value]} {status.value}" for status in DispatchStatus))


def run_log_page(rows: Sequence[Dispatch], *, run_id: str, day: date) -> str:
    """Return `agent-metrics/<day>-run-log.md`, with every call of an agent."""
    return page(_run_log(rows, run_id, day), whole="`pipeline_telemetry` of the ledger")


def _run_log(rows: Sequence[Dispatch], run_id: str, day: date) -> Iterator[Markdown]:
    yield Markdown(f"# Run log of {day:%Y-%m-%d}")
    yield Markdown(
        f"Run {code(run_id)}. Every row is one call of an agent, written by Fair Witness when the call ended."
    )
    yield Markdown("## Totals")
    yield Markdown(f"{counted(len(rows), 'call')}, {took(sum(map(seconds, rows)))} together: {statuses(rows)}.")
    yield Markdown("## Calls")
    yield calls(rows)


def calls(rows: Sequence[Dispatch]) -> Markdown:
    """Return a table of calls."""
    return table(
        ("Step", "Role", "Instance", "Began", "Took", "Status", "Call", "Retries", "Notes"),
        [
            (
                code(row.step),
                row.agent,
                row.instance or "",
                cell(row.started_at),
                took(seconds(row)),
                row.status,
                str(row.dispatch_count),
                str(row.retry_count),
                row.notes or "",
            )
            for row in rows
        ],
        "No call of an agent is on record.",
    )


def post_mortem_page(state: FeatureState, rows: Sequence[Dispatch], evaluations: Evaluations, *, day: date) -> str:
    """Return `post-mortems/<day>-<slug>.md`: what was slow, repeated or failed."""
    return page(_post_mortem(state, rows, evaluations, day), whole="the ledger")


def _post_mortem(
    state: FeatureState, rows: Sequence[Dispatch], evaluations: Evaluations, day: date
) -> Iterator[Markdown]:
    yield Markdown(f"# Post-mortem of {line(state.slug)}, {day:%Y-%m-%d}")
    yield Markdown(f"Run {code(state.run_id)}. {_ending(state)}")
    yield Markdown("## What was done again")
    yield items(list(_again(state)), "Nothing: no step was begun twice, no task was replanned or reverted.")
    yield table(
        ("Role", "Instance", "Step", "Retries"),
        [(row.agent, row.instance or "", code(row.step), str(row.retry_count)) for row in rows if row.retry_count],
        "No agent had to be called again.",
    )
    yield Markdown("## What failed")
    failed = (DispatchStatus.ERROR.value, DispatchStatus.TIMEOUT.value)
    yield (
        calls([row for row in rows if row.status in failed])
        if any(row.status in failed for row in rows)
        else Markdown("No call of an agent ended in ERROR or TIMEOUT.")
    )
    yield Markdown("## What the run went on without")
    yield table(
        ("Degradation", "Detail"),
        [(code(each.kind.value), each.detail) for each in state.degradations],
        "Nothing: no degradation is on record.",
    )
    yield Markdown("## Time")
    yield Markdown(f"{counted(len(rows), 'call')}, {took(sum(map(seconds, rows)))} together: {statuses(rows)}.")
    yield table(
        ("Slowest step", "Took"), [(code(step), took(length)) for step, length in slowest_steps(rows)], "No step."
    )
    yield Markdown("## Evaluations")
    yield from evaluations_part(evaluations)
    yield Markdown("## Instructions")
    yield table(
        ("File", "Change", "Summary", "Applied"),
        [
            (code(each.file), each.change, each.summary, "yes" if each.applied else "no, proposed")
            for each in evaluations.instructions
        ],
        "No change to instructions was proposed.",
    )


def _ending(state: FeatureState) -> Markdown:
    if state.ending is None:
        return Markdown("It has not ended.")
    return Markdown(f"It ended as {code(state.ending.outcome.value)}: {line(state.ending.reason or 'no reason given')}")


def _again(state: FeatureState) -> Iterator[Markdown]:
    for step, done in state.steps.items():
        if done.runs > 1:
            yield Markdown(f"- {code(step)} was begun {counted(done.runs, 'time')}")
    for replan in state.replans:
        did = "replanned" if replan.by is None else "repeated"
        yield Markdown(f"- iteration {replan.iteration} {did} {listed(replan.failing)}")
    for task, known in state.tasks.items():
        if known.reverts:
            yield Markdown(f"- {code(task)} was reverted {counted(known.reverts, 'time')}")


def evaluations_part(evaluations: Evaluations) -> Iterator[Markdown]:
    """Yield how agents rated the documents they worked from, marked as opinions."""
    yield Markdown(f"{counted(evaluations.count, 'evaluation')}; what agents say of documents is a claim.")
    yield _rated("Evaluator", evaluations.by_evaluator)
    yield _rated("Least useful", evaluations.worst)
    yield table(("Document", "Not found in it"), evaluations.missing, "Nobody missed anything, or nobody said so.")


def _rated(what: str, rated: Sequence[RatingAverage]) -> Markdown:
    return table(
        (what, "Usefulness", "Clarity"),
        [(code(each.name), f"{each.usefulness:.1f}", f"{each.clarity:.1f}") for each in rated],
        "No document was evaluated.",
    )
