"""The command of a check as a person would type it; the ledger holds every word that was run."""

import re
import shlex
from collections.abc import Sequence

from fairwitness.verify.discovery.programs import PROGRAMS

_LONGEST = 200
_STATE = r"(?:\.fairwitness|fairwitness/repositories/[^/:=]+)"
_PREPARED = re.compile(rf"^/.*/{_STATE}/env/.*/bin/")
"""The folder of a program in an environment that Fair Witness prepared."""
_CHECKOUT = re.compile(rf"(?:^|(?<=[:=]))/[^:=]*/{_STATE}/work/[^/]+/[^/]+/(?:tree|report)(/|(?=:|$))")
"""The folder that a check ran in, or wrote its report to; it is removed afterwards."""
_PLAIN = re.compile(r"[\w@%+=:,./<>-]+")


def shown_command(command: str | Sequence[str]) -> str:
    r"""Return a recorded command without the parts that Fair Witness added: bootstrap, folders, sources of programs.

    >>> shown_command("/r/.fairwitness/env/1f/venv/bin/python /p/bootstrap.py --checkout /t --origin /o -- pytest -q")
    'python -m pytest -q'
    >>> shown_command(["node", "-e", "let a = 1;\nlet b = 2;\n", "src"])
    'node -e <2 lines> src'
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # not written by shlex.join, so there are no words to name
        return _cut(" ".join(str(command).split()))
    return " ".join(map(_word, _without_bootstrap(words)))


def _without_bootstrap(words: Sequence[str]) -> Sequence[str]:
    if len(words) < 3 or not words[1].endswith("/bootstrap.py") or words[2] != "--checkout" or "--" not in words[:-1]:
        return words
    tool, *arguments = words[words.index("--") + 1 :]
    return [words[0], *(() if tool.endswith(".py") else ("-m",)), tool, *arguments]


def _word(word: str) -> str:
    for name, source in PROGRAMS.items():
        word = word.replace(source, f"<{name}>")
    if "\n" in word:
        return f"<{len(word.splitlines())} lines>"
    word = _cut(_CHECKOUT.sub(lambda found: "" if found[1] else ".", _PREPARED.sub("", word)))
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
