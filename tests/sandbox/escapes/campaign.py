"""Runs attempts one after another in one tier, or unconfined, as whoever it was started as; prints what came of each.

Started by `starting` as `python -m sandbox.escapes.campaign <folder> <tier or bare> <ids>`, leading a session of its
own, with a secret in its environment: it is the orchestrator that some of the attempts are after.
"""

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from sandbox.escapes import attacks
from sandbox.escapes.attacks.calls import Orders
from sandbox.escapes.attacks.processes import DAEMONS, HEARTBEATS, UP
from sandbox.escapes.judge import GAVE_UP, Bench, Ran
from sandbox.escapes.listeners import Key, Listeners, SharedMemory, Terminal, answers, free_port
from sandbox.escapes.table import BY_ID, MIB, Attempt, Channel
from sandbox.escapes.watcher import Seen, Watcher, is_stopped
from sandbox.escapes.world import Decoy, Scene, build

T = TypeVar("T")
BARE = "bare"
SECRET = "FAIRWITNESS_ESCAPE_TOKEN"
_LANES = 6
_PATIENCE_S = 30.0
_TURNS = 2
_MORE_TIME = 3
"""A machine that is busy with other things gets further turns, each with so many times longer."""
_LIMITS: dict[str, int | float] = {"wall_s": 60, "disk": 1 << 30, "memory": 512 * MIB, "memory_process": 512 * MIB}


@dataclass(frozen=True)
class Verdict:
    """What came of one attempt."""

    id: str
    escapes: dict[str, list[str]]
    """What was seen outside, by channel; empty if it was held."""
    lost: str
    """Why nothing can be said about it, if so."""
    ran: dict[str, Any]
    is_slow: bool = False
    """Whether that is only because the machine had no time for it."""


class Campaign:
    """Everything that the attempts of one tier share."""

    def __init__(self, folder: Path, tier: str) -> None:
        self.tier = tier
        self.folder = folder
        self.secret = os.environ[SECRET]
        self.tools = folder / "tools"
        self.python, self.prefixes = _python()
        source = Path(next(iter(attacks.__path__)))
        shutil.copytree(source, self.tools / "sandbox" / "escapes" / "attacks", ignore=shutil.ignore_patterns("__*"))
        compileall.compile_dir(self.tools, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        for path in (folder, *self.tools.rglob("*"), self.tools):
            path.chmod(0o755)
        self._device = _root_device()
        self.terminal = Terminal()
        self.listeners = Listeners()
        self.key = Key(self.secret)
        self.memory = SharedMemory(self.secret)
        self.watcher = Watcher()

    def close(self) -> None:
        for shared in (self.listeners, self.watcher):
            shared.close()
        self.key.remove()
        self.memory.remove()

    def run(self, attempt: Attempt) -> Verdict:
        """One attempt; again with more time if it did not even come to try."""
        turn = 0
        while (verdict := self._turn(attempt, _MORE_TIME**turn)).is_slow and turn < _TURNS:
            turn += 1
        return verdict

    def _turn(self, attempt: Attempt, times: int) -> Verdict:
        """One attempt in a scene of its own."""
        scene = build(self.folder, attempt.id)
        decoy = Decoy(scene) if attempt.decoy else None
        try:
            return self._judged(attempt, scene, decoy, times)
        finally:
            self.watcher.end_all(scene.root, patience_s=attempt.life_s + 1)
            if decoy is not None:
                decoy.stop()
            scene.remove()

    def _judged(self, attempt: Attempt, scene: Scene, decoy: Decoy | None, times: int) -> Verdict:
        orders = self._orders(attempt, scene, decoy)
        before, pointer = scene.snapshot(), scene.pointer()
        seen = Seen(attempt.watch, scene.worktree, orders.decoy, scene.elsewhere if attempt.id == "W21" else None)
        self.watcher.begin(scene.root, seen)
        calling = Asking(lambda: str(scene.root).encode() in answers(orders.free_port)) if attempt.id == "N06" else None
        ran = self._run(attempt, scene, orders, times)
        self.watcher.end(scene.root)
        bench = Bench(attempt, scene, ran, orders.life_s)
        bench.survivors(self.watcher.processes(scene.root))
        bench.outside(before, pointer)
        bench.worktree([scene.secret, self.secret])
        bench.seen(seen)
        bench.limits(seen)
        if decoy is not None:
            bench.decoy(decoy)
        if self.tier != BARE:
            bench.report()
        if self.listeners.heard(str(scene.root), patience_s=1.0 if attempt.channel is Channel.NETWORK else 0):
            bench.note(Channel.NETWORK, "a listener of this machine heard it")
        if seen.answers:
            bench.note(Channel.FILES, f"{sorted(seen.answers)} were there for a while")
        if calling is not None and calling.ended():
            bench.note(Channel.NETWORK, "it was heard on this machine's loopback")
        if attempt.id == "P13" and (came := self.terminal.characters()):
            bench.note(Channel.TERMINAL, f"the terminal got {came!r}")
        lost, is_slow = self._lost(attempt, ran, seen)
        facts = {**ran.facts, "elapsed_s": round(ran.elapsed_s, 2), "looked": seen.looked}
        facts |= {
            "stdout": ran.stdout[:2000].decode(errors="replace"),
            "stderr": ran.stderr[:2000].decode(errors="replace"),
        }
        escapes = {str(channel): what for channel, what in bench.escapes.items()}
        return Verdict(attempt.id, escapes, lost, facts, is_slow)

    def _lost(self, attempt: Attempt, ran: Ran, seen: Seen) -> tuple[str, bool]:
        """Why nothing can be said about an attempt, if so; and whether more time would help."""
        out_of_time = ran.limit_hit == "wall" or ran.end == GAVE_UP
        if f"begun {attempt.id}\n".encode() not in ran.stdout:
            return "the attempt never began", out_of_time
        if ran.end == "sandbox_error" and attempt.id != "X02":
            return "the sandbox was lost", False
        if attempt.id in DAEMONS and UP.encode() not in ran.stdout:
            return "its daemons never came up", out_of_time
        if attempt.watch and not seen.looked and ran.limit_hit in (None, "wall"):
            return "its processes could not be looked at", True  # a busy machine: it is tried again
        return (f"something could not be looked at: {seen.blind}", False) if seen.blind else ("", False)

    def _orders(self, attempt: Attempt, scene: Scene, decoy: Decoy | None) -> Orders:
        amount = attempt.amount
        if self.tier == BARE and attempt.control.amount is not None:
            amount = attempt.control.amount
        return Orders(
            id=attempt.id,
            scene=str(scene.root),
            outside=str(scene.folder("outside")),
            visible=str(scene.folder("visible")),
            home=str(scene.folder("home")),
            other=str(scene.folder("tasks") / "other"),
            git=str(scene.git),
            database=str(scene.database),
            temporary=str(scene.temporary),
            outside_inode=scene.folder("outside").stat().st_ino,
            device=self._device[0],
            device_number=self._device[1],
            orchestrator=os.getpid(),
            decoy=decoy.pid if decoy else 0,
            decoy_address=decoy.address if decoy else 0,
            decoy_length=decoy.length if decoy else 0,
            decoy_handle=decoy.handle if decoy else 0,
            tcp=self.listeners.tcp,
            udp=self.listeners.udp,
            abstract=self.listeners.abstract,
            socket=str(self.listeners.file),
            free_port=free_port(),
            key=self.key.number,
            key_name=self.key.name,
            shared_memory=self.memory.number,
            own_pids=self.tier == "ns",
            confined=self.tier != BARE,
            watched=bool(attempt.watch),
            amount=amount,
            life_s=attempt.control.life_s if self.tier == BARE and attempt.life_s else attempt.life_s,
        )

    def _run(self, attempt: Attempt, scene: Scene, orders: Orders, times: int) -> Ran:
        module = f"{attacks.__name__}.{attempt.module}"
        argv = [self.python, "-s", "-S", "-P", "-B", "-m", module, json.dumps(orders._asdict())]
        if attempt.id != "W15":
            return self._start(attempt, scene, argv, times)
        outside = scene.folder("outside")
        handles = [os.open(outside / "inherited.txt", os.O_RDWR), os.open(outside, os.O_RDONLY | os.O_DIRECTORY)]
        try:
            for handle in handles:
                os.set_inheritable(handle, True)
            return self._start(attempt, scene, argv, times)
        finally:
            for handle in handles:
                os.close(handle)

    def _start(self, attempt: Attempt, scene: Scene, argv: list[str], times: int) -> Ran:
        if self.tier == BARE:
            return self._run_bare(attempt, scene, argv)
        from sandbox.escapes.confined import run_confined

        read = [str(self.tools), str(scene.folder("visible")), str(scene.git), *self.prefixes]
        env = {"PATH": os.defpath, "PYTHONPATH": str(self.tools), "LC_ALL": "C.UTF-8"}
        limits = {**_LIMITS, **attempt.limits}
        limits["wall_s"] *= times
        return run_confined(self.tier, argv, scene.worktree, read, env, limits)

    def _run_bare(self, attempt: Attempt, scene: Scene, argv: list[str]) -> Ran:
        """As one would without a thought: everything is inherited, and a time-out ends the first process only."""
        started = time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=scene.worktree,
            env={**os.environ, "PYTHONPATH": str(self.tools)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=attempt.id != "W15",
        )
        end, patience = "ended", _PATIENCE_S
        if attempt.id in DAEMONS:
            _await(lambda: all((scene.worktree / name).exists() for name in HEARTBEATS))
            patience = 1.0
        elif attempt.id == "P14":
            _await(lambda: is_stopped(process.pid))
            patience = 1.0
        try:
            stdout, stderr = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            end = GAVE_UP
            process.kill()
            if attempt.id not in DAEMONS:
                self.watcher.end_all(scene.root, patience_s=_PATIENCE_S)
            stdout, stderr = process.communicate()
        elapsed = time.monotonic() - started
        return Ran(stdout, stderr, end, process.returncode, None, elapsed, len(stdout), {})


def _await(holds: Callable[[], bool]) -> None:
    """Until something holds, but not for ever."""
    give_up = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.01)


class Asking(Generic[T]):
    """Asks the same question again and again while an attempt runs, until there is an answer."""

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._answer: T | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        while not self._over.wait(0.03) and not self._answer:
            self._answer = self._question()

    def ended(self) -> T | None:
        """The answer, once the attempt is over."""
        self._over.set()
        self._thread.join()
        return self._answer


def _python() -> tuple[str, list[str]]:
    """An interpreter for the attacks, and what else must be readable for it."""
    if Path("/usr/bin/python3").exists():
        return "/usr/bin/python3", []
    return str(Path(sys.executable).resolve()), [sys.base_prefix]


def _root_device() -> tuple[str, int]:
    """The block device that holds the root, or else any."""
    number = Path("/").stat().st_dev
    with suppress(OSError):
        for path in sorted(Path("/dev").iterdir()):
            if path.is_block_device() and path.stat().st_rdev == number:
                return str(path), number
    return "/dev/sda", number


def main() -> None:
    """Run the attempts named on the command line and write their verdicts."""
    folder, tier, ids = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
    if tier == BARE and any(BY_ID[name].control.who == "nobody" for name in ids):
        raise SystemExit("some of these must never run unconfined")
    here = folder / "here"
    here.mkdir()
    os.chdir(here)  # some attempts write where their orchestrator stands
    campaign = Campaign(folder, tier)
    # the ones that live longest first, so that they wait beside the others
    attempts = sorted((BY_ID[name] for name in ids), key=lambda attempt: -attempt.life_s)
    try:
        with ThreadPoolExecutor(_LANES) as readers:
            verdicts = list(readers.map(campaign.run, attempts))
    finally:
        campaign.close()
    sys.stdout.write(json.dumps([asdict(verdict) for verdict in verdicts]))


if __name__ == "__main__":
    main()
