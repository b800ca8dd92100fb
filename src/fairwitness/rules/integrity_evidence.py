"""Integrity checks about evidence: what a phase presents, what Fair Witness observed, and why a person is asked."""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from fairwitness.contracts.autopilot.integrity import IntegrityAnswer, IntegrityFacts, Remark
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome, TriagedStatus, WorkedStatus
from fairwitness.contracts.autopilot.verification import PhaseCriterionStatus
from fairwitness.contracts.autopilot.vocabulary import PhaseType, StepName
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.rules.scores import may_defer

_PLACE = re.compile(r"(?<![\w./@-])(?P<path>[\w./@-]+):[1-9]\d*\b")
JUDGED = (PhaseOutcome.COMPLETED, PhaseOutcome.NEEDS_HUMAN_VERIFICATION)
"""Outcomes that rest on a verification; the others make no claim that could be wrongly positive."""


def has_place(text: str) -> bool:
    """Return True if a text names a line of a file.

    >>> [has_place(text) for text in ("src/a.py:12 -- def f", "Makefile:3", "at 14:30", "http://localhost:80", "yes")]
    [True, True, False, False, False]
    """
    return bool(places(text))


def places(text: str) -> tuple[str, ...]:
    """Return the files that a text names with a line.

    >>> places("src/a.py:12 returns None, and bin/tool:3 too; see http://x:80")
    ('src/a.py', 'bin/tool')
    """
    return tuple(dict.fromkeys(found["path"] for found in _PLACE.finditer(text) if _is_file(found["path"])))


def _is_file(path: str) -> bool:
    """Return True for a file, False for a host, a time or a word before a colon."""
    folder, _, name = path.rpartition("/")
    suffix = name.rpartition(".")[2] if "." in name else ""
    if path.startswith("//"):  # what stands behind the colon of an address
        return False
    return bool(folder) or suffix[:1].isalpha() or (name[:1].isupper() and name.endswith("file"))


def is_shown(text: str) -> bool:
    """Return True if a text is evidence: a line of a file, or a command with its result.

    >>> is_shown("pytest -q -> 3 passed"), is_shown("-> fine"), is_shown("I looked at it")
    (True, False, False)
    """
    command, _, result = text.replace("→", "->").partition("->")
    return has_place(text) or bool(command.strip() and result.strip())


def again(because: str, *steps: StepName) -> Remark:
    """Return an enforcement: these steps are repeated."""
    return Remark(answer=IntegrityAnswer.ENFORCEMENT, because=because, again=steps)


def fails(because: str) -> Remark:
    """Return a failure."""
    return Remark(answer=IntegrityAnswer.FAILURE, because=because)


def warns(because: str) -> Remark:
    """Return a warning."""
    return Remark(answer=IntegrityAnswer.WARNING, because=because)


def verified_by_harness(facts: IntegrityFacts) -> bool:
    """Return True if no agent took part in the verification."""
    runs = [run for run in facts.seen.ran if run.step is StepName.VERIFY]
    return bool(runs) and all(run.session is None for run in runs)


def claims_it_was_there(facts: IntegrityFacts) -> bool:
    """Return True if a completed phase claims that nothing had to be done."""
    steps = facts.returned.pipeline_steps
    skipped = steps.triage.status is TriagedStatus.VERIFY_ONLY or steps.execute.status is WorkedStatus.SKIPPED
    return facts.returned.status is PhaseOutcome.COMPLETED and (skipped or not facts.seen.commits)


def was_there_shown(facts: IntegrityFacts) -> Iterator[Remark]:
    """6: what is said to have been there already is shown criterion by criterion."""
    if not claims_it_was_there(facts):
        return
    verification, runs = facts.said.verification, facts.seen.executions
    if verification is None:
        if not runs or any(not run.passed for run in runs):
            because = "it is said to have been there already, and not every criterion of it was shown"
            yield again(because, StepName.VERIFY)
        return
    passed = {run.criterion for run in runs if run.passed}
    for result in verification.criteria_results:
        if result.criterion not in passed and not has_place(result.evidence):
            because = f"“{result.criterion}” is said to have been there already, without a line that shows it"
            yield again(because, StepName.VERIFY)


def _files(facts: IntegrityFacts) -> bool:
    return bool(facts.returned.evidence.files_checked)


def _commands(facts: IntegrityFacts) -> bool:
    return bool(facts.returned.evidence.commands_run) or bool(facts.seen.executions)


def _execution(facts: IntegrityFacts) -> bool:
    return any(run.passed for run in facts.seen.executions)


def _screens(facts: IntegrityFacts) -> bool:
    visual = None if facts.said.verification is None else facts.said.verification.visual_test_results
    return visual is not None and bool(visual.screenshots)


class EvidenceKind(StrEnum):
    """The kinds of evidence for a type of phase; each value ends the sentence that asks for it."""

    FILES = "a file that was looked at"
    COMMANDS = "a command that was run"
    EXECUTION = "a criterion whose command passed when the harness ran it"
    SCREENS = "a screenshot"


EVIDENCE: Mapping[PhaseType, tuple[tuple[EvidenceKind, ...], ...]] = {
    PhaseType.UI: ((EvidenceKind.FILES,), (EvidenceKind.SCREENS, EvidenceKind.EXECUTION)),
    PhaseType.PROTOCOL: ((EvidenceKind.FILES,), (EvidenceKind.COMMANDS,)),
    PhaseType.DATA: ((EvidenceKind.FILES,), (EvidenceKind.EXECUTION,)),
    PhaseType.MIXED: ((EvidenceKind.FILES,), (EvidenceKind.COMMANDS,), (EvidenceKind.EXECUTION,)),
}
"""What each type of phase has to show: all of the rows, and of each row one. Without a browser, running it will do."""

_IS_SHOWN: Mapping[EvidenceKind, Callable[[IntegrityFacts], bool]] = {
    EvidenceKind.FILES: _files,
    EvidenceKind.COMMANDS: _commands,
    EvidenceKind.EXECUTION: _execution,
    EvidenceKind.SCREENS: _screens,
}


def evidence_of_its_type(facts: IntegrityFacts) -> Iterator[Remark]:
    """7: a phase shows what its type asks for, and nothing is verified that the harness saw fail."""
    if facts.returned.status not in JUDGED:
        return
    for row in EVIDENCE[facts.phase_type]:
        if not any(_IS_SHOWN[kind](facts) for kind in row):
            because = f"a phase of type {facts.phase_type.value} has to show {' or '.join(row)}"
            yield again(because, StepName.VERIFY)
    yield from _not_passed(facts)


def _not_passed(facts: IntegrityFacts) -> Iterator[Remark]:
    """A completed phase rests on every criterion, a deferred one on those that it calls verified."""
    verification = facts.said.verification
    results = () if verification is None else verification.criteria_results
    verified = {result.criterion for result in results if result.status is PhaseCriterionStatus.VERIFIED}
    for run in facts.seen.executions:
        if facts.returned.status is PhaseOutcome.COMPLETED or run.criterion in verified:
            because = f"“{run.criterion}” ended with {run.assessment.value} when the harness ran its command"
            if run.assessment in (Assessment.TIMEOUT, Assessment.LOST):  # says nothing about the code
                yield again(because, StepName.VERIFY)
            elif not run.passed:
                yield fails(because)


def second_party(facts: IntegrityFacts) -> Iterator[Remark]:
    """8: what is said to have been there already is seen by the judge, too; that agents are independent is check 4."""
    if claims_it_was_there(facts) and not any(map(has_place, _own_evidence(facts))):
        because = "it is said to have been there already, and the judge names no line that shows it"
        yield again(because, StepName.JUDGE)


def _own_evidence(facts: IntegrityFacts) -> tuple[str, ...]:
    return () if facts.said.judgement is None else facts.said.judgement.independent_evidence


def names_divergence(report: str) -> bool:
    """Whether a report has a section on divergence that is not empty.

    >>> names_divergence("## Divergence\\n\\nNone found.\\n"), names_divergence("## Divergence\\n## Notes\\nx")
    (True, False)
    """
    inside = False
    for line in report.splitlines():
        if line.startswith("#"):
            inside = "divergence" in line.lower()
        elif inside and line.strip():
            return True
    return False


def judge_reported(facts: IntegrityFacts) -> Iterator[Remark]:
    """9: the judge left a report that says where it and the verifier differ, and evidence of its own."""
    if facts.returned.status not in JUDGED:
        return
    report = facts.said.judge_report
    if report is None:
        yield again("the judge left no report", StepName.JUDGE)
    elif not names_divergence(report):
        yield again("the judge's report does not say where it and the verifier differ", StepName.JUDGE)
    if not _own_evidence(facts):
        yield again("the judge has no evidence of its own", StepName.JUDGE)


def verification_took_place(facts: IntegrityFacts) -> Iterator[Remark]:
    """10: a verification runs commands, and one by an agent takes its time and leaves a return."""
    if facts.returned.status not in JUDGED:
        return
    if facts.said.verification is None and not verified_by_harness(facts):
        yield again("no verifier returned anything", StepName.VERIFY)
    if not _commands(facts):
        yield again("the verification ran no command", StepName.VERIFY)
    seconds, least = facts.seen.verification_seconds, facts.settings.minimum_verification_seconds
    if seconds is None:
        yield again("no verification was measured", StepName.VERIFY)
    elif seconds < least and not verified_by_harness(facts):
        yield again(f"the verification took {seconds:g} s, less than {least} s", StepName.VERIFY)


def judge_did_not_nod(facts: IntegrityFacts) -> Iterator[Remark]:
    """11: a judge that agrees with everything shows what it looked at."""
    judgement = facts.said.judgement
    if facts.returned.status not in JUDGED or judgement is None:
        return
    objections = (*judgement.verifier_missed, *judgement.scope_creep, *judgement.missing_requirements)
    agrees = judgement.verifier_agreement and not objections
    if agrees and not any(map(is_shown, judgement.independent_evidence)):
        because = "the judge agrees with everything and shows neither a line nor a command with its result"
        yield again(because, StepName.JUDGE)


def person_is_asked_by_the_plan(facts: IntegrityFacts) -> Iterator[Remark]:
    """13: only a task of the plan can ask for a person."""
    claim = facts.returned.human_verify_justification
    if facts.returned.status is not PhaseOutcome.NEEDS_HUMAN_VERIFICATION or claim is None:  # the shape asks for it
        return
    if claim.checkpoint_task_id not in facts.planned.checkpoints:
        yield again(f"the task {claim.checkpoint_task_id} does not ask for a person in the plan", StepName.VERIFY)


_WORD = re.compile(r"[^\W_]+")
_LOOKING = re.compile(r"appearance|design|layout|look(s|ing)?|pixels?|render(s|ed|ing)?|see|styling|ui|visual(ly|s)?")
_GENERIC = re.compile(
    r"an?|all|and|any|appears?|as|be|by|checks?|confirm(ation)?|correct(ly)?|does|do|everything|expected|eyes?|fine|good"
    r"|human|in|inspect(ion)?|interface|is|it|manual(ly)?|need(s|ed)?|nice(ly)?|ok|of|on|pages?|person|please|properly"
    r"|quick|required|review|right|screens?|should|that|the|this|to|user|validate|verif(y|ication)|well|with"
)


def is_generic_look(reason: str) -> bool:
    """Whether a reason only asks somebody to look: all its words but one would fit any phase.

    >>> is_generic_look("Visually verify that the dashboard looks correct"), is_generic_look("pay with a real card")
    (True, False)
    """
    words = [word.lower() for word in _WORD.findall(reason)]
    looking = [word for word in words if _LOOKING.fullmatch(word) is not None]
    own = [word for word in words if _GENERIC.fullmatch(word) is None and _LOOKING.fullmatch(word) is None]
    return bool(looking) and len(own) <= 1


def person_is_needed(facts: IntegrityFacts) -> Iterator[Remark]:
    """14: a person is asked only by a verifier that is not sure, that tried, and that asks for more than a look."""
    claim, verification = facts.returned.human_verify_justification, facts.said.verification
    if facts.returned.status is not PhaseOutcome.NEEDS_HUMAN_VERIFICATION or claim is None:
        return
    if facts.planned.auto_passed >= facts.planned.auto_total:
        if is_generic_look(claim.task_description):
            yield again("all automatic tasks passed, and the reason is only to have a look", StepName.VERIFY)
        else:
            yield warns("all automatic tasks passed, and a person is asked")
    sure = None if verification is None else verification.autonomous_confidence
    if sure is None:
        yield again("it asks for a person and does not say how sure it is", StepName.VERIFY)
    elif not may_defer(sure, facts.standing.deferral_limit):
        yield again(f"it asks for a person although it is sure to {sure:g} of 10", StepName.VERIFY)
    if verification is None or not verification.deferral_evidence:
        yield again("it asks for a person and does not say what was tried before", StepName.VERIFY)
