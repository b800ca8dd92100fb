"""Results of checks in the ledger: look up an earlier result of the same request, or record a new one.

In a run, the first result of a request is stored under the request's key. A result of the same request for another
subject or purpose, or of a rerun because there was no evidence, is stored under that key with the subject's name and,
if needed, a number. So a result survives a crash and is found by its key, and two subjects never share a row.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from fairwitness.contracts.common.evidence import Execution, Observation, Phase
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.errors import LedgerTampered, RowRefused, StoreError
from fairwitness.kit.clock import Clock, spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.verify import verify_here
from fairwitness.store.artifacts import Store
from fairwitness.verify.model import CheckRequest

_RESTORE = "fairwitness ledger verify lists all; restore the ledger, or move .fairwitness away and begin anew"


class CheckCache:
    """The check results of one subject of one run; safe to use from any thread."""

    def __init__(self, *, ledger: Ledger, state: Path, run_id: str, subject: VerifySubject, clock: Clock) -> None:
        self.ledger = ledger
        self._run_id = run_id
        self._subject = subject
        self._clock = clock
        self._store = Store(state, private=True)
        self._lock = threading.Lock()
        self._trusted = {run_id}

    def record(self, work: Callable[[Record], object]) -> None:
        """Write a ledger record, one thread at a time."""
        with self._lock:
            self.ledger.record(self._run_id, work)

    def find_own(self, request: CheckRequest, key: str) -> Ran | None:
        """Return this subject's own earlier result, also from an interrupted try; its row is already in the ledger."""
        for name in self._keys(request, key):
            number = self.ledger.execution_id(self._run_id, name)
            if number is None:
                return None
            ran = self._stored_result(self._run_id, name, request)
            if ran is not None:
                return ran.model_copy(update={"cached": True, "execution": number})
        raise AssertionError("names do not end")

    def adopt_from_another_run(self, request: CheckRequest, key: str) -> Ran | None:
        """Return the result of another subject or run, recorded as a row of this subject; None if there is none."""
        for run_id, number in self.ledger.executions_of(key):
            execution = self.ledger.execution(number)
            ran = self._stored_result(run_id, key, None)
            if execution is None or ran is None:
                continue
            self._require_untampered(run_id)
            copied = execution.model_copy(update={"run_id": self._run_id, "task_id": self._subject.task_id})
            detail: dict[str, object] = {
                "purpose": request.purpose,
                "taken_from": {"run": run_id, "execution": number},
            }
            return self.record_result(request, copied, ran.model_copy(update={"cached": True}), detail)
        return None

    def record_result(self, request: CheckRequest, execution: Execution, ran: Ran, detail: dict[str, object]) -> Ran:
        """Record an execution, the row of its check if it has a phase, and the hash of the stored result."""
        result = self.store_output(ran.model_dump_json(exclude={"execution", "cached"}).encode())
        detail_with_result = {**detail, "result": result, **({"reason": ran.reason} if ran.reason else {})}
        if not self._subject.is_the_change:
            detail_with_result["subject"] = self._subject.name
        for name in self._keys(request, execution.key):
            if self.ledger.execution_id(self._run_id, name) is not None:
                continue
            try:
                self._write(request, execution.model_copy(update={"key": name}), ran, detail_with_result)
            except RowRefused:
                if self.ledger.execution_id(self._run_id, name) is None:
                    raise
                continue  # another subject recorded the same request first
            killpoint(f"verify.recorded.{request.purpose}")
            return ran.model_copy(update={"execution": self.ledger.execution_id(self._run_id, name)})
        raise AssertionError("names do not end")

    def store_output(self, content: bytes) -> str:
        """Store bytes under their hash and return the hash."""
        digest = hashlib.sha256(content).hexdigest()
        self._store.create(f"outputs/{digest}", content)
        return f"sha256:{digest}"

    def _write(self, request: CheckRequest, execution: Execution, ran: Ran, detail: dict[str, object]) -> None:
        observation = Observation(
            run_id=self._run_id,
            task_id=self._subject.task_id,
            key=execution.key,
            kind="run",
            subject=request.spec.id,
            holds=ran.evidence is Evidence.PASSED,
            detail=detail,
            tree=request.tree,
            observed_at=spell(self._clock()),
        )

        def write(record: Record) -> None:
            if request.phase is None:
                record.execution(execution)
            else:
                is_baseline = request.phase is Phase.BASELINE
                name = request.spec.name
                record.executed(
                    execution,
                    phase=request.phase,
                    check_name=f"baseline-{name}" if is_baseline else name,
                    round_=self._subject.baseline_round if is_baseline else self._subject.round,
                    output=ran.stderr or ran.stdout or "",
                    instance=request.spec.id,
                )
            record.observation(observation)

        self.record(write)

    def _keys(self, request: CheckRequest, key: str) -> Iterator[str]:
        """Yield the keys under which a result of this subject may be stored, in the order of their use."""
        yield key
        # the keys of `fairwitness verify` name no subject, because there is only one
        own = "" if self._subject.is_the_change else f"#{self._subject.name}"
        beside = f"{key}{own}#{request.purpose}"
        yield beside
        yield from (f"{beside}#{number}" for number in count(2))

    def _stored_result(self, run_id: str, key: str, request: CheckRequest | None) -> Ran | None:
        """Return the result under a key if it is intact and is evidence; with a request, only this subject's result."""
        observation = self.ledger.observation(run_id, key)
        if observation is None or (request is not None and not self._is_own(observation, request)):
            return None
        result = str(observation.detail.get("result"))
        try:
            ran = Ran.model_validate_json(self._store.get(f"outputs/{result.removeprefix('sha256:')}", sha256=result))
        except (StoreError, ValueError):
            return None  # lost or changed, so the check runs again
        return None if ran.evidence is Evidence.NONE else ran

    def _is_own(self, observation: Observation, request: CheckRequest) -> bool:
        """Return whether a row belongs to this subject and, if it carries a check's row, to the same purpose."""
        name = None if self._subject.is_the_change else self._subject.name
        if (observation.task_id, observation.detail.get("subject")) != (self._subject.task_id, name):
            return False
        return request.phase is None or observation.detail.get("purpose") == request.purpose

    def _require_untampered(self, run_id: str) -> None:
        """Raise `LedgerTampered` if another run's ledger was changed: then its results do not count."""
        with self._lock:
            if run_id in self._trusted:
                return
            found = verify_here(self.ledger.database, run_id)
            if found:
                raise LedgerTampered(f"the ledger is not as it was written: {found[0]}", next_step=_RESTORE)
            self._trusted.add(run_id)
