"""Find out which sandbox features this machine offers, by trying them once per process."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, Features, Warned
from fairwitness.sandbox import bwrap_args, kernel, memory_group
from fairwitness.sandbox.checked_command import check_command
from fairwitness.sandbox.syscalls import numbers
from fairwitness.sandbox.tier_runner import ABOUT_TIER
from fairwitness.sandbox.watchdog import uncounted

INSTALL_BWRAP = "apt-get install bubblewrap"
_TRIAL_S = 20
_LANDLOCK_GAPS = {
    2: "files cannot be renamed across folders",
    3: "truncating a file by its path is not stopped",
    5: "device controls are not stopped",
    6: "signals and abstract sockets reach outside",
}


@functools.cache
def probe() -> Features:
    """Return the features of this machine; the trials leave nothing behind."""
    warnings: list[Warned] = []

    def warn(code: str, text: str) -> None:
        warnings.append(Warned(code=code, text=text))

    filters = sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64") and kernel.has_seccomp()
    abi = kernel.landlock_abi()
    notify = filters and kernel.has_notify()
    cgroup = memory_group.is_available()
    root = os.geteuid() == 0
    bwrap = shutil.which("bwrap")
    refusal = _namespaces_refused(bwrap) if filters else "this system has no namespaces"
    tiers = [SandboxTier.NONE]
    if filters and root:
        tiers.insert(0, SandboxTier.UID)
    if filters and abi:
        tiers.insert(0, SandboxTier.LANDLOCK)
    if filters and refusal is None:
        tiers.insert(0, SandboxTier.NAMESPACES)
    if filters and bwrap is None:
        warn("no-bwrap", f"bubblewrap is not installed; next: {INSTALL_BWRAP}")
    elif refusal is not None:
        warn("userns-denied", f"no user namespace: {refusal}")
    if not abi:
        warn("landlock-absent", "the kernel has no Landlock, or it is switched off")
    for version, gap in _LANDLOCK_GAPS.items():
        if 0 < abi < version:
            warn(f"landlock-abi-{abi}", gap)
    if not notify:
        warn(
            "no-notify",
            "writes outside are stopped, but not named; tier ll cannot prevent chmod, utime and xattr there",
        )
    if not cgroup:
        warn("no-cgroup", f"memory of a tree is counted by looking, not by the kernel; {uncounted()}")
    if root:
        warn("root-nproc-unenforced", "the kernel counts no processes of root; they are counted by looking")
    warnings += ABOUT_TIER[tiers[0]]
    return Features(
        tier=tiers[0],
        tiers=tuple(tiers),
        landlock_abi=abi,
        userns=refusal is None or _has_userns(),
        seccomp=filters,
        notify=notify,
        cgroup=cgroup,
        warnings=tuple(warnings),
    )


def _namespaces_refused(bwrap: str | None) -> str | None:
    """Return why bubblewrap cannot build a sandbox around an empty folder, or None if it can."""
    if bwrap is None:
        return "bubblewrap is not installed"
    with tempfile.TemporaryDirectory(prefix="fairwitness-probe-") as folder:
        command = Command(
            argv=("/bin/true",), confinement=Confinement(worktree=folder, writable=True, env={}), purpose="probe"
        )
        words = bwrap_args.arguments(bwrap, check_command(command, SandboxTier.NAMESPACES), 2)
        python = bwrap_args.launcher()[0]
        try:
            done = subprocess.run(
                [*words, python, "-I", "-S", "-c", "print('inside')"],
                capture_output=True,
                timeout=_TRIAL_S,
                env={},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.stdout == b"inside\n":
        return None
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if not line.startswith("{")]
    return lines[-1] if lines else f"bubblewrap left with {done.returncode}"


def _has_userns() -> bool:
    """Return whether a child process may enter its own user namespace."""
    if sys.platform != "linux" or "unshare" not in numbers(os.uname().machine):
        return False
    number = numbers(os.uname().machine)["unshare"]
    program = (
        "import ctypes, os\n"
        f"os._exit(0 if ctypes.CDLL(None).syscall(ctypes.c_long({number}), ctypes.c_long(0x10000000)) == 0 else 1)"
    )
    try:
        words = [sys.executable, "-I", "-S", "-c", program]
        return subprocess.run(words, timeout=_TRIAL_S, env={}, check=False, capture_output=True).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
