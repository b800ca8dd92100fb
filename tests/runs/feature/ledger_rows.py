"""A feature run written into a ledger row by row, and the facts that are looked up from it."""

from collections.abc import Iterable
from typing import Any

from fairwitness.contracts.common.approvals import ApprovalRecord
from fairwitness.contracts.common.evidence import Claim, Dispatch, Execution, Observation, Phase
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity, Workflow
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation
from fairwitness.contracts.feature.facts import ChangedFile, FeatureFacts, ReviewFacts, TaskFacts
from fairwitness.contracts.feature.review import Perspective, ReviewReturn, ReviewScope
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.gates import check_names
from fairwitness.rules.review import category_verdict
from rules.build import facts as looked_up
from rules.build import task as ordinary_task

RUN = "2026-02-26T14:30:00Z"
TREE = "a" * 40
HASH = "sha256:" + "0" * 64
NOW = "2026-02-26T14:40:00Z"
WHOLE = "whole"

Said = tuple[str, dict[str, Any]]

STARTED: Said = (
    "run_started",
    {
        "slug": "expiry",
        "mode": "autonomous",
        "base_commit": "abc1234",
        "baseline_tag": "pipeline-baseline-2026-02-26T14-30-00Z",
        "settings_hash": HASH,
    },
)


def tell(ledger: Ledger, *said: Said) -> None:
    """Events, one record each."""
    for kind, data in said:
        ledger.record(
            RUN,
            lambda record, kind=kind, data=data: record.event(  # type: ignore[misc]  # a default binds the loop's value
                Workflow.FEATURE, kind, data, timestamp=NOW
            ),
        )


def check(
    ledger: Ledger, task: str, name: str, *, passed: bool = True, round_: int = 1, baseline: bool = False
) -> None:
    """A command that Fair Witness ran."""
    phase = Phase.BASELINE if baseline else Phase.AFTER
    execution = Execution.model_validate(
        {
            "run_id": RUN,
            "task_id": task,
            "key": f"{task}/{phase.value}/{name}/{round_}",
            "argv": ["check", name],
            "cwd": ".",
            "env_digest": HASH,
            "tool": "check",
            "tool_version": None,
            "tree": TREE,
            "sandbox": "ns",
            "started_at": NOW,
            "duration_ms": 5,
            "exit_code": 0 if passed else 1,
            "signal": None,
            "stdout": HASH,
            "stderr": HASH,
            "assessment": "pass" if passed else "fail",
        }
    )
    ledger.record(RUN, lambda record: record.executed(execution, phase=phase, check_name=name, round_=round_))


def reviewed(ledger: Ledger, review: ReviewReturn, *, body: dict[str, Any] | None = None) -> None:
    """A reviewer's rows, as the harness files them."""
    names = check_names(review.scope)
    worst: dict[str, tuple[CategoryVerdict, Severity | None]] = {}
    for category, name in names.items():
        found = [each.severity for each in review.findings if each.category is category]
        worst[name] = (category_verdict(review, category), min(found, key=list(Severity).index, default=None))
    perspective = review.reviewer_perspective.value
    claim = Claim(
        run_id=RUN,
        task_id=f"expiry-{review.scope.value}-review",
        key=f"{review.scope.value}/{perspective}/{review.round}",
        agent="adversarial-reviewer",
        instance=perspective,
        kind="review",
        body={"answer": review.plain()} if body is None else body,
        claimed_at=NOW,
    )
    ledger.record(
        RUN, lambda record: record.reviewed(claim, verdicts=worst, round_=review.round, summary=review.summary)
    )


def called(ledger: Ledger, dispatch_id: str, *, usage: dict[str, Any] | None, **differs: Any) -> None:
    """A dispatch that ended, with what it used."""
    plain: dict[str, Any] = {
        "run_id": RUN,
        "step": "step-1",
        "agent": "researcher",
        "instance": "patterns",
        "started_at": "2026-02-26T14:31:00Z",
        "completed_at": "2026-02-26T14:31:20Z",
        "status": "DONE",
        "dispatch_count": 1,
        "retry_count": 0,
    }
    outcome = {"model": "model-a", **({"usage": usage} if usage is not None else {})}
    observation = Observation(
        run_id=RUN,
        task_id=None,
        key=f"dispatch:{dispatch_id}:ended",
        kind="dispatch-ended",
        subject=dispatch_id,
        holds=True,
        detail={"outcome": outcome},
        tree=None,
        observed_at=NOW,
    )

    def write(record: Record) -> None:
        record.observation(observation)
        record.dispatch(Dispatch.model_validate(plain | differs))

    ledger.record(RUN, write)


def answered(ledger: Ledger, **differs: Any) -> None:
    """An answer that the run gave itself."""
    plain = {
        "gate_id": "gate-post-research",
        "run_id": RUN,
        "timestamp": NOW,
        "mode": "autonomous",
        "selected_option": "proceed",
        "auto_selected": True,
        "actor": "fairwitness",
    }
    ledger.record(RUN, lambda record: record.approval(ApprovalRecord.model_validate(plain | differs)))


def evaluated(ledger: Ledger, remark: str) -> None:
    """What an agent thought of a document."""
    rating = {"artifact_path": "tasks/task-01.yaml", "usefulness_score": 4, "clarity_score": 5}
    evaluation = ArtifactEvaluation.model_validate(rating | {"missing_information": remark})
    ledger.record(RUN, lambda record: record.evaluation(evaluation, agent="implementer", instance=None))


def task_of(ledger: Ledger, name: str, files: Iterable[tuple[str, str]] = (), **differs: Any) -> TaskFacts:
    """The facts of a task as the ledger has them."""
    return ordinary_task(
        name,
        baseline=ledger.tally(RUN, name, Phase.BASELINE),
        after=ledger.tally(RUN, name, Phase.AFTER),
        files=tuple(ChangedFile.model_validate({"path": path, "change": change}) for path, change in files),
        **differs,
    )


def review_of(ledger: Ledger, scope: ReviewScope, round_: int) -> ReviewFacts:
    """The facts of a round."""
    tally = ledger.tally(RUN, f"expiry-{scope.value}-review", Phase.REVIEW, round_)
    return ReviewFacts(scope=scope, round=round_, tally=tally, reviewers=())


def good_run(ledger: Ledger, review: ReviewReturn) -> FeatureFacts:
    """A run of two tasks in which everything went well, but for what one review says."""
    tell(ledger, STARTED)
    for task in ("task-01", "task-02", WHOLE):
        check(ledger, task, "baseline-tests", baseline=True, round_=0)
        for name in ("syntax-check", "lint", "tests"):
            check(ledger, task, name)
    for perspective in Perspective:
        own = perspective is review.reviewer_perspective
        clean = {"findings": [], "clean_categories": ["security", "architecture", "correctness"]}
        plain = review.plain() if own else review.plain() | clean | {"reviewer_perspective": perspective.value}
        reviewed(ledger, ReviewReturn.model_validate(plain))
    first, second = ("src/a.py", "modified"), ("docs/b.md", "added")
    return looked_up(
        tasks=(task_of(ledger, "task-01", [first]), task_of(ledger, "task-02", [second])),
        whole=task_of(ledger, WHOLE, [first, second]),
        code_review=review_of(ledger, ReviewScope.CODE, 1),
    )
