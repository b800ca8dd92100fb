"""The decision tables of autopilot and forge as Markdown, made by asking the rules themselves."""

from collections.abc import Iterable, Sequence
from itertools import product

from fairwitness.contracts.autopilot.breaker import BreakerPosition, BreakerSettings, BreakerState
from fairwitness.contracts.autopilot.facts import Retries, RetryKind, RunUsage, StepEffect, StepFailureCause
from fairwitness.contracts.autopilot.metrics import CostEstimation
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.rating import ScoreBand, band_of
from fairwitness.contracts.autopilot.vocabulary import (
    Complexity,
    FailureCategory,
    PhaseType,
    Recommendation,
    RunFlag,
    StepName,
)
from fairwitness.contracts.common.budgets import Amounts, Budget, BudgetCaps, Caps, OverBudget, Reservation, Spending
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.tools import POLICIES, Access, Role, Tool
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.status import ForgeRunStatus
from fairwitness.rules.breaker import MEASURED, GoOn, after_low_score, after_resume, after_step, may_retry, may_start
from fairwitness.rules.budgets import reserve
from fairwitness.rules.cost import cost_warning, estimated_tokens
from fairwitness.rules.dag import TRANSITIONS, TransitionKind
from fairwitness.rules.fold_forge import RUN_MOVES, UNSTARTED
from fairwitness.rules.schedule import DEFAULT_CAP, GOOD_ENOUGH
from fairwitness.rules.scores import (
    EXCLUSIONS,
    GAP_ITERATIONS,
    QUALITY_CYCLES,
    REMEDIATION_CYCLES,
    STAMPS,
    PhaseGateFacts,
    adjusted_limit,
    phase_gate,
    threshold_tenths,
)
from fairwitness.rules.tool_policy import access

_NOW = "2026-02-26T14:30:00Z"
_LATER = "2026-02-26T14:35:00Z"
_SETTINGS = BreakerSettings()
_IDLE = RunUsage(phase_tokens=0, phase_minutes=0, total_tokens=0, total_minutes=0, total_retries=0)
_SIGNS = {Access.ALLOWED: "✓", Access.SCOPED: "scoped", Access.DENIED: ""}


def sections() -> list[tuple[str, str]]:
    """Every table with its heading."""
    return [
        ("Circuit breaker", _breaker()),
        ("Budgets", _budgets()),
        ("Scores and the gate of a phase", _scoring()),
        ("Cost estimates", _cost()),
        ("Nodes and runs of forge", _nodes()),
        ("Tools by role", _tools()),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def _state(position: BreakerPosition) -> BreakerState:
    return BreakerState(
        state=position,
        consecutive_no_progress=0,
        consecutive_same_error=0,
        last_error=None,
        cooldown_until=_LATER if position is BreakerPosition.OPEN else None,
    )


def _outcome(step: StepName, commits: int, error: StepFailureCause | None) -> StepEffect:
    return StepEffect(step=step, new_commits=commits, newly_passing=0, score_gained=0, error=error)


def _breaker() -> str:
    error = StepFailureCause(category=FailureCategory.BUILD_FAILURE, first_line="boom")
    endings = {
        "progress": _outcome(StepName.EXECUTE, 1, None),
        "no progress": _outcome(StepName.EXECUTE, 0, None),
        "an error": _outcome(StepName.EXECUTE, 0, error),
        "a step of which no progress is expected": _outcome(StepName.RESEARCH, 0, None),
    }
    positions = []
    for position, (name, outcome) in product(BreakerPosition, endings.items()):
        answer = after_step(_state(position), outcome, _IDLE, _SETTINGS, now=_NOW)
        positions.append((position.value, name, answer.answer, answer.breaker.state.value))
    limits = []
    for setting, used in (
        ("cost_cap_tokens_total", "total_tokens"),
        ("wall_clock_timeout_minutes_total", "total_minutes"),
        ("cost_cap_tokens_per_phase", "phase_tokens"),
        ("wall_clock_timeout_minutes_per_phase", "phase_minutes"),
        ("max_total_retries_per_run", "total_retries"),
    ):
        cap = getattr(_SETTINGS, setting)
        at_cap = after_step(
            _state(BreakerPosition.CLOSED),
            endings["progress"],
            _IDLE.model_copy(update={used: cap}),
            _SETTINGS,
            now=_NOW,
        )
        assert not isinstance(at_cap, GoOn)
        limits.append((f"`{setting}`", cap, at_cap.answer))
    limits += [
        (f"`{name}`", getattr(_SETTINGS, name), "pause") for name in ("same_error_threshold", "no_progress_threshold")
    ]
    starts = [
        (position.value, running, "yes" if may_start(_state(position), running=running) else "no")
        for position, running in product(BreakerPosition, (0, 1))
    ]
    resumed = [
        (position.value, when, after_resume(_state(position), now=now).state.value)
        for position, (when, now) in product(
            BreakerPosition, (("before the cooldown is over", _NOW), ("after the cooldown", _LATER))
        )
    ]
    retries = [
        (kind.value, debug, replan, total, "yes" if allowed else "no")
        for kind, debug, replan, total in product(RetryKind, (2, 3), (0, 1), (9, 10))
        for allowed in [may_retry(kind, Retries(debug_in_phase=debug, replan_in_phase=replan, total=total), _SETTINGS)]
    ]
    marks = [
        (
            score / 10,
            replans,
            after_low_score(score, Retries(debug_in_phase=0, replan_in_phase=replans, total=0), _SETTINGS),
        )
        for score, replans in product((70, 69), (0, 1))
    ]
    measured = ", ".join(step.value for step, expected in MEASURED.items() if expected)
    return "\n".join(
        (
            f"Progress is a new commit, a newly passing criterion or a gain in score; it is expected of {measured}.\n",
            _table(("position", "a step ends with", "answer", "then"), positions),
            _table(("setting, first one reached counts", "limit", "at the limit"), limits),
            _table(("position", "steps under way", "may one more start"), starts),
            _table(("position", "resumed", "then"), resumed),
            _table(("try", "debugged in phase", "replanned in phase", "retries in run", "may it"), retries),
            _table(("score", "replans so far", "degraded"), marks),
        )
    )


def _budgets() -> str:
    free = Caps(tokens=None, money_micros=None, milliseconds=None)
    five = free.model_copy(update={"tokens": 5})
    rows = []
    for spent, asked in product((0, 4, 5, 6), (0, 1, 5, 6)):
        budget = Budget(
            caps=BudgetCaps(dispatch=free, phase=free, run=five),
            spent={"d-1": Spending(used=Amounts(tokens=spent))},
        )
        answer = reserve(budget, Reservation(id="d-2", asked=Amounts(tokens=asked)))
        assert not isinstance(answer, Problem)
        rows.append((5, spent, asked, "no" if isinstance(answer, OverBudget) else "yes"))
    return (
        "The same for tokens, money (in millionths) and time (in milliseconds), for a dispatch, a phase and a run.\n\n"
        + _table(("cap", "spent and reserved", "asked for", "may it start"), rows)
    )


def _scoring() -> str:
    bands = []
    for band in ScoreBand:
        scores = [whole / 10 for whole in range(101) if band_of(whole / 10) is band]
        bands.append((band.value, min(scores), max(scores)))
    flags = [frozenset(chosen) for chosen in ((), ("lenient",), ("quality",), ("gaps",), ("quality", "gaps"))]
    thresholds = [
        (" + ".join(sorted(chosen)) or "none", threshold_tenths(frozenset(RunFlag(flag) for flag in chosen)) / 10)
        for chosen in flags
    ]
    outcomes = [
        (outcome.value, recommendation.value, answer.move.value, answer.because)
        for outcome, recommendation in product(PhaseOutcome, Recommendation)
        for answer in [phase_gate(_facts(outcome, recommendation, 90, 90, 0, quality=False))]
    ]
    gates = [
        (
            "quality" if quality else "plain",
            threshold / 10,
            "none" if score is None else score / 10,
            cycles,
            answer.move,
        )
        for threshold, quality in ((90, False), (95, True))
        for score, cycles in product((None, 69, 70, threshold - 1, threshold), (0, 1, 2, 3))
        for answer in [
            phase_gate(
                _facts(PhaseOutcome.COMPLETED, Recommendation.PROCEED, score, threshold, cycles, quality=quality)
            )
        ]
    ]
    limits = [
        (6.0, passed, verdicts, adjusted_limit(6.0, passed, verdicts))
        for passed, verdicts in ((2, 2), (3, 3), (4, 5), (7, 10), (2, 3))
    ]
    return "\n".join(
        (
            _table(("band", "from", "to"), bands),
            _table(("flags", "threshold"), thresholds),
            _table(("flags that exclude each other", ""), EXCLUSIONS),
            _table(("outcome", "recommendation", "move", "because"), outcomes),
            _table(("run", "threshold", "score", "cycles so far", "move"), gates),
            _table(
                ("loop", "at most"),
                (("remediation", REMEDIATION_CYCLES), ("quality", QUALITY_CYCLES), ("gaps", GAP_ITERATIONS)),
            ),
            _table(("confidence limit", "passed", "verdicts", "then"), limits),
            _table(
                ("suspicion", "scores in a row within 0.2"), [(stamp.value, count) for stamp, count in STAMPS.items()]
            ),
        )
    )


def _facts(
    outcome: PhaseOutcome,
    recommendation: Recommendation,
    score: int | None,
    threshold: int,
    cycles: int,
    *,
    quality: bool,
) -> PhaseGateFacts:
    return PhaseGateFacts(
        outcome=outcome,
        recommendation=recommendation,
        score_tenths=score,
        threshold_tenths=threshold,
        cycles=cycles,
        gained=True,
        quality=quality,
        has_dependents=True,
        complete=False,
    )


def _cost() -> str:
    constants, cap = CostEstimation(), _SETTINGS.cost_cap_tokens_per_phase
    estimates = [(f"no plan, {kind.value}", estimated_tokens(constants, kind)) for kind in PhaseType]
    estimates += [
        (f"a plan of {count} {task.value} tasks", estimated_tokens(constants, PhaseType.MIXED, [task] * count))
        for task, count in product(Complexity, (1, 5))
    ]
    rows = [
        (name, tokens, "yes" if cost_warning(constants, tokens, cap) is not None else "no")
        for name, tokens in estimates
    ]
    return _table(("phase", "estimated tokens", f"warning (above {constants.warning_threshold_pct} % of {cap})"), rows)


def _nodes() -> str:
    moves = [(before, after) for (before, after), move in TRANSITIONS.items() if move is TransitionKind.LEGAL]
    enough = [
        (after.value, before.value, " or ".join(state for state in NodeState if state in states))
        for (before, after), states in GOOD_ENOUGH.items()
    ]
    runs = [
        (f"`{event}`", before.value, after.value, "as it was" if phase is None else phase.value)
        for (event, before), (after, phase) in RUN_MOVES.items()
    ]
    runs += [
        ("`run.resumed`", f"{ForgeRunStatus.FAILED.value} in {phase.value}", after.value, "as it was")
        for phase, after in UNSTARTED.items()
    ]
    return "\n".join(
        (
            "The same state again is no change; every other change is refused. At most "
            f"{DEFAULT_CAP} run at once by default, those with the longest way to the end first.\n",
            _table(("from", "to"), moves),
            _table(("node", "behind", "starts when that is"), enough),
            _table(("event", "run is", "becomes", "phase"), runs),
        )
    )


def _tools() -> str:
    matrix = [(f"`{role.value}`", *(_SIGNS[access(role, tool)] for tool in Tool)) for role in Role]
    scopes = [
        (
            f"`{role.value}`",
            ", ".join(f"`{output}`" for output in policy.outputs) + (" and the task's files" if policy.source else ""),
            ", ".join(f"`{' '.join(start)}`" for start in policy.programs)
            + (" and the project's commands" if policy.project_commands else ""),
            ", ".join(f"`{other.value}`" for other in Role if other in policy.spawns),
        )
        for role, policy in POLICIES.items()
    ]
    return "\n".join(
        (
            _table(("role", *(f"`{tool.value}`" for tool in Tool)), matrix),
            _table(("role", "writes", "runs", "starts"), scopes),
        )
    )
