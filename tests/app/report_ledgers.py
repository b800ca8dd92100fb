"""Feature runs in real ledgers, for what only looks at them; time goes on a second with every event."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairwitness.contracts.common.approvals import ApprovalRecord
from fairwitness.contracts.common.evidence import Claim, Dispatch, Execution, Observation, Phase
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity, Workflow
from fairwitness.kit.clock import spell
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.feature_decision import decide
from rules.build import facts as looked_up
from rules.build import task as ordinary_task
from support.state import own_state

RUN = "2026-02-26T14:30:00Z"
MOMENT = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
TREE, COMMIT, HASH = "a" * 40, "b" * 40, "sha256:" + "0" * 64
HOSTILE = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;pwned\x07\x1b[2J\u202e進捗 & "
    + 'x" onload="x'
    + " long" * 2000
)
SCOPE = "login-code-review"


class FeatureWalk:
    """A feature run that is told event by event."""

    def __init__(self, where: Path | Ledger, run_id: str = RUN) -> None:
        self.run_id, self._seconds = run_id, 0
        self.clock: Callable[[], datetime] = lambda: MOMENT + timedelta(seconds=self._seconds)
        if isinstance(where, Path):
            where = Ledger.open_file(own_state(where) / "evidence.db", clock=self.clock)
        self.ledger = where

    def close(self) -> None:
        """Lets go of the ledger."""
        self.ledger.close()

    @property
    def now(self) -> str:
        """The time of the last event."""
        return spell(self.clock())

    def tell(
        self,
        kind: str,
        /,
        *,
        task: str | None = None,
        attempt: int | None = None,
        phase: str | None = None,
        **data: Any,
    ) -> None:
        """One event, a second after the last."""
        self._seconds += 1
        self.ledger.record(
            self.run_id,
            lambda record: record.event(
                Workflow.FEATURE, kind, data, timestamp=self.now, task=task, attempt=attempt, phase=phase
            ),
        )

    def begin(self, request: str = "add a login", **said: Any) -> None:
        """The order, and the first event, which says this, too."""
        self.see("order", "order", {"order": {"request": request, "slug": "login", "policy": {}}, "budget": {}})
        self.tell(
            "run_started",
            slug="login",
            mode="interactive",
            base_commit="abc1234",
            baseline_tag="pipeline-baseline-x",
            settings_hash=HASH,
            **said,
        )

    def see(self, key: str, kind: str, detail: dict[str, Any], *, subject: str = "x") -> None:
        """An observation."""
        seen = Observation(
            run_id=self.run_id,
            task_id=None,
            key=key,
            kind=kind,
            subject=subject,
            holds=True,
            detail=detail,
            tree=None,
            observed_at=self.now,
        )
        self.ledger.record(self.run_id, lambda record: record.observation(seen))

    def step(self, step: str, *, calls: tuple[str, ...] = (), outcome: str = "advanced", **data: Any) -> None:
        """A whole visit of a step, with agents that all answer."""
        self.tell("step_started", step=step)
        for instance in calls:
            self.call(f"{step}-{instance}-{self._seconds}", step, instance)
        self.tell("step_finished", step=step, outcome=outcome, **data)

    def by_us(self, number: str, step: str, instance: str) -> None:
        """A call that the program answers itself; nobody reports what it used."""
        self.tell("dispatch_started", dispatch_id=number, step=step, agent="orchestrator", instance=instance)
        self.tell("dispatch_finished", dispatch_id=number, status="DONE", duration_ms=900, tokens=0)

    def call(
        self, number: str, step: str, instance: str, *, agent: str = "researcher", task: str | None = None
    ) -> None:
        """A call that brings an answer and reports what it used."""
        self.tell("dispatch_started", dispatch_id=number, step=step, agent=agent, instance=instance, task=task)
        began = self.now
        self.tell("dispatch_finished", dispatch_id=number, status="DONE", duration_ms=900, tokens=2100, task=task)
        usage = {"tokens_in": 2000, "tokens_out": 100, "cost_micros": 1500}
        self.see(f"dispatch:{number}", "dispatch-ended", {"outcome": {"model": "model-a", "usage": usage}})
        row = Dispatch(
            run_id=self.run_id,
            step=step,
            agent=agent,
            instance=instance,
            started_at=began,
            completed_at=self.now,
            status="DONE",
            dispatch_count=1,
            retry_count=0,
            notes="agent scripted",
        )
        self.ledger.record(self.run_id, lambda record: record.dispatch(row))

    def check(self, task: str, name: str, *, passed: bool = True, round_: int = 1, output: str = "ok") -> None:
        """A command that Fair Witness ran."""
        ran = Execution(
            run_id=self.run_id,
            task_id=task,
            key=f"{task}/{name}/{round_}",
            argv=("check", name, "--all"),
            cwd=".",
            env_digest=HASH,
            tool="check",
            tool_version=None,
            tree=TREE,
            sandbox="ns",  # type: ignore[arg-type]  # the enum's own spelling
            started_at=self.now,
            duration_ms=1500,
            exit_code=0 if passed else 1,
            signal=None,
            stdout=HASH,
            stderr=HASH,
            assessment="pass" if passed else "fail",  # type: ignore[arg-type]  # the enum's own spelling
        )
        self.ledger.record(
            self.run_id,
            lambda record: record.executed(ran, phase=Phase.AFTER, check_name=name, round_=round_, output=output),
        )

    def move(self, task: str, before: str, after: str, attempt: int, **data: Any) -> None:
        """A node of the graph changes its state."""
        states: dict[str, Any] = {
            "previousStatus": before,
            "newStatus": after,
            "timestamp": self.now,
            "attemptId": attempt,
        }
        self.tell("node.changed", task=task, attempt=attempt, phase="1", nodeId=task, **states, **data)

    def attempt(self, task: str, number: int, *, fails: str | None = None) -> None:
        """One try at a task, merged or failed."""
        about: dict[str, Any] = {"task": task, "attempt": number, "phase": "1", "nodeId": task}
        branch = f"fairwitness/{task}/attempt-{number}"
        self.move(task, "PENDING", "RUNNING", number)
        self.tell("task.started", **about, attemptId=number, branch=branch, agent="implementer")
        if fails is not None:
            self.move(task, "RUNNING", "FAILED", number, reason=fails)
            self.tell("task.retried", **about, nextAttempt=number + 1, reason=fails)
            return
        self.tell("task.verified", **about, attemptId=number, commit=COMMIT, tree=TREE)
        self.tell("merge.started", phase="1", batch=1, nodes=[task])
        merged: dict[str, Any] = {"tip": COMMIT, "landed": [task], "conflicting": [], "left": [], "checks": 1}
        self.tell("merge.finished", phase="1", batch=1, **merged)
        self.tell("branch.merged", **about, commit=COMMIT)
        self.move(task, "RUNNING", "MERGED", number)

    def gate(self, gate: str, task: str | None, *, opens: bool, count: int, threshold: int) -> None:
        """A gate is asked."""
        missing = [] if opens else ["tests"]
        self.tell("gate_evaluated", task=task, gate=gate, open=opens, count=count, threshold=threshold, missing=missing)

    def review(self, perspective: str, verdict: CategoryVerdict, text: str = "it leaks") -> None:
        """A reviewer's verdicts and one finding."""
        finding = {
            "id": "F-1",
            "category": "security",
            "severity": "Major",
            "title": text,
            "description": text,
            "artifacts": [text],
            "recommendation": text,
            "evidence": [text],
        }
        findings = [] if verdict is CategoryVerdict.APPROVE else [finding]
        claim = Claim(
            run_id=self.run_id,
            task_id=SCOPE,
            key=f"code/{perspective}/1",
            agent="adversarial-reviewer",
            instance=perspective,
            kind="review",
            body={"answer": {"findings": findings, "summary": text}},
            claimed_at=self.now,
        )
        severity = None if verdict is CategoryVerdict.APPROVE else Severity.MAJOR
        rows = {
            "review-code-security": (verdict, severity),
            "review-code-architecture": (CategoryVerdict.APPROVE, None),
            "review-code-correctness": (CategoryVerdict.APPROVE, None),
        }
        self.ledger.record(
            self.run_id, lambda record: record.reviewed(claim, verdicts=rows, round_=1, summary=text[:400])
        )
        said = {"security": verdict.value, "architecture": "approve", "correctness": "approve"}
        self.tell("review_submitted", scope="code", round=1, perspective=perspective, verdicts=said)

    def answer(self, said: str) -> None:
        """A person's answer."""
        gate = "gate-post-planning"
        self.tell("approval_requested", gate_id=gate, options=["approve", "revise", "abort"])
        self.tell("approval_answered", gate_id=gate, selected_option="approve", auto_selected=False, actor="ada")
        record_of = ApprovalRecord.model_validate(
            {
                "gate_id": gate,
                "run_id": self.run_id,
                "timestamp": self.now,
                "mode": "interactive",
                "selected_option": "approve",
                "auto_selected": False,
                "actor": "ada",
                "user_response_raw": said,
            }
        )
        self.ledger.record(self.run_id, lambda record: record.approval(record_of))

    def decide(self, number: int, **differs: Any) -> None:
        """A decision of the real rules, with the facts it rests on."""
        facts = looked_up(**differs)
        decision = decide(facts, Policy())
        self.tell("decided", number=number, kind=decision.kind, reason=decision.reason)
        self.see(f"decision:{number}", "decision", {"facts": facts.plain(), "decision": decision.plain()})


def finished(root: Path | Ledger, *, text: str = "plain words", run_id: str = RUN) -> FeatureWalk:
    """A run with one of everything that ended well: a failed attempt, a revised review, a question."""
    walk = FeatureWalk(root, run_id)
    walk.begin(text)
    walk.decide(1)
    walk.step("step-0")
    walk.step("step-1", calls=("architecture", "impact", "patterns"))
    walk.tell("degraded", kind="fewer_researchers", detail=text[:1000])
    for step in ("step-1a", "step-2", "step-3"):
        walk.step(step, calls=("one",))
    walk.step("step-3b", outcome="revised", reason="a reviewer wants another design")
    for step in ("step-3", "step-3b", "step-4"):
        walk.step(step)
    walk.tell("step_started", step="step-4a")
    walk.answer(text)
    walk.tell("step_finished", step="step-4a", outcome="advanced")
    walk.tell("step_started", step="step-5")
    walk.check("task-01", "tests", passed=False, output=text)
    walk.attempt("task-01", 1, fails=text[:900])
    walk.gate("EG-2", "task-01", opens=False, count=1, threshold=2)
    walk.check("task-01", "lint", round_=2, output=text)
    walk.attempt("task-01", 2)
    walk.gate("EG-2", "task-01", opens=True, count=2, threshold=2)
    walk.tell("artifact_written", path="docs/feature/login/plan.md", sha256=HASH)
    walk.tell("step_finished", step="step-5", outcome="advanced")
    for step in ("step-6", "step-7"):
        walk.step(step)
    walk.review("security-sentinel", CategoryVerdict.NEEDS_REVISION, text)
    walk.review("architecture-guardian", CategoryVerdict.APPROVE, text)
    walk.decide(2, step="step-8b", tasks=(ordinary_task(),), whole=ordinary_task("whole"))
    walk.step("step-8")
    for step, instance in (("step-8b", "evidence-bundle"), ("step-9", "commit")):
        walk.tell("step_started", step=step)
        walk.by_us(f"{step}-1-{instance}-1", step, instance)
        walk.tell("step_finished", step=step, outcome="advanced")
    walk.tell("committed", commit=COMMIT, rollback_command=f"git revert {COMMIT}")
    walk.tell("run_finished", outcome="committed", confidence="Medium", commit=COMMIT, reason="all gates are open")
    return walk


def going(root: Path, *, text: str = "plain words") -> FeatureWalk:
    """A run in the middle of its first implementation."""
    walk = FeatureWalk(root)
    walk.begin(text)
    for step in ("step-0", "step-1", "step-1a", "step-2", "step-3", "step-3b", "step-4", "step-4a"):
        walk.step(step)
    walk.tell("step_started", step="step-5")
    walk.move("task-01", "PENDING", "RUNNING", 1)
    walk.tell("task.started", task="task-01", phase="1", nodeId="task-01", attemptId=1, branch="b", agent="x")
    for number in range(1, 7):
        walk.tell(
            "dispatch_started",
            dispatch_id=f"d-{number}",
            step="step-5",
            agent="implementer",
            instance=f"worker-{number}-" + text[:60],
        )
    return walk
