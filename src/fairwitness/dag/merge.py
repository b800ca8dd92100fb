"""The flow that merges one batch of verified attempts into the target.

The batch is stacked beside the target and the merged tree is checked there. The target moves once, to a tree whose
checks passed, so it is never red and backing out costs nothing. If the whole batch is red, a binary search finds the
highest green candidate; the one above it is the culprit, and those above that wait for the next batch.
"""

from fairwitness.contracts.graph.orders import (
    Candidate,
    Culprit,
    LandedMember,
    Landing,
    MergeOrder,
    MergeResult,
    Proof,
    Stack,
)
from fairwitness.dag.ports import MergePort
from fairwitness.engine.base import Flow, Json


async def merge(flow: Flow, merges: MergePort, order: MergeOrder) -> MergeResult:
    """Merge the candidates of a batch that can be merged."""

    async def make() -> Json:
        return (await merges.stack(order)).plain()

    stack = Stack.model_validate(await flow.step("stack", make))
    if stack.halt is not None:
        assert stack.moved is not None
        # where the target should be, not where it is: nothing is merged until it is back there
        tip = stack.moved.expected
        return MergeResult(tip=tip, landed=(), clashes=(), checks=0, moved=stack.moved, halt=stack.halt)
    search = Search(flow, merges, order, stack)
    await search.go()
    green = stack.candidates[: search.green]

    async def land() -> Json:
        return (await merges.land(order, stack, green[-1] if green else None)).plain()

    landing = Landing.model_validate(await flow.step("land", land))
    landed = green if landing.landed else ()

    async def tidy() -> Json:
        await merges.tidy(order, [candidate.node for candidate in landed])
        return None

    await flow.step("tidy", tidy)
    return MergeResult(
        # if somebody else moved it meanwhile, the next batch decides what to do
        tip=landing.tip if landing.landed else stack.onto,
        landed=tuple(LandedMember(node=candidate.node, commit=candidate.commit) for candidate in landed),
        # the culprit was found on a target that has moved since, so nothing is proven against it
        culprit=search.culprit if landing.moved is None else None,
        clashes=stack.clashes if landing.moved is None else (),
        checks=search.checks,
        moved=landing.moved or stack.moved,
    )


class Search:
    """The binary search for the highest candidate with a green tree."""

    def __init__(self, flow: Flow, merges: MergePort, order: MergeOrder, stack: Stack) -> None:
        self._flow, self._merges, self._order, self._stack = flow, merges, order, stack
        self.green = 0
        """The number of candidates, counted from the lowest, that are green together."""
        self.culprit: Culprit | None = None
        self.checks = 0

    async def go(self) -> None:
        """Check the top candidate and those below it as needed. The culprit is red, and everything below it is
        green."""
        red = len(self._stack.candidates) + 1
        reasons: tuple[str, ...] = ()
        height = red - 1
        while height > self.green:
            proof = await self._check(self._stack.candidates[height - 1])
            if proof.holds:
                self.green = height
            else:
                red, reasons = height, proof.reasons
            height = (self.green + red) // 2
        if reasons:
            self.culprit = Culprit(node=self._stack.candidates[red - 1].node, reasons=reasons)

    async def _check(self, candidate: Candidate) -> Proof:
        self.checks += 1

        async def check() -> Json:
            return (await self._merges.check(self._order, self._stack, candidate)).plain()

        return Proof.model_validate(await self._flow.step(f"check:{candidate.node}", check))
