"""The flow of one attempt at a node: prepare, let agents work, commit, prove.

A failure becomes part of the result and is not raised. A helper that solves a merge conflict runs the same flow on a
branch of its own: it starts from the conflict, and its result is proven like any other attempt.
"""

from fairwitness.contracts.graph.orders import AttemptOrder, AttemptResult, AttemptStart, Candidate, Proof, Worked
from fairwitness.dag.ports import AttemptPort
from fairwitness.engine.base import Flow, Json, StepError

_SHOWN = 5


async def attempt(flow: Flow, attempts: AttemptPort, order: AttemptOrder) -> AttemptResult:
    """Run the attempt and return its result; a step that raises ends it."""
    try:
        result = await _made(flow, attempts, order)
    except StepError as error:
        result = AttemptResult(verified=False, reason=f"{error.key}: {error.message or error.kind}")

    async def leave() -> Json:
        await attempts.leave(order, keep=result.verified)
        return None

    await flow.step("leave", leave)
    return result


async def _made(flow: Flow, attempts: AttemptPort, order: AttemptOrder) -> AttemptResult:
    async def prepare() -> Json:
        return (await attempts.prepare(order)).plain()

    prepared = AttemptStart.model_validate(await flow.step("prepare", prepare))

    async def work() -> Json:
        return (await attempts.work(order, prepared)).plain()

    worked = Worked.model_validate(await flow.step("work", work))
    if not worked.done:
        return AttemptResult(verified=False, reason=worked.reason or "the agent did not finish", halt=worked.halt)

    async def commit() -> Json:
        made = await attempts.commit(order, prepared, worked)
        return None if made is None else made.plain()

    committed = await flow.step("commit", commit)
    if committed is None:
        return AttemptResult(verified=False, reason="nothing was changed")
    candidate = Candidate.model_validate(committed)

    async def prove() -> Json:
        return (await attempts.prove(order, prepared, candidate)).plain()

    proof = Proof.model_validate(await flow.step("prove", prove))
    if not proof.holds:
        shown = "; ".join(proof.reasons[:_SHOWN]) or "it is not proven"
        return AttemptResult(verified=False, reason=shown)
    return AttemptResult(verified=True, commit=candidate.commit, tree=candidate.tree)
