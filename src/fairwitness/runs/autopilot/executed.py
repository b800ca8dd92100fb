"""How a command ended, read from the rows that the harness wrote of it; what has no row was not run, and says so."""

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.common.evidence import Execution, SandboxTier
from fairwitness.contracts.common.sandbox import ASSESSED, End
from fairwitness.contracts.common.words import Assessment
from fairwitness.contracts.verify.results import Ran
from fairwitness.kit.text import visible_lines
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.artifacts import Store

CAPTURED = 500
"""Characters of an output that are kept beside a result; the whole of it stands in the store."""
_SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""
_EVIDENCE = (Assessment.PASS, Assessment.FAIL)


def result_of(log: AutopilotLog, outputs: Store, criterion: str, command: str, ran: Ran) -> ExecutionResult:
    """What came of the command of a criterion."""
    execution = None if ran.execution is None else log.ledger.execution(ran.execution)
    seen = None if execution is None else log.ledger.observation(log.run_id, execution.key)
    if execution is None or seen is None:
        return ExecutionResult(
            criterion=criterion,
            command=command,
            exit_code=None,
            stdout_truncated="",
            stderr_truncated=_told("it was not run", ran.reason or "no reason is known"),
            duration_ms=0,
            sandbox_violation=False,
            assessment=Assessment.LOST,
        )
    assessment = _assessment(execution, End(seen.detail["confined"]["end"]))
    errors = _captured(outputs, seen.detail["kept"]["stderr"])
    return ExecutionResult(
        criterion=criterion,
        command=command,
        exit_code=_exit_code(execution, assessment),
        stdout_truncated=_captured(outputs, seen.detail["kept"]["stdout"]),
        stderr_truncated=errors if assessment in _EVIDENCE else _told(assessment.value, _why(execution, ran), errors),
        duration_ms=execution.duration_ms,
        sandbox_violation=assessment is Assessment.VIOLATION,
        assessment=assessment,
    )


def _assessment(execution: Execution, end: End) -> Assessment:
    """By how the sandbox saw it end: a program that is not there is no evidence to verify, and a failure here.

    Code that came from elsewhere passes for nobody, and what nothing held in opens no gate.
    """
    if ASSESSED[end] is not Assessment.PASS:
        return ASSESSED[end]
    return Assessment.LOST if execution.sandbox is SandboxTier.NONE else execution.assessment


def _exit_code(execution: Execution, assessment: Assessment) -> int | None:
    """As a shell would spell it where a signal ended the command."""
    if execution.exit_code is None and execution.signal is not None and assessment is Assessment.FAIL:
        return _SIGNALLED + execution.signal
    return execution.exit_code


def _why(execution: Execution, ran: Ran) -> str:
    if ran.reason is not None:
        return ran.reason
    return "it ran outside of any sandbox" if execution.sandbox is SandboxTier.NONE else "no reason is known"


def _told(what: str, why: str, *output: str) -> str:
    """The harness's own word, in brackets, before what the command itself said."""
    return "\n".join((f"[fairwitness: {what}: {why}]", *filter(None, output)))[:CAPTURED]


def _captured(outputs: Store, digest: str) -> str:
    """The first characters of an output that was kept under its hash."""
    output = outputs.get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest)
    return visible_lines(output[: CAPTURED * 4].decode(errors="replace")).strip()[:CAPTURED]
