"""Runs that go on by themselves no more, why, and what repairs them."""

from collections.abc import Collection, Iterable

from fairwitness.engine.base import RunInfo, RunStatus, Stranded


def stranded(
    runs: Iterable[RunInfo], misfits: Collection[str], living: Collection[str], flows: Collection[str], version: str
) -> tuple[Stranded, ...]:
    """Looks at every run with what is known of the workers that live and the flows there are."""
    found = []
    for run in runs:
        reason = _reason(run, run.id in misfits, living, flows, version)
        if reason is not None:
            found.append(Stranded(run.id, *reason))
    return tuple(found)


def _reason(
    run: RunInfo, is_misfit: bool, living: Collection[str], flows: Collection[str], version: str
) -> tuple[str, str] | None:
    if is_misfit:
        return (
            run.error or "its steps no longer fit",
            f"put its steps back as they were, then: fairwitness resume {run.id}",
        )
    if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
        return None
    if run.version != version:
        return (
            f"it is of version {run.version}, and this engine of version {version}",
            f"start a worker of version {run.version}, or: fairwitness cancel {run.id}",
        )
    if run.flow not in flows:
        return f"there is no flow {run.flow}", f"use a Fair Witness that has it, or: fairwitness cancel {run.id}"
    if run.status is RunStatus.RUNNING and run.executor not in living:
        return f"its worker {run.executor} is dead", f"fairwitness resume {run.id}"
    return None
