"""No fault of the machine makes a run fail: a table of all errors, one of all places that catch errors, and runs."""

import ast
import asyncio
import errno
import re
from importlib import import_module
from pathlib import Path

import pytest

import fairwitness
from engine.grounds import PATIENCE_S, Ground
from engine.test_dbos_engine import on_a_file, opened, over, until
from fairwitness.engine.base import ExecutionStatus, Flow, Json
from fairwitness.errors import FairWitnessError, InternalError, UsageError, is_machine_fault
from fairwitness.git.call import GitFailed
from support.ladder import WIDTH, Width

SOURCE = Path(fairwitness.__path__[0])

INTERRUPTS = {
    "DatabaseAway": True,
    "DatabaseBusy": True,
    "DatabaseUnusable": True,
    "DiskRefused": True,
    "EventsBroken": True,
    "Fenced": True,
    "Interrupted": True,
    "LedgerTampered": True,
    "NotReady": True,
    "ProviderAway": True,
    "AlreadyWritten": False,
    "BadDocument": False,
    "ChangedOrder": False,
    "EngineError": False,
    "FairWitnessError": False,
    "GitFailed": False,
    "HashMismatch": False,
    "Immutable": False,
    "InternalError": False,
    "NotStored": False,
    "ProfileMismatch": False,
    "RepeatedKey": False,
    "RowRefused": False,
    "StepError": False,
    "StoreError": False,
    "UnsafePath": False,
    "UsageError": False,
    "VerificationStopped": False,
}
"""Every error of Fair Witness: True interrupts a run until the machine is well, False is a result of the step."""

NUMBERS = ("ENOSPC", "EDQUOT", "ENOMEM", "EIO", "EROFS", "EMFILE", "ENFILE", "ESTALE", "EAGAIN")
"""The errors of the operating system that interrupt a run."""

CAUGHT = {
    "runs/dispatch/worktree_snapshot.py": {"_remove_empty": "a folder that is not empty, or is gone, stays as it is"},
    "agents/driver.py": {
        "_converse": "a machine fault passes; anything else is an outcome of the agent",
        "_end": "a session that is over cannot be cancelled",
    },
    "dag/attempt.py": {"attempt": "StepError only, which is never a machine fault"},
    "engine/database.py": {"call": "a busy file or a full disk is waited for; anything else passes"},
    "engine/dbos_flow.py": {
        "attempt": "a machine fault passes; anything else is recorded",
        "_outlast_disk": "a full disk is waited for; anything else passes",
    },
    "engine/json_values.py": {"tellable": "an error that cannot be converted to text"},
    "engine/locks.py": {
        "_host": "a system without /proc",
        "_started": "the process is gone",
        "_state": "the process is gone",
        "end_stopped": "the process is gone, or another user's",
    },
    "engine/leases.py": {"_keep": "the keeper of the lease tries again"},
    "engine/worker.py": {
        "_body": "a machine fault passes; anything else is the result of the run",
        "_give_back": "the row is removed with its worker",
        "go_on": "the next poll may succeed",
    },
    "runs/autopilot/preflight.py": {
        "changed_specs": "a machine fault passes; an unreadable file counts as missing",
        "_is_ours": "the commit may lack the file",
    },
    "runs/dispatch/audit.py": {"audit": "a machine fault passes; a worktree that cannot be read is refused"},
    "runs/dispatch/dispatch.py": {"_outlast_disk": "a full disk is waited for; anything else passes"},
    "runs/feature/actions.py": {"_by_us": "a machine fault passes; anything else is an outcome"},
    "runs/feature/knowledge.py": {"_part": "a machine fault passes; anything else is noted"},
    "runs/shared/agent_calls.py": {"awaited": "raised when the calls beside it have ended"},
    "runs/feature/setup.py": {"_sweep": "a folder that is not empty stays"},
    "runs/forge/helpers.py": {"_asked": "a machine fault passes; anything else is the helper's result"},
    "runs/dispatch/blocking.py": {"run_blocking": "raised again at the end"},
}
"""Every place between an error and the end of a run that catches more than it names, and why no machine fault fails
there."""

_BROAD = {"Exception", "BaseException", "FairWitnessError", "NotReady", "OSError", "StepError", "DatabaseUnusable"}


def _errors() -> dict[str, type[FairWitnessError]]:
    """Every class below `FairWitnessError`, found in the sources, so that a module that nothing loaded counts too."""
    modules = {path: re.findall(r"^class (\w+)\((\w+)\)", path.read_text(), re.M) for path in SOURCE.rglob("*.py")}
    found = {"FairWitnessError": FairWitnessError}
    while True:
        more = {
            name: getattr(import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)), name)
            for path, classes in modules.items()
            for name, base in classes
            if base in found and name not in found
        }
        if not more:
            return found
        found |= more


@pytest.mark.req("P12", "F10")
def test_for_every_error_it_is_decided_whether_it_interrupts_a_run() -> None:
    assert {name: error.is_machine_fault for name, error in _errors().items()} == INTERRUPTS


@pytest.mark.req("P12")
def test_every_place_that_catches_broadly_is_in_the_table() -> None:
    found: dict[str, set[str]] = {}
    for folder in ("workflows", "dag", "runs", "engine", "agents/driver.py"):
        place = SOURCE / folder
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            caught = {name for name, kinds in _handlers(ast.parse(path.read_text())) if kinds & _BROAD}
            if caught:
                found[str(path.relative_to(SOURCE))] = caught
    assert found == {path: set(places) for path, places in CAUGHT.items()}


def _handlers(tree: ast.Module) -> list[tuple[str, set[str]]]:
    """Return the function of each handler that does more than raise, and what it catches."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in _own(function):
                if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
                    kinds = (
                        {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else _BROAD
                    )
                    found.append((function.name, kinds))
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "suppress":
                    found.append((function.name, {name.id for name in node.args if isinstance(name, ast.Name)}))
    return found


def _own(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function without those of the functions in it."""
    found = []
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node, *_own(node)]
    return found


MACHINE: list[Exception] = [
    *(error("a fault") for name, error in _errors().items() if INTERRUPTS.get(name) and name != "Fenced"),
    *(OSError(getattr(errno, name), name) for name in NUMBERS),
    GitFailed("fatal: write error: No space left on device"),
    MemoryError(),
]
OTHERS: list[Exception] = [
    UsageError("no"),
    InternalError("no"),
    ValueError("no"),
    OSError(errno.ENOENT, "no"),
    KeyError(),
]


@on_a_file
@pytest.mark.width("sample")
@pytest.mark.timeout(300)
@pytest.mark.req("P12", "P16")
def test_a_machine_fault_in_a_step_a_body_or_a_child_interrupts_and_every_other_error_fails(ground: Ground) -> None:
    raised: dict[str, Exception] = {
        f"m{number}": error for number, error in enumerate(MACHINE[:: 5 if WIDTH is Width.SAMPLE else 1])
    }
    raised |= {f"o{number}": error for number, error in enumerate(OTHERS)}
    is_well = False

    def trouble(name: str) -> None:
        if not is_well or name.startswith("o"):
            raise raised[name]

    async def in_step(flow: Flow, args: Json) -> Json:
        async def work() -> Json:
            trouble(str(args))
            return "well"

        return await flow.step("work", work)

    async def in_body(_flow: Flow, args: Json) -> Json:
        trouble(str(args))
        return "well"

    async def in_child(flow: Flow, args: Json) -> Json:
        child = f"{flow.run_id}/c"

        async def graph() -> Json:
            await flow.submit(child, "step", args)
            while not (ended := await flow.wait([child], timeout_s=1)):
                pass
            return ended[child].status.value

        return await flow.step("graph", graph)

    flows = {"step": in_step, "body": in_body, "child": in_child}
    runs = [(flow, name) for flow in flows for name in raised]

    async def main() -> None:
        nonlocal is_well
        async with opened(ground, flows) as engine:
            for flow, name in runs:
                run = f"{flow}-{name}"
                await engine.submit(run, flow, name)
                if name.startswith("m"):
                    assert is_machine_fault(raised[name])
                    await until(lambda: engine.interruption is not None and engine.is_idle, PATIENCE_S)
                    assert await engine.outcome(run) is None, f"{raised[name]!r} in {flow} ended the run"
                    assert await engine.outcome(f"{run}/c") is None
                    engine.go_on()
                else:
                    status, value, _ = await over(engine, run, PATIENCE_S)
                    expected = (ExecutionStatus.DONE, "failed") if flow == "child" else (ExecutionStatus.FAILED, None)
                    assert (status, value) == expected
        is_well = True
        async with opened(ground, flows) as engine:
            for flow, name in runs:
                if name.startswith("m"):
                    status, value, error = await over(engine, f"{flow}-{name}", PATIENCE_S)
                    assert (status, value) == (ExecutionStatus.DONE, "done" if flow == "child" else "well"), error

    asyncio.run(main())
