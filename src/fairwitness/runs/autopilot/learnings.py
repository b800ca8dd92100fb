"""The learnings of a run: recorded in its ledger, and written to `learnings.md` for the agents of later phases.

Entries are rules that follow from failures and repairs, and what people's verdicts say about the run's own judgement.
Each entry is a few lines that can be read alone. The file belongs to one run: the run empties it once at its start.
Entries that others add stay; entries of the run that are missing are added again.
"""

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import HumanVerdict
from fairwitness.contracts.autopilot.postmortem import PostMortem, RootCause
from fairwitness.contracts.autopilot.vocabulary import HumanWord
from fairwitness.contracts.common.base import Contract, Text
from fairwitness.errors import StoreError
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.markdown import Markdown, line
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot

HEADER = "# Learnings (current run)"
ENTRIES = 200
"""How many entries are kept: the newest."""

_ENTRY = "\n### "


def fresh_learnings() -> str:
    """Return the file as it is at the start of a run."""
    return f"{HEADER}\n"


def failure_entry(post_mortem: PostMortem) -> Markdown:
    """Return the entry for a failed phase."""
    kind = post_mortem.root_cause.category.value
    return Markdown(
        f"### Phase {post_mortem.phase_id} failure -- {kind}\n"
        f"**Prevention rule:** {_sentence(post_mortem.prevention_rule)}\n"
        f"**Context:** Phase {post_mortem.phase_id} ({line(post_mortem.phase_name)}) ended in `{kind}`, seen by its "
        f"step {post_mortem.root_cause.step.value}. Recorded: {post_mortem.timestamp}.\n"
        f"**Cause:** {_sentence(post_mortem.root_cause.description)}"
    )


def verdict_entry(phase: RoadmapPhase, verdict: HumanVerdict) -> Markdown:
    """Return the entry for a person's verdict, which calibrates the run's own confidence."""
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


def repair_entry(phase: str, repaired: RootCause, rule: str) -> Markdown:
    """Return the entry for a failure of a phase that a debugger repaired."""
    return Markdown(
        f"### Phase {phase} repaired -- {repaired.category.value}\n"
        f"**Prevention rule:** {_sentence(rule)}\n"
        f"**Context:** A debugger repaired it. Recorded: {repaired.first_observed_at}.\n"
        f"**Cause:** {_sentence(repaired.description)}"
    )


def _sentence(text: str) -> str:
    said = line(text)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def learnings_with(text: str, entry: Markdown) -> str:
    """Return the file with one more entry, without duplicates; the oldest entries are dropped."""
    entries = [Markdown(f"### {part.strip()}") for part in text.split(_ENTRY)[1:]]
    kept = [*(each for each in entries if each != entry), entry][-ENTRIES:]
    return "\n\n".join((HEADER, *kept)) + "\n"


LEARNING, EMPTIED = "learning", "learnings-emptied"
_LIMIT = 1 << 20


class Learning(Contract):
    """One entry of the file."""

    entry: Text


class _Emptied(Contract):
    """Records that the file was emptied for this run."""

    path: Text


class Learnings:
    """The learnings of one run."""

    def __init__(self, log: AutopilotLog, files: Store) -> None:
        self._log, self._files = log, files

    def begin(self) -> None:
        """Empty the file once per run; later calls only restore missing entries."""
        if self._log.kept(EMPTIED, _Emptied) is None:
            self._put(fresh_learnings())
            self._log.keep(EMPTIED, EMPTIED, autopilot.LEARNINGS, _Emptied(path=autopilot.LEARNINGS))
        self._mend()

    def add(self, name: str, entry: Markdown) -> None:
        """Add an entry; there is one entry per name, and the first one stays."""
        self._log.keep(f"{LEARNING}:{name}", LEARNING, name, Learning(entry=entry))
        self._mend()

    def text(self) -> str:
        """Return the file for agents of later phases, or the run's own entries if it cannot be read; "" without any."""
        found = self._read()
        text = self._with_own(fresh_learnings()) if found is None else found
        return text if text.removeprefix(HEADER).strip() else ""

    def _mend(self) -> None:
        found = self._read()
        wanted = self._with_own(fresh_learnings() if found is None else found)
        if wanted != found:
            self._put(wanted)

    def _with_own(self, text: str) -> str:
        for learned in self._log.all_kept(LEARNING, Learning)[-ENTRIES:]:
            if learned.entry not in text:
                text = learnings_with(text, Markdown(learned.entry))
        return text

    def _read(self) -> str | None:
        """Return the file, or None if it is missing, damaged or not ours."""
        try:
            text = self._files.get(autopilot.LEARNINGS, limit=_LIMIT).decode()
        except (StoreError, UnicodeDecodeError):
            return None
        return text if text.startswith(HEADER) else None

    def _put(self, text: str) -> None:
        self._files.put(autopilot.LEARNINGS, text.encode())
        killpoint("autopilot.learnings")
