"""The ll tier: confine a command with Landlock and seccomp, without namespaces."""

import threading

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox import landlock_rules, seccomp
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.launch import CommandFacts, Launch
from fairwitness.sandbox.observer import add_observer
from fairwitness.sandbox.private_folders import private_folders
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervision import supervise
from fairwitness.sandbox.tier_runner import TierRunner, base_plan, host_launcher, rlimits
from fairwitness.sandbox.watchdog import Watchdog


class LandlockRunner(TierRunner):
    """Runs commands among the host's files, of which they can open only some, and without sockets."""

    tier = SandboxTier.LANDLOCK

    def _run(self, checked: CheckedCommand, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
        command = checked.command
        sockets = seccomp.families(command.confinement.network, own_network=False)
        with private_folders() as own:
            # the kernel would count all processes of this user, so the watchdog counts them instead
            launch_plan = base_plan(
                checked, home=own.home, temporary=own.temporary, limits=rlimits(command.limits, count_processes=False)
            )
            launch_plan["confined"] = True
            launch_plan["filter"] = seccomp.program(sockets, watch=False, alone=False)
            launch_plan["landlock"] = landlock_rules.rules(
                checked, self._features.landlock_abi, (own.home, own.temporary)
            )
            launch = Launch(
                argv=lambda _: host_launcher(),
                plan=launch_plan,
                namespaced=False,
                watchdog=Watchdog(command.limits, checked.write, (own.folder,), ()),
                observer=None,
            )
            add_observer(launch, checked, self.tier, sockets, self._features, (own.home, own.temporary), own.shared)
            return supervise(launch, command.limits, streams, cancel)
