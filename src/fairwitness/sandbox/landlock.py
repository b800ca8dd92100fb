"""The ll tier: Landlock and seccomp by a small supervisor."""

import threading

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox import ruleset, seccomp
from fairwitness.sandbox.confine import Confining, host_launcher, plan, rlimits
from fairwitness.sandbox.launch import Ended, Launch
from fairwitness.sandbox.observer import observed
from fairwitness.sandbox.private import private
from fairwitness.sandbox.request import Request
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervise import supervise
from fairwitness.sandbox.watchdog import Watchdog


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
