"""Starts campaigns as root and as a user without rights, each of them once for all tests that ask."""

import fcntl
import functools
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pydantic

import fairwitness
from sandbox.escapes.attacks.calls import system_call
from sandbox.escapes.campaign import SECRET, Verdict
from support.fixtures import ROOT

NOBODY = 12345
"""A user that no account has."""
TIMEOUT_S = 200

_PATHS = (ROOT / "tests", Path(fairwitness.__file__).parents[1], Path(pydantic.__file__).parents[1])
_NEEDED = "import fairwitness.contracts.common.sandbox, sandbox.escapes.campaign, sys; print(sys.version_info[:2])"


@dataclass(frozen=True)
class Identity:
    """As whom a campaign runs."""

    name: str
    uid: int | None
    """None for whoever runs the tests."""


ROOT_USER = Identity("root", None)
PLAIN_USER = Identity("user", NOBODY if os.geteuid() == 0 else None)
IDENTITIES = {"root": ROOT_USER, "user": PLAIN_USER}


class Unavailable(Exception):
    """Why this cannot be tried here."""


def environment() -> dict[str, str]:
    """What a campaign is started with."""
    paths = os.pathsep.join(str(path) for path in _PATHS)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
        SECRET: f"canary-{secrets.token_hex(12)}",
    }


@functools.cache
def python(identity: Identity) -> str:
    """An interpreter of our version that this user may run, with everything it needs in sight."""
    if identity.name == "root" and os.geteuid() != 0:
        raise Unavailable("the tests do not run as root")
    tried = []
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = as_user(identity, [path, "-P", "-c", _NEEDED], timeout=30)
        except OSError as error:
            tried.append(f"{path}: {error.strerror}")
            continue
        if done.stdout.strip() == str(sys.version_info[:2]):
            return path
        words = done.stderr.strip().splitlines() or [f"it is Python {done.stdout.strip()}"]
        tried.append(f"{path}: {words[-1]}")
    raise Unavailable(f"user {identity.uid} can run none of our interpreters ({'; '.join(tried)})")


def as_user(identity: Identity, argv: Sequence[str], *, timeout: float) -> "subprocess.CompletedProcess[str]":
    """Run one of our own programs as somebody, in a session of its own."""
    user = identity.uid
    groups: list[int] | None = None if user is None else []
    return subprocess.run(
        argv,
        env=environment(),
        cwd="/",
        user=user,
        group=user,
        extra_groups=groups,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def campaign(shared: Path, tier: str, identity: Identity, ids: Sequence[str]) -> dict[str, Verdict]:
    """The verdicts of a campaign; test processes that want the same one share it through a folder."""
    shared.mkdir(exist_ok=True)
    store = shared / f"{tier}-{identity.name}.json"
    with (shared / f"{tier}-{identity.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not store.exists():
            store.write_text(_run(tier, identity, ids))
    return {row["id"]: Verdict(**row) for row in json.loads(store.read_text())}


def _run(tier: str, identity: Identity, ids: Sequence[str]) -> str:
    interpreter = python(identity)
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-world-"))
    try:
        if identity.uid is not None:
            os.chown(folder, identity.uid, identity.uid)
        argv = [interpreter, "-P", "-m", "sandbox.escapes.campaign", str(folder), tier, ",".join(ids)]
        done = as_user(identity, argv, timeout=TIMEOUT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise AssertionError(f"the campaign of {tier} as {identity.name} broke off:\n{done.stderr}")
    return done.stdout


@functools.cache
def kernel_refuses(tier: str, identity: Identity) -> str | None:
    """Why the kernel or the machine cannot have a tier, asked without the product's own probe."""
    if tier == "uid":
        return None if os.geteuid() == 0 and identity.uid is None else "only root can run a command as another user"
    if tier == "ll":
        return None if landlock_abi() else "the kernel has no Landlock"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    trial = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "/bin/true"]
    done = as_user(identity, trial, timeout=30)
    return None if done.returncode == 0 else f"the kernel refuses namespaces: {done.stderr.strip()}"


def landlock_abi() -> int:
    """Which edition of Landlock the kernel has; 0 for none."""
    try:
        return system_call("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0
