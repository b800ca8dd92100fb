"""A bundled repository with its one commit, the same on every machine and every day."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}


def lay_out_files(folder: Path, files: Mapping[str, str], *, subject: str, moment: str) -> Path:
    """The files in a new folder, committed under a subject at a fixed time."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", subject)):
        _git(folder, moment, *arguments)
    return folder


def _git(folder: Path, moment: str, *arguments: str) -> None:
    """Git as the repository's own person, whatever the real one has configured."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
        **{f"GIT_{who}_DATE": moment for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=sys.stderr)
