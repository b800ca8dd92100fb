"""Prepare the environments of projects, once for each state of their lock and manifest files."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import assert_never

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.verify.checks import CheckSpec, Language, Project, SetupSettings, VerifySettings
from fairwitness.git.shadow import Shadow
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.discovery.files import TreeFiles
from fairwitness.verify.environment.environment_store import EnvironmentStore
from fairwitness.verify.environment.machine import search_path
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.node import prepare_node
from fairwitness.verify.environment.python import prepare_python
from fairwitness.verify.environment.request import EnvironmentRequest
from fairwitness.verify.environment.toolchains import prepare_toolchain
from fairwitness.verify.folder_lock import locked_folder
from fairwitness.verify.model import Progress, ProgressCallback, refuse_stopped
from fairwitness.verify.tree_view import TreeView


def prepare(
    project: Project,
    files: TreeFiles,
    checkout: Path | None,
    *,
    state: Path,
    user_checkout: Path | None,
    settings: SetupSettings,
    runner: Runner,
    tools: Sequence[str] = (),
    min_tier: SandboxTier = SandboxTier.UID,
    environ: Mapping[str, str] | None = None,
    cancel: Event | None = None,
) -> Environment | NoEnvironment:
    """Return the environment of a project at a tree, or why there is none.

    Sources in order: the commands of [verify.setup]; an environment of the user's own checkout, if its lock and
    manifest files equal the tree's; what can be installed from the tree's lock and manifests; the interpreter of this
    machine. `checkout` is the tree as a folder, wanted by commands of [verify.setup] that read more than manifests.
    """
    variables = dict(os.environ if environ is None else environ)
    repositories = [path for path in (user_checkout, checkout) if path is not None]
    request = EnvironmentRequest(
        project=project,
        files=files,
        settings=settings,
        store=EnvironmentStore(state / "env", runner, settings.timeout_s, min_tier, cancel),
        environ=variables,
        search=search_path(repositories, path=variables.get("PATH", os.defpath)),
        checkout=checkout,
        user_checkout=user_checkout,
        tools=tuple(tools),
    )
    match project.language:
        case Language.PYTHON:
            return prepare_python(request)
        case Language.NODE:
            return prepare_node(request)
        case Language.RUST | Language.GO | Language.JAVA | Language.NATIVE | Language.OTHER:
            return prepare_toolchain(request)
        case _:
            assert_never(project.language)


_INTERPRETERS = frozenset({"python", "node"})


class Environments:
    """The environments of one verification, each prepared on first use, once per project and tree; thread-safe."""

    def __init__(
        self,
        *,
        runner: Runner,
        shadow: Shadow,
        state: Path,
        settings: VerifySettings,
        user_checkout: Path | None,
        checks: Iterable[CheckSpec],
        on_progress: ProgressCallback,
        stop: threading.Event | None = None,
    ) -> None:
        self._runner = runner
        self._shadow = shadow
        self._state = state
        self._settings = settings
        self._user_checkout = user_checkout
        self._tools: dict[tuple[str, str], set[str]] = {}
        for spec in checks:
            if spec.tool in _INTERPRETERS:
                continue  # every environment is one
            self._tools.setdefault((spec.root, spec.language), set()).add(spec.tool)
        self._on_progress = on_progress
        self._stop = stop
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], Environment | NoEnvironment] = {}

    def prepare(self, project: Project, tree: str) -> Environment | NoEnvironment:
        """Return the environment of a project at a tree, or why there is none."""
        key = (project.root, project.language, tree)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._prepare(project, tree, TreeView(self._shadow, tree))
            return self._known[key]

    def _prepare(self, project: Project, tree: str, files: TreeView) -> Environment | NoEnvironment:
        place = project.language if project.root == "." else f"{project.root} ({project.language})"
        self._on_progress(Progress("begin", "environment", place))
        with self._checked_out(tree) as checkout:
            made = prepare(
                project,
                files,
                checkout,
                state=self._state,
                user_checkout=self._user_checkout,
                settings=self._settings.setup,
                runner=self._runner,
                tools=sorted(self._tools.get((project.root, project.language), ())),
                min_tier=self._settings.sandbox.tier,
                cancel=self._stop,
            )
        refuse_stopped(self._stop)  # a stopped preparation is no evidence about the tree
        said = made.prepared_by if isinstance(made, Environment) else f"none: {made.reason}"
        self._on_progress(Progress("end", "environment", f"{place}: {said}"))
        return made

    @contextmanager
    def _checked_out(self, tree: str) -> Iterator[Path | None]:
        """Yield the tree as a folder for the commands of [verify.setup], which may need more than manifests; else None.

        An environment may contain the path of its project, so the folder has the same name each time, and other
        verifications of the same tree wait for it.
        """
        if not self._settings.setup.commands:
            yield None
            return
        with locked_folder(self._state / "work", f"setup-{tree[:16]}", self._stop) as folder:
            self._shadow.checkout(tree, folder)
            yield folder
