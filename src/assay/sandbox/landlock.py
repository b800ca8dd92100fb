"""The ll tier: Landlock and seccomp by a small supervisor."""

import threading

from assay.contracts.common.evidence import SandboxTier
from assay.sandbox import ruleset, seccomp
from assay.sandbox.confine import Confining, host_launcher, plan, rlimits
from assay.sandbox.launch import Ended, Launch
from assay.sandbox.observer import observed
from assay.sandbox.private import private
from assay.sandbox.request import Request
from assay.sandbox.streams import Streams
from assay.sandbox.supervise import supervise
from assay.sandbox.watchdog import Watchdog


class LandlockRunner(Confining):
    """No namespace: the machine's own files, of which only some can be opened, and no sockets."""

    tier = SandboxTier.LANDLOCK

    def _run(self, asked: Request, streams: Streams, cancel: threading.Event | None) -> Ended:
        command = asked.command
        sockets = seccomp.families(command.confinement.network, own_network=False)
        with private() as own:
            # the kernel would count all that this user runs, so processes are left to the watchdog
            told = plan(
                asked, home=own.home, temporary=own.temporary, limits=rlimits(command.limits, count_processes=False)
            )
            told["confined"] = True
            told["filter"] = seccomp.program(sockets, watch=False, alone=False)
            told["landlock"] = ruleset.rules(asked, self._features.landlock_abi, (own.home, own.temporary))
            launch = Launch(
                argv=lambda _: host_launcher(),
                plan=told,
                namespaced=False,
                watchdog=Watchdog(command.limits, asked.write, (own.folder,), ()),
                observer=None,
            )
            observed(launch, asked, self.tier, sockets, self._features, (own.home, own.temporary))
            return supervise(launch, command.limits, streams, cancel)
