"""Git called so that nothing in a repository or a home folder can make it run anything else.

No system or user configuration, no hooks, no pager, no editor, no transport; an empty environment but for PATH.
"""

import os
import subprocess
from pathlib import Path

from assay.errors import NotReady

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "/bin/false",
    "core.sshCommand": "/bin/false",
    "core.attributesFile": "/dev/null",
    "diff.external": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "safe.bareRepository": "explicit",
    "gc.auto": "0",
    "commit.gpgSign": "false",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}
TIMEOUT_S = 60


class GitFailed(NotReady):
    """Git said no; its own words are in the sentence."""


def git(work_tree: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """What a git command prints in a work tree; `GitFailed` if it fails."""
    options = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = ["git", "-C", str(work_tree), *options, *arguments]
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
            env={"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT},
        )
    except FileNotFoundError:
        raise NotReady("git is not installed", next_step="install git 2.39 or newer") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(
            f"git {arguments[0]} did not end within {TIMEOUT_S} s", next_step="look at the repository"
        ) from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(
            f"git {arguments[0]} failed in {work_tree}: {words[-1] if words else f'exit code {done.returncode}'}",
            next_step="look at the repository",
        )
    return done.stdout
