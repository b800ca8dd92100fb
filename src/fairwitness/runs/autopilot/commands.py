"""Runs the commands of an autopilot run: of criteria, of scorecards, and the project's own; each once, in the sandbox.

A command is a line for `sh`. It runs in a checkout that is thrown away, in the environment of the project it is about,
without a network, and is not retried. How it ended is recorded at once; who asks again is told what was seen then.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.roadmap import CommandKind
from fairwitness.contracts.autopilot.words import CheckWord
from fairwitness.contracts.common.base import Contract, Texts
from fairwitness.contracts.common.evidence import Tree
from fairwitness.contracts.common.words import Assessment
from fairwitness.contracts.verify.checks import LONG_S, CheckSpec, Discovered, Language, ReportFormat
from fairwitness.contracts.verify.report import Subject
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.autopilot.environments import project_of
from fairwitness.runs.autopilot.executed import result_of
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.artifacts import Store
from fairwitness.verify.discovery.discover import discover
from fairwitness.verify.environments import TreeView
from fairwitness.verify.harness import Harness as Verifying
from fairwitness.verify.model import refuse_stopped
from fairwitness.verify.once import ask_once
from fairwitness.verify.question import Question
from fairwitness.verify.subject import VerifyDeps, harness_of, unheard
from fairwitness.verify.turns import sweep, turn

EXECUTION, CHECK, STANDING, CHECKS = "execution", "check", "standing", "checks"
"""Kinds of observations: a command of a criterion, a command of the project, a worktree, and what the checks said."""
SHELL = "/bin/sh"
_CHECKS = (CommandKind.COMPILE, CommandKind.TEST, CommandKind.LINT, CommandKind.BUILD)


class Asked(NamedTuple):
    """A criterion, and the command that fails as long as it is not met."""

    criterion: str
    command: str


class SeenChecks(Contract):
    """How the project's own commands went at a tree, and what a person should know of those that fail."""

    tree: Tree
    checks: AutomatedChecks
    notes: Texts


class _Batch(NamedTuple):
    """Commands that are run together, as rows of one kind under one name."""

    run_id: str
    kind: str
    scope: str
    asked: Sequence[Asked]
    tree: str
    seconds: float

    def key(self, place: int) -> str:
        return f"{self.kind}:{self.scope}:{place}"

    @property
    def name(self) -> str:
        """The same at every try; short, since a path must fit into the name of a socket."""
        return f"commands-{hashlib.sha256(f'{self.run_id} {self.key(0)}'.encode()).hexdigest()[:12]}"


class Harness:
    """What runs commands for one run, from any thread; each method blocks and is ended by `stop` with `Stopped`."""

    def __init__(
        self, log: AutopilotLog, parts: VerifyDeps, commands: Mapping[CommandKind, str | None], seconds: int
    ) -> None:
        self._log = log
        self._parts = replace(parts, use_cache=False)  # what another scope or run saw is no sight of this one
        self._commands = dict(commands)
        self._seconds = float(seconds)
        self._outputs = Store(parts.state)

    def run_all(
        self, scope: str, asked: Sequence[Asked], tree: str, *, stop: threading.Event
    ) -> tuple[ExecutionResult, ...]:
        """How each command ends at a tree, in their order; `UsageError` if the scope was about something else."""
        return self._run(_Batch(self._log.run_id, EXECUTION, scope, asked, tree, self._seconds), stop)

    def run_in(
        self, scope: str, asked: Sequence[Asked], folder: Path, *, stop: threading.Event
    ) -> tuple[ExecutionResult, ...]:
        """The same for a worktree as it stood when it was asked for first; it stays as it is."""
        return self.run_all(scope, asked, self._standing(scope, folder), stop=stop) if asked else ()

    def checks(self, scope: str, tree: str, base_tree: str, *, stop: threading.Event) -> AutomatedChecks:
        """How the project's own commands go at a tree: true only for one that passes there.

        One that fails is run at the base too. That it failed there makes it no better, but `notes` says so.
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
            words[kind] = "n/a" if run is None else run.assessment is Assessment.PASS
            if run is not None and not words[kind]:
                before = self._check(f"base-{base_tree}:{kind.value}", kind, base_tree, stop)
                notes.append(_note(kind, run, before))
        compiles, tests, lint, build = (words[kind] for kind in _CHECKS)
        checks = AutomatedChecks(compile=compiles, tests=tests, lint=lint, build=build)
        seen = self._log.keep(key, CHECKS, scope, SeenChecks(tree=tree, checks=checks, notes=tuple(notes)))
        killpoint("autopilot.checks")
        return seen.checks

    def notes(self, scope: str) -> Texts:
        """What is to be known of the checks of a scope that failed; nothing before they were run."""
        known = self._log.kept(f"{CHECKS}:{scope}", SeenChecks)
        return () if known is None else known.notes

    def _check(self, scope: str, kind: CommandKind, tree: str, stop: threading.Event) -> ExecutionResult | None:
        command = self._commands.get(kind)
        if command is None:
            return None
        asked = (Asked(f"the project's {kind.value} command", command),)
        # a whole test suite may take longer than the command of a criterion
        (run,) = self._run(_Batch(self._log.run_id, CHECK, scope, asked, tree, max(self._seconds, LONG_S)), stop)
        return run

    def _standing(self, scope: str, folder: Path) -> str:
        """The worktree as a tree, taken down before anything is run: all commands of a scope see the same."""
        key = f"{STANDING}:{scope}"
        known = self._log.ledger.observation(self._log.run_id, key)
        if known is not None and known.tree is not None:
            return known.tree
        worktree = Repository.open(folder)
        if worktree.head is None or worktree.common_dir != self._parts.repository.common_dir:
            raise UsageError(f"{folder} is no worktree of this repository", next_step="run it in one that is")
        tree = self._parts.shadow.snapshot(folder, worktree.tree_of(worktree.head))
        detail: dict[str, object] = {"commit": worktree.head}
        row = self._log.seen(key, STANDING, scope, detail, self._log.now(), tree=tree)
        self._log.ledger.record(self._log.run_id, lambda record: record.observation(row))
        killpoint("autopilot.standing")
        return tree

    def _run(self, batch: _Batch, stop: threading.Event) -> tuple[ExecutionResult, ...]:
        known = self._known(batch)
        if len(known) == len(batch.asked):
            sweep(self._parts.scratch / "work")  # who ran them may have been killed before it could tidy up
            return known
        refuse_stopped(stop)
        with turn(self._parts.scratch / "work", batch.name, stop) as work:
            results = list(self._known(batch))  # another process may have had the turn before
            if len(results) == len(batch.asked):
                return tuple(results)
            found = discover(TreeView(self._parts.shadow, batch.tree), self._parts.settings)
            with harness_of(
                self._parts,
                Subject(task_id=batch.name),
                found,
                found,
                run_id=self._log.run_id,
                work=work,
                tell=unheard,
                stop=stop,
            ) as harness:
                for place in range(len(results) + 1, len(batch.asked) + 1):
                    results.append(self._ended(harness, batch, place, found, results))
            return tuple(results)

    def _known(self, batch: _Batch) -> tuple[ExecutionResult, ...]:
        """What was recorded of a batch, up to the first command that was not run."""
        known = []
        for place, asked in enumerate(batch.asked, start=1):
            row = self._log.ledger.observation(self._log.run_id, batch.key(place))
            if row is None:
                break
            result = ExecutionResult.model_validate(row.detail["document"])
            is_other = (row.tree, result.criterion, result.command) != (batch.tree, *asked)
            _refuse_other(row.key, row.tree, is_other=is_other)
            known.append(result)
        return tuple(known)

    def _ended(
        self, harness: Verifying, batch: _Batch, place: int, found: Discovered, before: Sequence[ExecutionResult]
    ) -> ExecutionResult:
        """Runs one command and takes down how it ended; one that stands in the batch before is not run again."""
        asked = batch.asked[place - 1]
        same = next((run for run in before if run.command == asked.command), None)
        execution: int | None = None
        if same is not None:
            result = same.model_copy(update={"criterion": asked.criterion})
        else:
            spec = _spec(asked.command, batch, place)
            question = Question(spec, project_of(asked.command, found), batch.tree, f"command-{place}")
            ran = ask_once(harness, question)
            result = result_of(self._log, self._outputs, asked.criterion, asked.command, ran)
            execution = ran.execution
        row = self._log.seen(
            batch.key(place),
            batch.kind,
            batch.scope,
            {"document": result.plain(), "execution": execution},
            self._log.now(),
            holds=result.assessment is Assessment.PASS,
            tree=batch.tree,
        )
        self._log.ledger.record(self._log.run_id, lambda record: record.observation(row))
        killpoint(f"autopilot.{batch.kind}")
        return result


def _refuse_other(key: str, tree: str | None, *, is_other: bool) -> None:
    if is_other:
        raise UsageError(
            f"{key} was run for another command or tree in this run ({tree})",
            next_step="a scope is run once; ask for this one under another name",
        )


def _spec(command: str, batch: _Batch, place: int) -> CheckSpec:
    """The command as a check that says yes or no by its exit code alone."""
    return CheckSpec(
        id=f"{batch.name}/{place}",
        name=f"{batch.kind}-{place}",
        tier=2,
        root=".",
        language=Language.OTHER,
        tool="sh",
        argv=(SHELL, "-c", f"{command}\n"),  # with a line end, the braces in it are its own
        report=ReportFormat.EXIT,
        timeout_s=batch.seconds,
        writes=True,
        required=True,
        found_in=f"{batch.kind} {batch.scope}",
    )


def _note(kind: CommandKind, now: ExecutionResult, before: ExecutionResult | None) -> str:
    """Why a check of the project is false, and whether it was so before."""
    why = now.stderr_truncated if now.assessment is Assessment.LOST else f"it ended with {now.assessment.value}"
    if before is not None and before.assessment is Assessment.PASS:
        return f"{kind.value}: {why}; it passed before"
    return f"{kind.value}: {why}; it did not pass before either"
