"""Runs one part of the soak: `make soak MINUTES=5 SEED=1`. The next part continues on the same database.

Two workers execute runs of the recorded demos, one run after another, while they are killed, stopped and asked to end,
while the server is restarted and its connections are cut, and while the clocks of the workers jump. The first run of
each demo is not disturbed: it is what the others are compared with. A run counts if it ends as recorded, if its ledger
verifies, if its branch has the same tree, and if each of its events happened as often as without disturbance.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.jumping_clock import HAS_COMPILER, MISSING, JumpingClock
from support.postgres import Server, binaries

KINDS = ("feature", "forge", "autopilot")
PROGRAM = str(Path(sys.executable).with_name("fairwitness"))
WORKERS = 2
PATIENCE_S = 1200.0
"""How long a run may take although nothing disturbs it any more."""
CALM_S = 900.0
"""After this time a run is left in peace, so that it ends."""
REPEATED = frozenset(
    {"dispatch_started", "dispatch_opened", "call_refused", "run_resumed", "run.resumed", "head_recorded"}
)
"""Events that a repeated call or a new process writes again."""
DISTURBANCES = {"kill": 5, "stop": 4, "term": 2, "restart": 2, "cut": 3, "clock": 4}
"""What is done, and how often in relation to the others."""


class Soak:
    """One part: its folder with server, log and state, and what was done and found."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.server = Server(folder / "server")
        self._state_file = folder / "state.json"
        known = json.loads(self._state_file.read_text()) if self._state_file.exists() else {}
        self.state: dict[str, Any] = {"part": 0, "round": 0, "run": None, "calm": {}, "done": [], **known}
        self.state["part"] += 1
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.recovery: dict[str, list[float]] = {}
        self.problems: list[str] = []

    def save(self) -> None:
        """Write what the next part continues from."""
        partial = self._state_file.with_suffix(".partial")
        partial.write_text(json.dumps(self.state, indent=1))
        partial.replace(self._state_file)

    def log(self, what: str, **more: Any) -> None:
        """Append one line to the log of all parts."""
        line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "part": self.state["part"], "what": what}
        with (self.folder / "soak.jsonl").open("a") as log:
            log.write(json.dumps(line | more) + "\n")

    def problem(self, text: str) -> None:
        """Note what should not have happened."""
        self.problems.append(text)
        self.log("problem", text=text)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of the soak."""
        state = str(self.folder / "user-state")
        return {**os.environ, "FAIRWITNESS_DATABASE_URL": self.server.url, "XDG_STATE_HOME": state, "NO_COLOR": "1"}


class Workers:
    """Two workers in one repository, each with a clock of its own."""

    def __init__(self, soak: Soak, repository: Path) -> None:
        self._soak, self._repository = soak, repository
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._clocks: dict[int, JumpingClock] = {}
        self._thaws: dict[int, float] = {}
        """When each stopped worker continues."""

    def keep(self) -> None:
        """Start what has ended and let stopped workers continue when it is time."""
        for number in range(WORKERS):
            process = self._processes.get(number)
            if process is None or process.poll() is not None:
                self._thaws.pop(number, None)
                self._processes[number] = self._start(number)
            elif number in self._thaws and time.monotonic() > self._thaws[number]:
                del self._thaws[number]
                process.send_signal(signal.SIGCONT)

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        environment = self._soak.environment
        if HAS_COMPILER:
            self._clocks[number] = JumpingClock(self._soak.folder, f"clock-{number}")
            environment |= self._clocks[number].environment
        with (self._soak.folder / f"worker-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [PROGRAM, "worker"], cwd=self._repository, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def disturb(self, what: str, dice: random.Random) -> None:
        """Do one thing to one worker."""
        number = dice.randrange(WORKERS)
        process = self._processes[number]
        if what == "clock":
            self._clocks[number].jump(dice.choice([120, 86400, -3600, 3600, -2 * 86400, 0]))
        elif process.poll() is None and what == "stop":
            process.send_signal(signal.SIGSTOP)
            self._thaws[number] = time.monotonic() + dice.choice([1, 5, 15, 45])
        elif process.poll() is None:
            process.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)

    def thaw(self) -> None:
        """Let every stopped worker continue."""
        for number in self._thaws:
            self._processes[number].send_signal(signal.SIGCONT)
        self._thaws.clear()

    def end(self) -> None:
        """End all workers in order."""
        self.thaw()
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                self._soak.problem(f"worker {process.pid} did not end within a minute after SIGTERM")
                process.kill()
                process.wait()


def begin(soak: Soak, kind: str) -> dict[str, Any]:
    """Begin a run of a demo and return it."""
    place = soak.folder / "runs" / f"{soak.state['round']:04d}-{kind}"
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    program = (
        "import json, pathlib, sys\nfrom fairwitness.demo.start import start\n"
        "made = start(sys.argv[1], pathlib.Path(sys.argv[2]))\n"
        "print(json.dumps({'repository': str(made.repository), 'run_id': made.run_id}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, kind, str(place)],
        env=soak.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    submitted = json.loads(done.stdout)
    return {"kind": kind, "place": str(place), "is_calm": kind not in soak.state["calm"], **submitted}


def submit(soak: Soak, run: dict[str, Any]) -> None:
    """Hand a run to the engine, as `fairwitness resume` does; the workers execute it."""
    program = (
        "import asyncio, pathlib, sys\nfrom fairwitness.app.runs.drive import engine_at\n"
        "async def main():\n"
        "    async with engine_at(pathlib.Path(sys.argv[1]), worker=False) as engine:\n"
        "        await engine.submit(sys.argv[3], sys.argv[2], {'run_id': sys.argv[3]})\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", program, run["repository"], run["kind"], run["run_id"]]
    subprocess.run(command, env=soak.environment, check=True)


def query(soak: Soak, sql: str, *values: Any) -> list[tuple[Any, ...]] | None:
    """Return the rows of a query; None while the server does not answer."""
    import psycopg

    try:
        with psycopg.connect(soak.server.url, autocommit=True, connect_timeout=5) as connection:
            return connection.execute(sql, values).fetchall()
    except psycopg.OperationalError:
        return None


def seq_of(soak: Soak, run_id: str) -> int | None:
    """Return the number of the last event of a run."""
    rows = query(soak, "SELECT COALESCE(max(seq), 0) FROM fairwitness.events WHERE run_id = %s", run_id)
    return None if rows is None else int(rows[0][0])


def status_of(soak: Soak, run_id: str) -> str | None:
    """Return the status that the engine has for a run."""
    rows = query(soak, "SELECT status FROM fairwitness_engine.workflow_status WHERE workflow_uuid = %s", run_id)
    return str(rows[0][0]) if rows else None


def answer(soak: Soak, run: dict[str, Any]) -> None:
    """Give the verdict for which the roadmap of autopilot waits."""
    waits = "SELECT 1 FROM fairwitness_engine.engine_gate WHERE run_id = %s AND answer IS NULL"
    if run["kind"] != "autopilot" or not query(soak, waits, run["run_id"]):
        return
    program = "import pathlib, sys\nfrom fairwitness.demo.start import give_demo_verdict\n"
    program += "give_demo_verdict(pathlib.Path(sys.argv[1]), sys.argv[2])"
    command = [sys.executable, "-c", program, run["repository"], run["run_id"]]
    subprocess.run(command, env=soak.environment, capture_output=True, check=False)


def work(soak: Soak, run: dict[str, Any], until: float, *, finish: bool) -> bool:
    """Disturb a run until it ends or the part is over; return whether it has ended."""
    dice = random.Random(f"{soak.seed}-{soak.state['part']}-{soak.state['round']}")
    workers = Workers(soak, Path(run["repository"]))
    began = time.monotonic()
    next_one, asked = began + 5, began
    pending: tuple[str, float, int] | None = None
    seq = 0
    try:
        while (now := time.monotonic()) < until or finish:
            workers.keep()
            found = seq_of(soak, run["run_id"])
            if found is not None and found > seq:
                seq = found
                if pending is not None and seq > pending[2]:
                    soak.recovery.setdefault(pending[0], []).append(now - pending[1])
                    pending = None
            if status_of(soak, run["run_id"]) in ("SUCCESS", "ERROR", "CANCELLED"):
                return True
            if now - asked > 5:
                asked = now
                answer(soak, run)
            is_quiet = run["is_calm"] or now - began > CALM_S or now >= until
            if is_quiet:
                workers.thaw()
                if now - began > CALM_S + PATIENCE_S:
                    soak.problem(f"{run['kind']} {run['run_id']} does not end")
                    return True
            elif now >= next_one:
                what = dice.choices(list(DISTURBANCES), list(DISTURBANCES.values()))[0]
                next_one = now + dice.uniform(5, 30)
                if what == "clock" and not HAS_COMPILER:
                    soak.counts[f"clock (skipped: {MISSING})"] += 1
                    continue
                disturb(soak, workers, what, dice)
                pending = pending or (what, now, seq)
            time.sleep(0.5)
        return False
    finally:
        workers.end()


def disturb(soak: Soak, workers: Workers, what: str, dice: random.Random) -> None:
    """Do one thing to a worker or to the server."""
    soak.counts[what] += 1
    soak.log(what)
    if what == "restart":
        soak.server.stop(dice.choice(["immediate", "fast"]))
        time.sleep(dice.choice([0.2, 2, 10, 40]))
        soak.server.start()
    elif what == "cut":
        soak.server.terminate()
    else:
        workers.disturb(what, dice)


def facts(soak: Soak, run: dict[str, Any]) -> dict[str, Any]:
    """Return what has to be the same with and without disturbance."""
    git = ["git", "-C", run["repository"]]
    refs = subprocess.run(
        [*git, "for-each-ref", "--format=%(refname) %(tree)", "refs/heads"], capture_output=True, text=True, check=True
    )
    trees = sorted(line.partition(" ")[2] for line in refs.stdout.splitlines())
    verified = subprocess.run(
        [PROGRAM, "ledger", "verify"],
        cwd=run["repository"],
        env=soak.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    events = query(soak, "SELECT type, count(*) FROM fairwitness.events WHERE run_id = %s GROUP BY type", run["run_id"])
    twice = query(
        soak,
        "SELECT key FROM fairwitness.observations WHERE run_id = %s GROUP BY key HAVING count(*) > 1",
        run["run_id"],
    )
    tries = query(
        soak,
        "SELECT count(*), count(DISTINCT subject) FROM fairwitness.observations "
        "WHERE run_id = %s AND key LIKE 'dispatch:%%:try-%%'",
        run["run_id"],
    )
    assert events is not None
    assert twice is not None
    assert tries is not None
    return {
        "status": status_of(soak, run["run_id"]),
        "trees": trees,
        "ledger": verified.returncode,
        "events": {str(type_): int(count) for type_, count in sorted(events) if type_ not in REPEATED},
        "twice": [str(key) for (key,) in twice],
        "calls": int(tries[0][1]),
        "repeated calls": int(tries[0][0]) - int(tries[0][1]),
    }


def judge(soak: Soak, run: dict[str, Any]) -> None:
    """Compare an ended run with the undisturbed one of its kind."""
    found = facts(soak, run)
    name = f"{run['kind']} {run['run_id']}"
    if found["status"] != "SUCCESS":
        error = query(
            soak, "SELECT error FROM fairwitness_engine.workflow_status WHERE workflow_uuid = %s", run["run_id"]
        )
        soak.problem(f"{name} ended as {found['status']}: {error}")
    if found["ledger"] != 0:
        soak.problem(f"{name}: fairwitness ledger verify exits with {found['ledger']}")
    if found["twice"]:
        soak.problem(f"{name}: recorded twice: {found['twice'][:5]}")
    calm = soak.state["calm"].setdefault(run["kind"], found)
    for fact in ("trees", "events", "calls"):
        if found[fact] != calm[fact]:
            soak.problem(f"{name}: {fact} are {_difference(found[fact], calm[fact])}")
    soak.log("ended", kind=run["kind"], run=run["run_id"], calm=run["is_calm"], repeated=found["repeated calls"])
    soak.state["done"].append({"kind": run["kind"], "run": run["run_id"], "repeated": found["repeated calls"]})
    if not soak.problems:
        shutil.rmtree(run["place"], ignore_errors=True)


def _difference(found: Any, expected: Any) -> str:
    if isinstance(found, dict):
        names = sorted(found.keys() | expected.keys())
        changed = [f"{name} {found.get(name, 0)} instead of {expected.get(name, 0)}" for name in names]
        return ", ".join(
            text for text, name in zip(changed, names, strict=True) if found.get(name) != expected.get(name)
        )
    return f"{found} instead of {expected}"


def report(soak: Soak, seconds: float) -> None:
    """Print what this part did and found, and append it to the log."""
    ended = Counter(run["kind"] for run in soak.state["done"])
    rows = [("part", f"{soak.state['part']}, seed {soak.seed}, {seconds / 60:.1f} min")]
    rows += [(f"runs of {kind} ended so far", str(ended[kind])) for kind in KINDS]
    rows += [("calls repeated so far", str(sum(run["repeated"] for run in soak.state["done"])))]
    for what in sorted({*DISTURBANCES, *soak.counts}):
        times = soak.recovery.get(what, [])
        told = (
            f", next event after {statistics.median(times):.1f} s (median), {max(times):.1f} s (most)" if times else ""
        )
        rows.append((what, f"{soak.counts[what]}{told}"))
    rows += [("problem", text) for text in soak.problems] or [("problems", "none")]
    for name, text in rows:
        sys.stdout.write(f"{name:<28}  {text}\n")
    soak.log("part", seconds=round(seconds), counts=dict(soak.counts), problems=soak.problems)


def main() -> int:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--finish", action="store_true", help="let the last run end, undisturbed, after the time is up")
    asked = parser.parse_args()
    if binaries() is None:
        sys.stderr.write("soak: there is no Postgres on this machine (apt-get install postgresql)\n")
        return 3
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # so that the workers end, too
    asked.folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(asked.folder, asked.seed)
    soak.save()
    if not (soak.server.home / "data").exists():
        soak.server.home.mkdir(exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(soak.server.home, "nobody")
        soak.server.make()
    soak.server.start()
    began = time.monotonic()
    until = began + 60 * asked.minutes
    try:
        while time.monotonic() < until:
            if soak.state["run"] is None:
                soak.state["round"] += 1
                dice = random.Random(f"{soak.seed}-{soak.state['round']}")
                first = [kind for kind in KINDS if kind not in soak.state["calm"]]
                run = soak.state["run"] = begin(soak, first[0] if first else dice.choice(KINDS))
                submit(soak, run)
                soak.save()
            run = soak.state["run"]
            if work(soak, run, until, finish=asked.finish):
                judge(soak, run)
                soak.state["run"] = None
            soak.save()
    finally:
        soak.server.stop("fast")
        report(soak, time.monotonic() - began)
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
