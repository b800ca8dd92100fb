"""Calls the captain for plans and for answers to change requests; a call that ended is not repeated."""

from typing import Final, NamedTuple

from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.events import RunFailed
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.contracts.graph.forge_order import ForgePlan
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.runs.dispatch import Dispatched, DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.forge.captain_briefs import PLAN, REPLAN, CaptainBriefs, plan_instance, request_instance
from fairwitness.runs.forge.change_requests import extend, give_up
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.log import NOBODY, ForgeLog
from fairwitness.runs.forge.plan_files import approve, plan_of, plan_problems, write_plan
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

NO_PLAN: Final = "no-plan"
MOST_REFUSALS: Final = 2
"""How often the captain's additions may be refused."""


class _Tried(NamedTuple):
    """The result of one call: a plan, or the problems and whether another call may help."""

    plan: ForgePlan | None
    problems: tuple[str, ...] = ()
    may_mend: bool = False


class ForgeCaptain:
    """The `Captain` of `fairwitness.runs.forge.runner`."""

    def __init__(
        self, caller: AgentCaller, log: ForgeLog, store: Store, layout: ForgeLayout, criteria: TaskCriteria
    ) -> None:
        self._caller, self._log, self._store, self._layout = caller, log, store, layout
        self._criteria = criteria
        self._briefs = CaptainBriefs(log)

    async def plan(self) -> None:
        """Ask for a plan and propose it; without a valid plan the run ends with the reason."""
        course = await run_blocking(self._log.course)
        if course.is_proposed or course.is_over:
            return  # done before a restart
        number = course.proposals + 1
        first = await run_blocking(self._first_try, number)
        last, tried = first, await self._try(number, first, ())
        if tried.plan is None and tried.may_mend:
            last, tried = first + 1, await self._try(number, first + 1, tried.problems)
        if tried.plan is None:
            await run_blocking(self._fail, number, last, tried.problems)
        else:
            await run_blocking(self._propose, tried.plan)

    def _first_try(self, number: int) -> int:
        """Return the number of the next try; a resumed run does not adopt the calls that it failed by."""
        rows = self._log.ledger.observations(self._log.run_id, NO_PLAN)
        return 1 + max((int(row.detail["try"]) for row in rows if row.detail["plan"] == number), default=0)

    async def _try(self, number: int, try_: int, problems: tuple[str, ...]) -> _Tried:
        id_ = _dispatch_id(number, try_)
        order = self._log.order()
        assert order is not None
        brief = await run_blocking(self._briefs.plan, id_, number, problems)
        position = DispatchPosition(PLAN, dispatch_count=number, retry_count=try_ - 1)
        done = await self._caller.ask_at(brief, position, order.base_commit)
        return await run_blocking(self._tried, done, order.base_commit)

    def _tried(self, done: Dispatched, base: str) -> _Tried:
        answer = done.answer(CaptainReturn)
        if answer is None:
            return _Tried(None, _problems_of(done))
        if answer.dag is None:
            return _Tried(None, ("dag: expected the graph of a new plan; found none",), may_mend=True)
        plan = plan_of(answer)
        found = (*plan_problems(plan, self._layout), *self._criteria.plan_problems(plan.tasks, base))
        problems = tuple(_problem_text(problem) for problem in found)
        return _Tried(None, problems, may_mend=True) if problems else _Tried(plan)

    def _propose(self, plan: ForgePlan) -> None:
        """Write the files before the event: a reader of the proposal finds them, and edits are not overwritten."""
        write_plan(self._store, self._layout, plan)
        asked = self._log.course().asked + 1 if plan.questions and self._briefs.may_ask() else None
        self._log.propose(plan, asked=asked)

    def _fail(self, number: int, try_: int, problems: tuple[str, ...]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        reason = f"the captain brought no plan: {problems[0]}{more}"
        log, now = self._log, spell(self._log.clock())
        detail = {"plan": number, "try": try_, "reason": reason}

        def write(record: Record) -> None:
            record.observation(log.observation(f"{NO_PLAN}:{number}:{try_}", NO_PLAN, log.run_id, detail, now))
            log.put_events(record, (RunFailed(reason=reason),), now)

        log.ledger.record(log.run_id, write)
        killpoint("forge.no-plan")

    async def seal(self) -> None:
        """Approve the plan as it is in its files, because no person wants to be asked."""
        await run_blocking(approve, self._log, self._store, self._layout, NOBODY)

    async def replan(self, cr_id: str) -> None:
        """Ask what a change request adds and apply it; a request without a usable answer is rejected."""
        course = await run_blocking(self._log.course)
        if cr_id not in course.active() or course.is_over:
            return  # done before a restart
        refused = course.requests[cr_id].refused
        if refused < MOST_REFUSALS:
            await self._answer(cr_id, refused + 1)
            return
        await run_blocking(give_up, self._log, cr_id, _not_fitting(refused))

    async def _answer(self, cr_id: str, round_: int) -> None:
        brief = await run_blocking(self._briefs.replan, f"{request_instance(cr_id)}-{round_}", cr_id)
        tip = await run_blocking(self._log.last_tip)
        done = await self._caller.ask_at(brief, DispatchPosition(REPLAN, dispatch_count=round_), tip)
        answer = done.answer(CaptainReturn)
        if answer is None:
            await run_blocking(give_up, self._log, cr_id, f"the captain gave no answer: {_problems_of(done)[0]}")
            return
        unrunnable = await run_blocking(self._criteria.plan_problems, answer.tasks, tip)
        problems = await run_blocking(extend, self._log, cr_id, answer, "captain", unrunnable)
        if problems and round_ >= MOST_REFUSALS:
            await run_blocking(give_up, self._log, cr_id, f"{_not_fitting(round_)}: {_problem_text(problems[0])}")


def _dispatch_id(number: int, try_: int) -> str:
    return plan_instance(number) if try_ == 1 else f"{plan_instance(number)}-{try_}"


def _problems_of(done: Dispatched) -> tuple[str, ...]:
    outcome = done.outcome
    first = outcome.problems[0] if outcome.problems else "nothing more is known"
    return (f"{outcome.status.value}: {first}", *outcome.problems[1:])


def _not_fitting(times: int) -> str:
    return f"what the captain added did not fit, {times} times"


def _problem_text(problem: Problem) -> str:
    return f"{spell_path(problem.where)}: expected {problem.expected}; found {problem.found}"
