"""What one recorded command proves: decided once, for every end, inside and outside a sandbox, before and after."""

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import fairwitness
from fairwitness.contracts.common.evidence import CheckRow, Execution, Phase, Provenance, SandboxTier
from fairwitness.contracts.common.sandbox import ASSESSED, End
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.contracts.verify.results import Evidence, ItemOutcome, Ran, ReportItem
from fairwitness.rules.criteria import command_verdict
from fairwitness.rules.evidence_worth import (
    CHECKS,
    ENDED_AS,
    LACKS,
    SATISFIES,
    SHUTS,
    RowWorth,
    ValuedRow,
    baseline_worth,
    proof_of,
    row_worth,
)
from rules.build import TREE, row

SHA = "sha256:" + "0" * 64
NAMES = [kind.name.replace("<x>", "x").replace("<n>", "1") for kind in CHECKS if kind.phase is Phase.AFTER]
ROWS = st.builds(
    lambda name, holds, provenance, assessment, sandbox: row(
        name, passed=holds, provenance=provenance, assessment=assessment, sandbox=sandbox, tree=TREE
    ),
    st.sampled_from([*NAMES, "odd"]),
    st.booleans(),
    st.sampled_from(Provenance),
    st.sampled_from([*Assessment, None]),
    st.sampled_from([*SandboxTier, None]),
)


@pytest.mark.req("P9")
def test_every_end_of_a_command_proves_something_or_nothing() -> None:
    assert set(ENDED_AS) == set(Assessment)
    assert {ENDED_AS[ASSESSED[end]] for end in End} == set(Evidence)


@pytest.mark.req("P9", "A15")
def test_what_a_command_proves_and_what_its_row_is_worth_before_and_after_the_change() -> None:
    table = []
    for assessment, holds, tier in product(
        [*Assessment, None], (True, False), (SandboxTier.LANDLOCK, SandboxTier.NONE)
    ):
        after = row("tests", passed=holds, assessment=assessment, sandbox=tier)
        before = row("baseline-tests", phase=Phase.BASELINE, passed=holds, assessment=assessment, sandbox=tier)
        what = f"{assessment.value if assessment else '-'}, {'yes' if holds else 'no'}, {tier.value}"
        worth = (baseline_worth(before, tree=None), row_worth(after, tree=None, before={}))
        table.append(f"{what}: {proof_of(after).value} | {worth[0].value} | {worth[1].value}")
    assert table == snapshot(
        [
            "pass, yes, ll: passed | holds | passed",
            "pass, yes, none: no evidence | ran outside a sandbox | ran outside a sandbox",
            "pass, no, ll: failed | holds | failed",
            "pass, no, none: failed | ran outside a sandbox | failed",
            "fail, yes, ll: failed | holds | failed",
            "fail, yes, none: failed | ran outside a sandbox | failed",
            "fail, no, ll: failed | holds | failed",
            "fail, no, none: failed | ran outside a sandbox | failed",
            "timeout, yes, ll: no evidence | no evidence | no evidence",
            "timeout, yes, none: no evidence | no evidence | no evidence",
            "timeout, no, ll: no evidence | no evidence | no evidence",
            "timeout, no, none: no evidence | no evidence | no evidence",
            "violation, yes, ll: no evidence | no evidence | no evidence",
            "violation, yes, none: no evidence | no evidence | no evidence",
            "violation, no, ll: no evidence | no evidence | no evidence",
            "violation, no, none: no evidence | no evidence | no evidence",
            "lost, yes, ll: no evidence | no evidence | no evidence",
            "lost, yes, none: no evidence | no evidence | no evidence",
            "lost, no, ll: no evidence | no evidence | no evidence",
            "lost, no, none: no evidence | no evidence | no evidence",
            "-, yes, ll: no evidence | no evidence | no evidence",
            "-, yes, none: no evidence | no evidence | no evidence",
            "-, no, ll: no evidence | no evidence | no evidence",
            "-, no, none: no evidence | no evidence | no evidence",
        ]
    )


@pytest.mark.req("P9", "A15")
@given(ROWS)
def test_only_a_confined_command_that_passed_proves_a_pass(each: CheckRow) -> None:
    is_proven = proof_of(each) is Evidence.PASSED
    assert is_proven == (
        each.provenance is Provenance.EXECUTED
        and each.passed
        and each.assessment is Assessment.PASS
        and each.sandbox not in (None, SandboxTier.NONE)
    )
    assert proof_of(each) is Evidence.NONE or each.provenance is Provenance.EXECUTED


@pytest.mark.req("P9")
@given(ROWS)
def test_a_row_is_worth_what_its_command_proves(each: CheckRow) -> None:
    worth = row_worth(each, tree=TREE, before={})
    if each.provenance is Provenance.EXECUTED and worth is not RowWorth.SILENT:
        assert (worth in SATISFIES) <= (proof_of(each) is Evidence.PASSED)
        assert (worth in LACKS) <= (proof_of(each) is Evidence.NONE)
        assert (proof_of(each) is Evidence.FAILED) <= (worth in SHUTS)
    valued = ValuedRow(each, worth)
    assert not (valued.passes and worth in SHUTS | LACKS)
    assert (worth in SATISFIES) <= valued.passes <= each.passed
    assert (worth in SHUTS | LACKS) <= valued.is_finding


@pytest.mark.req("A15")
@given(st.sampled_from(Assessment), st.sampled_from(SandboxTier))
def test_a_command_proves_the_same_in_its_own_row_and_in_the_row_of_a_check(
    assessment: Assessment, tier: SandboxTier
) -> None:
    own = Execution(
        run_id="run-1",
        task_id=None,
        key="k",
        argv=("true",),
        cwd=".",
        env_digest=SHA,
        tool="sh",
        tool_version=None,
        tree=TREE,
        sandbox=tier,
        started_at="2026-01-01T00:00:00.000Z",
        duration_ms=0,
        exit_code=None if assessment is Assessment.LOST else 0,
        signal=None,
        stdout=SHA,
        stderr=SHA,
        assessment=assessment,
    )
    of_a_check = row("tests", passed=assessment is Assessment.PASS, assessment=assessment, sandbox=tier)
    assert proof_of(own) is proof_of(of_a_check)


def _ran(evidence: Evidence, *outcomes: ItemOutcome) -> Ran:
    items = tuple(ReportItem(id=f"t{n}", outcome=outcome) for n, outcome in enumerate(outcomes))
    return Ran(check="c", evidence=evidence, reason=None, assessment=None, items=items)


def test_a_criterion_is_met_by_a_command_that_passed_and_not_by_tests_that_were_skipped() -> None:
    passed, skipped, red = ItemOutcome.PASSED, ItemOutcome.SKIPPED, ItemOutcome.FAILED
    junit = ReportFormat.JUNIT
    assert command_verdict(junit, _ran(Evidence.PASSED, passed, skipped)).met is True
    assert command_verdict(ReportFormat.EXIT, _ran(Evidence.PASSED)).met is True
    vacuous = command_verdict(junit, _ran(Evidence.PASSED, skipped))
    assert vacuous.met is False
    assert vacuous.seen == vacuous.text
    assert command_verdict(junit, _ran(Evidence.NONE)) == (None, "no reason is known", None)
    assert command_verdict(junit, _ran(Evidence.FAILED, *[red] * 5)).text == "it fails: t0, t1, t2 and 2 more"


@pytest.mark.req("P9")
def test_no_other_module_reads_a_row_by_a_rule_of_its_own() -> None:
    source = Path(fairwitness.__path__[0])
    readers = r"Assessment\.(PASS|FAIL)\b|SandboxTier\.NONE\b"
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if re.search(readers, path.read_text())}
    writes_or_shows = {
        "ledger/record.py",  # writes the row of a check from its execution
        "runs/autopilot/commands.py",  # spells an unproven pass and a signal for a page
        "runs/autopilot/pages_judgement.py",  # one word for each assessment
        "app/assembly/backends.py",  # chooses a sandbox
        "app/doctor.py",
        "app/verification/run.py",
        "rules/repository_settings.py",  # orders the tiers by strength
    }
    rules = {"rules/evidence_worth.py", "rules/check_outcome.py"}
    others = {path for path in found if not path.startswith(("contracts/", "sandbox/", "testing/", "demo/"))}
    assert others == writes_or_shows | rules
