"""The choice of a screen by the kind of run and the kind of output."""

from typing import TYPE_CHECKING

from fairwitness.cli.screens.run import OutputMode, Screen, screen

if TYPE_CHECKING:
    from fairwitness.app.views.followed_run import FollowedRun


def screen_of(run: "FollowedRun", how: OutputMode, *, hint: str, is_ours: bool = False) -> Screen:
    """Return the screen for a run; the one with the steps of a feature needs the events from the first one on."""
    if run.view.workflow == "autopilot":
        from fairwitness.cli.screens.autopilot import autopilot_screen

        return autopilot_screen(run, how, hint=hint, is_ours=is_ours)
    is_whole = bool(run.past) and run.past[0].seq == 1
    if run.view.workflow != "feature" or not is_whole:
        return screen(how, hint=hint, is_ours=is_ours)
    from fairwitness.app.views.feature import FeatureView
    from fairwitness.cli.screens.feature import FollowedFeature, feature_screen

    return FollowedFeature(feature_screen(how, FeatureView(run.run_id), hint=hint))
