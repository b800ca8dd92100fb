"""Where Assay keeps its state about a repository: `.assay/` inside it, or the person's own folder where that fails."""

import hashlib
import os
from pathlib import Path

from assay.errors import NotReady
from assay.git.repository import Repository

FOLDER = ".assay"
IGNORE = "# everything Assay keeps here is for this machine only\n*\n"


def state_of(repository: Repository) -> Path:
    """The state folder, made if need be: 0700, and ignored by git through a file of its own."""
    if repository.top is not None and os.access(repository.top, os.W_OK | os.X_OK):
        return _made(repository.top / FOLDER)
    from platformdirs import user_state_path

    place = repository.top or repository.common_dir
    name = f"{place.name}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    return _made(user_state_path("assay") / "repositories" / name)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text(IGNORE)
    except OSError as error:
        raise NotReady(f"{folder} cannot be written: {error.strerror}", next_step="make it writable") from None
    return folder
