"""The files of a plan: specs, tasks and graph, written for review and read back for approval.

A person may edit, add or delete files in between. What is read back must satisfy the same contract as the captain's
answer; problems are reported with file and position.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.problems import Path, Problem, spell_path
from fairwitness.contracts.forge.returns import CaptainReturn, SpecFile
from fairwitness.contracts.graph.forge_order import ForgePlan
from fairwitness.errors import BadDocument, Immutable, Position, StoreError, UsageError
from fairwitness.kit.documents import Document, Format, read, render
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.limits import DEFAULT_LIMITS
from fairwitness.kit.text import decode, visible, visible_lines
from fairwitness.rules.validation import problems_in
from fairwitness.runs.forge.log import DOCUMENT, SPEC, ForgeLog, document_of
from fairwitness.runs.forge.storage_checks import storage_problems
from fairwitness.store.artifacts import Store, content_hash, join
from fairwitness.store.layout.forge import ForgeLayout

MARKDOWN = ".md"
_LEFT_BY_EDITORS = re.compile(r"[.#]|.*~")
_LOCK_VERSION = 1


class _PlanOnDisk:
    """A plan in its files: plain values, and the position of each."""

    def __init__(self, store: Store, layout: ForgeLayout, proposal: ForgePlan) -> None:
        self._store, self._layout = store, layout
        self._specs = _documents_in(store, layout.specs, [spec.name for spec in proposal.specs])
        self._tasks = _documents_in(store, _tasks(layout), [task.id for task in proposal.tasks])
        self._documents: dict[str, Document] = {}
        for path in self._tasks.values():
            self._documents[path] = self._read(path, Format.MARKDOWN)
        self._documents[layout.dag] = self._read(layout.dag, Format.JSON)
        self.plain: dict[str, Any] = {
            "specs": [{"name": name, "body": self._text(path)} for name, path in self._specs.items()],
            "tasks": [self._documents[path].value for path in self._tasks.values()],
            "dag": self._documents[layout.dag].value,
            "assumptions": list(proposal.assumptions),
            "open_questions": list(proposal.questions),
        }

    def _bytes(self, path: str) -> bytes:
        if not self._store.exists(path):
            raise UsageError(f"the plan has no {path}", next_step="put it back, or send the plan back to the captain")
        return self._store.get(path)

    def _read(self, path: str, form: Format) -> Document:
        try:
            return read(self._bytes(path), form, source=path)
        except BadDocument as error:
            raise self._unreadable(error) from None

    def _text(self, path: str) -> str:
        try:
            return decode(self._bytes(path), DEFAULT_LIMITS)
        except BadDocument as error:
            raise self._unreadable(BadDocument(error.reason, error.position, source=path)) from None

    def _unreadable(self, error: BadDocument) -> UsageError:
        return UsageError(visible(error.what), next_step=_mend(self._layout, error.source))

    def problems(self) -> Iterator[Problem]:
        """Yield everything that violates the contract."""
        for index, (name, path) in enumerate(self._tasks.items()):
            said = self._documents[path].value.get("id")
            if said != name:
                expected = f"{name}, as its file is called"
                yield Problem(where=("tasks", index, "id"), expected=expected, found=_said(said))
        yield from problems_in(self.plain, entry_of("forge-captain-return"), strict=True)
        dag = self.plain["dag"]
        if isinstance(dag, dict) and dag.get("runId") != self._layout.run_id:
            where = ("dag", "runId")
            yield Problem(where=where, expected=f"{self._layout.run_id}, this run", found=_said(dag.get("runId")))

    def refusal(self, problems: Sequence[Problem]) -> UsageError:
        """Return the first problem with its position, and the number of others."""
        first = problems[0]
        path, way = self._place(first.where)
        document = self._documents.get(path)
        position = Position(1, 1) if document is None else document.positions([way])[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        field = f"{spell_path(way)}: " if way else ""
        what = f"{path}:{position}: {field}expected {first.expected}; found {first.found}{more}"
        return UsageError(visible(what), next_step=_mend(self._layout, path))

    def _place(self, where: Path) -> tuple[str, Path]:
        """Return the file of a value, and its path in that file."""
        part, *rest = where or ("dag",)
        files = {"specs": self._specs, "tasks": self._tasks}.get(str(part))
        if files and rest and isinstance(rest[0], int):
            return tuple(files.values())[rest[0]], tuple(rest[1:])
        return self._layout.dag, tuple(rest)


def plan_of(answer: CaptainReturn) -> ForgePlan:
    """Return the plan of a captain's answer, which must contain one."""
    assert answer.dag is not None
    return ForgePlan(
        specs=tuple(SpecFile(name=spec.name, body=spec.body) for spec in answer.specs),
        tasks=answer.tasks,
        dag=answer.dag,
        assumptions=answer.assumptions,
        questions=answer.open_questions,
    )


def plan_problems(plan: ForgePlan, layout: ForgeLayout) -> tuple[Problem, ...]:
    """Return what prevents a valid plan from being written to files and carried out."""
    return tuple(_plan_problems(plan, layout))


def _plan_problems(plan: ForgePlan, layout: ForgeLayout) -> Iterator[Problem]:
    if not plan.dag.nodes:
        yield Problem(where=("dag", "nodes"), expected="at least one task", found="none")
    yield from storage_problems(layout, plan.specs, plan.tasks, plan.dag.nodes, ("dag", "nodes"))


def write_plan(store: Store, layout: ForgeLayout, plan: ForgePlan) -> None:
    """Write a plan to its files; documents of an earlier plan that it lacks are removed."""
    if store.exists(layout.specs_lock):
        raise Immutable(f"the plan of {layout.run_id} is sealed", next_step="file a change request")
    files = {layout.spec(spec.name): spec.body for spec in plan.specs}
    files |= {layout.task(task.id): document_of(task.plain()) for task in plan.tasks}
    files[layout.dag] = render(plan.dag.plain(), Format.JSON)
    files[layout.assumptions] = _assumptions(plan)
    for folder in (layout.specs, _tasks(layout)):
        for name in store.names(folder):
            path = join(folder, name)
            if path not in files and name.endswith(MARKDOWN) and store.exists(path):
                (store.root / path).unlink(missing_ok=True)
                killpoint("forge.plan.removed")
    for path, text in files.items():
        store.put(path, text.encode())
        killpoint("forge.plan.written")


def _assumptions(plan: ForgePlan) -> str:
    parts = ["For the review of the plan; what you change here has no effect."]
    for title, texts in (("Assumptions", plan.assumptions), ("Open questions", plan.questions)):
        listed = "\n".join("- " + text.replace("\n", "\n  ") for text in texts) or "None."
        parts.append(f"# {title}\n\n{visible_lines(listed)}")
    return "\n\n".join(parts) + "\n"


def read_plan(store: Store, layout: ForgeLayout, proposal: ForgePlan) -> ForgePlan:
    """Return the plan in its files; `UsageError` with file and position if it is invalid.

    Assumptions and questions come from the proposal; their file is only for the reader.
    """
    written = _PlanOnDisk(store, layout, proposal)
    problems = tuple(written.problems())
    if not problems:
        plan = plan_of(CaptainReturn.model_validate(written.plain))
        problems = plan_problems(plan, layout)
        if not problems:
            return plan
    raise written.refusal(problems)


def approve(log: ForgeLog, store: Store, layout: ForgeLayout, actor: str) -> None:
    """Approve the plan as it is in its files; a plan that is approved stays unchanged."""
    if log.course().is_approved:
        return
    proposal = log.proposal()
    if proposal is None or not log.course().is_proposed:
        raise UsageError(f"run {log.run_id} has no plan yet", next_step=f"fairwitness watch {log.run_id}")
    log.seal(read_plan(store, layout, proposal), actor)


def _documents_in(store: Store, folder: str, first: Sequence[str]) -> dict[str, str]:
    """Return the Markdown files of a folder by name: those of `first` in that order, then the others."""
    found: dict[str, str] = {}
    for name in store.names(folder):
        if name.endswith(MARKDOWN):
            found[name.removesuffix(MARKDOWN)] = join(folder, name)
        elif _LEFT_BY_EDITORS.match(name) is None:
            raise UsageError(
                f"{join(folder, visible(name))} is not part of a plan",
                next_step=f"call it NAME{MARKDOWN}, or remove it",
            )
    known = [name for name in first if name in found]
    return {name: found[name] for name in (*known, *sorted(found.keys() - set(known)))}


def _tasks(layout: ForgeLayout) -> str:
    return layout.task("any").rpartition("/")[0]


def _mend(layout: ForgeLayout, path: str) -> str:
    return f"fairwitness plan edit {layout.run_id} {visible(path.removeprefix(f'{layout.folder}/'))}"


def _said(value: object) -> str:
    return "nothing" if value is None else visible(str(value)[:60]) or "nothing"


def lock_specs(store: Store, layout: ForgeLayout, specs: Mapping[str, str]) -> None:
    """Lock the approved specs, so that no store writes in their folder; repeating it changes nothing."""
    if not store.exists(layout.specs_lock):
        for name, body in specs.items():
            store.put(layout.spec(name), body.encode())
        store.create(layout.specs_lock, _lock_of(specs))
        killpoint("forge.locked")


def _lock_of(specs: Mapping[str, str]) -> bytes:
    """Return the lock in the format that `fairwitness.store.seal` reads."""
    hashes = {f"{name}{MARKDOWN}": content_hash(body.encode()) for name, body in sorted(specs.items())}
    return render({"version": _LOCK_VERSION, "folder": "specs", "files": hashes}, Format.JSON).encode()


def broken_locks(log: ForgeLog, store: Store, layout: ForgeLayout) -> tuple[str, ...]:
    """Return specs, tasks and graph files that differ from what was approved: changed, deleted or added."""
    if not log.course().is_started:
        return ()
    added = {row.subject for row in log.ledger.observations(log.run_id, SPEC)}
    specs = {name: body for name, body in log.specs().items() if name not in added}
    begun = log.begun()
    documents = {row.subject: str(row.detail["text"]) for row in log.ledger.observations(log.run_id, DOCUMENT)}
    sealed = {layout.spec(name): body.encode() for name, body in specs.items()}
    sealed |= {layout.task(name): text.encode() for name, text in (*begun.documents.items(), *documents.items())}
    sealed[layout.dag] = render(begun.dag.plain(), Format.JSON).encode()
    sealed[layout.specs_lock] = _lock_of(specs)
    broken = {path for path, content in sealed.items() if not _holds(store, path, content)}
    for folder in (layout.specs, _tasks(layout)):
        broken |= {join(folder, name) for name in _names(store, folder) if name.endswith(MARKDOWN)} - sealed.keys()
    return tuple(sorted(broken))


def _holds(store: Store, path: str, content: bytes) -> bool:
    try:
        return store.get(path) == content
    except StoreError:  # deleted, a link, or too large
        return False


def _names(store: Store, folder: str) -> tuple[str, ...]:
    try:
        return store.names(folder)
    except StoreError:
        return ()
