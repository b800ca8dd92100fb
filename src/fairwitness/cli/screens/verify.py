"""The report of `fairwitness verify` in eighty columns."""

import textwrap
from typing import TYPE_CHECKING

import click

from fairwitness.cli.screens.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.contracts.verify.report import CheckLine, FindingLine, VerifyReport

WIDTH = 80
_COLOURS = {"passed": "green", "failed": "red", "no evidence": "yellow"}
_QUIET_MOVES = ("passing", "skipped")
_MOST_FINDINGS = 12


def show(report: "VerifyReport") -> None:
    """Print the table, the findings, the result, and the next command."""
    click.echo(f"{report.base.ref} -> {report.head.ref}   {_files(report.changed)}   sandbox {report.sandbox.value}\n")
    if report.checks:
        click.echo(click.style(f"{'check':<26}{'before':<13}{'after':<13}what became of it", bold=True))
    for line in report.checks:
        _show_check(line)
    for missing in report.missing:
        if not any(f"{line.name} {line.id}" == missing.check for line in report.checks):
            _show_row(missing.check, "", "no evidence", missing.reason + (" (excused)" if missing.excused else ""))
    _show_findings(report)
    for line in report.checks:
        if line.output and not line.excused:
            _show_output(line)
    for note in report.notes:
        click.echo(_wrapped(f"note: {note}"))
    _show_answer(report)


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'} changed"


def _show_check(line: "CheckLine") -> None:
    moves = ", ".join(f"{count} {move}" for move, count in _moves(line).items())
    took = "from the ledger" if line.cached else spell_seconds(line.duration_ms / 1000) if line.duration_ms else ""
    reason = "" if line.reason is None or moves else line.reason
    excused = "(excused)" if line.excused else ""
    text = "  ".join(filter(None, (moves, reason, excused, took if line.after.value != "no evidence" else "")))
    _show_row(line.id, line.baseline.value, line.after.value, text)


def _moves(line: "CheckLine") -> dict[str, int]:
    counts = {move.value: count for move, count in line.counts.items() if count}
    loud = {move: count for move, count in counts.items() if move not in _QUIET_MOVES}
    return loud or {move: count for move, count in counts.items() if move == "passing"}


def _show_row(name: str, before: str, after: str, text: str) -> None:
    first, *rest = textwrap.wrap(text, WIDTH - 52) or [""]
    cells = f"{name[:25]:<26}{_word(before, 13)}{_word(after, 13)}{first}"
    click.echo(cells.rstrip())
    for more in rest:
        click.echo(f"{'':<52}{more}")


def _word(word: str, width: int) -> str:
    return click.style(word, fg=_COLOURS.get(word)) + " " * (width - len(word))


def _show_findings(report: "VerifyReport") -> None:
    blocking = [one for one in report.findings if one.blocks and one.accepted is None]
    accepted = [one for one in report.findings if one.accepted is not None]
    if blocking or accepted:
        click.echo()
    for one in blocking[:_MOST_FINDINGS]:
        click.echo(_wrapped(f"{click.style('blocks', fg='red')}    {_place(one)}  {one.rule}: {one.text}"))
    if len(blocking) > _MOST_FINDINGS:
        click.echo(f"          and {len(blocking) - _MOST_FINDINGS} more: --json lists all")
    for one in accepted[:_MOST_FINDINGS]:
        click.echo(_wrapped(f"accepted  {_place(one)}  {one.rule}: {one.accepted}"))


def _place(one: "FindingLine") -> str:
    return f"{one.path}:{one.line}" if one.line else one.path


def _show_output(line: "CheckLine") -> None:
    click.echo(f"\n{line.output_from or f'{line.name} {line.id}'} said:")
    for text in line.output:
        click.echo(f"  | {text[: WIDTH - 4]}")
    if line.execution:
        click.echo(f"  the rest: fairwitness evidence show {line.execution}")


def _show_answer(report: "VerifyReport") -> None:
    answer = report.answer
    took = spell_seconds(report.duration_ms / 1000)
    click.echo()
    if answer.answer == "open":
        word = click.style("HOLDS", fg="green", bold=True)
        click.echo(f"{word}: {answer.count} of {answer.threshold} required checks hold, nothing got worse ({took})")
    else:
        click.echo(_wrapped(f"{click.style('BLOCKED', fg='red', bold=True)}: {answer.because} ({took})"))
        for missing in answer.missing:
            click.echo(_wrapped(f"  - {missing}{_why(report, missing)}"))
    click.echo(f"next:  {report.next}", err=True)


def _why(report: "VerifyReport", missing: str) -> str:
    """Return the reason for a missing check, from the finding or the check line."""
    name = missing.split(" (", 1)[0]
    for one in report.findings:
        if one.check == name and one.blocks and one.accepted is None:
            return f": {one.text}"
    for line in report.checks:
        if name.endswith(f" {line.id}") and line.reason and line.reason not in missing:
            return f": {line.reason}"
    return ""


def _wrapped(text: str) -> str:
    # control codes count as width here, so that lines break slightly early
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
