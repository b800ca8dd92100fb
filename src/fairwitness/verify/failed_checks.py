"""What the checks of a verified subject said, as text for an agent: commands, failing tests, first errors, output.

The text comes from the ledger and from the stored results, which are read by the hash that the ledger names. Each check
and the whole text are bounded; what is left out is counted.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.contracts.verify.results import RED, Ran
from fairwitness.errors import StoreError
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.change_gate import label
from fairwitness.rules.evidence_worth import LACKS, SHUTS, ValuedRow, valued_rows
from fairwitness.store.artifacts import Store
from fairwitness.verify.gate_answer import tallies
from fairwitness.verify.shown_command import shown_command

NAMED: Final = 10
"""How many failing tests or diagnostics of a check are named."""
MESSAGE: Final = 600
"""How many characters of an error message are shown."""
TAIL: Final = 2_000
"""How many characters of the end of an output are shown."""
WHOLE: Final = 9_000
"""How many characters the text of all checks has."""
REASON: Final = 100
"""How many characters of a message a reason of one line has."""

_SCRATCH: Final = re.compile(r"/[^\s\"']*?(?:\.fairwitness|/fairwitness-\d+-[0-9a-f]+)/work/[^/\s]+/[^/\s]+/tree/")
"""The folder that a check ran in, which is removed afterwards; what follows is a path of the repository."""
_EXIT: Final = "exit"
"""The only item of a command that reports nothing but its exit code."""
_ERROR: Final = re.compile(
    r"^(?:FAILED|ERROR|FAIL|not ok|✗|✖|×|●)[ :]|\b\w*(?:Error|Exception)\b|\berror\b|panicked at"
)
"""Lines that the usual test runners, compilers and languages print for a failure."""
_ROWS: Final = """
SELECT c.id, c.command, c.exit_code, c.output_snippet, e.key FROM anvil_checks c
LEFT JOIN check_sources s ON s.check_id = c.id LEFT JOIN executions e ON e.id = s.execution_id
WHERE c.run_id = ? AND c.task_id = ?
"""


class CheckText(NamedTuple):
    """A check and what it said."""

    name: str
    passed: bool
    worth: str
    """What the row is worth to the gate, in words."""
    command: str
    exit_code: int | None
    lines: tuple[str, ...]
    """The failing tests with their messages, and the end of the output; empty for a check that passed."""
    failing: tuple[str, ...] = ()
    """The ids of the failing tests or diagnostics."""
    instance: str | None = None
    error: str = ""
    """The first line of the first failure's message, or of what the check says about itself."""

    @property
    def reason(self) -> str:
        """Why it failed, in one line: the first failing test with its error, and how many more there are."""
        if not self.failing:
            return self.error
        more = f" and {len(self.failing) - 1} more" if len(self.failing) > 1 else ""
        return f"{self.failing[0]}{f' ({self.error})' if self.error else ''}{more}"

    def __str__(self) -> str:
        ran = f": `{self.command}`" if self.command else ""
        code = f", exit code {self.exit_code}" if self.exit_code is not None else ""
        return "\n".join((f"{self.name} ({self.worth}){ran}{code}", *self.lines))


def check_texts(
    ledger: Ledger, store: Store, run_id: str, task: str, rows: Sequence[ValuedRow]
) -> tuple[CheckText, ...]:
    """Return the text of each row, failures first; `store` is that of the state folder."""
    known = {row[0]: row[1:] for row in ledger.database.read(_ROWS, (run_id, task))}
    ordered = sorted(rows, key=lambda each: (each.worth not in SHUTS, each.worth not in LACKS))
    texts = []
    for row, worth in ordered:
        command, exit_code, snippet, key = known.get(row.id, (None, None, None, None))
        shown = "" if command is None else shown_command(str(command))
        text = CheckText(row.check_name, row.passed, worth.value, shown, exit_code, (), instance=row.instance)
        if worth in SHUTS | LACKS:
            ran = None if key is None else stored_run(ledger, store, run_id, str(key))
            failing = tuple(item.id for item in ran.items if item.outcome in RED) if ran is not None else ()
            lines = lines_of(ran) if ran is not None else tuple(f"  {line}" for line in str(snippet or "").splitlines())
            text = text._replace(lines=lines, failing=failing, error=_error(ran, str(snippet or "")))
        texts.append(text)
    return tuple(texts)


def reasons_of(
    ledger: Ledger, store: Store, run_id: str, subject: VerifySubject, missing: Sequence[str]
) -> tuple[str, ...]:
    """Return what is missing at the gate of a verified subject, with the failing test and its error where known."""
    found = tallies(ledger, run_id, subject)
    rows = valued_rows(found.after, iteration=subject.round, baseline=found.baseline)
    failed = [each for each in rows if each.worth in SHUTS | LACKS]
    texts = check_texts(ledger, store, run_id, subject.task_id, failed)
    known = [(f"{label(text.name, text.instance)} (", text.reason) for text in texts if text.reason]
    return tuple(
        next((f"{each}: {reason}" for begin, reason in known if each.startswith(begin) and reason not in each), each)
        for each in missing
    )


def spelled(texts: Sequence[CheckText]) -> str:
    """Return the texts of checks below each other, at most `WHOLE` characters; what is left out is counted."""
    shown: list[str] = []
    left = WHOLE
    for number, text in enumerate(map(str, texts)):
        if len(text) > left:
            shown.append(f"({len(texts) - number} more checks are not shown)")
            break
        shown.append(text)
        left -= len(text)
    return "\n\n".join(shown)


def stored_run(ledger: Ledger, store: Store, run_id: str, key: str) -> Ran | None:
    """Return the stored result of an execution; None if it is lost or changed."""
    found = ledger.observation(run_id, key)
    digest = "" if found is None else str(found.detail.get("result", ""))
    try:
        return Ran.model_validate_json(store.get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest))
    except (StoreError, ValueError):
        return None


def _error(ran: Ran | None, snippet: str) -> str:
    """Return the first line of the first failure's message, without the folder that the check ran in."""
    if ran is None:
        said = snippet.partition("; ")[0]
    else:
        first = next((item.message for item in ran.items if item.outcome in RED), "")
        said = first if first or any(item.outcome in RED for item in ran.items) else ran.reason or _last_line(ran)
    line = next((line.strip() for line in _SCRATCH.sub("", said).splitlines() if line.strip()), "")
    return shorten(line)


def shorten(line: str) -> str:
    """Return a line, cut to the length of a reason.

    >>> len(shorten("x" * 500)) == REASON
    True
    """
    return line if len(line) <= REASON else f"{line[: REASON - 1]}…"


def _last_line(ran: Ran) -> str:
    lines = (ran.stderr or ran.stdout or "").strip().splitlines()
    return lines[-1] if lines else ""


def lines_of(ran: Ran) -> tuple[str, ...]:
    """Return the failing tests of a run with their messages, and the end of its output."""
    red = [item for item in ran.items if item.outcome in RED]
    lines = [f"  no evidence: {ran.reason}"] if ran.reason else []
    if [item.id for item in red] == [_EXIT]:  # a command that reports no tests may still print them
        return tuple(_SCRATCH.sub("", line) for line in (*lines, *_printed_errors(ran), *_end_of(ran)))
    for item in red[:NAMED]:
        place = f" ({item.path}:{item.line})" if item.path and item.line and item.path not in item.id else ""
        lines.append(f"- {item.id}{place}")
        lines += [f"    {line}" for line in item.message[:MESSAGE].splitlines() if line.strip()]
    if len(red) > NAMED:
        lines.append(f"- and {len(red) - NAMED} more")
    return tuple(_SCRATCH.sub("", line) for line in (*lines, *_end_of(ran)))


def _printed_errors(ran: Ran) -> list[str]:
    """Return the first lines of an output that name a failing test or an error."""
    lines = [line.strip() for text in (ran.stdout, ran.stderr) for line in (text or "").splitlines()]
    found = list(dict.fromkeys(shorten(line) for line in lines if _ERROR.search(line)))
    return ["  lines that name errors:", *(f"    {line}" for line in found[:NAMED])] if found else []


def _end_of(ran: Ran) -> list[str]:
    """Return the end of the output, by whole lines."""
    lines: Mapping[str, str] = {"stdout": ran.stdout or "", "stderr": ran.stderr or ""}
    shown = []
    for name, text in lines.items():
        tail = text[-TAIL:].splitlines()[1 if len(text) > TAIL else 0 :]
        if any(line.strip() for line in tail):
            shown += [f"  end of {name}:", *(f"    {line}" for line in tail)]
    return shown
