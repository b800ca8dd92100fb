"""The desk of a graph whose target is its run's alone: nothing is merged upon what somebody else put there."""

from fairwitness.contracts.graph.orders import MergeOrder, Stack
from fairwitness.runs.graph.repo_context import run_blocking
from fairwitness.runs.graph.runner import GraphRunner


class ExclusiveTargetGraph(GraphRunner):
    """A desk that knows the commits of its run by their trailer."""

    async def stack(self, order: MergeOrder) -> Stack:
        """The batch on top of the target; if somebody else put something there, nothing is merged upon it."""
        stack = await super().stack(order)
        if stack.halt is not None or stack.moved is None or stack.moved.found is None:
            return stack
        if await run_blocking(self._is_ours, stack.moved.expected, stack.moved.found):
            return stack  # a merge of this run whose end nobody could write down
        told = f"somebody moved {order.target} from {stack.moved.expected[:12]} to {stack.moved.found[:12]}"
        return stack.model_copy(update={"halt": told, "candidates": (), "clashes": ()})

    def _is_ours(self, left: str, found: str) -> bool:
        form = "--format=%H %(trailers:key=Run-Id,valueonly,separator=%x20)"
        said = self._repo.repository.git.run("rev-list", "--no-commit-header", form, f"{left}..{found}")
        lines = said.decode(errors="replace").splitlines()
        return bool(lines) and all(line.split()[1:] == [self.run_id] for line in lines)
