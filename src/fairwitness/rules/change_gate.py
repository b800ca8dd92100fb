"""The gate of `fairwitness verify`, and of every attempt and merge: whether a change passes by its evidence alone.

Every required check must pass, or must have failed before the change in exactly the items that fail now. No row may
report a regression and no row may be missing, except for a supporting check that could not run before the change
either, for the same reason of the machine. What only a person can decide, such as a changed expectation of a test,
blocks until it is accepted, and is told apart from what is wrong.
"""

from fairwitness.contracts.common.evidence import Tally
from fairwitness.contracts.common.gates import Blocked, Gate, Open
from fairwitness.contracts.verify.report import ChangeRequirements, RequiredCheck
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.rules.evidence_worth import LACKS, SATISFIES, SHUTS, RowWorth, ValuedRow, valued_rows

ITERATION = 1


def is_excused(*, required: bool, strict: bool, before: Ran | None, after: Ran) -> bool:
    """Return True if a check without evidence is excused: a supporting check that the machine could never run."""
    if required or strict or after.evidence is not Evidence.NONE or before is None:
        return False
    return (
        before.evidence is Evidence.NONE
        and before.environmental
        and after.environmental
        and before.reason == after.reason
    )


def label(name: str, instance: str | None) -> str:
    """Return the name of a check as it is shown to people.

    >>> label("tests", "api/pytest"), label("scope", None)
    ('tests api/pytest', 'scope')
    """
    return f"{name} {instance}" if instance else name


def change_holds(
    after: Tally, *, baseline: Tally, asked: ChangeRequirements, iteration: int = ITERATION
) -> Open | Blocked:
    """Return whether the change passes; the command line, CI and later readers all use this answer.

    Rows of other iterations of the same task do not count; `baseline` holds the baseline of this one.
    """
    rows = valued_rows(after, iteration=iteration, tree=asked.tree, baseline=baseline)
    excused = {(silent.name, silent.instance) for silent in asked.silent if silent.excused}
    asks = [_told(each) for each in rows if each.worth is RowWorth.ASKS]
    shut = [_told(each) for each in rows if each.worth in SHUTS and each.worth is not RowWorth.ASKS]
    lacking = [_told(each) for each in rows if each.worth in LACKS and _key(each) not in excused]
    silent = {
        (silent.name, silent.instance): f"{label(silent.name, silent.instance)} (no evidence: {silent.reason})"
        for silent in asked.silent
        if not silent.excused
    }
    told = {_key(each) for each in rows if each.worth in SHUTS | LACKS}
    met = [wanted for wanted in asked.required if _is_met(wanted, rows)]
    for wanted in asked.required:
        key = (wanted.name, wanted.instance)
        if wanted not in met and key not in told and key not in silent:
            lacking.append(f"{label(*key)} ({_why_unmet(wanted, rows)})")
    lacking += [text for key, text in silent.items() if key not in told]
    if not asked.required:
        lacking.append("a check that must pass (no tests were found, and fairwitness.toml names none)")
    if shut or lacking or asks:
        return Blocked(
            gate=Gate.CHANGE_HOLDS,
            missing=(*shut, *lacking, *asks),
            because=_because(shut, lacking, asks),
            count=len(met),
            threshold=max(1, len(asked.required)),
            query=after.query,
            asks=tuple(asks),
        )
    return Open(
        gate=Gate.CHANGE_HOLDS,
        evidence=tuple(sorted(each.row.id for each in rows if each.worth in SATISFIES)),
        count=len(met),
        threshold=len(asked.required),
        query=after.query,
    )


def _key(each: ValuedRow) -> tuple[str, str | None]:
    return (each.row.check_name, each.row.instance)


def _told(each: ValuedRow) -> str:
    if each.worth is RowWorth.NO_EVIDENCE and each.row.assessment:
        return f"{label(*_key(each))} ({each.worth.value}: {each.row.assessment.value})"
    return f"{label(*_key(each))} ({each.worth.value})"


def _is_met(wanted: RequiredCheck, rows: tuple[ValuedRow, ...]) -> bool:
    own = {each.worth for each in rows if _key(each) == (wanted.name, wanted.instance)}
    if own & (SHUTS | LACKS):
        return False
    return bool(own & SATISFIES) or (RowWorth.RED_BEFORE_TOO in own and _compared(wanted, rows))


def _compared(wanted: RequiredCheck, rows: tuple[ValuedRow, ...]) -> bool:
    """Return True if every failing item of a check was compared with the baseline and none is worse."""
    return any(_key(each) == ("regressions", wanted.instance) and each.worth in SATISFIES for each in rows)


def _why_unmet(wanted: RequiredCheck, rows: tuple[ValuedRow, ...]) -> str:
    own = [each.worth for each in rows if _key(each) == (wanted.name, wanted.instance)]
    return "red before too, and not compared thing by thing" if RowWorth.RED_BEFORE_TOO in own else "not run"


def _because(shut: list[str], lacking: list[str], asks: list[str]) -> str:
    reasons = []
    if shut:
        reasons.append(f"{len(shut)} {'check says' if len(shut) == 1 else 'checks say'} no")
    if lacking:
        reasons.append(f"{len(lacking)} {'is' if len(lacking) == 1 else 'are'} missing")
    if asks:
        reasons.append(f"{len(asks)} {'needs' if len(asks) == 1 else 'need'} a person's decision")
    return " and ".join(reasons)
