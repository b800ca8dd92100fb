"""Screens of autopilot runs: the live board, the roadmap, the report and the metrics."""

from typing import TYPE_CHECKING

from fairwitness.app.text import safe_line, short_count
from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import spell_seconds
from fairwitness.cli.screens.run import LINES, GraphLines, LiveScreen

if TYPE_CHECKING:
    from rich.console import Console

    from fairwitness.app.views.autopilot import AllMetrics, AutopilotReport, RoadmapPhaseView
    from fairwitness.app.views.board import AutopilotView, PhaseLine
    from fairwitness.app.views.followed_run import FollowedRun

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


class AutopilotLive(LiveScreen):
    """The live board at the bottom of a terminal, with permanent lines above it."""

    def __init__(
        self,
        run: "FollowedRun",
        hint: str,
        *,
        is_ours: bool = False,
        console: "Console | None" = None,
        shown: int | None = None,
    ) -> None:
        super().__init__(GraphLines(), hint, is_ours=is_ours, console=console, shown=shown)
        self._order = run.order()

    def _body(self, run: "FollowedRun", width: int) -> list[str]:
        from fairwitness.app.views.board import board_of

        return ["─" * width, *board_lines(board_of(run.view, self._order), width, height=LINES - 2)]


def board_lines(view: "AutopilotView", width: int, *, height: int | None = None) -> list[str]:
    """Return a line for the run and one for each phase; `height` limits them to those around the current phase."""
    head = [cut(headline(view), width)]
    if view.breaker != "closed":
        until = f" until {view.cooldown_until}" if view.cooldown_until else ""
        why = f": {_shown(view.last_error, 200)}" if view.last_error else ""
        head.append(cut(f"breaker {view.breaker.replace('_', ' ')}{until}{why}", width))
    phases = _window(view, None if height is None else max(1, height - len(head) - 1))
    ids = max((cells(phase.id) for phase in phases), default=0)
    names = max((cells(_shown(phase.name, _NAMES)) for phase in phases), default=0)
    rows = [_row(phase, ids, min(names, _NAMES), width) for phase in phases]
    left = len(view.phases) - len(phases)
    return [*head, *rows, *([f"  and {left} more phases"] if left else [])]


def headline(view: "AutopilotView") -> str:
    """Return the run in one line: status, phases, tokens against the limit, and time."""
    counts = view.counts()
    word = "WAITS FOR YOU" if _is_waiting(view) else view.status.upper()
    parts = (
        view.run_id,
        word,
        f"{counts.get('completed', 0)}/{len(view.phases)} phases",
        f"{short_count(view.tokens)} of {short_count(view.token_cap)} tokens",
        spell_seconds(60 * view.minutes),
    )
    return "  ".join(parts)


def _is_waiting(view: "AutopilotView") -> bool:
    """Return whether only verdicts are left, as far as the board can tell."""
    is_at_work = any(phase.status in ("in_progress", "not_started") for phase in view.phases)
    return view.status == "running" and bool(view.waiting) and not is_at_work


def _window(view: "AutopilotView", most: int | None) -> "tuple[PhaseLine, ...]":
    if most is None or len(view.phases) <= most:
        return view.phases
    at = next((place for place, phase in enumerate(view.phases) if phase.id == view.current_phase), len(view.phases))
    first = max(0, min(at - most // 2, len(view.phases) - most))
    return view.phases[first : first + most]


def _row(phase: "PhaseLine", ids: int, names: int, width: int) -> str:
    word = phase.word if phase.step is None else phase.step.replace("_", " ")
    score = f"{phase.score:4.1f}" if phase.score is not None else "    "
    used = f"{short_count(phase.tokens)}/{short_count(phase.token_cap)}" if phase.tokens else ""
    tail = f"  {word:<13}  {score}  {used:<10}  {', '.join(phase.notes)}".rstrip()
    sign = SIGNS.get(phase.status, "?")
    start = f"  {sign} {padded(phase.id, ids)}  "
    context = max(_LEAST, min(names, width - cells(start) - cells(tail)))
    return cut(f"{start}{padded(_shown(phase.name, _NAMES), context)}{tail}", width)


def _shown(text: str | None, most: int) -> str:
    return safe_line(text or "", most)


_LABEL = 10
_SHOWN = 12


def standing_lines(standings: "list[RoadmapPhaseView]") -> list[str]:
    """Return one line for each phase."""
    from fairwitness.app.views.run import phase_status_text

    lines = []
    ids = max((len(each.id) for each in standings), default=0)
    for each in standings:
        start = f"  {SIGNS[each.status]} {each.id:<{ids}}  {phase_status_text(each.status):<13}  "
        lines += wrapped(safe_line(each.name, 200), terminal_width(), first=start, rest=" " * len(start))
    return lines


def report_lines(found: "AutopilotReport") -> list[str]:
    """Return the results of a run, to be printed below its board."""
    view, numbers = found.view, found.metrics
    rated = [f"{phase.id}: {' '.join(map(str, phase.scores))}" for phase in view.phases if phase.scores]
    fields = [
        ("succeeded", f"{numbers.phases_succeeded} of {numbers.phases_attempted} phases that were begun"),
        ("scores", "; ".join(rated)),
        ("asked you", f"about {view.deferred} of {view.processed} phases" if view.processed else ""),
        ("retries", f"{numbers.total_debug_loops} debugging, {numbers.total_replan_attempts} planning anew"),
        ("failures", ", ".join(f"{kind.value} {n}" for kind, n in numbers.failure_taxonomy_histogram.items())),
        ("branch", view.target),
        *(("document", path) for path in found.documents[:_SHOWN]),
    ]
    if len(found.documents) > _SHOWN:
        fields.append(("", f"and {len(found.documents) - _SHOWN} more"))
    return [line for name, text in fields if text for line in _field(name, text)]


def metrics_lines(found: "AllMetrics") -> list[str]:
    """Return one line for each run, and the trend."""
    lines = []
    for each in found.runs.root:
        score = "-" if each.avg_alignment_score is None else f"{each.avg_alignment_score:.1f}"
        summary = f"{each.phases_succeeded}/{each.phases_attempted} phases  score {score:>4}"
        took = spell_seconds(60 * each.total_duration_minutes)
        lines.append(f"{each.run_id}  {summary}  {short_count(each.total_estimated_tokens)} tokens expected  {took}")
    course = found.trend
    if course is not None:
        moved = "" if course.avg_alignment_delta is None else f", score {course.avg_alignment_delta:+.1f}"
        lines += _field("trend", f"success {course.success_rate_delta:+.0%}{moved} against the run before")
    if course is not None and course.recurring_failures:
        lines += _field("again", ", ".join(kind.value for kind in course.recurring_failures))
    return lines


def _field(name: str, text: str) -> list[str]:
    return wrapped(text, terminal_width(), first=f"{name:<{_LABEL}}", rest=" " * _LABEL)
