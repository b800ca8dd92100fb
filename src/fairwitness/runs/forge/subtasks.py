"""Subtasks: the parts that an agent splits its node into, as documents in the ledger and as files.

A document never changes; events record its state. The work of a subtask is in the worktree of one try of one attempt: a
try that starts without that work sees the subtask as pending.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairwitness.contracts.common.markdown import split_sections
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.documents import Subtask, SubtaskStatus
from fairwitness.contracts.forge.events import SubtaskChanged, SubtaskWritten
from fairwitness.errors import UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.rules.helper_limits import subtask_problem
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.forge.log import ForgeLog, document_of
from fairwitness.runs.forge.walkthroughs import record_once
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

SUBTASK = "subtask"
_NEXT = "change the subtask"
_ENDED = frozenset({SubtaskStatus.COMPLETED, SubtaskStatus.FAILED})


class SubtaskState(NamedTuple):
    """The status of a subtask by the events, and the agent that worked on it."""

    status: SubtaskStatus = SubtaskStatus.PENDING
    agent: str | None = None


class Subtasks:
    """The subtasks of one node, as seen by one try of its agent and the helpers of that try."""

    def __init__(self, log: ForgeLog, store: Store, layout: ForgeLayout, node: str) -> None:
        self._log, self._store, self._layout, self._node = log, store, layout, node
        self._here: dict[str, SubtaskStatus] = {}
        """What this try knows; every other subtask is pending for it."""

    def documents(self) -> dict[str, Subtask]:
        """Return every subtask by its id, as it was written."""
        rows = self._log.ledger.observations(self._log.run_id, SUBTASK)
        found = [recorded(Subtask, row, "document") for row in rows if row.subject == self._node]
        return {each.id: each for each in found}

    def status(self, name: str) -> SubtaskStatus:
        """Return the status of a subtask in this try."""
        return self._here.get(name, SubtaskStatus.PENDING)

    def problem(self, part: Subtask, wanted: str) -> str | None:
        """Return why a subtask may not be given to an agent now, or None."""
        known = self.documents()
        waits_for = {name: self.status(name) if name in known else None for name in part.depends_on or ()}
        return subtask_problem(self.status(part.id), part.type, wanted, waits_for)

    def write(self, role: Role, *, id_: str, title: str, type_: int, body: str, depends_on: Sequence[str]) -> str:
        """Write a subtask and return a sentence; repeating it changes nothing, and other content needs another id."""
        path = self._layout.subtask(self._node, id_)
        known = self.documents()
        if type_ == 3 and role is not Role.REFINERY:
            raise UsageError("only a refinery may write subtasks of type 3; use type 1 or 2", next_step=_NEXT)
        unknown = [name for name in depends_on if name not in known or name == id_]
        if unknown:
            raise UsageError(
                f"{id_} cannot depend on {', '.join(unknown)}: write those subtasks first", next_step=_NEXT
            )
        before = known.get(id_)
        document = self._document(id_, title, type_, body, depends_on, order=len(known) + 1)
        if before is not None:
            if before.model_copy(update={"order": document.order}) != document:
                raise UsageError(
                    f"{id_} exists already with other content; the next free id is {_free(known)}",
                    next_step=_NEXT,
                )
            document = before
        document_of(document.plain())  # refuse invalid text before anything is recorded
        event = SubtaskWritten(nodeId=self._node, subtaskId=id_, agentType=document.type, title=title)
        key = f"{SUBTASK}:{self._node}:{id_}"
        record_once(self._log, key, SUBTASK, self._node, {"document": document.plain()}, (event,))
        killpoint("forge.subtask")
        self._put(path, document, self._states().get(id_, SubtaskState()))
        return f"{id_} is written."

    def _document(
        self, id_: str, title: str, type_: int, body: str, depends_on: Sequence[str], *, order: int
    ) -> Subtask:
        said = {
            "id": id_,
            "parent_task": self._node,
            "title": title,
            "type": type_,
            "status": SubtaskStatus.PENDING.value,
            "assigned_agent": None,
            "order": order,
            "depends_on": tuple(depends_on) or None,
            "body": body,
        }
        try:
            return Subtask.model_validate(said)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise UsageError(
                f"{id_} is not a valid subtask: {spell_path(first['loc'])}: {first['msg']}", next_step=_NEXT
            ) from None

    def change(self, name: str, status: SubtaskStatus, agent: str) -> None:
        """Change the status of a subtask in this try; a change that the events contain is not repeated."""
        self._here[name] = status
        self._record_states({name: SubtaskState(status, agent)})

    def reopen(self, attempt: int) -> None:
        """Reset subtasks of earlier attempts, because their work is not in this worktree."""
        own = f"{self._node}-{attempt}-"
        gone = [
            name
            for name, state in self._states().items()
            if state.agent is not None and not state.agent.startswith(own)
        ]
        if gone:
            self._record_states(dict.fromkeys(gone, SubtaskState()))

    def _record_states(self, changes: dict[str, SubtaskState]) -> None:
        now = self._states()
        news = {
            name: after for name, after in changes.items() if not _is_recorded(now.get(name, SubtaskState()), after)
        }
        if news:
            self._log.write(
                lambda _now: [
                    SubtaskChanged(nodeId=self._node, subtaskId=name, status=after.status, agent=after.agent)
                    for name, after in news.items()
                ]
            )
            killpoint("forge.subtask.changed")
        documents = self.documents()
        for name in changes:
            path = self._layout.subtask(self._node, name)
            self._put(path, documents[name], news.get(name, now.get(name, SubtaskState())))

    def _states(self) -> dict[str, SubtaskState]:
        found: dict[str, SubtaskState] = {}
        for event in self._log.ledger.events(self._log.run_id):
            if event.type == "subtask.changed" and event.data["nodeId"] == self._node:
                data = event.data
                found[data["subtaskId"]] = SubtaskState(SubtaskStatus(data["status"]), data.get("agent"))
        return found

    def _put(self, path: str, document: Subtask, state: SubtaskState) -> None:
        current = document.model_copy(update={"status": state.status, "assigned_agent": state.agent})
        content = document_of(current.plain()).encode()
        if not self._store.exists(path) or self._store.get(path) != content:
            self._store.put(path, content)
            killpoint("forge.subtask.stored")

    def listed(self) -> str:
        """Return all subtasks as text for an agent."""
        return "\n\n".join(self._line(each) for each in self.documents().values()) or "there are no subtasks"

    def _line(self, part: Subtask) -> str:
        waits = f", waits for {', '.join(part.depends_on)}" if part.depends_on else ""
        described = dict(split_sections(part.body))["Description"].strip()
        return f"{part.id} (type {part.type}, {self.status(part.id).value}{waits}): {part.title}\n{described}"

    def reader(self) -> Callable[[], Any]:
        """Return the function behind `read_subtasks`."""

        async def read() -> str:
            return await run_blocking(self.listed)

        return read

    def writer(self, role: Role) -> Callable[..., Any]:
        """Return the function behind `write_subtask` for a role."""

        async def write(*, id: str, title: str, type: int, body: str, depends_on: Sequence[str]) -> str:
            return await run_blocking(
                self.write, role, id_=id, title=title, type_=type, body=body, depends_on=tuple(depends_on)
            )

        return write


def _is_recorded(before: SubtaskState, after: SubtaskState) -> bool:
    """Return whether the events already say so; those of an ended subtask also say that it ran."""
    if before == after:
        return True
    return after.status is SubtaskStatus.RUNNING and before.agent == after.agent and before.status in _ENDED


def _free(known: dict[str, Subtask]) -> str:
    return f"subtask-{1 + max(int(name.removeprefix('subtask-')) for name in known):03d}"
