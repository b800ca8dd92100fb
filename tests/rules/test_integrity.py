"""Integrity: an honest phase passes all sixteen checks, and each lie is told by the number of the check it breaks."""
# the sentences of the tables stay whole

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.integrity import IntegrityAnswer, IntegrityFacts, IntegritySettings
from fairwitness.contracts.autopilot.vocabulary import PhaseType, StepName
from fairwitness.rules.integrity import CHECKS, integrity, written_score
from fairwitness.rules.integrity_evidence import (
    EVIDENCE,
    has_place,
    is_generic_look,
    is_shown,
    names_divergence,
    verified_by_harness,
)
from fairwitness.rules.scores import RubberStamp
from support.fixtures import value_of

GENERATED = settings(max_examples=100)
Change = Callable[[dict[str, Any]], None]
CRITERION = "Tokens carry their line"


def _session(step: str, session: str | None) -> dict[str, str | None]:
    return {"step": step, "session": session}


def _execution(assessment: str = "pass", criterion: str = CRITERION) -> dict[str, Any]:
    return {
        "criterion": criterion,
        "command": "pytest -q tests/test_token.py",
        "exit_code": {"pass": 0, "fail": 1}.get(assessment),
        "stdout_truncated": "",
        "stderr_truncated": "",
        "duration_ms": 900,
        "sandbox_violation": assessment == "violation",
        "assessment": assessment,
    }


def _verification() -> dict[str, Any]:
    return {
        "pass": True,
        "automated_checks": {name: {"status": True, "detail": ""} for name in ("compile", "lint", "build")},
        "criteria_results": [
            {"criterion": CRITERION, "status": "verified", "evidence": "src/token.py:12 -- line: int"}
        ],
        "verification_duration_seconds": 190,
        "commands_run": ["pytest -q -> 14 passed"],
        "failures": [],
        "failure_categories": [],
        "scope_creep": [],
    }


def _plain(returned: str = "003/filled-phase-return.json") -> dict[str, Any]:
    """An honest phase, as plain values."""
    return {
        "returned": value_of(returned),
        "phase_type": "mixed",
        "seen": {
            "ran": [
                _session("preflight", None),
                _session("plan", "s1"),
                _session("execute", "s2"),
                _session("verify", "s3"),
                _session("judge", "s4"),
                _session("rate", "s5"),
            ],
            "phase_seconds": 1200.0,
            "verification_seconds": 190.0,
            "commits": [sha + "0" * 33 for sha in ("abc1234", "def5678", "0a1b2c3")],
            "checks": {"compile": True, "tests": True, "lint": True},
            "executions": [_execution()],
        },
        "said": {
            "verification": _verification(),
            "judgement": value_of("003/filled-judge-return.json"),
            "judge_report": "# Judge\n\n## Divergence\n\nNone on the field; CRLF was not looked at.\n",
            "written_score": "9.1",
        },
        "planned": {"checkpoints": ["06-03"], "auto_passed": 2, "auto_total": 2},
        "standing": {
            "earlier_tenths": [],
            "threshold_tenths": 90,
            "cycles": 0,
            "cycle_limit": 2,
            "deferral_limit": 6.0,
            "category": None,
            "way_up": None,
            "paths": ["src/token.py"],
            "enforced": False,
        },
        "settings": {},
    }


def _deferred() -> dict[str, Any]:
    """A phase that asks for a person, and may."""
    plain = _plain("003/filled-phase-return-deferred.json")
    plain["said"]["verification"] |= {
        "autonomous_confidence": 4,
        "deferral_evidence": [
            {"criterion": "a real card", "methods_attempted": ["a test card"], "why_insufficient": "no money moved"}
        ],
    }
    plain["planned"]["auto_passed"] = 1
    return plain


def _set(path: str, value: Any) -> Change:
    def change(plain: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        inner: Any = plain
        for parent in parents:
            inner = inner[int(parent)] if parent.isdigit() else inner[parent]
        inner[int(last) if last.isdigit() else last] = copy.deepcopy(value)

    return change


def _facts(*changes: Change, start: Callable[[], dict[str, Any]] = _plain) -> IntegrityFacts:
    plain = start()
    for change in changes:
        change(plain)
    return IntegrityFacts.model_validate(plain)


def _told(facts: IntegrityFacts) -> list[str]:
    return [
        f"{found.number} {found.answer.value}: {found.because}"
        + (f" [{', '.join(step.value for step in found.again)}]" if found.again else "")
        for found in integrity(facts).findings
    ]


def _ran(*runs: tuple[str, str | None]) -> Change:
    return _set("seen.ran", [_session(*run) for run in runs])


def _both(*changes: Change) -> Change:
    def change(plain: dict[str, Any]) -> None:
        for one in changes:
            one(plain)

    return change


def _item(**changes: str) -> dict[str, str]:
    good = {
        "file": "src/token.py",
        "deficiency": "line 30 drops the offset",
        "impact": "resolves 1 of 2 concerns",
    }
    return good | changes


_SCORE_89 = _both(_set("returned.alignment_score", 8.9), _set("said.written_score", "8.9"))
_SKIPPED = _set("returned.pipeline_steps.execute.status", "skipped")
_CLAIM = "src/token.py:12 -- line: int"
_FAILED_CRITERION = {"criterion": CRITERION, "status": "failed", "evidence": "src/token.py:12"}
_FAILED = _both(_set("returned.status", "failed"), _set("returned.recommendation", "halt"))

LIES: dict[str, Change] = {
    "verify did not run": _ran(("execute", "s2"), ("judge", "s4"), ("rate", "s5")),
    "judge and rate did not run": _ran(("execute", "s2"), ("verify", "s3")),
    "no score": _set("returned.alignment_score", None),
    "the verifier said no": _both(
        _set("said.verification.pass", False), _set("said.verification.criteria_results.0", _FAILED_CRITERION)
    ),
    "the verification is called skipped": _set("returned.pipeline_steps.verify.status", "skipped"),
    "the judge said debug": _set("said.judgement.recommendation", "debug"),
    "compile is not told": _set("returned.automated_checks.compile", "n/a"),
    "compile fails": _both(_set("seen.checks.compile", False), _set("returned.automated_checks.compile", False)),
    "compile is told better than it is": _set("seen.checks.compile", False),
    "a build that nobody ran": _set("returned.automated_checks.build", True),
    "a build that failed": _set("seen.checks.build", False),
    "tests fail": _set("seen.checks.tests", False),
    "an invented commit": _set("returned.commit_shas.0", "fffffff"),
    "fewer commits than tasks": _both(
        _set("returned.commit_shas", ["abc1234"]), _set("seen.commits", ["abc1234" + "0" * 33])
    ),
    "three tasks in four minutes": _set("seen.phase_seconds", 240.0),
    "the executor verified": _set("seen.ran.3.session", "s2"),
    "one agent judged and rated": _set("seen.ran.5.session", "s4"),
    "the harness judged": _set("seen.ran.4.session", None),
    "a score as an integer": _set("said.written_score", "9"),
    "a score with two decimals": _set("said.written_score", "9.12"),
    "a score above ten": _set("said.written_score", "10.1"),
    "a score nobody wrote": _set("said.written_score", None),
    "a score above the rater's": _set("said.written_score", "8.9"),
    "three alike": _set("standing.earlier_tenths", [50, 90, 92]),
    "five alike": _set("standing.earlier_tenths", [92, 90, 91, 92]),
    "seven alike": _set("standing.earlier_tenths", [91, 92, 92, 90, 91, 92]),
    "already there, without a line": _both(
        _SKIPPED,
        _set("seen.executions", []),
        _set("phase_type", "protocol"),
        _set("said.verification.criteria_results.0.evidence", "I know this code"),
    ),
    "already there, by nobody's word": _both(
        _SKIPPED, _set("said.verification", None), _set("seen.executions", []), _set("phase_type", "protocol")
    ),
    "already there, and the judge names no line": _both(
        _SKIPPED, _set("said.judgement.independent_evidence", ["pytest -q -> 14 passed"])
    ),
    "already there, without a judgement": _both(_SKIPPED, _set("said.judgement", None)),
    "routed past execution, without a line": _both(
        _set("returned.pipeline_steps.triage.status", "verify_only"),
        _set("said.verification.criteria_results.0.criterion", "another one"),
        _set("said.verification.criteria_results.0.evidence", "it is there"),
    ),
    "nothing committed, without a line": _both(
        _set("seen.commits", []),
        _set("returned.commit_shas", []),
        _set("said.verification.criteria_results.0.criterion", "another one"),
        _set("said.verification.criteria_results.0.evidence", "it is there"),
    ),
    "no file was looked at": _set("returned.evidence.files_checked", []),
    "nothing was executed": _set("seen.executions", []),
    "the harness saw it fail": _set("seen.executions", [_execution("fail")]),
    "the harness saw a violation": _set("seen.executions", [_execution(), _execution("violation", "another")]),
    "the command timed out": _set("seen.executions", [_execution(), _execution("timeout", "another")]),
    "the command was lost": _set("seen.executions", [_execution("lost")]),
    "no report of the judge": _set("said.judge_report", None),
    "a report without divergence": _set("said.judge_report", "# Judge\n\nFine.\n"),
    "no evidence of the judge": _set("said.judgement.independent_evidence", []),
    "a verification in a minute": _set("seen.verification_seconds", 60.0),
    "a verification nobody measured": _set("seen.verification_seconds", None),
    "a verification without commands": _both(
        _set("returned.evidence.commands_run", []), _set("seen.executions", []), _set("phase_type", "ui")
    ),
    "a judge that approves everything": _set("said.judgement.independent_evidence", ["I agree with the verifier"]),
    "an unclassified failure": _set(
        "said.verification",
        _verification()
        | {
            "pass": False,
            "failures": ["no idea", "no build"],
            "failure_categories": [{"failure": "no build", "category": "build_failure"}],
        },
    ),
    "a failed phase without category": _FAILED,
    "no diagnostic": _SCORE_89,
    "an empty diagnostic": _both(_SCORE_89, _set("standing.way_up", [])),
    "a vague diagnostic": _both(
        _SCORE_89, _set("standing.way_up", [_item(deficiency="add better tests"), _item(file="src/no.py")])
    ),
    "a third remediation cycle": _set("standing.cycles", 3),
    "remediation is exhausted": _both(
        _SCORE_89, _set("standing.way_up", [_item()]), _set("standing.cycles", 2), _set("standing.earlier_tenths", [85])
    ),
}


@pytest.mark.req("A3", "A13", "A20")
def test_an_honest_phase_has_nothing_said_against_it() -> None:
    verdict = integrity(_facts())
    assert verdict.findings == ()
    assert (verdict.answer, verdict.again, verdict.stamp) == (IntegrityAnswer.NOTHING, (), None)


@pytest.mark.req("A3", "A13", "A19", "A20")
def test_the_whole_table_of_lies() -> None:
    assert {lie: _told(_facts(change)) for lie, change in LIES.items()} == snapshot(
        {
            "verify did not run": ["1 failure: the step verify did not run"],
            "judge and rate did not run": [
                "1 failure: the step judge did not run",
                "1 failure: the step rate did not run",
            ],
            "no score": ["1 failure: it is completed and has no score"],
            "the verifier said no": ["1 failure: it is completed, and its verification failed"],
            "the verification is called skipped": ["1 failure: it is completed, and its verification is skipped"],
            "the judge said debug": ["1 failure: it is to proceed, and its judge said debug"],
            "compile is not told": ["1 failure: the check compile is true and was returned as n/a"],
            "compile fails": ["1 failure: it is completed, and the check compile fails"],
            "compile is told better than it is": ["1 failure: the check compile is false and was returned as true"],
            "a build that nobody ran": ["1 failure: the check build is n/a and was returned as true"],
            "a build that failed": ["1 failure: the check build is false and was returned as n/a"],
            "tests fail": ["1 failure: it is completed, and the check tests fails"],
            "an invented commit": ["2 failure: the commit fffffff does not exist in this phase"],
            "fewer commits than tasks": ["2 warning: there are more completed tasks (3) than commits (1)"],
            "three tasks in four minutes": ["3 warning: 3 tasks were completed in 240 s, less than 300 s"],
            "the executor verified": ["4 enforcement: the agent of the step verify also did execute [verify]"],
            "one agent judged and rated": [
                "4 enforcement: the agent of the step judge also did rate [judge]",
                "4 enforcement: the agent of the step rate also did judge [rate]",
            ],
            "the harness judged": ["4 enforcement: the step judge was not done by an agent of its own [judge]"],
            "a score as an integer": ["5 enforcement: the score is written as 9, not with one decimal [rate]"],
            "a score with two decimals": ["5 enforcement: the score is written as 9.12, not with one decimal [rate]"],
            "a score above ten": ["5 enforcement: the score is written as 10.1, not with one decimal [rate]"],
            "a score nobody wrote": ["5 enforcement: there is a score that no rater wrote [rate]"],
            "a score above the rater's": ["5 failure: the score 9.1 is higher than the rater's 8.9"],
            "three alike": [
                "5 warning: 3 scores in a row lie within 0.2 of each other: this pattern suggests rubber-stamping"
            ],
            "five alike": [
                "5 warning: 5 scores in a row lie within 0.2 of each other: the next phase is verified harder"
            ],
            "seven alike": [
                "5 warning: 7 scores in a row lie within 0.2 of each other: their phases are marked as suspect"
            ],
            "already there, without a line": [
                "6 enforcement: “Tokens carry their line” is said to have been there already, without a line that shows it [verify]"  # noqa: E501
            ],
            "already there, by nobody's word": [
                "6 enforcement: it is said to have been there already, and not every criterion of it was shown [verify]",  # noqa: E501
                "10 enforcement: no verifier returned anything [verify]",
            ],
            "already there, and the judge names no line": [
                "8 enforcement: it is said to have been there already, and the judge names no line that shows it [judge]"  # noqa: E501
            ],
            "already there, without a judgement": [
                "8 enforcement: it is said to have been there already, and the judge names no line that shows it [judge]",  # noqa: E501
                "9 enforcement: the judge has no evidence of its own [judge]",
            ],
            "routed past execution, without a line": [
                "6 enforcement: “another one” is said to have been there already, without a line that shows it [verify]"
            ],
            "nothing committed, without a line": [
                "2 warning: there are more completed tasks (3) than commits (0)",
                "6 enforcement: “another one” is said to have been there already, without a line that shows it [verify]",  # noqa: E501
            ],
            "no file was looked at": [
                "7 enforcement: a phase of type mixed has to show a file that was looked at [verify]"
            ],
            "nothing was executed": [
                "7 enforcement: a phase of type mixed has to show a criterion whose command passed when the harness ran it [verify]"  # noqa: E501
            ],
            "the harness saw it fail": [
                "7 enforcement: a phase of type mixed has to show a criterion whose command passed when the harness ran it [verify]",  # noqa: E501
                "7 failure: “Tokens carry their line” ended with fail when the harness ran its command",
            ],
            "the harness saw a violation": [
                "7 failure: “another” ended with violation when the harness ran its command"
            ],
            "the command timed out": [
                "7 enforcement: “another” ended with timeout when the harness ran its command [verify]"
            ],
            "the command was lost": [
                "7 enforcement: a phase of type mixed has to show a criterion whose command passed when the harness ran it [verify]",  # noqa: E501
                "7 enforcement: “Tokens carry their line” ended with lost when the harness ran its command [verify]",
            ],
            "no report of the judge": ["9 enforcement: the judge left no report [judge]"],
            "a report without divergence": [
                "9 enforcement: the judge's report does not say where it and the verifier differ [judge]"
            ],
            "no evidence of the judge": [
                "9 enforcement: the judge has no evidence of its own [judge]",
                "11 enforcement: the judge agrees with everything and shows neither a line nor a command with its result [judge]",  # noqa: E501
            ],
            "a verification in a minute": ["10 enforcement: the verification took 60 s, less than 120 s [verify]"],
            "a verification nobody measured": ["10 enforcement: no verification was measured [verify]"],
            "a verification without commands": [
                "7 enforcement: a phase of type ui has to show a screenshot or a criterion whose command passed when the harness ran it [verify]",  # noqa: E501
                "10 enforcement: the verification ran no command [verify]",
            ],
            "a judge that approves everything": [
                "11 enforcement: the judge agrees with everything and shows neither a line nor a command with its result [judge]"  # noqa: E501
            ],
            "an unclassified failure": [
                "1 failure: it is completed, and its verification failed",
                "12 warning: the failure “no idea” has no category",
            ],
            "a failed phase without category": ["12 warning: it failed for a reason that has no category"],
            "no diagnostic": ["15 enforcement: a score below 9.0 needs a diagnostic, and there is none [rate]"],
            "an empty diagnostic": ["15 enforcement: the diagnostic names no way up [rate]"],
            "a vague diagnostic": [
                "15 enforcement: src/token.py: the deficiency is vague [rate]",
                "15 enforcement: src/no.py: the file is neither in the project nor in the plan [rate]",
            ],
            "a third remediation cycle": ["16 failure: 3 remediation cycles were run, 2 are allowed"],
            "remediation is exhausted": ["16 warning: 2 remediation cycles did not bring it to 9.0"],
        }
    )


DEFERRALS: dict[str, Change] = {
    "as it should be": _both(),
    "a task that asks for nobody": _set("planned.checkpoints", ["06-02"]),
    "all automatic tasks passed": _set("planned.auto_passed", 2),
    "all passed, and only a look": _both(
        _set("planned.auto_passed", 2),
        _set("returned.human_verify_justification.task_description", "Visually check the dashboard looks right"),
    ),
    "only a look, but not all passed": _set(
        "returned.human_verify_justification.task_description", "Visually check the dashboard looks right"
    ),
    "a verifier that is sure": _set("said.verification.autonomous_confidence", 6),
    "a verifier that does not say": _set("said.verification.autonomous_confidence", None),
    "nothing tried before": _set("said.verification.deferral_evidence", []),
    "no verification": _set("said.verification", None),
    "verified against what the harness saw": _set("seen.executions", [_execution(), _execution("fail")]),
    "another criterion fails": _set("seen.executions", [_execution(), _execution("fail", "a real card")]),
    "the verifier says no": _both(
        _set("said.verification.pass", False), _set("said.verification.criteria_results.0", _FAILED_CRITERION)
    ),
    "the judge wants a halt": _set("said.judgement.recommendation", "halt"),
    "it was not rated": _both(
        _set("returned.alignment_score", None), _ran(("execute", "s2"), ("verify", "s3"), ("judge", "s4"))
    ),
    "it was not judged": _ran(("execute", "s2"), ("verify", "s3")),
}


@pytest.mark.req("A19")
def test_the_whole_table_of_deferrals() -> None:
    start = _both(_set("returned.commit_shas", ["abc1234"]), _set("said.written_score", "8.4"))
    told = {name: _told(_facts(start, change, start=_deferred)) for name, change in DEFERRALS.items()}
    assert told == snapshot(
        {
            "as it should be": [],
            "a task that asks for nobody": [
                "13 enforcement: the task 06-03 does not ask for a person in the plan [verify]"
            ],
            "all automatic tasks passed": ["14 warning: all automatic tasks passed, and a person is asked"],
            "all passed, and only a look": [
                "14 enforcement: all automatic tasks passed, and the reason is only to have a look [verify]"
            ],
            "only a look, but not all passed": [],
            "a verifier that is sure": ["14 enforcement: it asks for a person although it is sure to 6 of 10 [verify]"],
            "a verifier that does not say": [
                "14 enforcement: it asks for a person and does not say how sure it is [verify]"
            ],
            "nothing tried before": [
                "14 enforcement: it asks for a person and does not say what was tried before [verify]"
            ],
            "no verification": [
                "10 enforcement: no verifier returned anything [verify]",
                "14 enforcement: it asks for a person and does not say how sure it is [verify]",
                "14 enforcement: it asks for a person and does not say what was tried before [verify]",
            ],
            "verified against what the harness saw": [
                "7 failure: “Tokens carry their line” ended with fail when the harness ran its command"
            ],
            "another criterion fails": [],
            "the verifier says no": [],
            "the judge wants a halt": [],
            "it was not rated": [],
            "it was not judged": ["1 failure: the step judge did not run"],
        }
    )


@pytest.mark.req("A3")
def test_every_check_has_its_number_and_its_name() -> None:
    assert [f"{check.number} {check.name}" for check in CHECKS] == snapshot(
        [
            "1 verified and judged",
            "2 tasks and commits",
            "3 time of the phase",
            "4 independent judges",
            "5 score as written",
            "6 already there, shown",
            "7 evidence of the type",
            "8 already there, seen twice",
            "9 report of the judge",
            "10 time of the verification",
            "11 judge that approves everything",
            "12 classified failures",
            "13 task that asks for a person",
            "14 need for a person",
            "15 diagnostic below nine",
            "16 end of remediation",
        ]
    )


@pytest.mark.req("A3", "A13")
def test_every_check_is_broken_by_some_lie_and_answers_with_its_own_number() -> None:
    broken = {found.number for change in LIES.values() for found in integrity(_facts(change)).findings}
    asked = {
        found.number for change in DEFERRALS.values() for found in integrity(_facts(change, start=_deferred)).findings
    }
    assert broken | asked == set(range(1, 17))


@pytest.mark.req("A3")
def test_what_was_enforced_once_fails_the_second_time() -> None:
    first = integrity(_facts(LIES["one agent judged and rated"]))
    second = integrity(_facts(LIES["one agent judged and rated"], _set("standing.enforced", True)))
    assert (first.answer, first.again) == (IntegrityAnswer.ENFORCEMENT, (StepName.JUDGE, StepName.RATE))
    assert (second.answer, second.again) == (IntegrityAnswer.FAILURE, ())
    assert [found.because for found in first.findings] == [found.because for found in second.findings]


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("lie", "stamp"),
    [
        ("three alike", RubberStamp.WARNING),
        ("five alike", RubberStamp.ENHANCED),
        ("seven alike", RubberStamp.CRITICAL),
        ("no score", None),
    ],
)
def test_a_row_of_alike_scores_only_warns_and_says_how_bad_it_is(lie: str, stamp: RubberStamp | None) -> None:
    verdict = integrity(_facts(LIES[lie]))
    assert verdict.stamp is stamp
    if stamp is not None:
        assert verdict.answer is IntegrityAnswer.WARNING
    assert integrity(_facts(LIES[lie], _FAILED)).stamp is None


@pytest.mark.req("A20")
@pytest.mark.parametrize("score", ["9.1", "9.2", "10.0"])
def test_a_score_below_the_raters_is_what_the_harness_took_away(score: str) -> None:
    assert integrity(_facts(_set("said.written_score", score))).answer is IntegrityAnswer.NOTHING


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("document", "written"),
    [
        ('{"alignment_score": 8}', "8"),
        ('{"alignment_score": 8.0}', "8.0"),
        ('{"alignment_score": 8.20}', "8.20"),
        ('{"alignment_score": 8e0}', "8e0"),
        ('{"alignment_score": NaN}', "NaN"),
        ('{"alignment_score": ' + "9" * 5000 + "}", "9" * 5000),
        ('{"alignment_score": null}', None),
        ('{"alignment_score": true}', None),
        ('{"score": 8.0}', None),
        ("[8.0]", None),
        ("8.0", None),
        ("eight", None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_a_score_is_judged_as_it_was_written(document: str, written: str | None) -> None:
    assert written_score(document) == written


@pytest.mark.req("A3")
def test_a_verification_by_the_harness_itself_may_be_quick() -> None:
    quick = _set("seen.verification_seconds", 0.0)
    assert integrity(_facts(quick, _set("seen.ran.3.session", None))).answer is IntegrityAnswer.NOTHING
    assert integrity(_facts(quick)).answer is IntegrityAnswer.ENFORCEMENT
    mixed = _both(quick, lambda plain: plain["seen"]["ran"].append(_session("verify", None)))
    assert not verified_by_harness(_facts(mixed))
    assert integrity(_facts(mixed)).answer is IntegrityAnswer.ENFORCEMENT
    allowed = _set("settings", {"minimum_verification_seconds": 0})
    assert integrity(_facts(quick, allowed)).answer is IntegrityAnswer.NOTHING
    assert IntegritySettings().minimum_verification_seconds == 120
    assert not verified_by_harness(_facts(_ran(("judge", None))))


@pytest.mark.req("A3")
def test_a_phase_that_was_there_already_passes_when_the_harness_showed_every_criterion() -> None:
    alone = _both(_SKIPPED, _set("said.verification", None), _set("seen.ran.3.session", None))
    assert _told(_facts(alone)) == []
    assert _told(_facts(_SKIPPED, _set("said.verification.criteria_results.0.evidence", "it is there"))) == []
    two = [_execution(), _execution("timeout", "another")]
    assert [told[:13] for told in _told(_facts(alone, _set("seen.executions", two)))] == [
        "6 enforcement",
        "7 enforcement",
    ]


@pytest.mark.req("A3")
def test_the_whole_table_of_evidence_by_type() -> None:
    assert {kind.value: [" or ".join(row) for row in EVIDENCE[kind]] for kind in PhaseType} == snapshot(
        {
            "ui": [
                "a file that was looked at",
                "a screenshot or a criterion whose command passed when the harness ran it",
            ],
            "protocol": ["a file that was looked at", "a command that was run"],
            "data": ["a file that was looked at", "a criterion whose command passed when the harness ran it"],
            "mixed": [
                "a file that was looked at",
                "a command that was run",
                "a criterion whose command passed when the harness ran it",
            ],
        }
    )


@pytest.mark.req("A3", "A18")
def test_a_ui_phase_shows_a_screenshot_or_without_a_browser_a_command_that_passed() -> None:
    visual = {
        "routes_tested": 1,
        "routes_passed": 1,
        "issues_found": [],
        "screenshots": ["shots/home.png"],
        "infrastructure_available": True,
    }
    ui, nothing = _set("phase_type", "ui"), _set("seen.executions", [])
    assert _told(_facts(ui)) == []
    assert _told(_facts(ui, nothing, _set("said.verification.visual_test_results", visual))) == []
    bare = visual | {"screenshots": [], "infrastructure_available": False}
    for verification in (_verification(), _verification() | {"visual_test_results": bare}):
        told = _told(_facts(ui, nothing, _set("said.verification", verification)))
        assert [line[:13] for line in told] == ["7 enforcement"]


@pytest.mark.req("A3")
@pytest.mark.parametrize("status", ["failed", "split_request"])
def test_a_phase_that_claims_nothing_is_asked_for_nothing(status: str) -> None:
    split = value_of("003/filled-phase-return-split.json")["split_details"]
    nobody = _both(
        _set("returned.status", status),
        _set("returned.split_details", split),
        _set("said", {"verification": None, "judgement": None, "judge_report": None, "written_score": None}),
        _set("seen.executions", [_execution("fail")]),
        _set("seen.ran", []),
        _set("seen.verification_seconds", None),
        _set("standing.category", "tool_failure"),
    )
    assert _told(_facts(nobody)) == []


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("src/token.py:12 -- line: int", True, True),
        ("see (docs/a.md:3)", True, True),
        ("./src/a.py:3", True, True),
        ("src/bin/run:3", True, True),
        ("Makefile:3", True, True),
        ("at 14:30 o'clock", False, False),
        ("127.0.0.1:80", False, False),
        ("localhost:8080", False, False),
        ("a.py:0", False, False),
        ("a.py", False, False),
        ("Error:3", False, False),
        ("pytest -q -> 3 passed", False, True),
        ("pytest -q → 3 passed", False, True),
        ("pytest -q ->", False, False),
        ("-> 3 passed", False, False),
        ("a" * 100_000, False, False),
        ("a." * 50_000, False, False),
    ],
)
def test_evidence_is_a_line_of_a_file_or_a_command_with_its_result(text: str, place: bool, shown: bool) -> None:
    assert has_place(text) is place
    assert is_shown(text) is shown


@pytest.mark.req("A3")
def test_a_divergence_section_says_something() -> None:
    assert names_divergence("## Divergence from the verifier\nnone\n")
    assert names_divergence("# a\nx\n### 3. DIVERGENCE\n\n- one")
    for report in (
        "",
        "divergence: none",
        "## Divergence\n\n \n",
        "## Divergence\n## Notes\ntext",
        "# Notes\ndivergence",
    ):
        assert not names_divergence(report)


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("reason", "generic"),
    [
        ("Visually verify that the dashboard looks correct", True),
        ("Manual visual check", True),
        ("Please look at the UI", True),
        ("Check that the page renders properly", True),
        ("pay with a real card", False),
        ("the look of the invoice PDF in Acrobat", False),
        ("check it", False),
        ("", False),
    ],
)
def test_a_reason_that_would_fit_any_phase_is_only_a_look(reason: str, generic: bool) -> None:
    assert is_generic_look(reason) is generic


@pytest.mark.req("A3", "A13", "A20")
@GENERATED
@given(st.lists(st.sampled_from(sorted(LIES)), min_size=1, max_size=3, unique=True), st.booleans())
def test_the_answer_is_the_worst_of_all_findings_whatever_is_told(lies: list[str], enforced: bool) -> None:
    plain = _plain()
    for lie in lies:
        with suppress(TypeError, IndexError):  # the field to spoil may be gone already
            LIES[lie](plain)
    verdict = integrity(_facts(_set("standing.enforced", enforced), start=lambda: plain))
    order = list(IntegrityAnswer)
    answers = [found.answer for found in verdict.findings]
    assert verdict.answer is max(answers, key=order.index, default=IntegrityAnswer.NOTHING)
    assert bool(verdict.again) == (verdict.answer is IntegrityAnswer.ENFORCEMENT)
    assert IntegrityAnswer.NOTHING not in answers
    assert not (enforced and IntegrityAnswer.ENFORCEMENT in answers)
    assert [found.number for found in verdict.findings] == sorted(found.number for found in verdict.findings)
