"""What one more event costs a run and its state file, early and late, beside a file that holds every event."""

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.measure import medians, report
from fairwitness.contracts.autopilot.events_run import CircuitBreakerClosed
from fairwitness.contracts.autopilot.order import AutopilotOrder, AutopilotTable
from fairwitness.contracts.autopilot.roadmap import DetailedPhase, Roadmap
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.autopilot.vocabulary import PhaseType
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.store.artifacts import Store

SIZES = (1_000, 10_000)
KEPT = 50
ROUNDS = 20
RUN, AT, HASH = "run-2026-02-09-143052", "2026-02-09T14:30:52Z", "sha256:" + "a" * 64
TIME_GOAL, BYTES_GOAL = 1.25, 1.05
"""What an event may cost after ten thousand, beside one after a thousand."""


def run() -> bool:
    """Prints time and bytes of an event with its refresh, each beside that of a thousand events."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder, ExitStack() as closing:
        events: dict[str, Callable[[], None]] = {}
        for size in SIZES:
            for kept in (KEPT, size + 10 * ROUNDS):
                name = f"{size:,} events before, {'all' if kept > KEPT else f'the last {KEPT}'} in the file"
                events[name] = _run_of(Path(folder) / f"{size}-{kept}", size, kept, closing)
        seconds = medians(events, ROUNDS)
        written = {name: _bytes_of(event) for name, event in events.items()}
    baseline, late = (f"{size:,} events before, the last {KEPT} in the file" for size in SIZES)
    met = report("an event, its checkpoint and the state file: time", seconds, baseline, {late: TIME_GOAL})
    print(f"\nthe same: bytes handed to the disk  (baseline: {baseline}, {written[baseline]:,} bytes)")
    for name, amount in written.items():
        if name != baseline:
            ratio = amount / written[baseline]
            verdict = f"goal <= {BYTES_GOAL:.2f}: {'met' if ratio <= BYTES_GOAL else 'MISSED'}" if name == late else ""
            print(f"  {ratio:6.2f}x  {name:<44} {verdict}")
    return met and written[late] <= BYTES_GOAL * written[baseline]


def _run_of(folder: Path, size: int, kept: int, closing: ExitStack) -> Callable[[], None]:
    """A run that has had so many events; what it does for one more."""
    folder.mkdir()
    ledger = Ledger.open_file(folder / "evidence.db")
    closing.callback(ledger.close)
    log = AutopilotLog(ledger, RUN)
    log.create(_order(kept))

    def fill(record: Record) -> None:
        for _ in range(size):
            record.event(Workflow.AUTOPILOT, "circuit_breaker_closed", {"reason": "it cooled down"}, timestamp=AT)

    ledger.record(RUN, fill)
    state_file = StateFile(log, Store(folder))
    state_file.refresh()

    def event() -> None:
        log.append(LoggedEvent(new_event(CircuitBreakerClosed, log.now(), reason="it cooled down")))
        state_file.refresh()

    return event


def _order(kept: int) -> AutopilotOrder:
    phase = DetailedPhase(
        id="1",
        name="first",
        type=PhaseType.DATA,
        depends_on=(),
        goal="it works",
        requirements=(),
        criteria=(),
        done=False,
    )
    return AutopilotOrder(
        roadmap=Roadmap(phases=(phase,)),
        phases=("1",),
        earlier={},
        flags=(),
        base_commit="abc1234",
        target=f"fairwitness/{RUN}/target",
        commands={},
        specs=(SpecLock(path="SPEC.md", hash=HASH, locked_at=AT),),
        limits=AutopilotTable(kept_events=kept),
        verify=VerifySettings(),
        settings_hash=HASH,
        started_by="bench",
    )


def _bytes_of(event: Callable[[], None]) -> int:
    """The median over some events; now and then the database tidies up at one of them."""
    amounts = []
    for _ in range(9):
        before = _written()
        event()
        amounts.append(_written() - before)
    return statistics.median_low(amounts)


def _written() -> int:
    line = next(line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar:"))
    return int(line.split()[1])
