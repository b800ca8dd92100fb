"""Prompts in the terminal: questions of a run, and proposals to apply."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.screens.columns import terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.runs.knowledge import Proposal
    from fairwitness.app.views.inbox import PendingQuestion

_MARGIN = "    "
_LONG = 4000


def is_interactive() -> bool:
    """Return whether stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def print_question(waiting: "PendingQuestion") -> None:
    """Print a question, its context and its options."""
    from fairwitness.app.text import safe_lines

    width = terminal_width()
    question = waiting.question
    click.echo(f"{waiting.run_id}  {waiting.slug}  {question.gate_id}")
    for line in wrapped(question.question, width):
        click.secho(line, bold=True)
    for text in safe_lines(question.context):
        for line in wrapped(text, width, first="  ", rest="    "):
            click.echo(line)
    names = max(len(option.id) for option in question.options)
    for option in question.options:
        default = "  (default)" if option.is_default else ""
        click.echo(f"  {option.id:<{names}}  {option.description}{default}")


def ask_in_terminal(root: Path, run_id: str) -> bool:
    """Prompt until there is an answer; Ctrl-C leaves the question open. Return False if the run asks nothing."""
    from fairwitness.app.runs.answer import answer
    from fairwitness.app.views.inbox import WANTS_WORDS, pending_question

    waiting = pending_question(root, run_id)
    if waiting is None:
        return False
    print_question(waiting)
    options = [option.id for option in waiting.question.options]
    default = next(option.id for option in waiting.question.options if option.is_default)
    chosen = click.prompt("Your answer", type=click.Choice(options), default=default)
    said = click.prompt("In your words") if chosen in WANTS_WORDS else None
    answer(root, run_id, chosen, said)
    return True


def offer_proposals(root: Path, run_id: str) -> None:
    """Show the changes to instruction files that a run proposes, and apply those that the person accepts."""
    from fairwitness.app.runs.knowledge import apply_proposal, pending_proposals

    for _ in range(len(waiting := pending_proposals(root, run_id))):
        show_proposal(waiting[0])
        if not click.confirm("Apply this to your checkout?", default=False):
            click.echo(f"it stays a proposal: fairwitness knowledge proposals {run_id}", err=True)
            return
        apply_proposal(root, run_id, waiting[0].number)
        waiting = pending_proposals(root, run_id)


def show_proposal(proposal: "Proposal") -> None:
    """Print a proposal with its diff."""
    from fairwitness.app.text import safe_line, safe_lines

    click.echo(f"{proposal.number}. {proposal.change} {safe_line(proposal.file, 200)}")
    for line in wrapped(safe_line(proposal.summary, _LONG), terminal_width(), first=_MARGIN, rest=_MARGIN):
        click.echo(line)
    for line in safe_lines(proposal.diff.rstrip()):
        click.echo(f"{_MARGIN}{line}")
