"""Sample projects with honest and dishonest changes, built into real git repositories."""

import os
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, model_validator

SAMPLES = Path(__file__).parent.parent / "samples"
SUFFIX = ".sample"
"""Ends the name of every stored file, so that no tool of ours takes a sample for a part of this repository."""

IDENTITY = "Sam Sample <sam@example.org>"
MOMENT = 1_767_225_600
"""When the first commit was made: 2026-01-01, 00:00 UTC."""

Tree = dict[str, bytes]
"""What a commit holds: every path and its content."""


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Edit(_Shape):
    """A passage of one file, found exactly once, and what stands there afterwards."""

    path: str
    old: str
    new: str


class Overlay(_Shape):
    """What becomes of a tree: passages are edited, files deleted; files of its folder are added or replaced."""

    edits: tuple[Edit, ...] = ()
    deletes: tuple[str, ...] = ()


class Change(Overlay):
    """One commit on top of the base, and what is to be said about it."""

    message: str
    honest: bool
    lies: tuple[str, ...] = ()
    """Which of the known tricks it plays."""
    reason: str | None = None
    """What the blocked answer has to name: a check, a rule, or what became of a test."""
    subject: str | None = None
    """The test or file that is to stand beside the reason."""
    flags: tuple[str, ...] = ()
    """Further arguments of `fairwitness verify`."""
    bases: tuple[Literal["green", "red"], ...] = ("green", "red")
    """On which of the two it is proposed."""

    @model_validator(mode="after")
    def _a_lie_has_a_reason(self) -> Self:
        if self.honest != (self.reason is None) or self.honest != (not self.lies):
            raise ValueError(
                "a dishonest change names its lies and the reason it is blocked for; an honest one does not"
            )
        return self


class Sample(_Shape):
    """One project: what it needs, how its people run its checks, and the changes proposed to it."""

    name: str
    about: str
    needs: tuple[str, ...]
    """Programs without which nothing can be shown."""
    naive: tuple[tuple[str, ...], ...]
    """What its people type to see whether all is well."""
    install: tuple[str, ...] = ()
    """How its people fetch what it depends on."""
    environment: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    """Arguments that every `fairwitness verify` of it needs."""
    red: Overlay
    """What makes one test fail at the base, far away from every change."""
    changes: dict[str, Change]

    def __repr__(self) -> str:
        return self.name

    def tree(self, change: str | None = None, *, red: bool = False) -> Tree:
        """The files at the base, or after a change."""
        files = _stored(SAMPLES / self.name / "base")
        if red:
            files = self._overlaid(files, "_red", self.red)
        if change is not None:
            files = self._overlaid(files, change, self.changes[change])
        return files

    def proposals(self, *, honest: bool | None = None) -> list[tuple[str, bool]]:
        """Every change with whether the base it is proposed to is red; only the honest ones or the lies if asked."""
        return [
            (name, base == "red")
            for name, change in self.changes.items()
            if honest in (None, change.honest)
            for base in change.bases
        ]

    def _overlaid(self, files: Tree, name: str, overlay: Overlay) -> Tree:
        done = {path: content for path, content in files.items() if path not in overlay.deletes}
        if len(done) != len(files) - len(overlay.deletes):
            raise ValueError(f"{self.name}/{name}: deletes what is not there")
        for edit in overlay.edits:
            text = done[edit.path].decode()
            if text.count(edit.old) != 1:
                raise ValueError(f"{self.name}/{name}: {edit.path} holds {edit.old!r} {text.count(edit.old)} times")
            done[edit.path] = text.replace(edit.old, edit.new).encode()
        return done | _stored(SAMPLES / self.name / "changes" / name)


def _stored(folder: Path) -> Tree:
    return {
        path.relative_to(folder).as_posix().removesuffix(SUFFIX): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@cache
def samples() -> tuple[Sample, ...]:
    """All sample projects."""
    return tuple(
        Sample.model_validate({"name": path.parent.name, **tomllib.loads(path.read_text())})
        for path in sorted(SAMPLES.glob("*/sample.toml"))
    )


LIES_EACH = 2


def cases(*, honest: bool) -> list[tuple[Sample, str, bool, tuple[pytest.MarkDecorator, ...]]]:
    """Sample, change, whether the base is red, and the marks: what is not chosen runs only in a sweep."""
    few = _chosen(honest=honest)
    every = [(sample, name, red) for sample in samples() for name, red in sample.proposals(honest=honest)]
    return [(*each, () if each in few else (pytest.mark.width("sweep"),)) for each in every]


def _chosen(*, honest: bool) -> list[tuple[Sample, str, bool]]:
    """What runs below the sweep.

    The first honest change of each sample, on a green and on a red base in turn, and of its lies the one
    with the most that nobody told before, and another if that still tells something new.
    """
    told: set[str] = set()
    picked: list[tuple[Sample, str, bool]] = []
    for number, sample in enumerate(samples()):
        proposals = sample.proposals(honest=honest)
        if honest:
            first = [each for each in proposals if each[0] == proposals[0][0]]
            picked.append((sample, *first[number % len(first)]))
            continue
        for turn in range(LIES_EACH):
            left = [each for each in proposals if not each[1] and (sample, *each) not in picked]
            name, red = max(left, key=lambda each: len(set(sample.changes[each[0]].lies) - told))
            if turn and told >= set(sample.changes[name].lies):
                break
            told |= set(sample.changes[name].lies)
            picked.append((sample, name, red))
    return picked


@dataclass(frozen=True)
class Repository:
    """A sample as a repository: `main`, `red-base`, and a branch for every change on top of each."""

    folder: Path
    commits: Mapping[str, str]
    """The commit each branch stands at."""

    def base(self, *, red: bool = False) -> str:
        return self.commits["red-base" if red else "main"]

    def head(self, change: str, *, red: bool = False) -> str:
        return self.commits[_branch(change, red=red)]


def _branch(change: str, *, red: bool) -> str:
    return f"{'red' if red else 'green'}/{change}"


def build(sample: Sample, folder: Path) -> Repository:
    """A real repository in an empty folder, the same commits every time, with `main` checked out."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    git(folder, "fast-import", "--quiet", stdin=b"".join(_history(sample)))
    git(folder, "checkout", "--quiet", "main")
    listed = git(folder, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/").split("\n")
    return Repository(folder, dict(line.split(" ") for line in listed if line))


def _history(sample: Sample) -> Iterator[bytes]:
    yield _commit("main", sample.tree(), "Start", after=None)
    yield _commit("red-base", sample.tree(red=True), "Start, with one test failing", after="main")
    for name, red in sample.proposals():
        tree, message = sample.tree(name, red=red), sample.changes[name].message
        yield _commit(_branch(name, red=red), tree, message, after="red-base" if red else "main")


def _commit(branch: str, tree: Tree, message: str, *, after: str | None) -> bytes:
    """One commit in the language of `git fast-import`."""
    lines = [
        f"commit refs/heads/{branch}\n".encode(),
        f"committer {IDENTITY} {MOMENT + (3600 if after else 0)} +0000\n".encode(),
        _data(message.encode()),
        f"from refs/heads/{after}\n".encode() if after else b"",
        b"deleteall\n",
    ]
    lines += [f"M 100644 inline {path}\n".encode() + _data(content) for path, content in sorted(tree.items())]
    return b"".join(lines)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git says when nobody's configuration has a say."""
    done = subprocess.run(
        [
            "git",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "user.name=Sam Sample",
            "-c",
            "user.email=sam@example.org",
            *arguments,
        ],
        cwd=folder,
        input=stdin,
        capture_output=True,
        check=True,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": f"{MOMENT + 7200} +0000",
            "GIT_COMMITTER_DATE": f"{MOMENT + 7200} +0000",
        },
    )
    return done.stdout.decode()


def export(tree: Tree, folder: Path) -> Path:
    """The files alone, in a folder."""
    for path, content in tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder
