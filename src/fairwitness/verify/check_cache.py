"""What the ledger holds of a question, and how an answer is put there: under one key, for one subject.

The first who asks in a run has the key to itself. Who asks the same for another subject or purpose, or again because
there was no evidence, writes beside it: under the key with its own name, and a number if need be. So what a killed try
left is found again by key, and two subjects never share a row.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from fairwitness.contracts.common.evidence import Execution, Observation, Phase
from fairwitness.contracts.verify.report import Subject
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.errors import LedgerTampered, RowRefused, StoreError
from fairwitness.kit.clock import Clock, spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.verify import verify
from fairwitness.store.artifacts import Store
from fairwitness.verify.model import CheckRequest

_RESTORE = "fairwitness ledger verify lists all; restore the ledger, or move .fairwitness away and begin anew"


class CheckCache:
    """The answers of one subject of one run, used from any thread."""

    def __init__(self, *, ledger: Ledger, state: Path, run_id: str, subject: Subject, clock: Clock) -> None:
        self.ledger = ledger
        self._run_id = run_id
        self._subject = subject
        self._clock = clock
        self._store = Store(state)
        self._lock = threading.Lock()
        self._trusted = {run_id}

    def record(self, work: Callable[[Record], object]) -> None:
        """Writes a record; one thread at a time."""
        with self._lock:
            self.ledger.record(self._run_id, work)

    def own(self, question: CheckRequest, key: str) -> Ran | None:
        """What this subject was answered before, by this try or by one that was killed; it has its row already."""
        for name in self._names(question, key):
            number = self.ledger.execution_id(self._run_id, name)
            if number is None:
                return None
            ran = self._answer(self._run_id, name, question)
            if ran is not None:
                return ran.model_copy(update={"cached": True, "execution": number})
        raise AssertionError("names do not end")

    def elsewhere(self, question: CheckRequest, key: str) -> Ran | None:
        """What another subject or run was answered, taken over with a row of our own."""
        for run_id, number in self.ledger.executions_of(key):
            execution = self.ledger.execution(number)
            ran = self._answer(run_id, key, None)
            if execution is None or ran is None:
                continue
            self._trust(run_id)
            copied = execution.model_copy(update={"run_id": self._run_id, "task_id": self._subject.task_id})
            detail: dict[str, object] = {
                "purpose": question.purpose,
                "taken_from": {"run": run_id, "execution": number},
            }
            return self.write(question, copied, ran.model_copy(update={"cached": True}), detail)
        return None

    def write(self, question: CheckRequest, execution: Execution, ran: Ran, detail: dict[str, object]) -> Ran:
        """Puts a run into the ledger, with its check if it is one, and its result beside it by hash."""
        result = self.keep(ran.model_dump_json(exclude={"execution", "cached"}).encode())
        told = {**detail, "result": result, **({"reason": ran.reason} if ran.reason else {})}
        if not self._subject.is_the_change:
            told["subject"] = self._subject.name
        for name in self._names(question, execution.key):
            if self.ledger.execution_id(self._run_id, name) is not None:
                continue
            try:
                self._write(question, execution.model_copy(update={"key": name}), ran, told)
            except RowRefused:
                if self.ledger.execution_id(self._run_id, name) is None:
                    raise
                continue  # another subject asked the same, and was a moment quicker
            killpoint(f"verify.recorded.{question.purpose}")
            return ran.model_copy(update={"execution": self.ledger.execution_id(self._run_id, name)})
        raise AssertionError("names do not end")

    def keep(self, content: bytes) -> str:
        """Stores bytes under their own hash and returns it."""
        digest = hashlib.sha256(content).hexdigest()
        self._store.create(f"outputs/{digest}", content)
        return f"sha256:{digest}"

    def _write(self, question: CheckRequest, execution: Execution, ran: Ran, detail: dict[str, object]) -> None:
        observation = Observation(
            run_id=self._run_id,
            task_id=self._subject.task_id,
            key=execution.key,
            kind="run",
            subject=question.spec.id,
            holds=ran.evidence is Evidence.PASSED,
            detail=detail,
            tree=question.tree,
            observed_at=spell(self._clock()),
        )

        def write(record: Record) -> None:
            if question.phase is None:
                record.execution(execution)
            else:
                is_baseline = question.phase is Phase.BASELINE
                name = question.spec.name
                record.executed(
                    execution,
                    phase=question.phase,
                    check_name=f"baseline-{name}" if is_baseline else name,
                    round_=self._subject.baseline_round if is_baseline else self._subject.round,
                    output=ran.stderr or ran.stdout or "",
                    instance=question.spec.id,
                )
            record.observation(observation)

        self.record(write)

    def _names(self, question: CheckRequest, key: str) -> Iterator[str]:
        """Under which keys an answer of this subject may stand, in the order in which they are taken."""
        yield key
        # the keys of `fairwitness verify` name no subject: there is one
        own = "" if self._subject.is_the_change else f"#{self._subject.name}"
        beside = f"{key}{own}#{question.purpose}"
        yield beside
        yield from (f"{beside}#{number}" for number in count(2))

    def _answer(self, run_id: str, key: str, question: CheckRequest | None) -> Ran | None:
        """What stands under a key, if it is whole and is evidence; for a question, if it is this subject's answer."""
        observation = self.ledger.observation(run_id, key)
        if observation is None or (question is not None and not self._is_own(observation, question)):
            return None
        result = str(observation.detail.get("result"))
        try:
            ran = Ran.model_validate_json(self._store.get(f"outputs/{result.removeprefix('sha256:')}", sha256=result))
        except (StoreError, ValueError):
            return None  # lost or changed: then the question is asked anew
        return None if ran.evidence is Evidence.NONE else ran

    def _is_own(self, observation: Observation, question: CheckRequest) -> bool:
        """Whether a row stands for this subject; where a check rests on it, also for the same purpose."""
        name = None if self._subject.is_the_change else self._subject.name
        if (observation.task_id, observation.detail.get("subject")) != (self._subject.task_id, name):
            return False
        return question.phase is None or observation.detail.get("purpose") == question.purpose

    def _trust(self, run_id: str) -> None:
        """An answer of another run counts only if that run stands as it was written."""
        with self._lock:
            if run_id in self._trusted:
                return
            found = verify(self.ledger.database, run_id)
            if found:
                raise LedgerTampered(f"the ledger is not as it was written: {found[0]}", next_step=_RESTORE)
            self._trusted.add(run_id)
