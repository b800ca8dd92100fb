"""A person with a repository: git as they would call it, with their own home, and a picture of all they own."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fairwitness.git import quarantine
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow


@dataclass(frozen=True)
class Person:
    """Works in `folder`; what lies in `home` is their own configuration."""

    folder: Path
    home: Path

    @classmethod
    def in_folder(cls, root: Path, *, name: str = "repo", init: tuple[str, ...] = ("-b", "main")) -> "Person":
        """A person with an empty repository."""
        person = cls(root / name, root / "home")
        person.folder.mkdir(parents=True)
        person.home.mkdir(exist_ok=True)
        person.git("init", "-q", *init)
        return person

    def git(self, *arguments: str, check: bool = True, cwd: Path | None = None, **env: str) -> str:
        """Git called plainly, as a person does."""
        return self.git_bytes(*arguments, check=check, cwd=cwd, **env).decode().strip()

    def git_bytes(self, *arguments: str, check: bool = True, cwd: Path | None = None, **env: str) -> bytes:
        """The same with what it printed as it is."""
        names = ("AUTHOR", "COMMITTER")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **{
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "core.fsync",
                "GIT_CONFIG_VALUE_0": "none",
            },  # a test is quick
            **{f"GIT_{name}_NAME": "Ada" for name in names},
            **{f"GIT_{name}_EMAIL": "ada@example.org" for name in names},
            **env,
        }
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.folder, env=environment, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout

    def write(self, path: str, content: str | bytes = "x\n") -> Path:
        """A file in the checkout."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, message: str = "change", **files: str) -> str:
        """Commits everything; files are given by name."""
        for name, content in files.items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-qm", message, "--allow-empty")
        return self.git("rev-parse", "HEAD")

    def open(self) -> Repository:
        """The repository as we see it."""
        return Repository.open(self.folder)

    def shadow(self) -> Shadow:
        """A shadow of it beside the home folder."""
        return Shadow.open(self.home.parent / "state" / "shadow", self.open())

    def is_quarantined(self, commit: str) -> bool:
        """Return True if a commit can be reached from quarantine."""
        return self.git("for-each-ref", "--count=1", f"--contains={commit}", quarantine.PREFIX) != ""

    def trap(self, name: str = "trap", ends: str = "exec cat") -> tuple[Path, Path]:
        """A program that leaves a mark when it runs (and passes its input on), and the mark."""
        program, mark = self.home.parent / f"{name}.sh", self.home.parent / f"{name}.sprung"
        program.write_text(f"#!/bin/sh\necho sprung >> '{mark}'\n{ends}\n")
        program.chmod(0o755)
        return program, mark

    def configure(self, text: str, file: str = ".git/config") -> None:
        """Adds lines to a configuration."""
        place = self.folder / file
        place.write_text((place.read_text() if place.exists() else "") + text)


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file beneath a folder: mode, time and content; of git's objects only their content."""
    seen = {}
    for place, folders, files in os.walk(folder):
        for name in [*files, *(name for name in folders if (Path(place) / name).is_symlink())]:
            path = Path(place) / name
            status = path.lstat()
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            in_objects = "/.git/objects/" in str(path)
            seen[str(path)] = (status.st_mode, 0 if in_objects else status.st_mtime_ns, content)
    return seen
