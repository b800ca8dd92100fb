"""What the commands of autopilot print of runs that ended, and of the phases of a roadmap."""

from typing import TYPE_CHECKING

from fairwitness.cli.autopilot_screen import SIGNS, short
from fairwitness.cli.columns import terminal_width, wrapped
from fairwitness.cli.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.app.autopilot_look import AllMetrics, Reported, Standing

_LABEL = 10
_SHOWN = 12


def standing_lines(standings: "list[Standing]") -> list[str]:
    """One line for each phase."""
    from fairwitness.app.autopilot_course import phase_word
    from fairwitness.app.event_words import shown

    lines = []
    ids = max((len(each.id) for each in standings), default=0)
    for each in standings:
        start = f"  {SIGNS[each.status]} {each.id:<{ids}}  {phase_word(each.status):<13}  "
        lines += wrapped(shown(each.name, 200), terminal_width(), first=start, rest=" " * len(start))
    return lines


def report_lines(found: "Reported") -> list[str]:
    """What a run came to, below its board."""
    look, numbers = found.look, found.metrics
    rated = [f"{phase.id}: {' '.join(map(str, phase.scores))}" for phase in look.phases if phase.scores]
    fields = [
        ("succeeded", f"{numbers.phases_succeeded} of {numbers.phases_attempted} phases that were begun"),
        ("scores", "; ".join(rated)),
        ("asked you", f"about {look.deferred} of {look.processed} phases" if look.processed else ""),
        ("retries", f"{numbers.total_debug_loops} debugging, {numbers.total_replan_attempts} planning anew"),
        ("failures", ", ".join(f"{kind.value} {n}" for kind, n in numbers.failure_taxonomy_histogram.items())),
        ("branch", look.target),
        *(("document", path) for path in found.documents[:_SHOWN]),
    ]
    if len(found.documents) > _SHOWN:
        fields.append(("", f"and {len(found.documents) - _SHOWN} more"))
    return [line for name, text in fields if text for line in _field(name, text)]


def metrics_lines(found: "AllMetrics") -> list[str]:
    """One line for each run, and the trend."""
    lines = []
    for each in found.runs.root:
        score = "-" if each.avg_alignment_score is None else f"{each.avg_alignment_score:.1f}"
        told = f"{each.phases_succeeded}/{each.phases_attempted} phases  score {score:>4}"
        took = spell_seconds(60 * each.total_duration_minutes)
        lines.append(f"{each.run_id}  {told}  {short(each.total_estimated_tokens)} tokens expected  {took}")
    course = found.trend
    if course is not None:
        moved = "" if course.avg_alignment_delta is None else f", score {course.avg_alignment_delta:+.1f}"
        lines += _field("trend", f"success {course.success_rate_delta:+.0%}{moved} against the run before")
    if course is not None and course.recurring_failures:
        lines += _field("again", ", ".join(kind.value for kind in course.recurring_failures))
    return lines


def _field(name: str, text: str) -> list[str]:
    return wrapped(text, terminal_width(), first=f"{name:<{_LABEL}}", rest=" " * _LABEL)
