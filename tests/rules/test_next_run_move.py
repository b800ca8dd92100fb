"""Where a run goes: total over whatever its ledger says, nothing begun that may not be, and an end for every run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.passes import AfterPass, PassDecision, PassKind, PhasePass
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus, RunFlag
from fairwitness.rules.next_run_move import (
    RunFacts,
    RunMove,
    RunMoveKind,
    is_at_its_end,
    is_finished,
    left_alone,
    next_move,
    verdict_gate,
)
from fairwitness.rules.phases import PhasePlace, roadmap_plan

COMMIT = "a" * 40
HASH = "sha256:" + "0" * 64
NOW = "2026-02-26T14:30:00Z"
DONE = {"status": "completed", "alignment_score": 9.5, "deficiencies": []}


def _order(
    depends_on: dict[str, tuple[str, ...]],
    *,
    phases: Iterable[str] | None = None,
    earlier: Iterable[str] = (),
    flags: Iterable[RunFlag] = (),
    pause_after: int | None = None,
) -> AutopilotOrder:
    roadmap = [
        {
            "id": phase,
            "name": f"phase {phase}",
            "type": "data",
            "depends_on": others,
            "goal": "it works",
            "requirements": [],
            "criteria": [],
            "done": False,
        }
        for phase, others in depends_on.items()
    ]
    return AutopilotOrder.model_validate(
        {
            "roadmap": {"phases": roadmap},
            "phases": list(depends_on if phases is None else phases),
            "earlier": dict.fromkeys(earlier, DONE),
            "flags": list(flags),
            "pause_after": pause_after,
            "base_commit": COMMIT,
            "target": "fairwitness/run/target",
            "commands": {},
            "specs": [{"path": "SPEC.md", "hash": HASH, "locked_at": NOW}],
            "verify": {},
            "settings_hash": HASH,
            "started_by": "Ada",
        }
    )


def _pass(phase: str, number: int = 1, kind: PassKind = PassKind.WHOLE) -> PhasePass:
    tasks = ("a",) if kind is PassKind.PART else ()
    return PhasePass(phase=phase, number=number, kind=kind, start=COMMIT, checkpoint=COMMIT, tasks=tasks)


def _verdict(
    phase: str,
    number: int = 1,
    after: AfterPass = AfterPass.SETTLED,
    *,
    another: PhasePass | None = None,
    parts: tuple[PhasePass, ...] = (),
) -> PassDecision:
    return PassDecision(phase=phase, number=number, after=after, because="it is so", next=another, parts=parts)


def _facts(
    statuses: dict[str, PhaseStatus],
    *,
    status: AutopilotRunStatus = AutopilotRunStatus.RUNNING,
    begun: Iterable[PhasePass] = (),
    returned: Iterable[tuple[str, int]] = (),
    verdicts: Iterable[PassDecision] = (),
    processed: int = 0,
    reported: bool = False,
) -> RunFacts:
    return RunFacts(
        status=status,
        statuses=statuses,
        begun=tuple(begun),
        returned=tuple(returned),
        verdicts=tuple(verdicts),
        processed=processed,
        reported=reported,
    )


def _parts(phase: str, letters: str = "ab") -> tuple[PhasePass, ...]:
    return tuple(_pass(f"{phase}{letter}", 1, PassKind.PART) for letter in letters)


def _wanted(verdict: PassDecision) -> tuple[PhasePass, ...]:
    return (*verdict.parts, *(() if verdict.next is None else (verdict.next,)))


def _said(move: RunMove) -> str:
    words = (move.kind.value, move.phase, move.number and f"pass {move.number}", move.gate, move.reason)
    return " ".join(str(word) for word in words if word)


IDS = ("1", "2", "3", "4")


@st.composite
def _orders(draw: st.DrawFn) -> AutopilotOrder:
    """A roadmap without a ring, and a run that takes up all of it or a part."""
    ids = IDS[: draw(st.integers(1, len(IDS)))]
    depends_on = {
        phase: tuple(draw(st.lists(st.sampled_from(ids[:at]), unique=True, max_size=2)) if at else ())
        for at, phase in enumerate(ids)
    }
    return _order(
        depends_on,
        phases=draw(st.permutations(ids))[: draw(st.integers(1, len(ids)))],
        earlier=draw(st.lists(st.sampled_from(ids), unique=True)),
        flags=draw(st.sampled_from([(), (RunFlag.COMPLETE,), (RunFlag.FORCE,), (RunFlag.QUALITY,), (RunFlag.GAPS,)])),
        pause_after=draw(st.sampled_from([None, 1, 2])),
    )


_NUMBERED = st.builds(_pass, st.sampled_from(IDS), st.integers(1, 3))
_KEYS = st.tuples(st.sampled_from(IDS), st.integers(1, 3))
_VERDICTS = st.one_of(
    st.builds(_verdict, st.sampled_from(IDS), st.integers(1, 3), st.sampled_from(["settled", "deferred", "halted"])),
    st.builds(
        lambda phase, number, another: _verdict(phase, number, AfterPass.ONCE_MORE, another=another),
        st.sampled_from(IDS),
        st.integers(1, 3),
        _NUMBERED,
    ),
    st.builds(
        lambda phase, number, letters: _verdict(phase, number, AfterPass.SPLIT, parts=_parts(phase, letters)),
        st.sampled_from(IDS),
        st.integers(1, 3),
        st.sampled_from(["ab", "abc"]),
    ),
)
_FACTS = st.builds(
    _facts,
    st.dictionaries(st.sampled_from(IDS), st.sampled_from(PhaseStatus)),
    status=st.sampled_from([*[AutopilotRunStatus.RUNNING] * 5, *AutopilotRunStatus]),
    begun=st.lists(_NUMBERED, max_size=3),
    returned=st.lists(_KEYS, max_size=4),
    verdicts=st.lists(_VERDICTS, max_size=3),
    processed=st.integers(0, 3),
    reported=st.booleans(),
)
_ABOUT = {
    RunMoveKind.BEGIN: {"phase", "number"},
    RunMoveKind.PASS: {"phase", "number"},
    RunMoveKind.DECIDE: {"phase", "number"},
    RunMoveKind.SKIP: {"phase", "reason"},
    RunMoveKind.REPORT: set(),
    RunMoveKind.WAIT: {"phase", "gate"},
    RunMoveKind.PAUSE: set(),
    RunMoveKind.FINISH: set(),
    RunMoveKind.END: set(),
}


def _places(order: AutopilotOrder, facts: RunFacts) -> dict[str, PhasePlace]:
    """Every phase in the whole roadmap of the run, seen by the rule that orders phases."""
    taken = set(order.phases)
    phases = [
        phase.model_copy(update={"depends_on": tuple(other for other in phase.depends_on if other in taken)})
        for phase in order.roadmap.outline
        if phase.id in taken
    ]
    done = frozenset(left_alone(order))
    for _ in IDS:
        plans = roadmap_plan(phases, facts.statuses, done_before=done)
        told = {phase for phase, status in facts.statuses.items() if status is PhaseStatus.SKIPPED}
        done |= {plan.id for plan in plans if plan.place is PhasePlace.RUN and is_finished(order, plan.id)} & told
    return {plan.id: plan.place for plan in roadmap_plan(phases, facts.statuses, done_before=done)}


@pytest.mark.req("A11")
@given(_orders(), _FACTS)
@settings(deadline=None)
def test_whatever_stands_in_the_ledger_there_is_one_move(order: AutopilotOrder, facts: RunFacts) -> None:
    move = next_move(order, facts)
    assert {name for name in ("phase", "number", "gate", "reason") if getattr(move, name) is not None} == _ABOUT[
        move.kind
    ]
    assert (move.kind is RunMoveKind.END) == (facts.status is not AutopilotRunStatus.RUNNING)
    if move.kind is RunMoveKind.WAIT:
        assert move.gate == verdict_gate(move.phase or "")


@pytest.mark.req("A1")
@given(
    _orders(),
    _FACTS,
    st.sampled_from([status for status in AutopilotRunStatus if status is not AutopilotRunStatus.RUNNING]),
)
@settings(deadline=None)
def test_nothing_is_begun_unless_the_run_is_running(
    order: AutopilotOrder, facts: RunFacts, status: AutopilotRunStatus
) -> None:
    assert next_move(order, facts.model_copy(update={"status": status})) == RunMove(kind=RunMoveKind.END)


@pytest.mark.req("A11", "A19")
@given(_orders(), _FACTS.map(lambda facts: facts.model_copy(update={"begun": (), "verdicts": ()})))
@settings(deadline=None)
def test_only_a_phase_that_nothing_holds_back_is_begun(order: AutopilotOrder, facts: RunFacts) -> None:
    move, places = next_move(order, facts), _places(order, facts)
    if move.kind is RunMoveKind.BEGIN:
        assert places[move.phase or ""] in (PhasePlace.RUN, PhasePlace.RUNNING)
    if move.kind is RunMoveKind.SKIP:
        assert places[move.phase or ""] in (PhasePlace.BLOCKED, PhasePlace.DONE)
    if move.kind is RunMoveKind.WAIT:
        assert places[move.phase or ""] is PhasePlace.DEFERRED
    if move.kind in (RunMoveKind.REPORT, RunMoveKind.WAIT, RunMoveKind.FINISH):
        assert not {PhasePlace.RUN, PhasePlace.RUNNING} & set(places.values()), "what can run comes first"
    if move.kind is RunMoveKind.FINISH:
        assert PhasePlace.DEFERRED not in places.values(), "nobody's verdict is passed over"


@pytest.mark.req("A1")
@given(_orders(), _FACTS, _NUMBERED, st.booleans())
@settings(deadline=None)
def test_a_pass_under_way_comes_before_everything_else(
    order: AutopilotOrder, facts: RunFacts, last: PhasePass, has_returned: bool
) -> None:
    key = (last.phase, last.number)
    changes = {
        "status": AutopilotRunStatus.RUNNING,
        "begun": (*facts.begun, last),
        "returned": tuple(each for each in facts.returned if each != key) + ((key,) if has_returned else ()),
        "verdicts": tuple(verdict for verdict in facts.verdicts if (verdict.phase, verdict.number) != key),
    }
    kind = RunMoveKind.DECIDE if has_returned else RunMoveKind.PASS
    move = next_move(order, facts.model_copy(update=changes))
    assert move == RunMove(kind=kind, phase=last.phase, number=last.number)


@dataclass
class Run:
    """A run as its desk would keep it: each move is made, and something comes of it."""

    order: AutopilotOrder
    choose: Callable[[str, list[str]], str]
    statuses: dict[str, PhaseStatus] = field(default_factory=dict)
    status: AutopilotRunStatus = AutopilotRunStatus.RUNNING
    begun: list[PhasePass] = field(default_factory=list)
    returned: list[tuple[str, int]] = field(default_factory=list)
    verdicts: list[PassDecision] = field(default_factory=list)
    processed: int = 0
    reported: bool = False
    told: list[RunMove] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.statuses = dict.fromkeys(self.order.phases, PhaseStatus.NOT_STARTED)

    def facts(self) -> RunFacts:
        return _facts(
            dict(self.statuses),
            status=self.status,
            begun=self.begun,
            returned=self.returned,
            verdicts=self.verdicts,
            processed=self.processed,
            reported=self.reported,
        )

    def go(self) -> None:
        for _ in range(40 * len(IDS)):
            move = next_move(self.order, self.facts())
            assert move == next_move(self.order, self.facts()), "asked again, it says the same"
            self.told.append(move)
            if move.kind is RunMoveKind.END:
                return
            self.make(move)
        raise AssertionError(f"it does not end: {[_said(move) for move in self.told[-8:]]}")

    def make(self, move: RunMove) -> None:
        phase, number = move.phase or "", move.number or 0
        match move.kind:
            case RunMoveKind.BEGIN:
                self.begin(phase, number)
            case RunMoveKind.PASS:
                self.passed(phase, number)
            case RunMoveKind.DECIDE:
                self.decide(phase, number)
            case RunMoveKind.SKIP:
                assert self.statuses[phase] is PhaseStatus.NOT_STARTED, "it is said once"
                self.statuses[phase] = PhaseStatus.SKIPPED
            case RunMoveKind.REPORT:
                assert not self.reported
                self.reported = True
            case RunMoveKind.WAIT:
                verdict = self.choose(f"a person on {phase}", ["completed", "failed"])
                self.ended(phase, PhaseStatus(verdict))
            case RunMoveKind.PAUSE:
                assert self.order.pause_after is not None
                self.processed = 0  # and somebody resumes it at once
            case RunMoveKind.FINISH:
                self.status = AutopilotRunStatus.COMPLETED
            case RunMoveKind.END:
                raise AssertionError("nothing follows")

    def begin(self, phase: str, number: int) -> None:
        assert (phase, number) not in [(each.phase, each.number) for each in self.begun], "no pass is begun twice"
        assert [(each.phase, each.number) for each in self.begun] == self.returned, "one pass at a time"
        planned = [each for verdict in self.verdicts for each in _wanted(verdict)]
        found = [each for each in planned if (each.phase, each.number) == (phase, number)]
        if not found and is_finished(self.order, phase) and self.choose(f"{phase}", ["again", "left"]) == "left":
            assert self.statuses[phase] is PhaseStatus.NOT_STARTED, "it is asked once"
            self.statuses[phase] = PhaseStatus.SKIPPED
            return
        self.begun.append(found[0] if found else _pass(phase, number))
        if not found:
            assert self.statuses[phase] in (PhaseStatus.NOT_STARTED, PhaseStatus.IN_PROGRESS)
            self.statuses[phase] = PhaseStatus.IN_PROGRESS

    def passed(self, phase: str, number: int) -> None:
        """A pass returns, or is halted and goes on when the run does."""
        if self.choose(f"pass {number} of {phase}", ["returns", "returns", "is halted"]) == "is halted":
            self.status = AutopilotRunStatus.PAUSED
            assert next_move(self.order, self.facts()).kind is RunMoveKind.END
            self.status = AutopilotRunStatus.RUNNING
        self.returned.append((phase, number))

    def decide(self, phase: str, number: int) -> None:
        wanted = {(each.phase, each.number) for verdict in self.verdicts for each in _wanted(verdict)}
        assert (phase, number) in self.returned or wanted <= set(self.returned), "its parts have done all they should"
        is_part = phase[-1].isalpha()
        others = ["split"] if number == 1 and not is_part else []
        others += ["once_more"] if number < 3 else []
        what = self.choose(f"decision {number} of {phase}", ["completed", "failed", "deferred", "halted", *others])
        if what == "once_more":
            self.verdicts.append(_verdict(phase, number, AfterPass.ONCE_MORE, another=_pass(phase, number + 1)))
        elif what == "split":
            self.verdicts.append(_verdict(phase, number, AfterPass.SPLIT, parts=_parts(phase)))
        else:
            after = {"deferred": AfterPass.DEFERRED, "halted": AfterPass.HALTED}.get(what, AfterPass.SETTLED)
            self.verdicts.append(_verdict(phase, number, after))
            status = {"deferred": "needs_human_verification", "halted": "failed"}.get(what, what)
            if not is_part:
                self.ended(phase, PhaseStatus(status))
            if what == "halted":
                self.status = AutopilotRunStatus.FAILED

    def ended(self, phase: str, status: PhaseStatus) -> None:
        self.statuses[phase] = status
        self.processed, self.reported = self.processed + 1, False


@pytest.mark.req("A1", "A11", "A19")
@given(st.data(), _orders())
@settings(deadline=None)
def test_a_run_ends_whatever_comes_of_its_phases(data: st.DataObject, order: AutopilotOrder) -> None:
    run = Run(order, lambda _, ways: data.draw(st.sampled_from(ways)))
    run.go()
    assert set(run.returned) == {(each.phase, each.number) for each in run.begun}, "nothing is left half done"
    if run.status is AutopilotRunStatus.COMPLETED:
        ended = {PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED}
        assert set(run.statuses.values()) <= ended, "every phase has come to an end"
        untouched = {phase for phase, status in run.statuses.items() if status is PhaseStatus.SKIPPED}
        assert untouched.isdisjoint(each.phase for each in run.begun)


CHAIN = {"1": (), "2": ("1",), "3": ()}


@pytest.mark.req("A11", "A19")
def test_the_whole_table_of_two_phases_and_a_third() -> None:
    """What follows when the second rests on the first and the third on nothing, and no pass is under way."""
    words = {
        "new": PhaseStatus.NOT_STARTED,
        "going": PhaseStatus.IN_PROGRESS,
        "done": PhaseStatus.COMPLETED,
        "failed": PhaseStatus.FAILED,
        "deferred": PhaseStatus.NEEDS_HUMAN_VERIFICATION,
        "skipped": PhaseStatus.SKIPPED,
    }
    order = _order(CHAIN)
    table = {
        f"{one}, {two}, {three}": _said(
            next_move(order, _facts({"1": words[one], "2": words[two], "3": words[three]}, reported=True))
        )
        for one, two, three in product(words, ("new", "done", "failed", "deferred", "skipped"), ("new", "done"))
    }
    assert table == snapshot(
        {
            "new, new, new": "begin 1 pass 1",
            "new, new, done": "begin 1 pass 1",
            "new, done, new": "begin 1 pass 1",
            "new, done, done": "begin 1 pass 1",
            "new, failed, new": "begin 1 pass 1",
            "new, failed, done": "begin 1 pass 1",
            "new, deferred, new": "begin 1 pass 1",
            "new, deferred, done": "begin 1 pass 1",
            "new, skipped, new": "begin 1 pass 1",
            "new, skipped, done": "begin 1 pass 1",
            "going, new, new": "begin 1 pass 1",
            "going, new, done": "begin 1 pass 1",
            "going, done, new": "begin 1 pass 1",
            "going, done, done": "begin 1 pass 1",
            "going, failed, new": "begin 1 pass 1",
            "going, failed, done": "begin 1 pass 1",
            "going, deferred, new": "begin 1 pass 1",
            "going, deferred, done": "begin 1 pass 1",
            "going, skipped, new": "begin 1 pass 1",
            "going, skipped, done": "begin 1 pass 1",
            "done, new, new": "begin 2 pass 1",
            "done, new, done": "begin 2 pass 1",
            "done, done, new": "begin 3 pass 1",
            "done, done, done": "finish",
            "done, failed, new": "begin 3 pass 1",
            "done, failed, done": "finish",
            "done, deferred, new": "begin 3 pass 1",
            "done, deferred, done": "wait 2 verdict:2",
            "done, skipped, new": "begin 2 pass 1",
            "done, skipped, done": "begin 2 pass 1",
            "failed, new, new": "skip 2 blocked_by_phase_1",
            "failed, new, done": "skip 2 blocked_by_phase_1",
            "failed, done, new": "begin 3 pass 1",
            "failed, done, done": "finish",
            "failed, failed, new": "begin 3 pass 1",
            "failed, failed, done": "finish",
            "failed, deferred, new": "begin 3 pass 1",
            "failed, deferred, done": "wait 2 verdict:2",
            "failed, skipped, new": "begin 3 pass 1",
            "failed, skipped, done": "finish",
            "deferred, new, new": "begin 3 pass 1",
            "deferred, new, done": "wait 1 verdict:1",
            "deferred, done, new": "begin 3 pass 1",
            "deferred, done, done": "wait 1 verdict:1",
            "deferred, failed, new": "begin 3 pass 1",
            "deferred, failed, done": "wait 1 verdict:1",
            "deferred, deferred, new": "begin 3 pass 1",
            "deferred, deferred, done": "wait 1 verdict:1",
            "deferred, skipped, new": "begin 3 pass 1",
            "deferred, skipped, done": "wait 1 verdict:1",
            "skipped, new, new": "begin 1 pass 1",
            "skipped, new, done": "begin 1 pass 1",
            "skipped, done, new": "begin 1 pass 1",
            "skipped, done, done": "begin 1 pass 1",
            "skipped, failed, new": "begin 1 pass 1",
            "skipped, failed, done": "begin 1 pass 1",
            "skipped, deferred, new": "begin 1 pass 1",
            "skipped, deferred, done": "begin 1 pass 1",
            "skipped, skipped, new": "begin 1 pass 1",
            "skipped, skipped, done": "begin 1 pass 1",
        }
    )


@pytest.mark.req("A1")
def test_the_whole_table_of_passes() -> None:
    order, statuses = _order(CHAIN), dict.fromkeys(CHAIN, PhaseStatus.IN_PROGRESS)
    first, again = _pass("1"), _pass("1", 2)
    parts = _parts("1")
    split, more = _verdict("1", 1, AfterPass.SPLIT, parts=parts), _verdict("1", 1, AfterPass.ONCE_MORE, another=again)

    def after(begun: Iterable[PhasePass], returned: int, *verdicts: PassDecision) -> str:
        known = tuple(begun)
        keys = [(each.phase, each.number) for each in known[:returned]]
        done = statuses | {"2": PhaseStatus.COMPLETED, "3": PhaseStatus.COMPLETED}
        return _said(next_move(order, _facts(done, begun=known, returned=keys, verdicts=verdicts)))

    table = {
        "started and no pass": after([], 0),
        "begun": after([first], 0),
        "returned": after([first], 1),
        "once more": after([first], 1, more),
        "once more, begun": after([first, again], 1, more),
        "once more, returned": after([first, again], 2, more),
        "once more, decided, and the phase has not ended": after([first, again], 2, more, _verdict("1", 2)),
        "split": after([first], 1, split),
        "first part begun": after([first, parts[0]], 1, split),
        "first part returned": after([first, parts[0]], 2, split),
        "first part decided": after([first, parts[0]], 2, split, _verdict("1a")),
        "second part begun": after([first, *parts], 2, split, _verdict("1a")),
        "all parts decided": after([first, *parts], 3, split, _verdict("1a"), _verdict("1b")),
        "a part once more while another waits": after(
            [first, parts[0]], 2, split, _verdict("1a", 1, AfterPass.ONCE_MORE, another=_pass("1a", 2, PassKind.PART))
        ),
        "a part once more": after(
            [first, *parts],
            3,
            split,
            _verdict("1a", 1, AfterPass.ONCE_MORE, another=_pass("1a", 2, PassKind.PART)),
            _verdict("1b"),
        ),
        "the split phase decided once more": after(
            [first, *parts],
            3,
            split,
            _verdict("1a"),
            _verdict("1b"),
            _verdict("1", 2, AfterPass.ONCE_MORE, another=_pass("1", 3)),
        ),
        "the split phase decided, and it has not ended": after(
            [first, *parts], 3, split, _verdict("1a"), _verdict("1b"), _verdict("1", 2)
        ),
    }
    assert table == snapshot(
        {
            "started and no pass": "begin 1 pass 1",
            "begun": "pass 1 pass 1",
            "returned": "decide 1 pass 1",
            "once more": "begin 1 pass 2",
            "once more, begun": "pass 1 pass 2",
            "once more, returned": "decide 1 pass 2",
            "once more, decided, and the phase has not ended": "begin 1 pass 3",
            "split": "begin 1a pass 1",
            "first part begun": "pass 1a pass 1",
            "first part returned": "decide 1a pass 1",
            "first part decided": "begin 1b pass 1",
            "second part begun": "pass 1b pass 1",
            "all parts decided": "decide 1 pass 2",
            "a part once more while another waits": "begin 1a pass 2",
            "a part once more": "begin 1a pass 2",
            "the split phase decided once more": "begin 1 pass 3",
            "the split phase decided, and it has not ended": "begin 1 pass 3",
        }
    )


@pytest.mark.req("A3")
def test_after_a_part_that_failed_its_phase_is_decided_and_no_other_part_begun() -> None:
    order, (first, second) = _order({"1": ()}), _parts("1")
    split = _verdict("1", 1, AfterPass.SPLIT, parts=(first, second))
    failed = {"1": PhaseStatus.IN_PROGRESS, "1a": PhaseStatus.FAILED}
    known, returned = [_pass("1"), first], [("1", 1), ("1a", 1)]
    facts = _facts(failed, begun=known, returned=returned, verdicts=[split, _verdict("1a")])
    assert _said(next_move(order, facts)) == "decide 1 pass 2"
    # somebody resumes the run, so that phase and part count as not started: a split of before begins nothing more
    new = dict.fromkeys(failed, PhaseStatus.NOT_STARTED)
    facts = _facts(new, begun=known, returned=returned, verdicts=[split, _verdict("1a"), _verdict("1", 2)])
    assert _said(next_move(order, facts)) == "begin 1 pass 3"


@pytest.mark.req("A11")
def test_what_an_earlier_run_completed_is_left_alone_unless_it_is_taken_up_again() -> None:
    new = dict.fromkeys(CHAIN, PhaseStatus.NOT_STARTED)
    table = {}
    for flag in (None, *RunFlag):
        order = _order(CHAIN, earlier=["1"], flags=[] if flag is None else [flag])
        table[flag or "no flag"] = f"{sorted(left_alone(order))}: {_said(next_move(order, _facts(new)))}"
    assert table == snapshot(
        {
            "no flag": "['1']: skip 1 already_completed",
            RunFlag.FORCE: "[]: begin 1 pass 1",
            RunFlag.QUALITY: "[]: begin 1 pass 1",
            RunFlag.GAPS: "[]: begin 1 pass 1",
            RunFlag.COMPLETE: "['1']: skip 1 already_completed",
            RunFlag.MAP: "[]: begin 1 pass 1",
            RunFlag.LENIENT: "['1']: skip 1 already_completed",
            RunFlag.DISCUSS: "['1']: skip 1 already_completed",
            RunFlag.VISUAL: "['1']: skip 1 already_completed",
        }
    )
    failed = _order(CHAIN).model_copy(update={"earlier": {"1": _earlier("failed")}})
    assert list(left_alone(failed)) == []


def _earlier(status: str) -> object:
    order = _order(CHAIN, earlier=["1"])
    return order.earlier["1"].model_copy(update={"status": PhaseStatus(status)})


@pytest.mark.req("A14")
def test_what_was_taken_up_again_and_needed_nothing_is_done() -> None:
    order = _order(CHAIN, earlier=["1", "2"], flags=[RunFlag.QUALITY])
    left, new, bad = PhaseStatus.SKIPPED, PhaseStatus.NOT_STARTED, PhaseStatus.FAILED
    table = {
        (one, two): _said(next_move(order, _facts({"1": one, "2": two, "3": PhaseStatus.COMPLETED})))
        for one, two in ((new, new), (left, new), (left, left), (bad, new), (bad, left))
    }
    assert list(table.values()) == [
        "begin 1 pass 1",
        "begin 2 pass 1",
        "finish",
        "skip 2 blocked_by_phase_1",
        "finish",
    ]


def test_phases_are_begun_in_the_order_that_was_asked_for_and_others_are_not_waited_for() -> None:
    new = dict.fromkeys(CHAIN, PhaseStatus.NOT_STARTED)
    assert _said(next_move(_order(CHAIN, phases=["3", "1"]), _facts(new))) == "begin 3 pass 1"
    assert _said(next_move(_order(CHAIN, phases=["2"]), _facts({"2": PhaseStatus.NOT_STARTED}))) == "begin 2 pass 1"


@pytest.mark.parametrize(
    ("processed", "move"), [(0, "begin 2 pass 1"), (1, "begin 2 pass 1"), (2, "pause"), (3, "pause")]
)
def test_a_run_pauses_after_so_many_phases_if_there_are_more(processed: int, move: str) -> None:
    order = _order(CHAIN, pause_after=2)
    statuses = {"1": PhaseStatus.COMPLETED, "2": PhaseStatus.NOT_STARTED, "3": PhaseStatus.COMPLETED}
    assert _said(next_move(order, _facts(statuses, processed=processed))) == move
    begun = statuses | {"2": PhaseStatus.IN_PROGRESS}
    assert _said(next_move(order, _facts(begun, processed=processed))) == "begin 2 pass 1", (
        "what was started is not left"
    )
    done = dict.fromkeys(CHAIN, PhaseStatus.COMPLETED)
    assert _said(next_move(order, _facts(done, processed=processed))) == "finish"


@pytest.mark.req("A19")
def test_it_is_said_how_things_stand_before_a_person_is_waited_for() -> None:
    order = _order(CHAIN)
    statuses = {"1": PhaseStatus.NEEDS_HUMAN_VERIFICATION, "2": PhaseStatus.NOT_STARTED, "3": PhaseStatus.COMPLETED}
    assert _said(next_move(order, _facts(statuses))) == "report"
    assert _said(next_move(order, _facts(statuses, reported=True))) == "wait 1 verdict:1"


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("first", "is_over"),
    [(PhaseStatus.NOT_STARTED, False), (PhaseStatus.FAILED, True), (PhaseStatus.COMPLETED, False)],
)
def test_a_roadmap_is_at_its_end_when_each_phase_has_ended_or_is_blocked(first: PhaseStatus, is_over: bool) -> None:
    order = _order({"1": (), "2": ("1",)})
    assert is_at_its_end(order, {"1": first, "2": PhaseStatus.NOT_STARTED}) is is_over
    assert is_at_its_end(order, {"1": PhaseStatus.COMPLETED, "2": PhaseStatus.COMPLETED})
