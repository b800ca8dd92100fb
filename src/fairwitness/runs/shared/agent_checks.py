"""The project's checks and toolchain for one agent: it works in the environment that its work is judged in.

`run_check` runs a check of the project with the harness, in a checkout of the files as the agent has them now. The
agent's terminal gets the prepared environments of the projects on its PATH. Environments are prepared when a command
first needs them, and kept as for every check.
"""

import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from fairwitness.agents.toolset.model import CommandEnvironment, ToolFailed
from fairwitness.contracts.common.tools import POLICIES, Role, Tool
from fairwitness.contracts.verify.checks import LONG_S, CheckSpec, Discovered, Project
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.contracts.verify.results import Evidence, ItemOutcome, Ran
from fairwitness.runs.dispatch import DispatchDeps
from fairwitness.runs.dispatch.blocking import run_blocking_stoppable
from fairwitness.runs.shared.shell_checks import project_of_line, shell_check
from fairwitness.sandbox.checked_command import PATH
from fairwitness.verify.cascade import project_of
from fairwitness.verify.environment.model import Environment
from fairwitness.verify.failed_checks import lines_of
from fairwitness.verify.folder_lock import locked_folder
from fairwitness.verify.model import AGENT, CheckRequest, selected_ids
from fairwitness.verify.subject import VerifyDeps, environments_of, harness_of, ignore_progress
from fairwitness.verify.tree_view import checks_at

_SUBJECT = VerifySubject(task_id="agent-checks")
_ENDINGS = {Evidence.PASSED: "passed", Evidence.FAILED: "failed", Evidence.NONE: "could not be run"}


class AgentChecks:
    """The checks of the project in one agent's worktree."""

    def __init__(
        self, deps: VerifyDeps, run_id: str, folder: Path, base_tree: str, lines: Mapping[str, str] | None = None
    ) -> None:
        """`base_tree` is the tree that the worktree was made from; `lines` are commands of the settings, by name."""
        self._deps, self._run_id, self._folder, self._base_tree = deps, run_id, folder, base_tree
        self._lines = dict(lines or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the checks, as `run_check` takes them."""
        return tuple(self._specs(self._at_base))

    async def run_check(self, check: str, path: str | None = None) -> str:
        """Run one check on the files as they are, or a part of it; return what it said."""
        return await run_blocking_stoppable(lambda stop: self._run(check, path, stop))

    def surroundings(self) -> CommandEnvironment:
        """Return the prepared environments of the projects, for the agent's own commands."""
        found = self._at_base
        environments = environments_of(self._deps, found.checks, on_progress=ignore_progress)
        used = [self._project(spec, found) for spec in self._specs(found).values()]
        projects = [project for project in found.projects if project in used]
        prepared = [environments.prepare(project, self._base_tree) for project in projects]
        from fairwitness.verify.environment.resolve import toolchain

        chains = [toolchain(each, self._folder) for each in prepared if isinstance(each, Environment)]
        path = dict.fromkeys([folder for chain in chains for folder in chain.path] + PATH.split(":"))
        env: dict[str, str] = {}
        for chain in reversed(chains):
            env |= chain.env
        read = dict.fromkeys(str(place) for chain in chains for place in chain.read)
        return CommandEnvironment(read=tuple(read), env=env | {"PATH": ":".join(path)})

    @cached_property
    def _at_base(self) -> Discovered:
        return checks_at(self._deps.shadow, self._base_tree, self._deps.settings)

    def _specs(self, found: Discovered) -> dict[str, CheckSpec]:
        lines = {
            name: shell_check(name, command, timeout_s=LONG_S, found_in="the settings of the run")
            for name, command in self._lines.items()
        }
        return {spec.id: spec for spec in found.checks} | lines

    def _project(self, spec: CheckSpec, found: Discovered) -> Project:
        line = self._lines.get(spec.id)
        return project_of(spec, found) if line is None else project_of_line(line, found)

    def _run(self, name: str, path: str | None, stop: threading.Event) -> str:
        deps = self._deps
        tree = deps.shadow.take(self._folder, self._base_tree).tree
        found = checks_at(deps.shadow, tree, deps.settings)
        specs = self._specs(found)
        if name not in specs:
            raise ToolFailed(f"there is no check {name}; the checks: {', '.join(specs) or 'none'}")
        spec = specs[name]
        ids = selected_ids(spec, (path,)) if path else ()
        note = f"{name} cannot be narrowed, so all of it ran.\n" if path and not ids else ""
        place = hashlib.sha256(str(self._folder).encode()).hexdigest()[:12]
        with (
            locked_folder(deps.scratch / "work", f"agent-{place}", stop) as work,
            harness_of(
                deps, _SUBJECT, found, found, run_id=self._run_id, work=work, on_progress=ignore_progress, stop=stop
            ) as harness,
        ):
            ran = harness.run(CheckRequest(spec, self._project(spec, found), tree, AGENT, ids=ids))
        inside = re.compile(rf"{re.escape(str(deps.scratch))}/work/[^/\s]+/[^/\s]+/tree/")
        return inside.sub("", f"{note}{_told(name, ran)}")  # the folder of the check is gone


def with_checks(deps: DispatchDeps, role: Role, checks: AgentChecks) -> DispatchDeps:
    """Return the dependencies of a dispatch with the checks and the toolchain that its role may use."""
    policy = POLICIES[role]
    if Tool.RUN_CHECK not in policy.tools:
        return deps
    return replace(
        deps,
        checks=checks.names,
        sources={**deps.sources, Tool.RUN_CHECK: checks.run_check},
        surroundings=checks.surroundings if policy.project_commands else deps.surroundings,
    )


def _told(name: str, ran: Ran) -> str:
    passed = sum(item.outcome is ItemOutcome.PASSED for item in ran.items)
    count = f", {passed} of {len(ran.items)} pass" if len(ran.items) > 1 else ""
    code = f", exit code {ran.exit_code}" if ran.exit_code is not None else ""
    lines = () if ran.evidence is Evidence.PASSED else lines_of(ran)
    return "\n".join((f"{name} {_ENDINGS[ran.evidence]}{count}{code}", *lines))
