"""Prepares what a project's checks need, once for each state of its lock and manifest files."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import assert_never

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.verify.checks import Language, Project, SetupSettings
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.discovery.files import TreeFiles
from fairwitness.verify.environment.environment_store import Workshop
from fairwitness.verify.environment.machine import search_path
from fairwitness.verify.environment.model import Environment, NoEnvironment
from fairwitness.verify.environment.node import prepare_node
from fairwitness.verify.environment.python import prepare_python
from fairwitness.verify.environment.request import Request
from fairwitness.verify.environment.toolchains import prepare_toolchain


def prepare(
    project: Project,
    files: TreeFiles,
    checkout: Path | None,
    *,
    state: Path,
    persons_checkout: Path | None,
    settings: SetupSettings,
    runner: Runner,
    tools: Sequence[str] = (),
    min_tier: SandboxTier = SandboxTier.UID,
    environ: Mapping[str, str] | None = None,
    cancel: Event | None = None,
) -> Environment | NoEnvironment:
    """The environment of a project of a tree; or why there is none.

    Sources in order: the commands of [verify.setup]; an environment of the person's own checkout, if its lock and
    manifest files equal the tree's; what the tree's lock and manifests let us install; the interpreter of this machine.
    `checkout` is the tree as a folder, wanted by commands of [verify.setup] that read more than manifests.
    """
    variables = dict(os.environ if environ is None else environ)
    repositories = [path for path in (persons_checkout, checkout) if path is not None]
    request = Request(
        project=project,
        files=files,
        settings=settings,
        workshop=Workshop(state / "env", runner, settings.timeout_s, min_tier, cancel),
        environ=variables,
        search=search_path(repositories, path=variables.get("PATH", os.defpath)),
        checkout=checkout,
        persons_checkout=persons_checkout,
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
