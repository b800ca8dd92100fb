"""Whatever the contracts let through can be shown: no return and no report breaks a page or forges a part of it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fairwitness.contracts.autopilot.completion import CompletionReport
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.metrics import RunMetrics
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.rating import RatingReturn
from fairwitness.contracts.autopilot.repomap import RepoMap
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.contracts.autopilot.verification import VerifierReturn
from fairwitness.contracts.autopilot.visual import VisualBugReport
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.kit.documents import Format, read
from fairwitness.kit.limits import DocumentLimits
from fairwitness.runs.autopilot.initial_files import codebase_page
from fairwitness.runs.autopilot.learnings import failure_entry, fresh_learnings, learnings_with
from fairwitness.runs.autopilot.pages_judgement import (
    DIVERGENCE,
    OWN_EVIDENCE,
    judge_page,
    read_verification_head,
    scorecard_page,
    verification_page,
    visual_bugs_page,
)
from fairwitness.runs.autopilot.pages_phase import post_mortem_file, triage_file
from fairwitness.runs.autopilot.pages_run import BranchChange, completion_page
from runs.autopilot.written import COMMIT, NOW, PHASE, RUN, SEEN
from runs.feature.markdown_reader import Seen, seen
from support.strategies import documents

generated = settings(max_examples=25, suppress_health_check=list(HealthCheck))
CHANGE = BranchChange("fairwitness/run-1/target", ("src/a.py",), 1)
WIDE = DocumentLimits(bytes=10**8, depth=100, nodes=10**7)


def _parts(page: str) -> tuple[str, ...]:
    rendered: Seen = seen(page)
    assert all(len(set(rows)) == 1 for rows in rendered.tables)
    return tuple(each for each in rendered.headings if each.startswith(("# ", "## ")))


@pytest.mark.req("A6", "A15")
@given(documents(VerifierReturn), documents(ExecutionResult))
@generated
def test_any_verification_can_be_shown_and_passes_only_with_evidence(said: Any, ran: Any) -> None:
    verifier, result = VerifierReturn.model_validate(said), ExecutionResult.model_validate(ran)
    page = verification_page(PHASE, verifier, (result,), run_id=RUN, commit=COMMIT, at=NOW, passed=True, checks=SEEN)
    head = read_verification_head(page)
    assert head is not None
    assert head.pass_ is (verifier.pass_ and result.assessment is Assessment.PASS)
    assert _parts(page.split("\n---\n", 1)[1])[0] == "# Verification of phase 5: Line numbers"


@pytest.mark.req("A6")
@given(documents(JudgeReturn), documents(RatingReturn))
@generated
def test_any_opinion_can_be_shown(judged: Any, rated: Any) -> None:
    parts = _parts(judge_page(PHASE, JudgeReturn.model_validate(judged), None))
    assert (len(parts), parts[2:4]) == (7, (OWN_EVIDENCE, DIVERGENCE))
    assert len(_parts(scorecard_page(PHASE, RatingReturn.model_validate(rated), ()))) == 6


@pytest.mark.req("A9", "A11")
@given(documents(CompletionReport), documents(RunMetrics))
@generated
def test_any_end_of_a_run_can_be_shown(report: Any, run: Any) -> None:
    page = completion_page(CompletionReport.model_validate(report), RunMetrics.model_validate(run), None, None, CHANGE)
    assert len(_parts(page)) == 7


@pytest.mark.req("A6")
@given(documents(RepoMap), documents(VisualBugReport))
@generated
def test_any_map_and_any_screen_can_be_shown(mapped: Any, seen_bugs: Any) -> None:
    assert len(_parts(codebase_page(RepoMap.model_validate(mapped)))) == 6
    report = VisualBugReport.model_validate(seen_bugs)
    with_issues = sum(bool(shot.analysis.issues) for shot in report.screenshots)
    assert len(_parts(visual_bugs_page(PHASE, report))) == 1 + with_issues


@pytest.mark.req("A7", "A8")
@given(documents(PostMortem), documents(Triage))
@generated
def test_any_failure_leaves_a_file_that_is_read_again_and_one_entry(mortem: Any, triage: Any) -> None:
    post_mortem = PostMortem.model_validate(mortem)
    written = read(post_mortem_file(post_mortem).encode(), Format.JSON, limits=WIDE).value
    assert PostMortem.model_validate(written).plain() == written
    routed = read(triage_file(Triage.model_validate(triage)).encode(), Format.JSON, limits=WIDE).value
    assert Triage.model_validate(routed).plain() == routed
    text = learnings_with(fresh_learnings(), failure_entry(post_mortem))
    assert len(seen(text).headings) == 2
    assert learnings_with(text, failure_entry(post_mortem)) == text
