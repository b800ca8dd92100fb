"""The repository of the demo with its one commit, and the request that is made of it."""

import os
import subprocess
import sys
from pathlib import Path

from assay.app.demo_feature import house_tools, library
from assay.store.layout.feature import FeatureLayout

FILES = {**house_tools.FILES, **library.FILES}
SLUG = "gift-vouchers"
"""The feature's name; the planner's recording writes its tasks beneath the folder of that name."""
LAYOUT = FeatureLayout(SLUG)
FOLDER = LAYOUT.folder
REQUEST = """\
Gift vouchers

Customers want to pay with gift vouchers. A voucher has a code, a balance and a last day. Several vouchers and cash may
be used together, and a voucher keeps what is left on it. Expired vouchers are refused. The receipt shows each voucher
that was used with what is left on it, and for each rate of VAT how much was paid by voucher.
"""
CHECKS = (
    ("python3", "-m", "unittest"),
    ("python3", "tools/lint.py", "till", "tests", "tools"),
    ("python3", "tools/check_types.py", "till"),
)
"""The checks of the repository as a person runs them; `assay.toml` declares the last two, the first is found."""
MOMENT = "2026-02-26T14:30:00Z"
_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}
_STEPS = (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "feat: a small till"))


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
