"""No command prints what a terminal would interpret, reorder or hide, whoever wrote it: an agent, a file, a person."""

import json
import subprocess
from pathlib import Path

import pytest

from app.report_ledgers import FeatureWalk, finished
from cli.every_command import WORDS, calls, leaves
from cli.graph_grounds import git
from cli.graph_ledgers import going as going_graph
from cli.runner import fairwitness, fairwitness_many
from fairwitness.app.text import ShownOutput
from fairwitness.kit.text import HIDDEN

pytestmark = pytest.mark.timeout(900)  # every command is a process, on a machine that may be busy

CODES = "\x1b]0;pwned\x07\x1b[2J\x1b[1A\x9b31m\x00\x08\r\u202e\u2066\u200b\u2028\u00ad\u3164\U000e0041\U000e0100"
"""A title, a cleared screen, a cursor, a backspace; reordering, invisible and line-breaking characters; tags."""
TEXT = f"a{CODES}z"
RUN = "2026-02-26T14:30:00Z"


def acting(printed: str) -> set[str]:
    """What is printed and should not be."""
    return {sign for sign in printed if HIDDEN.match(sign) or not (sign.isprintable() or sign in "\n\t")}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which every text is hostile: requests, findings, reasons, file names, contents, messages."""
    root = tmp_path_factory.mktemp("hostile")
    git(root, "init", "-q", "-b", "main")
    name = "a\x1b[2J\u202eb.py"
    (root / name).write_text("x = 1\n")
    (root / "check.yaml").write_text("request: '\u202e'\n", encoding="utf-8")
    (root / "tests").mkdir()
    (root / "tests" / "test_a.py").write_text(
        f"import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self) -> None:\n        print({CODES!r})\n"
    )
    git(root, "add", "-A")
    git(root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", f"begin {TEXT}".replace("\0", ""))
    git(root, "checkout", "-q", "-b", "work")
    (root / name).write_text("x = 2\n")
    (root / "tests" / "test_b.py").write_text(
        "import unittest\n\n\nclass B(unittest.TestCase):\n    def test_b(self) -> None:\n"
        f"        self.fail({CODES!r})\n"
    )
    git(root, "add", "-A")
    git(root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", f"more {TEXT}".replace("\0", ""))
    finished(root, text=TEXT).close()
    walk: FeatureWalk = FeatureWalk(root, "2026-02-26T15:30:00Z")
    walk.begin(TEXT)
    walk.step("step-0")
    walk.close()
    going_graph(root).close()
    return root


def test_nothing_acts_on_the_terminal(repository: Path) -> None:
    texts = {"text": TEXT.replace("\0", ""), "task": "task-01", "file": "check.yaml"}
    every = [words for command in leaves() for run in (RUN, "run-going") for words in calls(command, run=run, **texts)]
    wrong = []
    for done in fairwitness_many(dict.fromkeys(every), repository):
        printed = done.stdout + done.stderr
        if acting(printed) or "Traceback" in printed:
            wrong.append((done.args[:3], done.returncode, sorted(acting(printed)), printed[-300:]))
        if done.returncode == 0 and "--json" in done.args:
            json.loads(done.stdout)
    assert wrong == []


def test_every_command_is_called() -> None:
    assert set(leaves()) == set(WORDS), "say in every_command.py how a new command is called"


class _Terminal:
    """A terminal that keeps what is written to it."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, *, is_terminal: bool) -> None:
        self.text, self._is_terminal = "", is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_last_place_before_a_person_escapes_what_a_screen_forgot(is_terminal: bool) -> None:
    terminal = _Terminal(is_terminal=is_terminal)
    stream = ShownOutput(terminal)  # type: ignore[arg-type]  # the part of a stream that it uses
    stream.write(json.dumps({"a": TEXT, "b": "進捗 🟢 é"}, ensure_ascii=False) + "\n")
    assert json.loads(terminal.text) == {"a": TEXT, "b": "進捗 🟢 é"}
    assert "進捗 🟢 é" in terminal.text
    assert acting(terminal.text) == set()
    terminal.text = ""
    stream.write("\x1b[31mred\x1b[0m\x1b]0;title\x07\r\x1b[K")
    kept = "\x1b[31mred\x1b[0m\\u001b]0;title\\u0007\r\x1b[K"
    assert terminal.text == (kept if is_terminal else "\\u001b[31mred\\u001b[0m\\u001b]0;title\\u0007\\u000d\\u001b[K")
    with pytest.raises(TypeError):
        stream.write(b"")  # type: ignore[arg-type]


def test_a_report_shows_what_it_quotes_escaped(repository: Path) -> None:
    assert fairwitness("report", RUN, cwd=repository).returncode == 0
    pages = [path for path in repository.rglob("*.html") if ".git" not in path.parts]
    assert pages
    for page in pages:
        assert acting(page.read_text(encoding="utf-8")) == set()


def test_files_of_verify_show_what_they_quote_escaped(repository: Path, tmp_path: Path) -> None:
    junit, sarif, summary = tmp_path / "a.xml", tmp_path / "a.sarif", tmp_path / "a.md"
    done: subprocess.CompletedProcess[str] = fairwitness(
        "verify", "--base", "main", "--head", "HEAD", "--quiet", "--github", "--junit", junit, "--sarif", sarif,
        cwd=repository, GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    for place in (junit, sarif, summary):
        assert acting(place.read_text(encoding="utf-8")) == set(), place
