"""Turn the raw facts of a run into the result that evidence is based on."""

import signal
from collections.abc import Iterable
from datetime import datetime

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Confined, End, Features, Violation, Warned
from fairwitness.kit.clock import spell
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.integrity_watch import IntegrityChanges
from fairwitness.sandbox.launch import CommandFacts
from fairwitness.sandbox.runner import Finished
from fairwitness.sandbox.watchdog import LimitName

_BY_SIGNAL: dict[int, LimitName] = {signal.SIGXCPU: "cpu", signal.SIGXFSZ: "disk"}


def finished(
    checked: CheckedCommand,
    ended: CommandFacts,
    *,
    tier: SandboxTier,
    features: Features,
    warnings: Iterable[Warned],
    started_at: datetime,
    changed: IntegrityChanges,
) -> Finished:
    """Return the result of a run; missing facts count as a lost run, never as a pass."""
    command = checked.command
    observer = ended.observer
    watched = observer.violations if observer is not None else ()
    if observer is not None and observer.failed is not None and ended.lost is None:
        ended.lost = f"the observer failed: {observer.failed}"
    notes = [*warnings, *ended.warnings]
    if command.observe and observer is None and ended.lost is None and features.notify:
        notes.append(Warned(code="no-notify", text="the kernel gave no listener to this command"))
    if observer is not None and observer.blind:
        notes.append(Warned(code="observer-blind", text="a process shut itself against being looked into"))
    exit_code, number = _status(ended.wait_status)
    limit = ended.stopped or (_BY_SIGNAL.get(number) if number is not None else None)
    violations = watched + changed.repositories + changed.guards
    if observer is not None and observer.lacked and _end(ended, exit_code, limit, violations) is End.FAILED:
        ended.lost = cannot_run(tier, observer.lacked)
    end = _end(ended, exit_code, limit, violations)
    if end in (End.SANDBOX_ERROR, End.CANCELLED):
        exit_code = number = None  # a lost or cancelled run has no result, even if the command ended by itself
    result = Confined(
        argv=command.argv,
        exe=checked.exe,
        exe_sha256=checked.exe_sha256,
        cwd=command.cwd,
        env_keys=tuple(sorted(checked.env("", ""))),
        env_sha256=checked.env_sha256,
        policy_sha256=checked.policy_sha256,
        limits=command.limits,
        purpose=command.purpose,
        tier=tier,
        tier_wanted=SandboxTier.NAMESPACES,
        degraded=tier is not SandboxTier.NAMESPACES,
        warnings=tuple(notes),
        end=end,
        exit_code=exit_code,
        signal=number,
        limit_hit=limit if end in (End.LIMIT, End.TIMEOUT, End.VIOLATION) else None,
        started_at=spell(started_at),
        wall_ms=round(ended.wall_s * 1000),
        setup_ms=round(ended.setup_s * 1000),
        cpu_ms=round(ended.cpu_s * 1000),
        peak_memory=ended.peak_memory,
        peak_processes=ended.peak_processes,
        stdout=ended.stdout.stream(),
        stderr=ended.stderr.stream(),
        violations=violations,
        observation="full" if command.observe and observer is not None and not observer.blind else "none",
        dotgit_ok=not changed.repositories,
        guards_ok=not changed.guards,
        survivors_killed=ended.survivors,
        sandbox_error=(ended.lost or "lost") if end is End.SANDBOX_ERROR else None,
    )
    streams = {"stdout": ended.stdout, "stderr": ended.stderr}
    return Finished(result, ended.stdout.stored(), ended.stderr.stored(), lambda name: streams[name].raw())


def cannot_run(tier: SandboxTier, lacked: Iterable[str]) -> str:
    """Say what a tier does not have that a failed command tried to use: its failure says nothing about the code."""
    return f"tier {tier} cannot run it: it needs {' and '.join(sorted(lacked))}, which only tier ns has"


def not_run(
    checked: CheckedCommand,
    why: str,
    *,
    tier: SandboxTier,
    features: Features,
    warnings: Iterable[Warned],
    started_at: datetime,
) -> Finished:
    """Return the result of a command that could not be started."""
    ended = CommandFacts(Capture(1), Capture(1), lost=why)
    return finished(
        checked,
        ended,
        tier=tier,
        features=features,
        warnings=warnings,
        started_at=started_at,
        changed=IntegrityChanges(),
    )


def _status(wait_status: int | None) -> tuple[int | None, int | None]:
    if wait_status is None:
        return None, None
    if wait_status & 0x7F:
        return None, wait_status & 0x7F
    return wait_status >> 8, None


def _end(ended: CommandFacts, exit_code: int | None, limit: LimitName | None, violations: tuple[Violation, ...]) -> End:
    """Return how a run ended: a lost sandbox outranks a violation, a violation a limit, a limit the exit code."""
    if ended.lost is not None:
        return End.SANDBOX_ERROR
    if ended.cancelled:
        return End.CANCELLED
    if violations:
        return End.VIOLATION
    if limit is not None:
        return End.TIMEOUT if limit == "wall" else End.LIMIT
    return End.OK if exit_code == 0 else End.FAILED
