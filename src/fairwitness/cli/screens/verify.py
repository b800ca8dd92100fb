"""The report of `fairwitness verify`: a table of checks, what blocks the change, and the next command."""

from typing import TYPE_CHECKING

import click

from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.contracts.verify.report import CheckLine, FindingLine, VerifyReport

_COLOURS = {"passed": "green", "failed": "red", "no evidence": "yellow"}
_QUIET_MOVES = ("passing", "skipped")
_WORDS = 13
_MOST = 12
_NAMES = 25


def show(report: "VerifyReport") -> None:
    """Print the table, the output of failing checks, the notes, the answer and its reasons, and the next command."""
    files = f"{report.changed} file{'' if report.changed == 1 else 's'}"
    click.echo(f"{report.base.ref} -> {report.head.ref}   {files} changed   sandbox {report.sandbox.value}\n")
    _show_table(report)
    for line in report.checks:
        if line.output and not line.excused:
            _show_output(line)
    notes = [f"note: {note}" for note in report.notes]
    notes += [f"accepted: {_place(one)} {one.rule}: {one.accepted}" for one in report.findings if one.accepted][:_MOST]
    if notes:
        click.echo()
    for note in notes:
        _print(note, "", "    ")
    _show_answer(report)


def _show_table(report: "VerifyReport") -> None:
    known = {f"{line.name} {line.id}" for line in report.checks}
    rows = [(line.id, line.baseline.value, line.after.value, _result(line)) for line in report.checks]
    for missing in report.missing:
        if missing.check not in known:
            reason = missing.reason + (" (excused)" if missing.excused else "")
            rows.append((missing.check, "", "no evidence", reason))
    if not rows:
        return
    names = min(_NAMES, max(cells(name) for name, *_ in rows)) + 2
    click.secho(f"{'check':<{names}}{'before':<{_WORDS}}{'after':<{_WORDS}}result", bold=True)
    for name, before, after, text in rows:
        left = f"{padded(name, names - 2)}  {_word(before)}{_word(after)}"
        first, *rest = wrapped(text, terminal_width() - names - 2 * _WORDS)
        click.echo(f"{left}{first}".rstrip())
        for more in rest:
            click.echo(f"{'':<{names + 2 * _WORDS}}{more}")


def _result(line: "CheckLine") -> str:
    moves = ", ".join(f"{count} {move}" for move, count in _moves(line).items())
    took = "from the ledger" if line.cached else spell_seconds(line.duration_ms / 1000) if line.duration_ms else ""
    parts = (
        moves,
        "" if line.reason is None or moves else line.reason,
        "(excused)" if line.excused else "",
        took if line.after.value != "no evidence" else "",
    )
    return ", ".join(filter(None, parts))


def _moves(line: "CheckLine") -> dict[str, int]:
    counts = {move.value: count for move, count in line.counts.items() if count}
    loud = {move: count for move, count in counts.items() if move not in _QUIET_MOVES}
    return loud or {move: count for move, count in counts.items() if move == "passing"}


def _word(word: str) -> str:
    return click.style(word, fg=_COLOURS.get(word)) + " " * (_WORDS - len(word))


def _place(one: "FindingLine") -> str:
    return f"{one.path}:{one.line}" if one.line else one.path


def _show_output(line: "CheckLine") -> None:
    click.echo(f"\noutput of {line.output_from or line.id}:")
    for text in line.output:
        click.echo(f"  | {cut(text, terminal_width() - 4)}")
    if line.execution:
        click.echo(f"  complete: fairwitness evidence show {line.execution}")


def _show_answer(report: "VerifyReport") -> None:
    answer = report.answer
    took = spell_seconds(report.duration_ms / 1000)
    click.echo()
    if answer.answer == "open":
        word = click.style("HOLDS", fg="green", bold=True)
        click.echo(f"{word}: {answer.count} of {answer.threshold} required checks hold, nothing got worse ({took})")
    else:
        asks = answer.needs_person
        word = (
            click.style("NEEDS A PERSON", fg="yellow", bold=True)
            if asks
            else click.style("BLOCKED", fg="red", bold=True)
        )
        click.echo(f"{word}: {answer.because} ({took})")
        for reasons, names in _grouped(report).items():
            _print(", ".join(names) + (":" if reasons else ""), "  ", "  ")
            for reason in reasons[:_MOST]:
                _print(reason, "    ", "      ")
            if len(reasons) > _MOST:
                click.echo(f"    and {len(reasons) - _MOST} more: --json lists all")
    _show_expectations(report)
    click.echo(f"\nhead {report.ledger_head}")
    if " only: " in report.anchored:
        _print(f"anchored {report.anchored}", "     ", "     ")
    click.echo(f"next:  {report.next}", err=True)


def _show_expectations(report: "VerifyReport") -> None:
    """Print old and new expectation of each test whose old form fails with the new code."""
    for one in report.expectations[:_MOST]:
        click.echo()
        _print(f"{one.id} expected something else before", "  ", "    ")
        if one.message:
            _print(f"its old form fails: {one.message.splitlines()[0]}", "    ", "      ")
        for word, colour, lines in (("was", "red", one.before), ("now", "green", one.after)):
            for line in lines:
                shown = cut(line, terminal_width() - 9)
                click.echo(f"    {click.style(word, fg=colour)}  {shown}")
        if not one.before and not one.after:
            _print("the test is unchanged; a file that it loads changed", "    ", "      ")
        elif not one.after:
            click.echo("    now  the test is gone")
    if len(report.expectations) > _MOST:
        click.echo(f"  and {len(report.expectations) - _MOST} more: --json lists them")


def _grouped(report: "VerifyReport") -> dict[tuple[str, ...], list[str]]:
    """Return the checks that block by their reasons: several checks may see the same tests fail."""
    assert report.answer.answer == "blocked"
    found: dict[tuple[str, ...], list[str]] = {}
    for missing in report.answer.missing:
        found.setdefault(_reasons(report, missing), []).append(missing)
    return found


def _reasons(report: "VerifyReport", missing: str) -> tuple[str, ...]:
    """Return why a check blocks, from its findings or from the line of the check."""
    name = missing.split(" (", 1)[0]
    findings = [one for one in report.findings if one.check == name and one.blocks and one.accepted is None]
    if findings:
        return tuple(f"{_place(one)} {one.rule}: {one.text}" for one in findings)
    line = next((line for line in report.checks if name.endswith(f" {line.id}") and line.reason), None)
    if line is None or line.reason is None or line.reason in missing:
        return ()
    return tuple(line.reason.split("; "))


def _print(text: str, first: str, rest: str) -> None:
    for line in wrapped(text, terminal_width(), first=first, rest=rest):
        click.echo(line)
