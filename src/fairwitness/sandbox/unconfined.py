"""The tier without confinement: limits and cleanup only, for machines without a sandbox or users who insist."""

import sys
import threading

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.launch import CommandFacts, Launch
from fairwitness.sandbox.private_folders import private_folders
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervision import supervise
from fairwitness.sandbox.tier_runner import TierRunner, base_plan, host_launcher, rlimits
from fairwitness.sandbox.watchdog import Watchdog


class UnconfinedRunner(TierRunner):
    """Runs commands without confinement; their results open no gate."""

    tier = SandboxTier.NONE

    def _run(self, checked: CheckedCommand, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
        command = checked.command
        with private_folders() as own:
            launch = Launch(
                argv=lambda _: host_launcher(),
                plan=base_plan(
                    checked,
                    home=own.home,
                    temporary=own.temporary,
                    limits=rlimits(command.limits, count_processes=False),
                ),
                namespaced=False,
                watchdog=_watchdog(checked, own.folder),
                observer=None,
            )
            return supervise(launch, command.limits, streams, cancel)


def _watchdog(checked: CheckedCommand, folder: str) -> Watchdog | None:
    """Return a watchdog if the system shows processes under /proc."""
    return Watchdog(checked.command.limits, checked.write, (folder,), ()) if sys.platform == "linux" else None
