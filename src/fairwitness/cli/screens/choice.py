"""The screen that fits a run and where its output goes."""

from typing import TYPE_CHECKING

from fairwitness.cli.screens.run import How, Screen, screen

if TYPE_CHECKING:
    from fairwitness.app.views.followed_run import Watching


def screen_of(run: "Watching", how: How, *, hint: str, is_ours: bool = False) -> Screen:
    """The screen that fits the run, too: a feature's shows its steps, if its past is known from the beginning."""
    if run.look.workflow == "autopilot":
        from fairwitness.cli.screens.autopilot import autopilot_screen

        return autopilot_screen(run, how, hint=hint, is_ours=is_ours)
    is_whole = bool(run.past) and run.past[0].seq == 1
    if run.look.workflow != "feature" or not is_whole:
        return screen(how, hint=hint, is_ours=is_ours)
    from fairwitness.app.views.feature import FeatureLook
    from fairwitness.cli.screens.feature import Watched, feature_screen

    return Watched(feature_screen(how, FeatureLook(run.run_id), hint=hint))
