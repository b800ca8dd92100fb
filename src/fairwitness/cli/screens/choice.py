"""The choice of a screen by the kind of run and the kind of output."""

import sys
from typing import TYPE_CHECKING

from fairwitness.cli.screens.run import GraphLines, JsonLines, LiveScreen, OutputMode, PlainLines, Screen, SilentScreen

if TYPE_CHECKING:
    from fairwitness.app.views.followed_run import FollowedRun
    from fairwitness.cli.screens.run import RunLines


def screen_of(
    run: "FollowedRun", how: OutputMode, *, hint: str, is_ours: bool = False, shown: int | None = None
) -> Screen:
    """Return the screen for a run. `hint` says what Ctrl-C does, `is_ours` that this process executes the run, and
    `shown` is the last event that an earlier screen showed.
    """
    if how.as_json:
        return SilentScreen()
    if how.as_lines:
        return JsonLines(sys.stdout)
    lines = _lines_of(run)
    if not how.is_live:
        return PlainLines(lines, sys.stdout, is_ours=is_ours, shown=shown)
    if run.view.workflow == "autopilot" and run.view.phases.wanted:
        from fairwitness.cli.screens.autopilot import AutopilotLive

        return AutopilotLive(run, hint, is_ours=is_ours, shown=shown)
    return LiveScreen(lines, hint, is_ours=is_ours, shown=shown)


def _lines_of(run: "FollowedRun") -> "RunLines":
    """Return the lines for a run; those of a feature need its events from the first one on."""
    is_whole = bool(run.past) and run.past[0].seq == 1
    if run.view.workflow != "feature" or not is_whole:
        return GraphLines()
    from fairwitness.app.views.feature import FeatureView
    from fairwitness.cli.screens.feature import FeatureLines

    return FeatureLines(FeatureView(run.run_id))
