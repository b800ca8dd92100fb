"""A worktree with tools around it, for tests: real files, and real commands where a sandbox works."""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.agents.toolset.model import CommandEnvironment, GitReader, Surroundings, ToolResult, ToolSource
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import Denial
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role, Scope, Tool
from fairwitness.sandbox.probe import probe
from fairwitness.sandbox.runner import Runner
from fairwitness.sandbox.scripted import ScriptedRunner
from sandbox.kit import require

FOLDER = "docs/feature/login"
SCOPE = Scope(
    folder=FOLDER,
    writes=("src/**", "tests/*.py"),
    interactive=True,
)
FILES = {
    "README.md": "# Login\n",
    "src/a.py": "def one() -> int:\n    return 1\n",
    "src/deep/b.py": "from src.a import one\n\nprint(one())\n",
    "tests/test_a.py": "from src.a import one\n\n\ndef test_one() -> None:\n    assert one() == 1\n",
    ".gitignore": "build/\n*.log\n",
    "build/out.py": "one = 1\n",
    "src/run.log": "one\n",
    ".git/config": "[core]\n\tone = 1\n",
    ".fairwitness/state.json": '{"one": 1}\n',
}


def plant(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """Files in a folder."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def real_runner() -> Runner:
    """The strongest runner here; without any the test is skipped, by name."""
    if probe().tier is SandboxTier.NONE:
        require("uid")
    return backends.runner()


@dataclass
class Bench:
    """One toolbox, its worktree, and what was told."""

    root: Path
    role: Role = Role.IMPLEMENTER
    scope: Scope = SCOPE
    runner: Runner = field(default_factory=lambda: ScriptedRunner((), tier=SandboxTier.NONE))
    surroundings: Surroundings = CommandEnvironment
    sources: Mapping[Tool, ToolSource] = field(default_factory=dict)
    git: GitReader | None = None
    told: list[Denial] = field(default_factory=list)
    box: Toolbox = field(init=False)

    def __post_init__(self) -> None:
        self.box = Toolbox(
            role=self.role,
            scope=self.scope,
            worktree=self.root,
            runner=self.runner,
            surroundings=self.surroundings,
            sources=self.sources,
            git=self.git,
            denied=self.told.append,
        )

    def call(self, tool: str, **args: Any) -> ToolResult:
        """One call, to its end."""
        result = asyncio.run(self.box.call(tool, args))
        for root in (str(self.root), os.path.realpath(self.root)):
            assert re.search(re.escape(root) + r"(?![\w-])", result.text) is None
        assert "\x1b" not in result.text
        return result

    def good(self, tool: str, **args: Any) -> str:
        """What a call says that does what it is asked for."""
        result = self.call(tool, **args)
        assert result.ok, result.text
        return result.text

    def bad(self, tool: str, **args: Any) -> str:
        """The one sentence of a call that does not."""
        result = self.call(tool, **args)
        assert not result.ok, result.text
        assert result.text
        assert "\n" not in result.text
        return result.text

    def refused(self, tool: str, **args: Any) -> str:
        """The reason of a call that the policy refuses: said to the model, kept, and told."""
        before = len(self.box.denials)
        said = self.bad(tool, **args)
        assert said.startswith("refused: "), said
        assert len(self.box.denials) == before + 1
        assert self.told[-1] == self.box.denials[-1]
        assert self.box.denials[-1].reason == said.removeprefix("refused: ")
        return said.removeprefix("refused: ")

    def text(self, path: str) -> str:
        """What stands in a file."""
        return (self.root / path).read_bytes().decode("utf-8")
