"""The tier that keeps nothing in: limits and a clean end, for machines that offer no more and people who insist."""

import sys
import threading

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.confine import Confining, host_launcher, plan, rlimits
from fairwitness.sandbox.launch import Ended, Launch
from fairwitness.sandbox.private import private
from fairwitness.sandbox.request import Request
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervise import supervise
from fairwitness.sandbox.watchdog import Watchdog


class UnconfinedRunner(Confining):
    """What runs here opens no gate."""

    tier = SandboxTier.NONE

    def _run(self, asked: Request, streams: Streams, cancel: threading.Event | None) -> Ended:
        command = asked.command
        with private() as own:
            launch = Launch(
                argv=lambda _: host_launcher(),
                plan=plan(
                    asked,
                    home=own.home,
                    temporary=own.temporary,
                    limits=rlimits(command.limits, count_processes=False),
                ),
                namespaced=False,
                watchdog=_watchdog(asked, own.folder),
                observer=None,
            )
            return supervise(launch, command.limits, streams, cancel)


def _watchdog(asked: Request, folder: str) -> Watchdog | None:
    """Processes are counted where the kernel shows them."""
    return Watchdog(asked.command.limits, asked.write, (folder,), ()) if sys.platform == "linux" else None
