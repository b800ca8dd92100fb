"""A small repository that comes with the package, and what each role is asked to do in it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.catalog import BY_NAME
from fairwitness.contracts.common.tools import POLICIES, Role, Scope
from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.feature.document import SignedDocument

FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# Shop\n\nPrices and what they cost to send. `python3 -m unittest` runs the tests.\n",
    "shop.py": (
        'def price(total, rate=0):\n    """What a customer pays after a rebate in percent."""\n'
        "    return total - total * rate // 100\n"
    ),
    "test_shop.py": (
        "import unittest\n\nfrom shop import price\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_full_price(self):\n        self.assertEqual(price(100), 100)\n\n"
        "    def test_rebate(self):\n        self.assertEqual(price(200, 10), 180)\n"
    ),
}
REQUEST = "Orders of 50 and more are sent free, smaller ones cost 5. Add `shipping(total)` to shop.py, with tests.\n"
CHANGE = """\
--- a/shop.py
+++ b/shop.py
@@ -1,3 +1,7 @@
 def price(total, rate=0):
     \"\"\"What a customer pays after a rebate in percent.\"\"\"
     return total - total * rate // 100
+
+
+def shipping(total):
+    return 0 if total > 50 else 5
"""
TESTS = ("python3", "-m", "unittest")
TASKS = {
    Role.INTAKE: "Say what is doubtful about the request.",
    Role.RESEARCHER: "Report what has to be known about this repository before the request is carried out.",
    Role.SPEC: "Write the specification for the request.",
    Role.DESIGNER: "Design how the request is carried out.",
    Role.REVIEWER: "Review the change against the request.",
    Role.PLANNER: "Plan how the request is carried out.",
    Role.VERIFIER: "Find out whether the change does what was asked for.",
    Role.KNOWLEDGE: "Write down what a later run should know.",
    Role.PHASE_RESEARCHER: "Find out what a plan for the request has to know.",
    Role.PHASE_PLANNER: "Plan the phase that carries out the request.",
    Role.CAPTAIN: "Plan how the request is carried out.",
    Role.QUESTIONING: "Ask what is missing.",
    Role.RATER: "Score the change against the request.",
    Role.JUDGE: "Judge the change against the request.",
}
BUILD = "Carry out the request: change shop.py and add tests in test_shop.py."
CHECK = "Find out whether the change does what the request asks for."
_JUDGES = frozenset(
    {Role.REVIEWER, Role.VERIFIER, Role.MINI_VERIFIER, Role.PHASE_VERIFIER, Role.JUDGE, Role.RATER, Role.SELF_AUDIT}
)
_FOLDERS = {Workflow.FEATURE: "docs/feature/shipping", Workflow.AUTOPILOT: ".planning/phases/1", Workflow.FORGE: ""}
_MODES = {Role.SPEC: "autonomous", Role.PLANNER: "initial", Role.CAPTAIN: "plan"}
_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}


def lay_out(folder: Path) -> Path:
    """The repository, with one commit, in a folder that holds nothing else."""
    repository = folder / "shop"
    repository.mkdir(parents=True)
    for name, content in FILES.items():
        (repository / name).write_text(content)
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "a small shop")):
        _git(repository, *arguments)
    return repository


def _git(repository: Path, *arguments: str) -> None:
    """Git as the toy's own person, whatever the real one has configured."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
    }
    subprocess.run(["git", *arguments], cwd=repository, env=environment, check=True, stdout=sys.stderr)


def brief_of(spec: RoleSpec, instance: str, *, run_id: str, dispatch_id: str, moment: str) -> Brief:
    """What a role is asked to do here."""
    policy = POLICIES[spec.role]
    task = TASKS.get(spec.role, BUILD if policy.source else CHECK)
    inputs = [PromptSection(title="The request", text=REQUEST)]
    if spec.role in _JUDGES:
        inputs.append(PromptSection(title="The change", text=CHANGE))
    return Brief(
        dispatch_id=dispatch_id,
        run_id=run_id,
        role=spec.role,
        instance=instance,
        task=task,
        parameters={name: _value(name, spec, instance) for name in spec.parameters},
        inputs=tuple(inputs),
        scope=Scope(
            folder=_FOLDERS[spec.workflow],
            writes=("shop.py", "test_*.py") if policy.source else (),
            commands=(TESTS,) if policy.project_commands else (),
        ),
        known=_known(spec, instance, moment),
    )


def _value(name: str, spec: RoleSpec, instance: str) -> str:
    match name:
        case "focus":
            return instance.removeprefix("researcher-")
        case "perspective":
            return instance
        case "mode":
            return _MODES[spec.role]
        case "scope":
            return "code"
        case "goal":
            return "find_and_fix"
        case "task_id":
            return "task-001" if spec.workflow is Workflow.FORGE else "task-01"
        case _:
            return "1"


def _known(spec: RoleSpec, instance: str, moment: str) -> dict[str, Any]:
    """What no agent can know: who it is to us, and when."""
    shape = BY_NAME[spec.answer].shape if spec.answer is not None else None
    if isinstance(shape, type) and issubclass(shape, SignedDocument):
        header = {
            "agent": spec.role.value,
            "instance": instance,
            "step": "step-1",
            "started_at": moment,
            "completed_at": moment,
            "schema_version": "1.0",
        }
        output = f"{_FOLDERS[spec.workflow]}/{spec.answer}.yaml"
        return {f"agent_output.{name}": value for name, value in header.items()} | {"completion.output_paths": [output]}
    if spec.answer == "forge-worker-return":
        walkthrough = {"task_id": "task-001", "branch": "forge/task-001/attempt-1", "base_ref": "main"}
        return {f"walkthrough.{name}": value for name, value in walkthrough.items()}
    return {}
