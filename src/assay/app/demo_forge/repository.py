"""The repository of the demo with its one commit, and the request that is made of it."""

import os
import subprocess
import sys
from pathlib import Path

from assay.app.demo_forge.library import FILES

SLUG = "everyday-measures"
REQUEST = """\
Everyday measures

The library knows lengths only. It should know masses and times as well, read quantities as people write them ("1.5 km",
"90min", "2 hours") and write them as people read them, add several up, find the largest, take a time apart into hours
and minutes, and answer a whole question such as "1.5 km in metres". Results stay exact until they are shown.
"""
CHECKS = (("python3", "-m", "unittest"), ("python3", "tools/check_types.py", "measure"))
"""The checks of the repository as a person runs them; `assay.toml` declares the last one, the first is found."""
MOMENT = "2026-01-01T00:00:00Z"
_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}
_STEPS = (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "feat: lengths"))


def lay_out(folder: Path) -> Path:
    """The repository in a new folder; the same commit on every machine and every day."""
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for arguments in _STEPS:
        _git(folder, *arguments)
    return folder


def _git(folder: Path, *arguments: str) -> None:
    """Git as the repository's own person, at a fixed time, whatever the real one has configured."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
        **{f"GIT_{who}_DATE": MOMENT for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=sys.stderr)
