"""Runs of a demo that are killed and resumed: where that happens, and one life after the other.

Run as a program it starts lives and sees what outlives them: every orphan of a life becomes its own child, so that none
can hide.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cli.runner import FAIRWITNESS
from dag.kills import KILLED, TESTS, Life
from dag.remains import git
from dag.warden import _PR_SET_CHILD_SUBREAPER, GRACE_S, _is_unborn, _orphans, _watch
from fairwitness.app.runs.begin_feature import RunRequest, begin_feature
from fairwitness.app.views.agent_usage import read_usage
from fairwitness.app.views.detail import open_database
from fairwitness.demo.start import RECORDINGS
from feature.remains import Content, assert_clean, content_of, tries_of
from support import demo_feature as demo
from support.state import take_for_the_same
from support.trust import trust

LIFE_S = 600.0
ALONE = "\n[policy]\nmax_concurrent = 1\n"
"""One agent and one task at a time: then also the order of everything is settled, and all of it can be compared."""


class Play(NamedTuple):
    """A demo: how its runs are begun, and how what they leave is read."""

    repository: str
    """The folder in which the person's repository is laid out."""
    lay: Callable[[Path, bool], str]
    """Lays everything out in a new folder and begins a run, for one thing at a time or not; the run's id."""
    good_end: str
    """What the last life says if all is well."""
    content_of: Callable[[Path, str], Content]
    assert_clean: Callable[[Path, str], None]


class Warden:
    """The process that starts lives; see `main`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "feature.kills"], cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def life(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Life:
        """One command in a folder, from its start to its end."""
        order = {"folder": str(folder), "arguments": list(arguments), "environment": dict(environment)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        return Life(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends it."""
        self._process.communicate()


@dataclass
class Drill:
    """One run in one folder, from its first life to its last."""

    warden: Warden
    play: Play
    root: Path
    run_id: str
    lives: list[Life] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    """By dispatch that had ended when a life did, how often it was begun until then."""

    @property
    def repository(self) -> Path:
        """The person's."""
        return self.root / self.play.repository

    @property
    def kills(self) -> int:
        """How often it was killed."""
        return sum(life.is_killed for life in self.lives)

    def command(self, *arguments: str, kill_at: str = "", log: Path | None = None) -> Life:
        """One command, killed at a point or left alone; nothing may outlive it."""
        folder = self.root / "tmp"
        folder.mkdir(exist_ok=True)
        environment = {
            "TMPDIR": str(folder),
            "FAIRWITNESS_KILL_AT": kill_at,
            "FAIRWITNESS_KILL_LOG": "" if log is None else str(log),
        }
        life = self.warden.life(self.repository, arguments, environment)
        assert life.code in (0, KILLED), life.said
        assert not life.left, f"outlived its parent: {life.left}"
        return life

    def live(self, kill_at: str = "", *, log: Path | None = None) -> Life:
        """One more life of the run, killed at a point or left alone."""
        life = self.command("resume", self.run_id, "--plain", kill_at=kill_at, log=log)
        self.lives.append(life)
        for name, tries in tries_of(self.repository, ended=True).items():
            self.ended.setdefault(name, tries)
        return life

    def end(self) -> Content:
        """Lets it come to its end, which must be a good one that leaves nothing behind; tells what it left."""
        life = self.live()
        assert life.code == 0, life.said
        assert self.play.good_end in life.said, life.said
        self.play.assert_clean(self.repository, self.run_id)
        content = self.play.content_of(self.repository, self.run_id)
        repeated = {name: tries for name, tries in self.ended.items() if content.tries[name] != tries}
        assert not repeated, f"had ended and were begun again: {repeated}"
        assert max(content.tries.values()) <= 1 + self.kills
        self._assert_counted(content, life.said)
        return content

    def _assert_counted(self, content: Content, said: str) -> None:
        """Every call is counted once, and every try that a kill ended is counted beside them and shown."""
        with open_database(self.repository) as database:
            used = read_usage(database, self.run_id, is_worked_on=False)
        assert (used.calls, used.interrupted) == (len(content.tries), sum(content.tries.values()) - len(content.tries))
        assert ("interrupted call" in said) == bool(used.interrupted), said


class Reference(NamedTuple):
    """A run that nobody killed."""

    content: Content
    passed: Sequence[str]
    """The points, in order."""


class Grounds:
    """Where drills take place: always in the same folder, since commands on record name it."""

    def __init__(self, folder: Path, play: Play | None = None) -> None:
        self._folder, self._play = folder, play or FEATURE
        self._warden = Warden()
        self._templates: dict[bool, tuple[Path, str]] = {}
        self._references: dict[bool, Reference] = {}

    def drill(self, *, alone: bool) -> Drill:
        """A run that was begun and not worked on yet."""
        root = self._folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        if alone not in self._templates:
            run_id = self._play.lay(root, alone)
            template = self._folder / f"template-{len(self._templates)}"
            root.rename(template)
            self._templates[alone] = template, run_id
        template, run_id = self._templates[alone]
        shutil.copytree(template, root, symlinks=True)
        take_for_the_same(root)
        return Drill(self._warden, self._play, root, run_id)

    def reference(self, *, alone: bool) -> Reference:
        """What a run leaves that nobody kills, and the points it passes."""
        if alone not in self._references:
            drill, log = self.drill(alone=alone), self._folder / "log"
            log.unlink(missing_ok=True)
            drill.live(log=log)
            self._references[alone] = Reference(drill.end(), log.read_text().split())
            shutil.copytree(drill.root, self._ended(alone), symlinks=True)
        return self._references[alone]

    def ended(self, *, alone: bool) -> Drill:
        """A run that has come to its end, and that nobody killed."""
        self.reference(alone=alone)
        root = self._folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self._ended(alone), root, symlinks=True)
        take_for_the_same(root)
        return Drill(self._warden, self._play, root, self._templates[alone][1])

    def _ended(self, alone: bool) -> Path:
        return self._folder / f"ended-{'alone' if alone else 'together'}"

    def close(self) -> None:
        """Ends the warden."""
        self._warden.close()


def settle(place: Path, settings: str) -> None:
    """Adds to the settings of a repository."""
    file = place / "fairwitness.toml"
    file.write_text(file.read_text() + settings)
    person = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost")
    git(place, *person, "commit", "-q", "-a", "-m", "chore: one thing after the other")
    trust(place)


def _lay(root: Path, alone: bool) -> str:
    root.mkdir(parents=True)
    cassettes = demo.DEMO.write_cassettes(root / RECORDINGS)
    place = demo.DEMO.lay_out(root / demo.DEMO.repository.folder)
    if alone:
        settle(place, ALONE)
    wanted = RunRequest(
        request=demo.DEMO.request,
        slug=demo.DEMO.slug,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
    )
    return begin_feature(place, wanted).run_id


FEATURE = Play(demo.DEMO.repository.folder, _lay, "COMMITTED", content_of, assert_clean)


def main() -> None:
    """One order a line, one answer a line."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("this system does not let a process take in orphans")
    for line in sys.stdin:
        print(json.dumps(_life(json.loads(line))), flush=True)  # noqa: T201


def _life(order: Mapping[str, Any]) -> dict[str, Any]:
    folder, began = Path(order["folder"]), time.monotonic()
    said_in = folder.parent / "said"
    with said_in.open("wb") as said:
        life = subprocess.Popen(
            [FAIRWITNESS, *order["arguments"]],
            cwd=folder,
            env={**os.environ, **order["environment"]},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    life.returncode, is_seen = _watch(life.pid, None, began + LIFE_S)
    ended = time.monotonic()
    left = _orphans()
    while left and time.monotonic() - ended < GRACE_S:
        time.sleep(0.01)
        left = _orphans()
    lingered = time.monotonic() - ended
    unborn = {pid for pid in left if _is_unborn(pid)}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return {
        "code": life.returncode,
        "said": said_in.read_text(errors="replace"),
        "seconds": round(ended - began, 3),
        "lingered_s": round(lingered, 3),
        "left": sorted(words for pid, words in left.items() if pid not in unborn),
        "unborn": len(unborn),
        "is_seen": is_seen,
    }


if __name__ == "__main__":
    main()
