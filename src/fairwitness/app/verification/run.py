"""`fairwitness verify`: proves a change of any repository without a model."""

import os
import shlex
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.assembly.backends import runner
from fairwitness.app.leftovers import remove_leftovers
from fairwitness.app.settings.review import file_at, review_settings
from fairwitness.app.settings.trust import NAME as SETTINGS
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, scratch_root, state_of
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.gates import Open
from fairwitness.contracts.verify.checks import OracleMode, VerifySettings
from fairwitness.contracts.verify.report import CheckLine, Side, VerifyReport
from fairwitness.errors import BadDocument, FairWitnessError, NotStored, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import files
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.documents import SUFFIXES, Format, read
from fairwitness.kit.limits import DEFAULT_LIMITS
from fairwitness.verify.checkouts import STARTS_WITH
from fairwitness.verify.gate_answer import THE_CHANGE
from fairwitness.verify.model import Acceptance, Progress, ProgressCallback, ProposedChange
from fairwitness.verify.subject import VerifyDeps, verify_subject
from fairwitness.verify.tree_view import checks_at
from fairwitness.verify.verification import VerificationResult

FEW_SUBJECTS = 5
"""Up to this number the tests that a person may accept are named one by one."""
SHAPES = "`files: [...]`, a task document, or a plan-output.yaml with its tasks/ beside it"


def declared_files(plan: Path) -> tuple[str, ...]:
    """Return the paths and patterns that a plan allows to change."""
    value = _value(plan)
    declared = _of_task(value)
    if declared is None and _is_plan(value):
        listed = sorted((plan.parent / "tasks").glob("*.yaml"))
        found = [_of_task(_value(path)) for path in listed]
        declared = [path for each in found for path in each or []]
    if not declared:
        raise UsageError(f"{plan} declares no files", next_step=f"give {SHAPES}")
    return tuple(dict.fromkeys(declared))


def _is_plan(value: dict[str, Any]) -> bool:
    output = value.get("agent_output")
    return isinstance(output, dict) and "payload" in output


def _value(path: Path) -> dict[str, Any]:
    try:
        content = files.read_given(path, limit=DEFAULT_LIMITS.bytes)
    except NotStored:
        raise UsageError(f"there is no plan at {path}", next_step="check the path") from None
    try:
        value = read(content, SUFFIXES.get(path.suffix, Format.YAML), source=str(path)).value
    except BadDocument as error:
        raise UsageError(error.what, next_step=f"give {SHAPES}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} is not a plan", next_step=f"give {SHAPES}")
    return value


def _of_task(value: dict[str, Any]) -> list[str] | None:
    """Return the files of a task document or of a plain list; None if it is neither."""
    task = value.get("task")
    context = task.get("relevant_context") if isinstance(task, dict) else None
    listed = context.get("files_to_modify") if isinstance(context, dict) else value.get("files")
    if not isinstance(listed, list):
        return None
    paths = [one.get("path") if isinstance(one, dict) else one for one in listed]
    return [path for path in paths if isinstance(path, str) and path]


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """The change to verify, with its options."""

    where: Path
    base: str | None = None
    head: str | None = None
    staged: bool = False
    worktree: bool = False
    plan: Path | None = None
    accepts: tuple[Acceptance, ...] = ()
    oracle: OracleMode | None = None
    """How changes of existing tests are judged; None for what the settings say."""
    strict: bool = False
    use_cache: bool = True
    setup_network: bool = False
    tier: SandboxTier | None = None
    """The sandbox tier to use instead of the strongest; results of `none` open no gate."""


def accepts_of(subjects: tuple[str, ...], reason: str) -> tuple[Acceptance, ...]:
    """Return an acceptance with a reason for each path or test."""
    return tuple(Acceptance(subject, reason) for subject in subjects)


def verify(request: VerifyRequest, *, on_progress: ProgressCallback, clock: Clock = system_clock) -> VerifyReport:
    """Verify a change and return the report; the person's repository is not changed."""
    began = time.monotonic()
    repository = Repository.open(request.where)
    state = state_of(repository)
    shadow = Shadow.open(state / "git", repository)
    change = _change(request, repository, shadow)
    settings, digest, held = _settings(request, repository, shadow, change)
    sandbox = runner(request.tier, allow_unconfined=request.tier is SandboxTier.NONE)
    scratch = scratch_root(state, sandbox.tier)
    before, after = (checks_at(shadow, tree, settings) for tree in (change.base.tree, change.head.tree))
    run_id = f"{STARTS_WITH}{clock():%Y%m%dT%H%M%S-%f}"
    on_progress(
        Progress(
            "note", "", f"{len(after.checks)} checks, {len(change.files)} changed files, sandbox {sandbox.tier.value}"
        )
    )
    remove_leftovers(repository, clock=clock)
    with closing(ledger_in(state, repository, clock=clock)) as ledger:
        deps = VerifyDeps(
            repository=repository,
            runner=sandbox,
            shadow=shadow,
            ledger=ledger,
            state=state,
            scratch=scratch,
            settings=settings,
            digest=digest,
            clock=clock,
            use_cache=request.use_cache,
            oracle=request.oracle or settings.oracle,
            strict=request.strict,
            parallel=max(1, min(2, os.cpu_count() or 1)),
        )
        try:
            proven = verify_subject(
                deps,
                THE_CHANGE,
                change,
                before,
                after,
                run_id=run_id,
                work=scratch / "work" / run_id,
                actor=_actor(repository),
                on_progress=on_progress,
            )
        except BaseException:
            with suppress(FairWitnessError):  # what it recorded is anchored, however it ended
                ledger.anchor(run_id)
            raise
        anchored = ledger.anchor(run_id)
    return VerifyReport(
        run_id=run_id,
        base=change.base,
        head=change.head,
        sandbox=sandbox.tier,
        warnings=sandbox.features.warnings,
        answer=proven.answer,
        checks=proven.checks,
        findings=proven.findings,
        expectations=proven.expectations,
        missing=proven.missing,
        notes=(*held, *proven.notes),
        changed=len(change.files),
        duration_ms=int((time.monotonic() - began) * 1000),
        ledger_head=anchored.anchor.held,
        anchored=anchored.where,
        next=_next_step(proven, request, run_id),
    )


def _settings(
    request: VerifyRequest, repository: Repository, shadow: Shadow, change: ProposedChange
) -> tuple[VerifySettings, str, tuple[str, ...]]:
    """Return the settings, their digest, and notes about settings without trust.

    If the change touches the settings file, that of the base counts: a change may not set its own rules.
    """
    is_changed = any(file.path == SETTINGS for file in change.files)
    base = change.base
    instead = (lambda: file_at(repository, shadow, base.commit, base.tree)) if is_changed else None
    settings, digest = verify_settings(repository.top, instead=instead)
    held = review_settings(repository.top, only_verify=True, instead=instead).notes
    if request.setup_network:
        setup = settings.setup.model_copy(update={"network": True})
        settings = settings.model_copy(update={"setup": setup})
    if request.tier is not None:
        sandbox = settings.sandbox.model_copy(update={"tier": request.tier})
        settings = settings.model_copy(update={"sandbox": sandbox})
    return settings, digest, held


def _change(request: VerifyRequest, repository: Repository, shadow: Shadow) -> ProposedChange:
    base, head = _sides(request, repository, shadow)
    files = shadow.diff(base.tree, head.tree)
    declared = None
    if request.plan is not None:
        _refuse_own_plan(request.plan, repository, {file.path for file in files})
        declared = declared_files(request.plan)
    return ProposedChange(base=base, head=head, files=files, accepts=request.accepts, declared=declared)


def _sides(request: VerifyRequest, repository: Repository, shadow: Shadow) -> tuple[Side, Side]:
    if sum((request.staged, request.worktree, request.head is not None)) > 1:
        raise UsageError("--head, --staged and --worktree exclude each other", next_step="give one of them")
    if request.staged or request.worktree:
        what = "the index" if request.staged else "the working tree"
        repository.checkout(what)
        take = shadow.staged_tree if request.staged else shadow.worktree_tree
        head = Side(ref=what, commit=None, tree=take(repository))
        base_commit = repository.commit(request.base or "HEAD")
        return Side(ref=request.base or "HEAD", commit=base_commit, tree=repository.tree_of(base_commit)), head
    if request.head is None and repository.head is not None and repository.is_dirty():
        raise UsageError(
            "the working tree has uncommitted changes",
            next_step="fairwitness verify --worktree verifies them, fairwitness verify --head HEAD leaves them out",
        )
    commit = repository.commit(request.head or "HEAD")
    head = Side(ref=request.head or "HEAD", commit=commit, tree=repository.tree_of(commit))
    return _base_of(request, repository, commit), head


def _base_of(request: VerifyRequest, repository: Repository, head: str) -> Side:
    base = repository.commit(request.base) if request.base is not None else _default_base(repository, head)
    if base is None:
        raise UsageError("there is no commit to compare with: this is the first", next_step="name one with --base REF")
    if not repository.is_ancestor(base, head):
        common = repository.merge_base(base, head)
        raise UsageError(
            f"{request.base} is not an ancestor of {request.head or 'HEAD'}",
            next_step=f"fairwitness verify --base {common[:12]} compares with where they parted"
            if common
            else "name a base with a common history",
        )
    return Side(ref=request.base or base[:12], commit=base, tree=repository.tree_of(base))


def _default_base(repository: Repository, head: str) -> str | None:
    return repository.default_base() if head == repository.head else repository.ref(f"{head}~1^{{commit}}")


def _refuse_own_plan(plan: Path, repository: Repository, changed: set[str]) -> None:
    """Refuse a plan that is part of the change: a change must not permit itself."""
    top = repository.top
    inside = plan.resolve()
    if top is not None and inside.is_relative_to(top) and inside.relative_to(top).as_posix() in changed:
        raise UsageError(
            f"{plan} is part of the change it would allow", next_step="give a plan from outside the change"
        )


def _tells_least(line: CheckLine) -> tuple[bool, bool]:
    """Return the sort key: blocking checks before those that failed before, required ones first."""
    return (line.reason is None, not line.required)


def _actor(repository: Repository) -> str:
    """Return the git identity of the person."""
    return read_identity(repository).author


def _to_accept(proven: VerificationResult) -> list[str]:
    """Return what a person has to accept: tests one by one if they are few, else their files."""
    found = [one.subject or one.path for one in proven.findings if one.blocks and one.accepted is None]
    found += [one.id for one in proven.expectations] + list(proven.gone)
    subjects = list(dict.fromkeys(found))
    if len(subjects) > FEW_SUBJECTS:
        subjects = list(dict.fromkeys(subject.split("::", 1)[0] for subject in subjects))
    return subjects


def _with_accepts(request: VerifyRequest, subjects: list[str]) -> str:
    """Return the command that verifies the same change and accepts these subjects too."""
    words = ["fairwitness", "verify"]
    for flag, value in (("--base", request.base), ("--head", request.head), ("--plan", request.plan)):
        words += [flag, str(value)] if value is not None else []
    given = (("--staged", request.staged), ("--worktree", request.worktree), ("--strict", request.strict))
    words += [flag for flag, is_given in (*given, ("--setup-network", request.setup_network)) if is_given]
    words += ["--oracle", request.oracle.value] if request.oracle else []
    words += ["--tier", request.tier.value] if request.tier else []
    for subject in dict.fromkeys([*(accept.subject for accept in request.accepts), *subjects]):
        words += ["--accept", subject]
    return shlex.join([*words, "--reason", "why the new expectation is right"])


def _next_step(proven: VerificationResult, request: VerifyRequest, run_id: str) -> str:
    if isinstance(proven.answer, Open):
        return f"fairwitness ledger gates {run_id}"
    for line in proven.missing:
        if not line.excused and line.next_step:
            return line.next_step
    if proven.answer.needs_person:
        return _with_accepts(request, _to_accept(proven))
    telling = sorted((line for line in proven.checks if line.output and line.execution), key=_tells_least)
    failing = telling[0].execution if telling else None
    return f"fairwitness evidence show {failing}" if failing else f"fairwitness gate explain {run_id} verify"
