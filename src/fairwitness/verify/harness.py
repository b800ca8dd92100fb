"""Run one check at one tree (environment, checkout, sandbox, report, origin of the code) and record it in the ledger.

The same request (tree, command, tool version, environment, confinement) runs once: `check_cache` finds its result by
the execution's key, and uses it only if it is in the ledger and the stored result has the hash that the ledger names. A
request without evidence runs again.
"""

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

from fairwitness.contracts.common.evidence import Execution
from fairwitness.contracts.common.sandbox import Command, Confinement, End, Network, SandboxLimits
from fairwitness.contracts.verify.checks import SHELL_LINE, CheckSpec, Project, VerifySettings
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.errors import DiskRefused, StoreError
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.files import read_plain
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.own_folder import identity_of
from fairwitness.kit.redaction import redact_forms
from fairwitness.kit.text import visible_lines
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.check_outcome import judge
from fairwitness.sandbox.runner import Finished, Runner
from fairwitness.verify.check_cache import CheckCache
from fairwitness.verify.checkouts import Checkouts
from fairwitness.verify.environment.model import Environment, NoEnvironment, ResolvedCommand, Unavailable
from fairwitness.verify.environment.origin import origin_problem
from fairwitness.verify.gate_answer import THE_CHANGE
from fairwitness.verify.model import AGENT, CheckRequest, refuse_stopped

VERSION = 1
"""Version of how checks are run; a new version makes every check run again."""
TAIL = 8_000
REPORT_LIMIT = 64 << 20
BESIDE = ".beside"
"""Suffix of a second report file that a command may write."""
BESIDE_LIMIT = 8 << 20
_CUT = (End.CANCELLED, End.SANDBOX_ERROR)
"""How a command may end that was stopped from outside."""

Prepare = Callable[[Project, str], Environment | NoEnvironment]
"""Returns the environment of a project at a tree."""


class Harness:
    """Runs the checks of one subject; safe to use from any thread."""

    def __init__(
        self,
        *,
        runner: Runner,
        shadow: Shadow,
        ledger: Ledger,
        state: Path,
        work: Path,
        settings: VerifySettings,
        run_id: str,
        clock: Clock,
        prepare: Prepare,
        use_cache: bool,
        guards: tuple[Path, ...] = (),
        subject: VerifySubject = THE_CHANGE,
        stop: threading.Event | None = None,
    ) -> None:
        self.runner = runner
        self.shadow = shadow
        self.ledger = ledger
        self.run_id = run_id
        self.clock = clock
        self.subject = subject
        self._stop = stop
        self._settings = settings
        self._prepare = prepare
        self._use_cache = use_cache
        self._guards = tuple(str(path) for path in guards if path.exists())
        self._made_in = identity_of(state)
        self._cache = CheckCache(ledger=ledger, state=state, run_id=run_id, subject=subject, clock=clock)
        self._checkouts = Checkouts(work, shadow)
        self._disk = DiskWatch((state,))

    def record(self, work: Callable[[Record], object]) -> None:
        """Write a ledger record, one thread at a time."""
        self._cache.record(work)

    def run(self, request: CheckRequest) -> Ran:
        """Return the result of a check: from the ledger if it is there, else by running it."""
        refuse_stopped(self._stop)
        spec = request.spec
        environment = self._prepare(request.project, request.environment_tree or request.tree)
        if isinstance(environment, NoEnvironment):
            return _silent(spec, environment.reason, environment.environmental, environment.next_step)
        with self._checkouts.folders(request) as (report, temporary):
            checkout = self._checkouts.place(request, environment, temporary)
            from fairwitness.verify.environment.resolve import resolve

            resolved = resolve(
                spec,
                environment,
                checkout=checkout,
                report=report,
                tmp=temporary,
                ids=request.ids,
                project=request.project,
            )
            if isinstance(resolved, Unavailable):
                return _silent(spec, resolved.reason, resolved.environmental)
            key = self._key(request, environment, resolved)
            known = self._cache.find_own(request, key)
            if known is None and self._use_cache:
                known = self._cache.adopt_from_another_run(request, key)
            if known is not None:
                return known
            self._checkouts.check_out(request, environment, checkout)
            return self._run(request, key, resolved, checkout, report, temporary, environment)

    def offers(self, project: Project, tree: str, distribution: str) -> bool:
        """Return whether a distribution is installed in a project's environment."""
        environment = self._prepare(project, tree)
        return isinstance(environment, Environment) and distribution in environment.versions

    def close(self) -> None:
        """Remove the checkouts."""
        self._checkouts.close()

    def _run(
        self,
        request: CheckRequest,
        key: str,
        resolved: ResolvedCommand,
        checkout: Path,
        report: Path,
        temporary: Path,
        environment: Environment,
    ) -> Ran:
        spec = request.spec
        command = Command(
            argv=resolved.argv,
            cwd=spec.root,
            confinement=Confinement(
                worktree=str(checkout),
                writable=spec.writes,
                read=tuple(map(str, resolved.read)),
                write=(str(report.parent), str(temporary)),
                network=Network.OPEN if spec.network else Network.LOOPBACK,
                env=resolved.env,
                min_tier=self._settings.sandbox.tier,
                guards=self._guards,
            ),
            limits=self._limits(spec),
            purpose=f"{request.purpose} {spec.id}",
        )
        finished = self.runner.run(command, cancel=self._stop)
        if finished.result.end in _CUT:
            refuse_stopped(self._stop)  # stopped from outside: no evidence about the tree, so no row
        killpoint(f"verify.ran.{request.purpose}")
        content = self._report_of(spec, finished, report)
        confined = finished.result
        from fairwitness.verify.reports import read_report

        parsed = read_report(spec.report, content, exit_code=confined.exit_code, root=str(checkout / spec.root))
        origin = origin_problem(request.project, resolved, checkout)
        judged = judge(confined, parsed, origin, is_line=spec.tool == SHELL_LINE)
        if confined.exit_code != 0:
            self._refuse_full_disk(spec)
        ran = Ran(
            check=spec.id,
            evidence=judged.evidence,
            reason=judged.reason,
            environmental=judged.environmental,
            assessment=judged.assessment,
            exit_code=confined.exit_code,
            items=parsed.items,
            stdout=_tail(finished.stdout),
            stderr=_tail(finished.stderr),
            duration_ms=confined.wall_ms,
            beside=_beside(report),
        )
        execution = Execution(
            run_id=self.run_id,
            task_id=self.subject.task_id,
            key=key,
            argv=confined.argv,
            cwd=spec.root,
            env_digest=confined.env_sha256,
            tool=spec.tool,
            tool_version=resolved.tool_version,
            tree=request.tree,
            sandbox=confined.tier,
            started_at=confined.started_at,
            duration_ms=confined.wall_ms,
            exit_code=confined.exit_code,
            signal=confined.signal if confined.exit_code is None else None,
            stdout=confined.stdout.sha256,
            stderr=confined.stderr.sha256,
            assessment=judged.assessment,
        )
        detail: dict[str, object] = {
            "purpose": request.purpose,
            "kept": {
                "stdout": self._cache.store_output(finished.stdout),
                "stderr": self._cache.store_output(finished.stderr),
            },
            "environment": {"digest": environment.digest, "prepared_by": environment.prepared_by},
            "confined": confined.plain(),
        }
        return self._cache.record_result(request, execution, ran, detail)

    def _refuse_full_disk(self, spec: CheckSpec) -> None:
        """Raise `DiskRefused` if a check failed while nothing could be written: it would blame the change."""
        trouble = self._disk.trouble()
        if trouble is not None:
            raise DiskRefused(
                f"check {spec.id} failed, which proves nothing: {trouble}", next_step="make room, then run it again"
            )

    def _key(self, request: CheckRequest, environment: Environment, resolved: ResolvedCommand) -> str:
        """Return the key of a request; temporary folders are not part of it.

        The id of the state folder is: an adopted folder has a new one, so that no result is reused that came with it.
        A check that an agent asked for has a key of its own: otherwise an agent could repeat a check that sometimes
        passes, with small changes to its files, until the harness would adopt a pass.
        """
        spec = request.spec
        asked = [
            VERSION,
            self._made_in,
            request.tree,
            spec.root,
            spec.argv if not request.ids else spec.select,
            sorted(request.ids),
            spec.report,
            resolved.tool_version,
            environment.digest,
            self._limits(spec).plain(),
            self.runner.tier,
            spec.writes,
            spec.network,
            request.rerun,
            request.purpose == AGENT,
        ]
        return "check:" + hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _limits(self, spec: CheckSpec) -> SandboxLimits:
        memory = self._settings.sandbox.memory_mb << 20
        return SandboxLimits(
            wall_s=spec.timeout_s,
            cpu_s=max(60, int(spec.timeout_s) * 4),
            processes=self._settings.sandbox.processes,
            memory=memory,
            memory_process=memory,
            file_size=1 << 30,
            disk=4 << 30,
        )

    def _report_of(self, spec: CheckSpec, finished: Finished, report: Path) -> bytes | None:
        match spec.report_on:
            case "stdout":
                return None if finished.result.stdout.truncated else finished.unredacted("stdout")
            case "stderr":
                return None if finished.result.stderr.truncated else finished.unredacted("stderr")
            case _:
                try:
                    return read_plain(report.parent, report.name, limit=REPORT_LIMIT)
                except StoreError:
                    return None


def _beside(report: Path) -> str | None:
    try:
        return redact_forms(
            read_plain(report.parent, f"{report.name}{BESIDE}", limit=BESIDE_LIMIT).decode(errors="replace")
        )
    except StoreError:
        return None


def _silent(spec: CheckSpec, reason: str, environmental: bool, next_step: str = "") -> Ran:
    return Ran(
        check=spec.id,
        evidence=Evidence.NONE,
        reason=reason,
        environmental=environmental,
        next_step=next_step or None,
        assessment=None,
    )


def _tail(output: bytes) -> str | None:
    return visible_lines(output[-TAIL:].decode(errors="replace")).strip()[-TAIL:] or None


def run_once(harness: Harness, request: CheckRequest) -> Ran:
    """Run a check at most once and return its result, also if it gave no evidence.

    For commands that somebody else chose. `Harness.run` runs a check without evidence again; this does not, not even
    when it resumes after a crash.
    """
    own = (harness.subject.task_id, request.tree, harness.subject.name, request.purpose)
    for seen in reversed(harness.ledger.observations(harness.run_id, "run", subject=request.spec.id)):
        asked = (seen.task_id, seen.tree, seen.detail.get("subject"), seen.detail.get("purpose"))
        if asked == own and "reason" in seen.detail:
            return Ran(
                check=request.spec.id,
                evidence=Evidence.NONE,
                reason=str(seen.detail["reason"]),
                assessment=None,
                execution=harness.ledger.execution_id(harness.run_id, seen.key),
            )
    return harness.run(request)
