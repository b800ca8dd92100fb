"""The composition root: the only module that knows which backend and which runner is real."""

from assay.contracts.common.evidence import SandboxTier
from assay.errors import NotReady, UsageError
from assay.sandbox.confine import Confining
from assay.sandbox.landlock import LandlockRunner
from assay.sandbox.namespaces import NamespaceRunner
from assay.sandbox.owner import OwnUserRunner
from assay.sandbox.probe import INSTALL_BWRAP, probe
from assay.sandbox.runner import Runner
from assay.sandbox.unconfined import UnconfinedRunner

_RUNNERS: dict[SandboxTier, type[Confining]] = {
    SandboxTier.NAMESPACES: NamespaceRunner,
    SandboxTier.LANDLOCK: LandlockRunner,
    SandboxTier.UID: OwnUserRunner,
    SandboxTier.NONE: UnconfinedRunner,
}


def runner(tier: SandboxTier | None = None, *, allow_unconfined: bool = False) -> Runner:
    """The strongest runner that works here, or the one that was asked for."""
    features = probe()
    chosen = tier or features.tier
    if chosen is SandboxTier.NONE and not allow_unconfined:
        if tier is None:
            raise NotReady("nothing on this machine can keep a command in", next_step=_next_step())
        raise UsageError(
            "running commands unconfined was not allowed",
            next_step="choose a tier that keeps them in, or allow it; what runs unconfined opens no gate",
        )
    if chosen not in features.tiers:
        raise NotReady(f"the sandbox tier {chosen} does not work on this machine", next_step=_next_step())
    return _RUNNERS[chosen](features)


def _next_step() -> str:
    """What would help, from what the probe found missing."""
    for warned in probe().warnings:
        if warned.code == "no-bwrap":
            return f"install bubblewrap ({INSTALL_BWRAP}), or use Linux 5.13 or newer with Landlock"
        if warned.code == "userns-denied":
            return f"allow user namespaces ({warned.text}), or use another tier"
    return "run on Linux, or in a Linux container or virtual machine"
