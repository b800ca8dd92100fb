"""The tier that keeps nothing in: limits and a clean end, for machines that offer no more and people who insist."""

import sys
import threading

from assay.contracts.common.evidence import SandboxTier
from assay.sandbox.confine import Confining, host_launcher, plan, rlimits
from assay.sandbox.launch import Ended, Launch
from assay.sandbox.private import private
from assay.sandbox.request import Request
from assay.sandbox.streams import Streams
from assay.sandbox.supervise import supervise
from assay.sandbox.watchdog import Watchdog


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
