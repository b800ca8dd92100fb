"""An autopilot run on the screen: its phases as a board with the current step, scores, and tokens against their cap."""

import os
import sys
from typing import TYPE_CHECKING

from fairwitness.cli.columns import cells, cut, padded
from fairwitness.cli.progress import spell_seconds
from fairwitness.cli.run_screen import LINES, How, LiveScreen, Screen, screen
from fairwitness.cli.run_words import NOBODY, is_alone, name_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from fairwitness.app.autopilot_look import AutopilotLook, PhaseLine
    from fairwitness.app.watching import Watching

SIGNS = {
    "completed": "✓",
    "failed": "✗",
    "in_progress": "▶",
    "needs_human_verification": "?",
    "skipped": "-",
    "not_started": "·",
}
_NAMES = 28
_LEAST = 8


def autopilot_screen(run: "Watching", how: How, *, hint: str, is_ours: bool = False) -> Screen:
    """The screen that fits where the output goes: the board needs a terminal, lines are the same as of other runs."""
    is_plain = how.plain or how.as_json or how.as_lines or not run.look.phases.wanted
    if is_plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return screen(how, hint=hint, is_ours=is_ours)
    return AutopilotLive(run, hint, is_ours=is_ours)


class AutopilotLive(LiveScreen):
    """The board at the bottom of a terminal, and lines that stay above it."""

    def __init__(self, run: "Watching", hint: str, *, is_ours: bool = False, console: "Console | None" = None) -> None:
        super().__init__(hint, is_ours=is_ours, console=console)
        from fairwitness.app.autopilot_look import Board

        self._board = Board(run.root, run.run_id)

    def __enter__(self) -> "AutopilotLive":
        self._board.open()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._board.close()

    def _region(self, run: "Watching", width: int) -> "Text":
        from rich.text import Text

        alone = not self._is_ours and is_alone(run)
        last = run.note or (f"{NOBODY}: fairwitness resume {name_of(run)}" if alone else self._hint)
        lines = ["─" * width, *board_lines(self._board.look(), width, height=LINES - 2), cut(last, width)]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def board_lines(look: "AutopilotLook", width: int, *, height: int | None = None) -> list[str]:
    """The run in one line, and one for every phase; with `height`, those around the one that is worked on."""
    head = [cut(headline(look), width)]
    if look.breaker != "closed":
        until = f" until {look.cooldown_until}" if look.cooldown_until else ""
        why = f": {_shown(look.last_error, 200)}" if look.last_error else ""
        head.append(cut(f"breaker {look.breaker.replace('_', ' ')}{until}{why}", width))
    phases = _window(look, None if height is None else max(1, height - len(head) - 1))
    ids = max((cells(phase.id) for phase in phases), default=0)
    names = max((cells(_shown(phase.name, _NAMES)) for phase in phases), default=0)
    rows = [_row(phase, ids, min(names, _NAMES), width) for phase in phases]
    left = len(look.phases) - len(phases)
    return [*head, *rows, *([f"  and {left} more phases"] if left else [])]


def headline(look: "AutopilotLook") -> str:
    """Where the run stands: phases, tokens and time against their caps."""
    counts = look.counts()
    word = "WAITS FOR YOU" if _is_waiting(look) else look.status.upper()
    parts = (
        look.run_id,
        word,
        f"{counts.get('completed', 0)}/{len(look.phases)} phases",
        f"{short(look.tokens)} of {short(look.token_cap)} tokens",
        spell_seconds(60 * look.minutes),
    )
    return "  ".join(parts)


def _is_waiting(look: "AutopilotLook") -> bool:
    """Whether nothing is left but verdicts, as far as the board can tell."""
    is_at_work = any(phase.status in ("in_progress", "not_started") for phase in look.phases)
    return look.status == "running" and bool(look.waiting) and not is_at_work


def short(count: int) -> str:
    """A number of tokens in a few signs.

    >>> [short(count) for count in (0, 950, 12_345, 500_000, 5_000_000)]
    ['0', '950', '12k', '500k', '5.0M']
    """
    if count < 1000:
        return str(count)
    return f"{count // 1000}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def _window(look: "AutopilotLook", most: int | None) -> "tuple[PhaseLine, ...]":
    if most is None or len(look.phases) <= most:
        return look.phases
    at = next((place for place, phase in enumerate(look.phases) if phase.id == look.current_phase), len(look.phases))
    first = max(0, min(at - most // 2, len(look.phases) - most))
    return look.phases[first : first + most]


def _row(phase: "PhaseLine", ids: int, names: int, width: int) -> str:
    word = phase.word if phase.step is None else phase.step.replace("_", " ")
    score = f"{phase.score:4.1f}" if phase.score is not None else "    "
    used = f"{short(phase.tokens)}/{short(phase.token_cap)}" if phase.tokens else ""
    tail = f"  {word:<13}  {score}  {used:<10}  {', '.join(phase.notes)}".rstrip()
    sign = SIGNS.get(phase.status, "?")
    start = f"  {sign} {padded(phase.id, ids)}  "
    context = max(_LEAST, min(names, width - cells(start) - cells(tail)))
    return cut(f"{start}{padded(_shown(phase.name, _NAMES), context)}{tail}", width)


def _shown(text: str | None, most: int) -> str:
    from fairwitness.app.event_words import shown

    return shown(text or "", most)
