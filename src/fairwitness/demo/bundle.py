"""The bundled demos: their repositories, their recorded teams and what is asked of them, read from `data/`."""

import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairwitness.app.settings.review import look_at_trust, trust_file
from fairwitness.demo.sessions import RecordedSession, read_session

DATA = Path(__file__).parent / "data"
LIGHT, FORGE, AUTOPILOT = "light", "forge", "autopilot"
HONEST, LYING = "honest", "lying"
_COMPILED = "__pycache__"


@dataclass(frozen=True, slots=True)
class BundledRepository:
    """How the repository of a demo is laid out: the name of its folder, and its one commit."""

    folder: str
    subject: str
    committed_at: str


@dataclass(frozen=True, slots=True)
class AutopilotPlan:
    """What is asked of an autopilot run, and how it ends."""

    phases: str
    flags: tuple[str, ...]
    verdict_phase: str
    """The phase that waits for a person."""
    ends: Mapping[str, str]
    """By phase its status when the run is over."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A bundled repository with the sessions of its recorded team."""

    name: str
    repository: BundledRepository
    files: Mapping[str, str]
    """The files of the repository by their paths."""
    sessions: Mapping[str, RecordedSession]
    """By file name without its suffix; each as the first dispatch of its instance."""
    teams: Mapping[str, tuple[str, ...]]
    """By variant the names of the sessions, in the order in which they are played."""
    request: str = ""
    slug: str = ""
    autopilot: AutopilotPlan | None = None

    def team(self, variant: str = HONEST) -> tuple[RecordedSession, ...]:
        """Return every dispatch of a run; a session that is played again gets the next number of its instance."""
        played: Counter[tuple[str, str]] = Counter()
        team = []
        for session in (self.sessions[name] for name in self.teams[variant]):
            played[session.role, session.instance] += 1
            team.append(replace(session, number=played[session.role, session.instance]))
        return tuple(team)

    def session(self, name: str, variant: str = HONEST) -> RecordedSession:
        """Return a session with the number that it has when a variant plays it for the first time."""
        return self.team(variant)[self.teams[variant].index(name)]

    def document(self, name: str) -> dict[str, Any]:
        """Return the document that a session returns."""
        return self.sessions[name].answer

    def write_cassettes(self, folder: Path, variant: str = HONEST) -> Path:
        """Write one cassette for each dispatch into a folder and return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for session in self.team(variant):
            (folder / session.file_name).write_bytes(session.cassette())
        return folder

    def lay_out(self, folder: Path) -> Path:
        """Create the repository in a new folder and return the folder.

        Its settings are trusted: they are part of this program.
        """
        made = self.repository
        root = commit_files(folder, self.files, subject=made.subject, committed_at=made.committed_at)
        trust_file(look_at_trust(root))
        return root


@cache
def load(name: str) -> Demo:
    """Return the demo with a name: `feature`, `light`, `forge` or `autopilot`."""
    root = DATA / name
    settings = tomllib.loads((root / "team.toml").read_text(encoding="utf-8"))
    plan = settings.get("autopilot")
    request = root / "request.txt"
    return Demo(
        name=name,
        repository=BundledRepository(**settings["repository"]),
        files=repository_files(root / settings.get("repo", "repo")),
        sessions={path.stem: read_session(path) for path in sorted((root / "sessions").glob("*.yaml"))},
        teams={variant: tuple(names) for variant, names in settings["teams"].items()},
        request=request.read_text(encoding="utf-8") if request.exists() else "",
        slug=settings.get("slug", ""),
        autopilot=AutopilotPlan(**{**plan, "flags": tuple(plan["flags"])}) if plan else None,
    )


def repository_files(root: Path) -> dict[str, str]:
    """Return the files below a folder; byte code, which installers put beside Python files, is left out."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and _COMPILED not in path.parts
    }


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
