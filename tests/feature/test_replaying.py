"""A run's ledger replayed: what was decided, and what was written because of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.app.runs.replay import Replayed, replay, replay_file
from fairwitness.contracts.common.policy import Policy, ReviewPolicy
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.events import DecisionTaken, FeatureStepStarted
from fairwitness.errors import EventsBroken, LedgerTampered, UsageError
from fairwitness.ledger.export import exported
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.decisions import DECISION
from feature.paper_grounds import begun, played
from feature.paper_scripts import SCRIPTS
from support.paper.script import Script, worries

_SHORT = Script(calls={"step-0-1-intake-1": worries(Severity.BLOCKER, Severity.MINOR)})
"""Two decisions and out."""


@pytest.fixture
def context() -> Iterator[FeatureContext]:
    """A run that ended with its second decision."""
    with played(_SHORT) as (_, made):
        yield made


def _again(context: FeatureContext) -> tuple[Replayed, ...]:
    return replay(context.ledger, context.run_id)


@pytest.mark.req("P14")
def test_an_exported_ledger_is_replayed_like_the_one_it_came_from(context: FeatureContext, tmp_path: Path) -> None:
    file = tmp_path / "verification-ledger.db"
    file.write_bytes(exported(context.ledger.database, context.run_id, context.now()))
    assert replay_file(file, None) == (context.run_id, _again(context))
    assert [(each.number, each.step, each.kind, each.flips) for each in _again(context)] == [
        (1, None, "advance", ()),
        (2, "step-0", "halt", ()),
    ]


@pytest.mark.req("P14")
def test_another_policy_names_the_decision_that_it_flips() -> None:
    with played(SCRIPTS["review-dissent"]) as (_, made):
        flipped = [
            each for each in replay(made.ledger, made.run_id, Policy(review=ReviewPolicy(approvals=3))) if each.flips
        ]
    first = next(each for each in flipped if each.kind != each.now_kind)
    assert (first.number, first.step, first.kind, first.now_kind) == (13, "step-7", "advance", "revise")
    assert {"kind", "reason", "to"} <= {flip.what for flip in first.flips}


def test_a_decision_that_does_not_follow_from_its_facts_is_named(context: FeatureContext) -> None:
    _forge(context, decision={"kind": "halt", "reason": "so be it", "outcome": "abandoned", "resumable": False})
    last = _again(context)[-1]
    assert (last.number, last.kind, last.reason) == (3, "halt", "so be it")
    assert {"reason", "outcome"} <= {flip.what for flip in last.flips}


def test_an_event_that_does_not_follow_from_its_decision_is_named(context: FeatureContext) -> None:
    context.write_event(FeatureStepStarted(step="step-9"))
    (flip,) = _again(context)[-1].flips
    assert flip.what == "events"
    assert {"type": "step_started", "step": "step-9"} in flip.stood


def test_a_decision_without_its_event_breaks_the_run(context: FeatureContext) -> None:
    _forge(context, tells=False)
    with pytest.raises(EventsBroken, match=r"its events tell of the decisions \[1, 2\], its rows of \[1, 2, 3\]"):
        _again(context)


def test_facts_that_cannot_be_read_break_the_run(context: FeatureContext) -> None:
    _forge(context, facts={"step": "step-77"})
    with pytest.raises(EventsBroken, match=r"observation decision:3 does not fit .*: facts\."):
        _again(context)


def test_an_edited_ledger_is_not_replayed(context: FeatureContext, tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "verification-ledger.db"
    file.write_bytes(exported(context.ledger.database, context.run_id, context.now()))
    connection = sqlite3.connect(file, isolation_level=None)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in names:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("UPDATE observations SET detail = replace(detail, 'halted', 'error') WHERE key = 'decision:2'")
    connection.close()
    with pytest.raises(LedgerTampered):
        replay_file(file, None)


def test_a_run_without_decisions_cannot_be_replayed() -> None:
    with begun(Script()) as made, pytest.raises(UsageError, match="has made no decision yet"):
        _again(made)


def test_what_is_no_feature_run_cannot_be_replayed(tmp_path: Path) -> None:
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    try:
        with pytest.raises(UsageError, match="is not a feature run"):
            replay(ledger, "2026-02-26T14:30:00Z")
    finally:
        ledger.close()


def _forge(
    context: FeatureContext,
    *,
    decision: dict[str, object] | None = None,
    facts: dict[str, object] | None = None,
    tells: bool = True,
) -> None:
    """A third decision, like the second but for what differs, written as a program could that errs."""
    row = context.ledger.observation(context.run_id, f"{DECISION}:2")
    assert row is not None
    detail = {**row.detail, **({"decision": decision} if decision else {}), **({"facts": facts} if facts else {})}
    told = DecisionTaken(number=3, kind="halt", reason=str(detail["decision"]["reason"]))

    def write(record: Record) -> None:
        record.observation(context.observation(f"{DECISION}:3", DECISION, "halt", detail))
        if tells:
            write_events(record, (told,), context.now())

    context.write(write)
