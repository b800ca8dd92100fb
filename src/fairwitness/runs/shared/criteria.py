"""Judge the acceptance criteria of an attempt, in every workflow.

Agents propose, for each criterion, a command or a place; the harness runs the commands on the attempt's tree and looks
at the places. A command's result is recorded at once, under its key; the claims and the conclusion follow in one
record. After a crash the recorded results are found, and a repeated call returns the recorded conclusion.
"""

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.common.evidence import Claim, Observation, Phase
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.contracts.verify.checks import CheckSpec, Discovered
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.contracts.verify.results import Evidence
from fairwitness.errors import UsageError
from fairwitness.git.changes import FileChange
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.criteria import (
    RED_AT_BASELINE,
    ByCommand,
    ByPlace,
    Proposal,
    Unjudged,
    check_name,
    command_verdict,
    may_fail_before,
    proposal,
)
from fairwitness.rules.evidence_worth import SATISFIES, valued_rows
from fairwitness.verify.cascade import pair_checks, project_of
from fairwitness.verify.conclusion import recorded_outcome
from fairwitness.verify.folder_lock import locked_folder
from fairwitness.verify.harness import Harness, run_once
from fairwitness.verify.model import CheckRequest, ProposedChange, refuse_stopped
from fairwitness.verify.subject import VerifyDeps, harness_of, ignore_progress
from fairwitness.verify.tree_view import TreeView, checks_at

CRITERIA: Final = "criteria"
"""The kind of observation that holds what was concluded about the criteria of an attempt."""
NOT_RED: Final = (
    "new behaviour needs a test that fails without the change: no new test and no command of a criterion does"
)


PlaceProblem = Callable[[str, str, int], str | None]
"""Returns why a place does not prove a criterion: the criterion, the path and the line are given."""


def any_place(_criterion: str, _path: str, _line: int) -> str | None:
    """Accept every place."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaQuestion:
    """The criteria of one attempt, and how they are proposed to be judged."""

    task: str
    round: int
    criteria: Sequence[str]
    judgements: Sequence[CriterionJudgement]
    base: Side
    head: Side
    who: str
    """Who made the judgements, as the subject of a sentence."""
    agent: str
    """The agent whose claims they are, in the ledger."""
    place_problem: PlaceProblem = any_place
    before: Side | None = None
    """What the author began with, on which a new test must fail; None if no new test is needed."""
    unjudged: str | None = None
    """Why nothing can be judged."""


class CriterionVerdict(NamedTuple):
    """One criterion and its verdict."""

    check: str
    criterion: str
    met: bool | None
    """None if the criterion cannot be judged."""
    text: str
    """The reason, in one clause."""
    claim: dict[str, object] | None = None
    """The body of the claim on which the verdict rests."""
    seen: str | None = None
    """What the harness saw that contradicts a command that passed."""

    @property
    def sentence(self) -> str:
        """Return the sentence about a criterion that is not met."""
        return f"{self.check} is {'unjudged' if self.met is None else 'unmet'}: {self.criterion} ({self.text})"


def changed_files(changes: Sequence[FileChange]) -> tuple[ChangedFile, ...]:
    """Return the change of each file; a rename is a deletion and an addition."""
    words = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}
    return tuple(
        ChangedFile(path=change.path, change=words.get(change.status, ChangeKind.MODIFIED)) for change in changes
    )


def all_unjudged(criteria: Sequence[str], reason: str) -> tuple[CriterionVerdict, ...]:
    """Return verdicts that judge nothing, for one reason."""
    return tuple(
        CriterionVerdict(check_name(number), text, None, reason) for number, text in enumerate(criteria, start=1)
    )


def judge(deps: VerifyDeps, run_id: str, asked: CriteriaQuestion, stop: threading.Event) -> tuple[str, ...]:
    """Record one row for each criterion that can be judged; return sentences about what is unmet, unjudged or untested.

    This blocks and runs commands; when `stop` is set, the running command is killed and `Stopped` is raised. Raise
    `UsageError` if the round was about another tree.
    """
    subject = VerifySubject(task_id=asked.task, round=asked.round)
    recorded_outcome(deps.ledger, run_id, subject, base=asked.base.tree, head=asked.head.tree)  # refuses other trees
    known = _concluded(deps, run_id, subject, asked.head)
    if known is not None:
        return known
    refuse_stopped(stop)
    with locked_folder(deps.scratch / "work", _name_of(run_id, subject), stop) as work:
        known = _concluded(deps, run_id, subject, asked.head)
        if known is not None:
            return known
        judged, is_red = _judged(deps, run_id, subject, asked, work, stop)
        return _conclude(deps, run_id, subject, asked, judged, is_red)


def _name_of(run_id: str, subject: VerifySubject) -> str:
    """Return a folder name that is the same for every try, and short, since a socket path must fit into it."""
    return f"criteria-{hashlib.sha256(f'{run_id} {subject.name}'.encode()).hexdigest()[:12]}"


def _key(subject: VerifySubject) -> str:
    return f"{CRITERIA}:{subject.name}"


def _concluded(deps: VerifyDeps, run_id: str, subject: VerifySubject, head: Side) -> tuple[str, ...] | None:
    found = deps.ledger.observation(run_id, _key(subject))
    if found is None:
        return None
    if found.tree != head.tree:
        raise UsageError(
            f"the criteria of {subject.name} were judged for another tree in this run ({found.tree})",
            next_step="a round is judged once; judge this tree in another round",
        )
    return tuple(map(str, found.detail["missing"]))


def _judged(
    deps: VerifyDeps,
    run_id: str,
    subject: VerifySubject,
    asked: CriteriaQuestion,
    work: Path,
    stop: threading.Event,
) -> tuple[tuple[CriterionVerdict, ...], bool]:
    """Return the verdicts, and whether a new test or a command fails without the change."""
    if asked.unjudged is not None:
        return all_unjudged(asked.criteria, asked.unjudged), asked.before is None
    tree = TreeView(deps.shadow, asked.head.tree)
    before, after = discovered(deps, asked.base.tree, asked.head.tree)
    proposals = proposals_of(
        asked.criteria, asked.judgements, [spec for spec, _ in pair_checks(before, after)], tree, asked.who
    )
    with harness_of(
        deps, subject, before, after, run_id=run_id, work=work, on_progress=ignore_progress, stop=stop
    ) as harness:

        def of(number: int, text: str, proposed: Proposal) -> CriterionVerdict:
            name = check_name(number)
            match proposed:
                case Unjudged(reason):
                    return CriterionVerdict(name, text, None, reason)
                case ByPlace():
                    return _looked_at(name, text, proposed, tree, asked)
                case ByCommand(spec, check):
                    question = CheckRequest(
                        spec, project_of(check, after), asked.head.tree, f"criterion-{number}", Phase.AFTER
                    )
                    met, why, seen = command_verdict(spec.report, run_once(harness, question))
                    return CriterionVerdict(name, text, met, why, seen=seen)

        verdicts = tuple(
            of(number, text, proposed)
            for number, (text, proposed) in enumerate(zip(asked.criteria, proposals, strict=True), 1)
        )
        is_red = asked.before is None or _is_red_without(
            deps, harness, asked.before, asked, tuple(zip(proposals, verdicts, strict=True)), after
        )
    return verdicts, is_red


def _is_red_without(
    deps: VerifyDeps,
    harness: Harness,
    began: Side,
    asked: CriteriaQuestion,
    judged: Sequence[tuple[Proposal, CriterionVerdict]],
    after: Discovered,
) -> bool:
    """Return whether a new test, or the command of a met criterion, fails on what the author began with."""
    from fairwitness.verify.verification import red_tree, shows_new_behaviour  # only code needs it

    change = ProposedChange(base=began, head=asked.head, files=deps.shadow.diff(began.tree, asked.head.tree))
    if began.tree == asked.base.tree:  # the verification has seen it
        is_red = _has_red_test(deps, harness.run_id, harness.subject)
    else:  # the work of other tasks is part of the files that this one began with
        was = checks_at(deps.shadow, began.tree, deps.settings)
        is_red = shows_new_behaviour(harness, change, was, after, ignore_progress)
    if is_red:
        return True
    old = red_tree(deps.shadow, began.tree, change.files)
    paths = tuple(TreeView(deps.shadow, tree).paths for tree in (old, asked.head.tree))
    return _has_red_command(harness, judged, after, old, lambda proposed: may_fail_before(proposed, *paths))


def _has_red_test(deps: VerifyDeps, run_id: str, subject: VerifySubject) -> bool:
    """Return whether the verification of this round saw a new test fail without the change."""
    tally = deps.ledger.tally(run_id, subject.task_id, Phase.AFTER, subject.round)
    rows = valued_rows(tally, iteration=subject.round, baseline=None)
    return any(row.check_name == RED_AT_BASELINE and worth in SATISFIES for row, worth in rows)


def _has_red_command(
    harness: Harness,
    judged: Sequence[tuple[Proposal, CriterionVerdict]],
    after: Discovered,
    old: str,
    counts: Callable[[ByCommand], bool],
) -> bool:
    """Return whether the command of a met criterion that counts fails on the tree of the old code."""
    for number, (proposed, verdict) in enumerate(judged, 1):
        if isinstance(proposed, ByCommand) and verdict.met and counts(proposed):
            request = CheckRequest(proposed.spec, project_of(proposed.of, after), old, f"criterion-{number}-before")
            if run_once(harness, request).evidence is Evidence.FAILED:
                return True
    return False


def discovered(deps: VerifyDeps, base: str, head: str) -> tuple[Discovered, Discovered]:
    """Return the checks of two trees."""
    before, after = (checks_at(deps.shadow, tree, deps.settings) for tree in (base, head))
    return before, after


def proposals_of(
    criteria: Sequence[str],
    judgements: Sequence[CriterionJudgement],
    checks: Sequence[CheckSpec],
    tree: TreeView,
    who: str,
) -> list[Proposal]:
    """Return how each criterion is to be judged."""
    return [
        proposal(number, text, judgements, checks, frozenset(tree.paths), who)
        for number, text in enumerate(criteria, start=1)
    ]


def _looked_at(name: str, criterion: str, place: ByPlace, tree: TreeView, asked: CriteriaQuestion) -> CriterionVerdict:
    """Accept a claim about a place only if the place exists."""
    spoken = f"{place.path}:{place.line}"
    content = tree.read(place.path)
    if content is None:
        return CriterionVerdict(name, criterion, None, f"there is no file {place.path} that could be read")
    lines = len(content.splitlines())
    if not 1 <= place.line <= lines:
        return CriterionVerdict(
            name, criterion, None, f"there is no line {place.line} in {place.path}, which has {lines}"
        )
    problem = asked.place_problem(criterion, place.path, place.line)
    if problem is not None:
        return CriterionVerdict(name, criterion, None, problem)
    body: dict[str, object] = {"met": place.met, "criterion": criterion, "place": spoken, "claim": place.claim}
    return CriterionVerdict(name, criterion, place.met, f"{asked.who} says so of {spoken}: {place.claim}", claim=body)


def _conclude(
    deps: VerifyDeps,
    run_id: str,
    subject: VerifySubject,
    asked: CriteriaQuestion,
    judged: Sequence[CriterionVerdict],
    is_red: bool,
) -> tuple[str, ...]:
    """Record everything that was not run, and the conclusion."""
    now, tree = spell(deps.clock()), asked.head.tree
    missing = (*(each.sentence for each in judged if each.met is not True), *(() if is_red else (NOT_RED,)))

    def observation(key: str, kind: str, holds: bool, detail: dict[str, object]) -> Observation:
        return Observation(
            run_id=run_id,
            task_id=subject.task_id,
            key=key,
            kind=kind,
            subject=subject.task_id,
            holds=holds,
            detail=detail,
            tree=tree,
            observed_at=now,
        )

    def write(record: Record) -> None:
        for each in judged:
            key = f"criterion:{subject.name}:{each.check}"
            if each.claim is not None:
                claim = Claim(
                    run_id=run_id,
                    task_id=subject.task_id,
                    key=key,
                    agent=asked.agent,
                    instance=None,
                    kind="criterion",
                    body=each.claim,
                    claimed_at=now,
                )
                record.inspected(claim, check_name=each.check, round_=subject.round)
            if each.seen is not None:
                seen = observation(key, "criterion", False, {"text": each.seen})
                record.observed(seen, phase=Phase.AFTER, check_name=each.check, round_=subject.round, output=each.seen)
        told = [{"check": each.check, "met": each.met, "text": each.text} for each in judged]
        detail: dict[str, object] = {"head": tree, "judged": told, "missing": list(missing)}
        record.observation(observation(_key(subject), CRITERIA, not missing, detail))

    deps.ledger.record(run_id, write)
    killpoint("criteria.judged")
    return missing
