"""The canaries: a scene for each attempt, with everything worth attacking in it and nothing real."""

import hashlib
import os
import secrets
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sandbox.escapes import decoy

_ANSWER_S = 30.0
TREE = ("home", "outside", "visible", "tasks", "repo", "state")
"""The folders of a scene that must stay as they are, but for the worktree in one of them."""


class Found(NamedTuple):
    """Everything about a file that an attempt might change."""

    mode: int
    owner: tuple[int, int]
    size: int
    modified_ns: int
    content: str
    attributes: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Scene:
    """The world of one attempt. A person's home, tasks, a repository, evidence; all of it made up."""

    id: str
    root: Path
    secret: str
    temporary: Path
    """A folder of its own right under the machine's tmp."""

    @property
    def worktree(self) -> Path:
        return self.root / "tasks" / "mine"

    @property
    def git(self) -> Path:
        return self.root / "repo" / ".git"

    @property
    def database(self) -> Path:
        return self.root / "state" / "evidence.db"

    def folder(self, name: str) -> Path:
        return self.root / name

    def snapshot(self) -> dict[str, Found]:
        """All that lies outside the worktree."""
        found = {}
        for top in (*(self.root / name for name in TREE), self.temporary):
            for path in (top, *_walk(top, without=self.worktree)):
                # a folder's time changes with its names, which are seen anyway
                found[str(path)] = _look(path)
        return found

    def elsewhere(self) -> list[Path]:
        """Where attempts would leave a file of this scene's name in places that are not the scene's."""
        name = self.temporary.name
        paths = (
            f"/etc/{name}",
            *(f"{place}/{name}-shared" for place in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")),
            *(f"{place}/{name}-by-proc-cwd" for place in (Path.cwd(), "/", "/proc/1/cwd")),
        )
        return [path for path in map(Path, paths) if os.path.lexists(path)]

    def pointer(self) -> str | None:
        """What the worktree's `.git` says, if it is the file that it was."""
        with suppress(OSError):
            path = self.worktree / ".git"
            if stat.S_ISREG(path.lstat().st_mode):
                return path.read_text()
        return None

    def remove(self) -> None:
        """Everything of this scene, wherever it lies."""
        for path in self.elsewhere():
            path.unlink()
        for folder in self.temporary.parent.glob(f"{self.temporary.name}*"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)


def build(world: Path, name: str) -> Scene:
    """A fresh scene."""
    root = world / name
    temporary = Path(tempfile.mkdtemp(prefix="fairwitness-escape-"))
    scene = Scene(name, root, f"canary-{secrets.token_hex(12)}", temporary)
    # 0711 on the way, so that a task's own uid can reach its worktree, and no more
    for way, mode in {"": 0o711, "tasks": 0o711, "home": 0o700, "state": 0o700, "tasks/other": 0o700}.items():
        _folder(root / way, mode)
    for way in ("outside", "visible", "repo", "tasks/mine", "home/.ssh", "decoy", "elsewhere"):
        _folder(root / way, 0o755 if way != "decoy" else 0o700)
    texts = {
        "home/.bashrc": "# nothing\n",
        "home/.netrc": f"machine example.org login me password {scene.secret}-netrc\n",
        "home/.ssh/id_rsa": f"{scene.secret}-key\n",
        "tasks/other/secret.txt": f"{scene.secret}-other\n",
        "outside/file.txt": "as it was\n",
        "outside/inherited.txt": "as it was\n",
        "visible/file.txt": "as it was\n",
        "tasks/mine/code.py": "answer = 42\n",
    }
    for relative, text in texts.items():
        (root / relative).write_text(text)
        (root / relative).chmod(0o600 if relative.startswith("home") else 0o644)
    _repository(scene)
    with closing(sqlite3.connect(scene.database)) as connection, connection:
        connection.execute("CREATE TABLE evidence (claim TEXT)")
    return scene


def _repository(scene: Scene) -> None:
    """A main repository with a linked worktree, as git lays them out."""
    linked = scene.git / "worktrees" / "mine"
    for folder in (scene.git / "hooks", scene.git / "objects", scene.git / "refs" / "heads", linked):
        folder.mkdir(parents=True)
    (scene.git / "HEAD").write_text("ref: refs/heads/main\n")
    (scene.git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    (linked / "HEAD").write_text("ref: refs/heads/main\n")
    (linked / "commondir").write_text("../..\n")
    (linked / "gitdir").write_text(f"{scene.worktree}/.git\n")
    (scene.worktree / ".git").write_text(f"gitdir: {linked}\n")


def _folder(path: Path, mode: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)


def _walk(top: Path, *, without: Path) -> Iterator[Path]:
    for path in sorted(top.iterdir()):
        if path == without:
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, without=without)


def _look(path: Path) -> Found:
    status = path.lstat()
    content = ""
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    plain = stat.S_ISREG(status.st_mode)
    names = [] if stat.S_ISLNK(status.st_mode) else os.listxattr(path)
    return Found(
        status.st_mode,
        (status.st_uid, status.st_gid),
        status.st_size if plain else 0,
        status.st_mtime_ns if plain else 0,
        content,
        tuple((name, os.getxattr(path, name)) for name in sorted(names)),
    )


class Decoy:
    """A process with a secret in its environment, memory, arguments and open files."""

    def __init__(self, scene: Scene) -> None:
        self.log = scene.root / "decoy" / "signals"
        arguments = [sys.executable, "-I", "-S", decoy.__file__, f"--token={scene.secret}-argv", str(self.log.parent)]
        self.process = subprocess.Popen(
            arguments,
            env={"DECOY_TOKEN": f"{scene.secret}-environ", "PATH": os.defpath},
            cwd=scene.root / "outside",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{scene.secret}-memory\n".encode())
        self.process.stdin.close()
        self.address, self.length, self.handle = map(int, self.process.stdout.readline().split())
        self.before = self.facts()

    @property
    def pid(self) -> int:
        return self.process.pid

    def facts(self) -> tuple[str, ...]:
        """What another process could change about this one."""
        proc = Path(f"/proc/{self.pid}")
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        cores = (proc / "status").read_text().partition("Cpus_allowed:")[2].split()[0]
        memory = (proc / "oom_score_adj").read_text().strip()
        return (
            (proc / "limits").read_text(),
            f"memory {memory}",
            f"nice {fields[16]}",
            f"policy {fields[38]}",
            f"cores {cores}",
        )

    def stop(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()

    def troubles(self) -> list[str]:
        """What was done to it."""
        last = f"{int(signal.SIGRTMAX)}"
        give_up = time.monotonic() + _ANSWER_S
        # the kernel hands over the highest signal last: when it has come, so have all that were sent before
        self.process.send_signal(signal.SIGRTMAX)
        while last not in (told := self.log.read_text().split()):
            if self.process.poll() is not None:
                return [f"it ended with {self.process.returncode}"]
            if time.monotonic() > give_up:
                return ["it no longer answers"]
            time.sleep(0.005)
        told = [f"it got signal {number}" for number in told if number != last]
        changed = [f"{old!r} became {new!r}" for old, new in zip(self.before, self.facts(), strict=True) if old != new]
        return told + changed
