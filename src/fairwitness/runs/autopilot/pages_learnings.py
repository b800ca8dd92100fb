"""learnings.md: rules that failures of this run left, and what people's verdicts say about its own judgement.

The planner and the executors of later phases read it, so every entry is a few lines that stand for themselves.
"""

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import HumanVerdict
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.words import FailureCategory, HumanWord
from fairwitness.kit.markdown import Markdown, code, line

HEADER = "# Learnings (current run)"
ENTRIES = 200
"""How many entries are kept: the newest."""

_ENTRY = "\n### "


def fresh_learnings() -> str:
    """The file as every run begins it."""
    return f"{HEADER}\n"


def failure_entry(post_mortem: PostMortem) -> Markdown:
    """What a failed phase teaches the next one."""
    kind = post_mortem.root_cause.category.value
    return Markdown(
        f"### Phase {post_mortem.phase_id} failure -- {kind}\n"
        f"**Prevention rule:** {_sentence(post_mortem.prevention_rule)}\n"
        f"**Context:** Phase {post_mortem.phase_id} ({line(post_mortem.phase_name)}) ended in `{kind}`, seen by its "
        f"step {post_mortem.root_cause.step.value}. Recorded: {post_mortem.timestamp}.\n"
        f"**Cause:** {_sentence(post_mortem.root_cause.description)}"
    )


def verdict_entry(phase: RoadmapPhase, verdict: HumanVerdict) -> Markdown:
    """What a person's verdict says about how sure the run may be by itself."""
    head = f"### Human Verdict: Phase {phase.id} -- {verdict.verdict.value.upper()} (confidence calibration)"
    issues = "; ".join(verdict.issues)
    if verdict.verdict is HumanWord.PASS:
        said = f"found nothing wrong{f', but noted: {line(issues)}' if issues else ''}"
        lesson = "A phase like this one can be settled without a person; be surer next time."
    else:
        said = f"found: {line(issues)}" if issues else "did not pass it, and named no issue"
        lesson = f"Check phases like this one more strictly{f', above all for: {line(issues)}' if issues else ''}."
    return Markdown(
        f"{head}\n"
        f"Phase {phase.id} ({line(phase.name)}) was put to a person, who {said}.\n"
        f"**Calibration:** {lesson}\n"
        f"**Recorded:** {verdict.timestamp}"
    )


def debug_entry(slug: str, kind: FailureCategory, *, rule: str, root_cause: str, at: str) -> Markdown:
    """What a resolved debug session teaches."""
    return Markdown(
        f"### Debug session: {code(slug)} -- {kind.value}\n"
        f"**Prevention rule:** {_sentence(rule)}\n"
        f"**Context:** Root cause: {_sentence(root_cause)} Recorded: {at}."
    )


def _sentence(text: str) -> str:
    said = line(text)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def learnings_with(text: str, entry: Markdown) -> str:
    """The file with one more entry; the same entry never stands twice, and the oldest make room for new ones."""
    entries = [Markdown(f"### {part.strip()}") for part in text.split(_ENTRY)[1:]]
    kept = [*(each for each in entries if each != entry), entry][-ENTRIES:]
    return "\n\n".join((HEADER, *kept)) + "\n"
