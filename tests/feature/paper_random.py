"""Scripts of every kind, drawn at random: whatever may happen in a run, happens in one of them."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.facts import OPTIONS, GateChoice, HumanGate
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Category, Perspective
from support.paper.graph import CHECKS
from support.paper.script import Ending, How, Rows, Script

_TASKS = tuple(f"task-0{number}" for number in range(1, 5))
_REVIEWERS = tuple(perspective.value for perspective in Perspective)
_CALLS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "step-0": (("intake",), 2),
    "step-1": (tuple(f"researcher-{focus.value}" for focus in Focus), 2),
    "step-2": (("spec",), 2),
    "step-3": (("designer",), 2),
    "step-3b": (_REVIEWERS, 2),
    "step-4": (("planner",), 4),
    "step-5": (("task-00", *_TASKS), 4),
    "step-6": (_TASKS, 4),
    "step-7": (_REVIEWERS, 2),
    "step-8": (("knowledge-agent",), 1),
    "step-8b": (("evidence-bundle",), 1),
    "step-9": (("commit",), 1),
}
"""Who is called in each step, and how many visits (of a graph: which numbers) are worth a word."""
_SEVERITIES = st.sampled_from(list(Severity))
_ERRORS = st.builds(
    Ending,
    st.just(How.ERROR),
    st.sampled_from([cause for cause in ErrorCause if cause is not ErrorCause.TIMEOUT]),
)
_FAILURES = st.one_of(_ERRORS, st.just(Ending(How.TIMEOUT)), st.just(Ending(How.OVER_BUDGET)))
_WORRIES = st.builds(Ending, concerns=st.lists(_SEVERITIES, max_size=2).map(tuple))
_FINDINGS = st.builds(
    Ending, findings=st.lists(st.tuples(st.sampled_from(list(Category)), _SEVERITIES), max_size=2).map(tuple)
)
_OWN: Mapping[str, st.SearchStrategy[Ending]] = {
    "step-0": _WORRIES,
    "step-2": _WORRIES,
    "step-3b": _FINDINGS,
    "step-4": st.just(Ending(How.UNUSABLE)),
    "step-6": st.just(Ending(How.REVISION)),
    "step-7": _FINDINGS,
}


@st.composite
def _call(draw: st.DrawFn, steps: tuple[str, ...]) -> tuple[str, Ending]:
    step = draw(st.sampled_from(steps))
    names, visits = _CALLS[step]
    visit, number = draw(st.integers(1, visits)), draw(st.integers(1, 2))
    ending = draw(st.one_of(_FAILURES, _OWN[step]) if step in _OWN else _FAILURES)
    return f"{step}-{visit}-{draw(st.sampled_from(names))}-{number}", ending


_SOME = st.sets(st.sampled_from(CHECKS), max_size=1).map(frozenset)
_ROWS = st.builds(
    Rows, failing=_SOME, silent=_SOME, has_baseline=st.just(value=True), can_run=st.booleans(), merges=st.booleans()
)
_ROW_KEYS = st.one_of(
    st.tuples(st.sampled_from(("task-00", *_TASKS)), st.integers(1, 4)), st.tuples(st.just("whole"), st.integers(0, 2))
).map(lambda pair: f"{pair[0]}:{pair[1]}")
_POLICIES = st.builds(
    Policy,
    retry=st.builds(RetryPolicy, dispatch=st.integers(0, 2)),
    review=st.builds(
        ReviewPolicy,
        approvals=st.integers(2, 3),
        design_revisions=st.integers(0, 1),
        code_rounds=st.integers(1, 2),
        on_exhausted=st.sampled_from(list(OnExhausted)),
    ),
    verification=st.builds(VerificationPolicy, iterations=st.integers(1, 3), revert_from=st.integers(1, 3)),
    researchers=st.integers(2, 4),
    max_concurrent=st.integers(1, 4),
    human_loops=st.integers(0, 1),
)


def _answers(gate: HumanGate) -> st.SearchStrategy[tuple[GateChoice, ...]]:
    return st.lists(st.sampled_from(OPTIONS[gate]), max_size=4).map(tuple)


def scripts(without: tuple[str, ...] = (), resumes: int = 2, **fixed: Any) -> st.SearchStrategy[Script]:
    """Any script; `without` names steps whose calls all go well."""
    steps = tuple(step for step in _CALLS if step not in without)
    return st.builds(
        Script,
        mode=st.sampled_from(list(ApprovalMode)),
        policy=_POLICIES,
        calls=st.lists(_call(steps), max_size=8).map(dict),
        rows=st.dictionaries(_ROW_KEYS, _ROWS, max_size=5),
        answers=st.fixed_dictionaries({gate: _answers(gate) for gate in HumanGate}),
        is_one_model=st.booleans(),
        sandbox=st.sampled_from([SandboxTier.NAMESPACES, SandboxTier.LANDLOCK]),
        resumes=st.integers(0, resumes),
        **fixed,
    )
