"""Run the commands of an autopilot run in the sandbox: of criteria, of scorecards, and the project's own.

A command is a line for `sh`. It runs once, without network, in a temporary checkout with the environment of its
project. The result is recorded at once; a repeated request returns the recorded result.
"""

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.roadmap import CommandKind
from fairwitness.contracts.autopilot.vocabulary import CheckWord
from fairwitness.contracts.common.base import Contract, Texts
from fairwitness.contracts.common.evidence import Execution, Tree
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.checks import LONG_S, Discovered
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible_lines
from fairwitness.ledger.kept import recorded
from fairwitness.rules.evidence_worth import is_confined, proof_of
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.phase_evidence import ProvenTree, proven_tree
from fairwitness.runs.shared.shell_checks import project_of_line, shell_check
from fairwitness.store.artifacts import Store
from fairwitness.verify.failed_checks import CheckText, lines_of, stored_run
from fairwitness.verify.folder_lock import locked_folder, remove_abandoned_folders
from fairwitness.verify.harness import Harness as Verifying
from fairwitness.verify.harness import run_once
from fairwitness.verify.model import CheckRequest, refuse_stopped
from fairwitness.verify.subject import VerifyDeps, harness_of, ignore_progress
from fairwitness.verify.tree_view import checks_at

CAPTURED = 500
"""How many characters of an output are kept in a result; the store keeps all of it."""
_SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""


def result_of(log: AutopilotLog, outputs: Store, criterion: str, command: str, ran: Ran) -> ExecutionResult:
    """Return the result of a criterion's command from the evidence rows; without a row it counts as not run."""
    execution = None if ran.execution is None else log.ledger.execution(ran.execution)
    seen = None if execution is None else log.ledger.observation(log.run_id, execution.key)
    if execution is None or seen is None:
        return ExecutionResult(
            criterion=criterion,
            command=command,
            exit_code=None,
            stdout_truncated="",
            stderr_truncated=_harness_note("it was not run", ran.reason or "no reason is known"),
            duration_ms=0,
            sandbox_violation=False,
            assessment=Assessment.LOST,
        )
    proof = proof_of(execution)
    # a pass that proves nothing ran without a sandbox: it counts as lost, because it must not open a gate
    is_lost = execution.assessment is Assessment.PASS and proof is not Evidence.PASSED
    assessment = Assessment.LOST if is_lost else execution.assessment
    errors = _captured(outputs, seen.detail["kept"]["stderr"])
    return ExecutionResult(
        criterion=criterion,
        command=command,
        exit_code=_exit_code(execution, assessment),
        stdout_truncated=_captured(outputs, seen.detail["kept"]["stdout"]),
        stderr_truncated=errors
        if proof is not Evidence.NONE
        else _harness_note(assessment.value, _why(execution, ran), errors),
        duration_ms=execution.duration_ms,
        sandbox_violation=assessment is Assessment.VIOLATION,
        assessment=assessment,
    )


def _exit_code(execution: Execution, assessment: Assessment) -> int | None:
    """Return the exit code, spelled as a shell does if a signal ended the command."""
    if execution.exit_code is None and execution.signal is not None and assessment is Assessment.FAIL:
        return _SIGNALLED + execution.signal
    return execution.exit_code


def _why(execution: Execution, ran: Ran) -> str:
    if ran.reason is not None:
        return ran.reason
    return "no reason is known" if is_confined(execution) else "it ran outside of any sandbox"


def _harness_note(what: str, why: str, *output: str) -> str:
    """Return a note of the harness in brackets, followed by the output of the command."""
    return "\n".join((f"[fairwitness: {what}: {why}]", *filter(None, output)))[:CAPTURED]


def _captured(outputs: Store, digest: str) -> str:
    """Return the first characters of a stored output."""
    output = outputs.get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest)
    return visible_lines(output[: CAPTURED * 4].decode(errors="replace")).strip()[:CAPTURED]


EXECUTION, CHECK, STANDING, CHECKS = "execution", "check", "standing", "checks"
"""Kinds of observations: a criterion's command, a project command, a worktree snapshot, the check results."""
_WORDS = {True: "passed", False: "failed"}
_CHECKS = (CommandKind.COMPILE, CommandKind.TEST, CommandKind.LINT, CommandKind.BUILD)


class CriterionCommand(NamedTuple):
    """A criterion, and the command that fails as long as the criterion is not met."""

    criterion: str
    command: str


class SeenChecks(Contract):
    """The results of the project's own commands at a tree, with notes about those that fail."""

    tree: Tree
    checks: AutomatedChecks
    notes: Texts


class _Batch(NamedTuple):
    """Commands that run together; their rows share a kind and a scope."""

    run_id: str
    kind: str
    scope: str
    commands: Sequence[CriterionCommand]
    tree: str
    seconds: float

    def key(self, place: int) -> str:
        return f"{self.kind}:{self.scope}:{place}"

    @property
    def name(self) -> str:
        """The same name at every try; short, because it is part of a socket path of limited length."""
        return f"commands-{hashlib.sha256(f'{self.run_id} {self.key(0)}'.encode()).hexdigest()[:12]}"


class CommandHarness:
    """Runs the commands of one run. Methods are thread-safe and blocking; `stop` ends them with `Stopped`."""

    def __init__(
        self, log: AutopilotLog, deps: VerifyDeps, commands: Mapping[CommandKind, str | None], seconds: int
    ) -> None:
        self._log = log
        self._deps = replace(deps, use_cache=False)  # a result of another scope or run is no evidence here
        self._commands = dict(commands)
        self._seconds = float(seconds)
        self._outputs = Store(deps.state, private=True)

    def run_all(
        self, scope: str, commands: Sequence[CriterionCommand], tree: str, *, stop: threading.Event
    ) -> tuple[ExecutionResult, ...]:
        """Return the result of each command at a tree; `UsageError` if the scope was used for something else."""
        return self._run(_Batch(self._log.run_id, EXECUTION, scope, commands, tree, self._seconds), stop)

    def run_in(
        self, scope: str, commands: Sequence[CriterionCommand], folder: Path, *, stop: threading.Event
    ) -> tuple[ExecutionResult, ...]:
        """Return the result of each command at a snapshot of a worktree, taken at the first request."""
        return self.run_all(scope, commands, self._snapshot(scope, folder), stop=stop) if commands else ()

    def checks(self, scope: str, tree: str, base_tree: str, *, stop: threading.Event) -> AutomatedChecks:
        """Return the results of the project's own commands at a tree; only a pass is true.

        A command that fails also runs at the base. A failure there does not excuse it, but `notes` mentions it.
        """
        key = f"{CHECKS}:{scope}"
        known = self._log.kept(key, SeenChecks)
        if known is not None:
            _refuse_other(key, known.tree, is_other=known.tree != tree)
            return known.checks
        words: dict[CommandKind, CheckWord] = {}
        notes = []
        for kind in _CHECKS:
            run = self._check(f"{scope}:{kind.value}", kind, tree, stop)
            words[kind] = "n/a" if run is None else run.passed
            if run is not None and not words[kind]:
                before = self._check(f"base-{base_tree}:{kind.value}", kind, base_tree, stop)
                notes.append(_note(kind, run, before))
        compiles, tests, lint, build = (words[kind] for kind in _CHECKS)
        checks = AutomatedChecks(compile=compiles, tests=tests, lint=lint, build=build)
        seen = self._log.keep(key, CHECKS, scope, SeenChecks(tree=tree, checks=checks, notes=tuple(notes)))
        killpoint("autopilot.checks")
        return seen.checks

    def proven(self, tree: str) -> ProvenTree:
        """Return what the verification of a task or merge of this run found out about a tree."""
        return proven_tree(self._log.ledger, self._outputs, self._log.run_id, tree)

    def command_lines(self, scope: str) -> Texts:
        """Return the project's own commands that ran in a scope, each with its result."""
        rows = self._log.ledger.observations(self._log.run_id, CHECK)
        runs = (recorded(ExecutionResult, row, "document") for row in rows if row.subject.startswith(f"{scope}:"))
        return tuple(
            str(CheckText(run.criterion, run.passed, _WORDS[run.passed], run.command, run.exit_code, ()))
            for run in runs
        )

    def notes(self, scope: str) -> Texts:
        """Return the notes about failed checks of a scope; empty before the checks ran."""
        known = self._log.kept(f"{CHECKS}:{scope}", SeenChecks)
        return () if known is None else known.notes

    def failed(self, *scopes: str) -> tuple[CheckText, ...]:
        """Return what did not pass, with its stored output, in the first of these scopes in which a command ran."""
        run_id, ledger = self._log.run_id, self._log.ledger
        rows = [row for kind in (CHECK, EXECUTION) for row in ledger.observations(run_id, kind)]
        of_scopes = ([row for row in rows if f"{row.subject}:".startswith(f"{scope}:")] for scope in scopes)
        texts = []
        for row in next(filter(None, of_scopes), ()):
            result = recorded(ExecutionResult, row, "document")
            execution = row.detail.get("execution")
            known = None if result.passed or execution is None else ledger.execution(int(execution))
            ran = None if known is None else stored_run(ledger, self._outputs, run_id, known.key)
            lines = lines_of(ran) if ran is not None else tuple(_output(result))
            if not result.passed:
                text = CheckText(result.criterion, False, result.assessment.value, result.command, None, lines)
                texts.append(text._replace(exit_code=result.exit_code))
        return tuple({(text.command, text.lines): text for text in texts}.values())

    def _check(self, scope: str, kind: CommandKind, tree: str, stop: threading.Event) -> ExecutionResult | None:
        command = self._commands.get(kind)
        if command is None:
            return None
        commands = (CriterionCommand(f"the project's {kind.value} command", command),)
        # a whole test suite may take longer than the command of a criterion
        (run,) = self._run(_Batch(self._log.run_id, CHECK, scope, commands, tree, max(self._seconds, LONG_S)), stop)
        return run

    def _snapshot(self, scope: str, folder: Path) -> str:
        """Return the worktree as a tree, recorded before anything runs: all commands of a scope see the same."""
        key = f"{STANDING}:{scope}"
        known = self._log.ledger.observation(self._log.run_id, key)
        if known is not None and known.tree is not None:
            return known.tree
        worktree = Repository.open(folder)
        if worktree.head is None or worktree.common_dir != self._deps.repository.common_dir:
            raise UsageError(
                f"{folder} is not a worktree of this repository", next_step="use a worktree of this repository"
            )
        tree = self._deps.shadow.snapshot(folder, worktree.tree_of(worktree.head))
        detail: dict[str, object] = {"commit": worktree.head}
        row = self._log.observation(key, STANDING, scope, detail, self._log.now(), tree=tree)
        self._log.ledger.record(self._log.run_id, lambda record: record.observation(row))
        killpoint("autopilot.standing")
        return tree

    def _run(self, batch: _Batch, stop: threading.Event) -> tuple[ExecutionResult, ...]:
        known = self._known(batch)
        if len(known) == len(batch.commands):
            remove_abandoned_folders(self._deps.scratch / "work")  # a killed process may have left one
            return known
        refuse_stopped(stop)
        with locked_folder(self._deps.scratch / "work", batch.name, stop) as work:
            results = list(self._known(batch))  # another process may have run them meanwhile
            if len(results) == len(batch.commands):
                return tuple(results)
            found = checks_at(self._deps.shadow, batch.tree, self._deps.settings)
            with harness_of(
                self._deps,
                VerifySubject(task_id=batch.name),
                found,
                found,
                run_id=self._log.run_id,
                work=work,
                on_progress=ignore_progress,
                stop=stop,
            ) as harness:
                for place in range(len(results) + 1, len(batch.commands) + 1):
                    results.append(self._ended(harness, batch, place, found, results))
            return tuple(results)

    def _known(self, batch: _Batch) -> tuple[ExecutionResult, ...]:
        """Return the recorded results of a batch, up to the first command that did not run."""
        known = []
        for place, command in enumerate(batch.commands, start=1):
            row = self._log.ledger.observation(self._log.run_id, batch.key(place))
            if row is None:
                break
            result = recorded(ExecutionResult, row, "document")
            is_other = (row.tree, result.criterion, result.command) != (batch.tree, *command)
            _refuse_other(row.key, row.tree, is_other=is_other)
            known.append(result)
        return tuple(known)

    def _ended(
        self, harness: Verifying, batch: _Batch, place: int, found: Discovered, before: Sequence[ExecutionResult]
    ) -> ExecutionResult:
        """Run one command and record its result; a command that repeats in the batch runs once."""
        wanted = batch.commands[place - 1]
        same = next((run for run in before if run.command == wanted.command), None)
        execution: int | None = None
        if same is not None:
            result = same.model_copy(update={"criterion": wanted.criterion})
        else:
            spec = shell_check(
                f"{batch.name}/{place}",
                wanted.command,
                name=f"{batch.kind}-{place}",
                timeout_s=batch.seconds,
                found_in=f"{batch.kind} {batch.scope}",
            )
            question = CheckRequest(spec, project_of_line(wanted.command, found), batch.tree, f"command-{place}")
            ran = run_once(harness, question)
            result = result_of(self._log, self._outputs, wanted.criterion, wanted.command, ran)
            execution = ran.execution
        row = self._log.observation(
            batch.key(place),
            batch.kind,
            batch.scope,
            {"document": result.plain(), "execution": execution},
            self._log.now(),
            holds=result.passed,
            tree=batch.tree,
        )
        self._log.ledger.record(self._log.run_id, lambda record: record.observation(row))
        killpoint(f"autopilot.{batch.kind}")
        return result


def _refuse_other(key: str, tree: str | None, *, is_other: bool) -> None:
    if is_other:
        raise UsageError(
            f"{key} was run for another command or tree in this run ({tree})",
            next_step="a scope runs once; use another scope name",
        )


def _output(result: ExecutionResult) -> Iterator[str]:
    """Yield the output that a result keeps, where the whole output is not stored."""
    for text in (result.stdout_truncated, result.stderr_truncated):
        yield from (f"    {line}" for line in text.splitlines())


def _note(kind: CommandKind, now: ExecutionResult, before: ExecutionResult | None) -> str:
    """Say why a check of the project is false, and whether it passed before."""
    why = now.stderr_truncated if now.assessment is Assessment.LOST else f"it ended with {now.assessment.value}"
    if before is not None and before.passed:
        return f"{kind.value}: {why}; it passed before"
    return f"{kind.value}: {why}; it did not pass before either"
