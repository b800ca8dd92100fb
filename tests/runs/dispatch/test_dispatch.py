"""One dispatch: what it leaves on record, what voids it, what it costs, and that it is made once."""

import asyncio
import json

import pytest

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import (
    ChangedPath,
    EnforcementTier,
    Layer,
    OutcomeStatus,
    PathChangeKind,
    Stop,
    Usage,
    UsageSource,
)
from fairwitness.contracts.common.budgets import Amounts, BudgetCaps, Caps
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import Observation, SandboxTier
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import LedgerTampered, UsageError
from fairwitness.ledger.verify import verify
from fairwitness.rules.budgets import sized
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.runs.dispatch import DispatchPosition, dispatch
from fairwitness.runs.dispatch.budget_account import limits_of
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.runs.dispatch.records import begin
from runs.dispatch.world import (
    INTAKE,
    NO_LIMIT,
    REPORT,
    RUN,
    USED,
    NoModels,
    Scripted,
    World,
    brief,
    builder,
    says,
    writes,
)
from support.fixtures import edited

ENDED = "dispatch:d-1:ended"
TAKEN = edited(json.loads(json.dumps(REPORT)), "completion.evidence_summary", None)
"""The report as it is recorded: what its signature fixes to null is there."""


def spent(world: World, dispatch_id: str = "d-1") -> Amounts:
    row = world.ledger.observation(RUN, f"dispatch:{dispatch_id}:ended")
    assert row is not None
    return Amounts.model_validate(row.detail["spending"]["used"])


@pytest.mark.req("P13", "P2")
def test_a_good_dispatch_stands_whole_on_record(world: World) -> None:
    done = world.run(builder(writes("src/shop.py", "price = 2\n")))
    assert done.outcome.status is OutcomeStatus.OK
    assert done.outcome.answer == TAKEN
    assert done.changed == (ChangedPath(path="src/shop.py", change=PathChangeKind.MODIFIED, allowed=True),)
    assert world.events() == ["dispatch_started", "dispatch_finished"]
    ((step, agent, instance, status, count, retries, notes),) = world.rows(
        "pipeline_telemetry", "step, agent, instance, status, dispatch_count, retry_count, notes"
    )
    assert (step, agent, instance, status, count, retries) == ("step-5", "implementer", "implementer", "DONE", 1, 0)
    assert notes == "agent scripted; model scripted-1; tokens 900 in, 100 out (provider); cost 4000 micros; asked 1"
    assert verify(world.ledger.database, RUN) == []


def test_an_answer_is_a_claim_and_what_we_saw_is_an_observation(world: World) -> None:
    done = world.run(builder(writes("src/shop.py")))
    claim = world.ledger.claim(RUN, ENDED)
    seen = world.ledger.observation(RUN, ENDED)
    assert claim is not None
    assert seen is not None
    assert claim.body["answer"] == TAKEN
    assert "answer" not in seen.detail["outcome"]
    assert (seen.holds, seen.tree, seen.detail["start_tree"]) == (True, done.tree, done.start_tree)
    assert done.tree != done.start_tree


def test_the_events_fold_to_a_state(world: World) -> None:
    world.run(builder(writes("README.md")))
    state = fold_feature(world.ledger.events(RUN))
    assert not isinstance(state, Problem)
    assert state.dispatches["d-1"].refused_calls == 1
    assert state.dispatches["d-1"].tokens == 1000


@pytest.mark.req("X3", "P12")
def test_a_change_outside_the_scope_voids_a_good_answer(world: World) -> None:
    done = world.run(builder(writes("src/shop.py"), writes("README.md")))
    outcome = done.outcome
    assert (outcome.status, outcome.answer, outcome.cause) == (OutcomeStatus.REFUSED, None, ErrorCause.OUT_OF_SCOPE)
    assert [(denial.layer, denial.target) for denial in outcome.denials] == [(Layer.AUDIT, "README.md")]
    assert world.events() == ["dispatch_started", "call_refused", "dispatch_finished"]
    assert world.rows("pipeline_telemetry", "status") == [("ERROR",)]
    assert done.tree is not None
    assert world.shadow.read(done.tree, "README.md") == b"x = 1\n"


@pytest.mark.req("X3")
def test_a_reader_that_changed_anything_is_void_whatever_it_says(world: World) -> None:
    done = world.run(Scripted(says(INTAKE), (writes("src/shop.py"),)), role=Role.INTAKE, recorder=NoEvents())
    assert (done.outcome.status, done.outcome.cause) == (OutcomeStatus.REFUSED, ErrorCause.OUT_OF_SCOPE)
    assert done.outcome.answer is None
    kept = world.run(Scripted(says(INTAKE)), role=Role.INTAKE, recorder=NoEvents(), dispatch_id="d-2")
    assert kept.outcome.answer == INTAKE


def test_a_void_dispatch_is_void_even_when_time_was_up(world: World) -> None:
    spec = ROLES[Role.IMPLEMENTER].model_copy(update={"timeout_s": 0.2})
    done = world.run(builder(writes("README.md"), waits=asyncio.Event()), spec=spec)
    assert (done.outcome.status, done.outcome.cause) == (OutcomeStatus.REFUSED, ErrorCause.OUT_OF_SCOPE)
    assert done.outcome.problems[1] == "it did not end within 0.2 s"


@pytest.mark.req("P13")
def test_a_dispatch_that_took_too_long_is_a_timeout_in_the_telemetry(world: World) -> None:
    spec = ROLES[Role.IMPLEMENTER].model_copy(update={"timeout_s": 0.2})
    done = world.run(builder(waits=asyncio.Event()), spec=spec)
    assert done.outcome.status is OutcomeStatus.TIMED_OUT
    ((status, notes),) = world.rows("pipeline_telemetry", "status, notes")
    assert status == "TIMEOUT"
    assert "tokens not reported" in notes


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    ("status", "told"), [("DONE", "DONE"), ("ERROR", "ERROR"), ("NEEDS_REVISION", "ERROR"), ("FINE", "ERROR")]
)
def test_telemetry_says_what_a_validated_completion_says_and_nothing_else(world: World, status: str, told: str) -> None:
    answer = edited(json.loads(json.dumps(REPORT)), "completion.status", status)
    done = world.run(builder(answer=answer))
    assert world.rows("pipeline_telemetry", "status") == [(told,)]
    if status in ("NEEDS_REVISION", "FINE"):  # an implementer may not say the first, and nobody the second
        assert done.outcome.status is OutcomeStatus.INVALID_ANSWER
        assert done.outcome.asked == 2


def test_an_agent_that_failed_is_on_record_too(world: World) -> None:
    done = world.run(builder(stop=Stop.FAILED))
    assert (done.outcome.status, done.outcome.answer) == (OutcomeStatus.AGENT_ERROR, None)
    assert world.rows("pipeline_telemetry", "status") == [("ERROR",)]


def test_calls_that_were_refused_are_events_and_stand_in_the_transcript(world: World) -> None:
    done = world.run(builder(calls=(("create_file", {"path": "x.py", "content": ""}), ("no_such_tool", {}))))
    refused = [event.data for event in world.ledger.events(RUN) if event.type == "call_refused"]
    assert [(one["tool"], one["target"]) for one in refused] == [("create_file", "x.py"), ("no_such_tool", "")]
    assert transcript_of(world).count('"kind":"denied"') == 2
    assert done.outcome.status is OutcomeStatus.OK


def transcript_of(world: World) -> str:
    row = world.ledger.observation(RUN, ENDED)
    assert row is not None
    digest = str(row.detail["transcript"])
    return world.store.get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest).decode()


def test_a_secret_that_an_agent_said_is_kept_nowhere(world: World) -> None:
    secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
    answer = f"I found {secret}.\n{says(REPORT)}"
    done = world.run(Scripted(answer, calls=(("read_file", {"path": f"{secret}.py"}),)))
    assert "[redacted" in done.outcome.raw_text
    assert secret not in transcript_of(world)
    assert secret not in json.dumps(world.rows("claims", "body") + world.rows("observations", "detail"))


class TestBudget:
    """Reserve, then settle."""

    @pytest.fixture
    def tight(self, world: World) -> World:
        """A run that has room for one implementer, and a little more."""
        asked = ROLES[Role.IMPLEMENTER].budget
        world.caps = BudgetCaps(
            dispatch=NO_LIMIT,
            phase=NO_LIMIT,
            run=Caps(tokens=asked.tokens + 500, money_micros=None, milliseconds=None),
        )
        return world

    def test_what_was_used_is_settled(self, world: World) -> None:
        world.run(builder())
        assert (spent(world).tokens, spent(world).money_micros) == (1000, 4000)

    def test_what_nobody_counted_is_settled_at_what_was_promised(self, world: World) -> None:
        world.run(builder(usage=Usage()))
        asked = ROLES[Role.IMPLEMENTER].budget
        assert (spent(world).tokens, spent(world).money_micros) == (asked.tokens, asked.money_micros)

    def test_what_the_gateway_counted_outranks_what_the_agent_says(self, world: World) -> None:
        counted = Usage(source=UsageSource.GATEWAY, tokens_in=5000, tokens_out=7, cost_micros=9, turns=3)
        done = world.run(builder(), models=NoModels(used=counted))
        assert done.outcome.usage == counted
        assert spent(world).tokens == 5007

    def test_at_the_cap_nothing_more_starts(self, tight: World) -> None:
        tight.run(builder(usage=USED))
        second = builder()
        done = tight.run(second, dispatch_id="d-2")
        assert done.outcome.status is OutcomeStatus.OVER_BUDGET
        assert second.asked == []
        assert done.start_tree is None
        assert tight.events() == ["dispatch_started", "dispatch_finished", "budget_exhausted"]
        assert len(tight.rows("pipeline_telemetry")) == 1

    def test_a_refusal_for_want_of_money_is_not_remembered(self, tight: World) -> None:
        tight.run(builder())
        assert tight.run(builder(), dispatch_id="d-2").outcome.status is OutcomeStatus.OVER_BUDGET
        tight.caps = BudgetCaps(dispatch=NO_LIMIT, phase=NO_LIMIT, run=NO_LIMIT)
        assert tight.run(builder(), dispatch_id="d-2").outcome.status is OutcomeStatus.OK

    def test_dispatches_at_the_same_time_cannot_both_take_the_last_of_it(self, tight: World) -> None:
        async def both() -> list[OutcomeStatus]:
            done = await asyncio.gather(
                *(
                    dispatch(
                        tight.context(),
                        ROLES[Role.IMPLEMENTER],
                        brief(dispatch_id=name),
                        DispatchPosition("step-5"),
                        tight.deps(builder()),
                    )
                    for name in ("d-1", "d-2", "d-3")
                )
            )
            return sorted(each.outcome.status for each in done)

        assert asyncio.run(both()) == [OutcomeStatus.OK, OutcomeStatus.OVER_BUDGET, OutcomeStatus.OVER_BUDGET]

    def test_a_dispatch_that_hits_its_limit_at_the_gateway_is_stopped(self, world: World) -> None:
        models = NoModels(refusal="over budget: of 10 tokens, 10 are used")
        done = world.run(builder(waits=asyncio.Event()), models=models)
        assert done.outcome.status is OutcomeStatus.OVER_BUDGET
        assert done.outcome.problems == ("over budget: of 10 tokens, 10 are used",)
        assert done.outcome.cause is None

    def test_a_dispatch_gets_the_limits_of_its_role(self, world: World) -> None:
        models = NoModels()
        world.run(builder(), models=models)
        spec = ROLES[Role.IMPLEMENTER]
        ((_, limits),) = models.connected
        assert (limits.tokens, limits.cost_micros) == (spec.budget.tokens, spec.budget.money_micros)
        assert (limits.wall_s, limits.turns) == (spec.timeout_s, spec.turns)


class TestOnce:
    """What has ended is adopted, and what was stopped is made again."""

    def test_a_dispatch_that_ended_is_adopted_and_nobody_is_asked(self, world: World) -> None:
        first = world.run(builder(writes("src/shop.py"), writes("trace.log")))
        rows = {table: world.rows(table) for table in ("pipeline_telemetry", "events", "claims", "observations")}
        again = builder()
        second = world.run(again)
        assert again.asked == []
        assert second.adopted
        assert (second.outcome, second.changed, second.byproducts) == (first.outcome, first.changed, 1)
        assert (second.start_tree, second.tree, second.transcript) == (first.start_tree, first.tree, first.transcript)
        assert {table: world.rows(table) for table in rows} == rows

    def test_a_refused_one_is_adopted_as_refused(self, world: World) -> None:
        first = world.run(builder(writes("README.md")))
        assert world.run(builder()).outcome == first.outcome

    def test_a_dispatch_that_another_process_ended_meanwhile_is_not_begun_again(self, world: World) -> None:
        world.run(builder())
        late = begin(
            world.context(), ROLES[Role.IMPLEMENTER], brief(), DispatchPosition("step-5"), world.deps(builder())
        )
        with pytest.raises(UsageError, match="d-1 cannot be reserved"):
            asyncio.run(late)
        assert world.events() == ["dispatch_started", "dispatch_finished"]

    def test_an_end_without_its_claim_is_no_end(self, world: World) -> None:
        forged = Observation(
            run_id=RUN,
            task_id=None,
            key=ENDED,
            kind="dispatch-ended",
            subject="d-1",
            holds=True,
            detail={"role": "implementer", "instance": "implementer"},
            tree=None,
            observed_at="2026-02-26T14:30:00Z",
        )
        world.ledger.record(RUN, lambda record: record.observation(forged))
        with pytest.raises(LedgerTampered):
            world.run(builder())

    def test_an_id_belongs_to_one_dispatch(self, world: World) -> None:
        world.run(builder())
        with pytest.raises(UsageError, match="d-1 was a dispatch of implementer"):
            world.run(Scripted(says(INTAKE)), role=Role.INTAKE)

    def test_a_dispatch_that_was_stopped_is_made_again_and_both_tries_are_paid_for(self, world: World) -> None:
        async def stopped() -> OutcomeStatus:
            stop, asked = asyncio.Event(), asyncio.Event()
            running = asyncio.ensure_future(
                dispatch(
                    world.context(),
                    ROLES[Role.IMPLEMENTER],
                    brief(),
                    DispatchPosition("step-5"),
                    world.deps(builder(writes("src/half.py"), waits=asked), models=NoModels(used=USED)),
                    stop=stop,
                )
            )
            await asked.wait()
            stop.set()
            return (await running).outcome.status

        assert asyncio.run(stopped()) is OutcomeStatus.CANCELLED
        assert world.events() == ["dispatch_started"]
        assert (world.folder / "src/half.py").exists()
        done = world.run(builder(writes("src/whole.py")))
        assert done.outcome.status is OutcomeStatus.OK
        assert [each.path for each in done.changed] == ["src/whole.py"]
        assert spent(world).tokens == 2000
        assert world.rows("pipeline_telemetry", "status") == [("ERROR",), ("DONE",)]
        assert world.events() == ["dispatch_started", "dispatch_started", "dispatch_finished"]
        assert not isinstance(fold_feature(world.ledger.events(RUN)), Problem)

    def test_a_cancelled_task_leaves_the_dispatch_to_be_made_again(self, world: World) -> None:
        async def cancelled() -> None:
            asked = asyncio.Event()
            running = asyncio.ensure_future(
                dispatch(
                    world.context(),
                    ROLES[Role.IMPLEMENTER],
                    brief(),
                    DispatchPosition("step-5"),
                    world.deps(builder(writes("README.md"), waits=asked)),
                )
            )
            await asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancelled())
        done = world.run(builder())
        assert done.outcome.status is OutcomeStatus.OK
        assert spent(world).tokens == ROLES[Role.IMPLEMENTER].budget.tokens


@pytest.mark.req("X3")
@pytest.mark.parametrize("tier", [EnforcementTier.C, EnforcementTier.D])
def test_an_agent_that_acts_by_itself_is_refused_where_nothing_holds_it(world: World, tier: EnforcementTier) -> None:
    agent = builder(tier=tier)
    done = world.run(agent, tier=SandboxTier.LANDLOCK)
    assert (done.outcome.status, done.outcome.cause) == (OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED)
    assert agent.asked == []
    assert world.run(builder(tier=tier), tier=SandboxTier.NAMESPACES, dispatch_id="d-2").outcome.answer == TAKEN


def test_a_brief_that_does_not_fit_its_role_costs_nothing(world: World) -> None:
    with pytest.raises(UsageError):
        world.run(builder(), spec=ROLES[Role.PLANNER])
    with pytest.raises(UsageError):
        world.run(builder(), role=Role.ORCHESTRATOR)
    assert world.events() == []


def test_the_intake_of_step_0_stands_in_the_events_like_any_other_role(world: World) -> None:
    done = world.run(Scripted(says(INTAKE)), role=Role.INTAKE)
    assert done.outcome.status is OutcomeStatus.OK
    started = [event for event in world.ledger.events(RUN) if event.type == "dispatch_started"]
    assert [event.data["agent"] for event in started] == ["intake"]


def test_half_a_sign_does_not_break_the_record(world: World) -> None:
    done = world.run(Scripted(f"half a sign: \ud800\n{says(REPORT)}"))
    assert done.outcome.status is OutcomeStatus.OK
    assert world.run(builder()).outcome == done.outcome


def test_who_the_agent_was_and_how_it_was_kept_in_stands_on_record(world: World) -> None:
    world.run(builder())
    row = world.ledger.observation(RUN, "dispatch:d-1:try-1")
    assert row is not None
    assert (row.detail["agent"]["version"], row.detail["sandbox"]) == ("1.2.3", "ns")


@pytest.mark.req("P12")
def test_an_external_agent_gets_room_for_its_own_prompt_and_an_unlimited_budget_stays_one() -> None:
    spec = ROLES[Role.JUDGE]
    outside = sized(spec, "acp")
    assert (sized(spec, "api"), sized(spec, "cassette")) == (spec, spec)
    assert outside.budget.tokens == spec.budget.tokens + 400_000
    assert outside.budget.milliseconds == spec.budget.milliseconds
    free = spec.model_copy(update={"budget": Amounts()})
    assert limits_of(sized(free, "acp")).tokens is None
