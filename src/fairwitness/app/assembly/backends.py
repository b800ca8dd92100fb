"""The sandbox runner and the agent backends of this machine: the only module that imports the real ones."""

from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import NotReady, UsageError
from fairwitness.sandbox.landlock import LandlockRunner
from fairwitness.sandbox.namespaces import NamespaceRunner
from fairwitness.sandbox.own_user import OwnUserRunner
from fairwitness.sandbox.probe import INSTALL_BWRAP, probe
from fairwitness.sandbox.runner import Runner
from fairwitness.sandbox.tier_runner import TierRunner
from fairwitness.sandbox.unconfined import UnconfinedRunner

if TYPE_CHECKING:  # imported late: running commands needs no agents
    from collections.abc import Mapping

    from fairwitness.agents.base import Backend
    from fairwitness.contracts.agents.dispatch import Probe
    from fairwitness.contracts.agents.settings import AgentsSettings
    from fairwitness.contracts.common.policy import RetryPolicy
    from fairwitness.contracts.common.tools import Role

_RUNNERS: dict[SandboxTier, type[TierRunner]] = {
    SandboxTier.NAMESPACES: NamespaceRunner,
    SandboxTier.LANDLOCK: LandlockRunner,
    SandboxTier.UID: OwnUserRunner,
    SandboxTier.NONE: UnconfinedRunner,
}


def runner(tier: SandboxTier | None = None, *, allow_unconfined: bool = False) -> Runner:
    """Return the strongest sandbox runner that works here, or the one of `tier`."""
    features = probe()
    chosen = tier or features.tier
    if chosen is SandboxTier.NONE and not allow_unconfined:
        if tier is None:
            raise NotReady("no sandbox works on this machine", next_step=_next_step())
        raise UsageError(
            "running commands without a sandbox was not allowed",
            next_step="choose another tier, or allow it; results without a sandbox open no gate",
        )
    if chosen not in features.tiers:
        raise NotReady(f"the sandbox tier {chosen} does not work on this machine", next_step=_next_step())
    return _RUNNERS[chosen](features)


def _next_step() -> str:
    """Return the next step, from what the probe found missing."""
    for warned in probe().warnings:
        if warned.code == "no-bwrap":
            return f"install bubblewrap ({INSTALL_BWRAP}), or use Linux 5.13 or newer with Landlock"
        if warned.code == "userns-denied":
            return f"allow user namespaces ({warned.text}), or use another tier"
    return "run on Linux, or in a Linux container or virtual machine"


API, CASSETTE = "api", "cassette"


def backend(
    name: str,
    settings: "AgentsSettings",
    *,
    cassette: Path | None = None,
    done: "Mapping[tuple[Role, str], int] | None" = None,
    retry: "RetryPolicy | None" = None,
) -> "Backend":
    """Return the backend of a name: an agent's profile, the built-in loop, or recordings.

    `done` is the number of recordings of each role and instance that were played before; `retry` says how often a
    request to a model is repeated inside a call.
    """
    from fairwitness.agents.profiles import PROFILES
    from fairwitness.app.assembly.models import SELLERS

    if name == CASSETTE:
        from fairwitness.agents.backends.cassette import CassetteBackend

        if cassette is None:
            raise UsageError("there is no recording to play", next_step="name one with --cassette FILE")
        return CassetteBackend(cassette, done=done or {})
    if name in PROFILES:
        from fairwitness.agents.backends.acp.backend import AcpBackend

        return AcpBackend(PROFILES[name])
    if name == API or name in settings.backend:
        from fairwitness.agents.backends.api import QUIET_S, ApiBackend
        from fairwitness.contracts.common.policy import RetryPolicy
        from fairwitness.rules.feature_retry import retries_inside

        said, policy = settings.backend.get(name), retry or RetryPolicy()
        return ApiBackend(
            name=name,
            dialect=SELLERS[said.provider].dialect if said is not None else None,
            waits=lambda cause: retries_inside(cause, policy),
            quiet_s=QUIET_S + settings.gateway.provider_wait_s,  # the gateway may wait for the provider first
        )
    known = (*PROFILES, API, CASSETTE, *(other for other in settings.backend if other not in PROFILES))
    raise UsageError(f"there is no agent {name!r}", next_step=f"choose one of {', '.join(known)}")


def probe_agent(name: str, settings: "AgentsSettings") -> "Probe":
    """Probe an agent; the built-in loop also needs the key of a model."""
    from fairwitness.app.assembly.models import PERSONS, SELLERS

    found = backend(name, settings).probe()
    if name != API or any(PERSONS.of(kind) is not None for kind in SELLERS):
        return found
    variables = ", ".join(dict.fromkeys(seller.variable for seller in SELLERS.values()))
    return found.model_copy(
        update={
            "found": False,
            "missing": (*found.missing, f"a key of a model ({variables})"),
            "next_step": ", then ".join(filter(None, (found.next_step, "set one of these variables"))),
        }
    )
