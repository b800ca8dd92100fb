"""Calls the captain for plans and for answers to change requests; a call that ended is not repeated."""

from collections.abc import Iterable
from typing import Final

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
from fairwitness.runs.forge.change_requests import extend, give_up, request_state, unfit
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.log import NOBODY, ForgeLog
from fairwitness.runs.forge.plan_files import approve, plan_of, plan_problems, write_plan
from fairwitness.runs.shared.agent_calls import AgentCaller, with_check
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

NO_PLAN: Final = "no-plan"
MOST_REFUSALS: Final = 2
"""How often the captain's additions may be refused."""


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
        try_ = await run_blocking(self._next_try, number)
        done = await self._ask_for_plan(number, try_)
        answer = done.answer(CaptainReturn)
        if answer is None:
            await run_blocking(self._fail, number, try_, _problems_of(done))
        else:
            await run_blocking(self._propose, plan_of(answer))

    def _next_try(self, number: int) -> int:
        """Return the number of the next try; a resumed run does not adopt the calls that it failed by."""
        rows = self._log.ledger.observations(self._log.run_id, NO_PLAN)
        return 1 + max((int(row.detail["try"]) for row in rows if row.detail["plan"] == number), default=0)

    async def _ask_for_plan(self, number: int, try_: int) -> Dispatched:
        order = self._log.order()
        assert order is not None
        base = order.base_commit

        def objections(answer: CaptainReturn) -> tuple[str, ...]:
            found = () if answer.dag is None else plan_problems(plan_of(answer), self._layout)
            return _texts((*found, *self._criteria.plan_problems(answer.tasks, base)))

        brief = await run_blocking(self._briefs.plan, _dispatch_id(number, try_), number)
        position = DispatchPosition(PLAN, dispatch_count=number)
        return await self._caller.ask_at(brief, position, base, equip=with_check(CaptainReturn, objections))

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
        await run_blocking(self._give_up, cr_id)

    def _give_up(self, cr_id: str) -> None:
        """Reject a request whose answers did not fit when they were applied, because the run had moved."""
        refused = request_state(self._log, cr_id).refused
        reason = f"what the captain added did not fit, {len(refused)} times: {refused[-1][0]}"
        give_up(self._log, cr_id, reason)

    async def _answer(self, cr_id: str, round_: int) -> None:
        brief = await run_blocking(self._briefs.replan, f"{request_instance(cr_id)}-{round_}", cr_id)
        tip = await run_blocking(self._log.last_tip)

        def objections(answer: CaptainReturn) -> tuple[str, ...]:
            found = unfit(self._log, cr_id, answer)
            return _texts((*found, *self._criteria.plan_problems(answer.tasks, tip)))

        position = DispatchPosition(REPLAN, dispatch_count=round_)
        done = await self._caller.ask_at(brief, position, tip, equip=with_check(CaptainReturn, objections))
        answer = done.answer(CaptainReturn)
        if answer is None:
            await run_blocking(give_up, self._log, cr_id, f"the captain gave no answer: {_problems_of(done)[0]}")
            return
        await run_blocking(extend, self._log, cr_id, answer, "captain")


def _dispatch_id(number: int, try_: int) -> str:
    return plan_instance(number) if try_ == 1 else f"{plan_instance(number)}-{try_}"


def _problems_of(done: Dispatched) -> tuple[str, ...]:
    outcome = done.outcome
    first = outcome.problems[0] if outcome.problems else "nothing more is known"
    return (f"{outcome.status.value}: {first}", *outcome.problems[1:])


def _texts(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(f"{spell_path(each.where)}: expected {each.expected}; found {each.found}" for each in problems)
