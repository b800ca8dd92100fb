"""A repository with one commit whose hash is the same on every machine and every day."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}


def commit_files(folder: Path, files: Mapping[str, str], *, subject: str, committed_at: str) -> Path:
    """Write files into a new folder, commit them on `main` at a fixed time, and return the folder."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", subject)):
        _git(folder, committed_at, *arguments)
    return folder


def _git(folder: Path, committed_at: str, *arguments: str) -> None:
    """Run git with a fixed author and time, independent of the user's configuration."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
        **{f"GIT_{who}_DATE": committed_at for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=sys.stderr)
