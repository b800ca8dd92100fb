"""The commands that the scripts of a package.json run, one by one, through every script they call.

A script is read as far as it is plain words; whatever only a shell could know (globs, variables, pipes) is marked, and
such a script is run through npm as it stands.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

LONGEST = 4_000
_DEPTH = 5
_MOST = 40
_SHELL = frozenset("*?[]{}$~`<>|&;()#!\\\n\r")
_WRAPPERS = frozenset({"npx", "bunx", "cross-env", "cross-env-shell", "env", "nyc", "c8", "dotenv"})
_MANAGERS = frozenset({"npm", "yarn", "pnpm"})


class ScriptCommand(NamedTuple):
    """One command of a script."""

    words: tuple[str, ...]
    is_plain: bool
    """Whether it sets no variables and contains nothing for a shell to expand."""
    dashes: int = 0
    """How many `--` an argument needs to reach this command from the called script."""
    takes_arguments: bool = True
    """Whether arguments added to the called script reach this command."""


def words_of(text: str) -> list[ScriptCommand] | None:
    """Return the commands of a script that are joined by `&&`; None if it is more than that.

    >>> [command.words for command in words_of("tsc && node --test 'dist/*.js'") or ()]
    [('tsc',), ('node', '--test', 'dist/*.js')]
    """
    if len(text) > LONGEST or not text.strip() or any(sign < " " and sign not in "\n\t" for sign in text):
        return None
    commands: list[ScriptCommand] = []
    words: list[str] = []
    word: list[str] | None = None
    plain, quote, index = True, "", 0
    while index <= len(text):
        sign = text[index] if index < len(text) else " "
        if quote and index < len(text):
            if sign == quote:
                quote = ""
            else:
                plain = plain and not (quote == '"' and sign in "$`\\") and sign not in "{}"
                (word := word if word is not None else []).append(sign)
        elif quote:
            return None  # an unclosed quote
        elif sign in "'\"":
            quote, word = sign, word if word is not None else []
        elif sign in " \t":
            if word is not None:
                words.append("".join(word))
                word = None
        elif text.startswith("&&", index):
            words += ["".join(word)] if word is not None else []
            commands.append(_command(words, plain))
            words, word, plain, index = [], None, True, index + 1
        elif sign in _SHELL:
            if sign in "|&;<>()#\n\r`":
                return None
            plain = False
            (word := word if word is not None else []).append(sign)
        else:
            (word := word if word is not None else []).append(sign)
        index += 1
    commands.append(_command(words, plain))
    return commands if all(command.words for command in commands) else None


def _command(words: list[str], plain: bool) -> ScriptCommand:
    """Return a command without the variables set before it."""
    rest = list(words)
    while rest and "=" in rest[0] and rest[0].partition("=")[0].isidentifier():
        rest.pop(0)
        plain = False
    return ScriptCommand(tuple(rest), plain)


def expand(scripts: Mapping[str, object], name: str, depth: int = 0) -> list[ScriptCommand] | None:
    """Return every command that a script runs, including those of called scripts and npm's hooks; None if unknown."""
    text = scripts.get(name)
    own = words_of(text) if isinstance(text, str) and depth <= _DEPTH else None
    if own is None:
        return None
    found: list[ScriptCommand] = []
    for index, command in enumerate(own):
        is_last = index == len(own) - 1
        called, dashes = _called(command, scripts)
        if called is None:
            found.append(command._replace(takes_arguments=is_last and command.takes_arguments))
            continue
        inner = expand(scripts, called, depth + 1)
        if inner is None:
            return None
        found += [
            each._replace(dashes=each.dashes + dashes, takes_arguments=each.takes_arguments and is_last)
            for each in inner
        ]
    for hook, place in (("pre" + name, 0), ("post" + name, len(found))):
        if hook in scripts:
            around = expand(scripts, hook, depth + 1)
            if around is None:
                return None
            found[place:place] = [each._replace(takes_arguments=False) for each in around]
    return found if len(found) <= _MOST else None


def _called(command: ScriptCommand, scripts: Mapping[str, object]) -> tuple[str | None, int]:
    """Return the script that a command calls, and how many `--` its arguments need."""
    manager, *rest = command.words
    if manager not in _MANAGERS:
        return None, 0
    quiet = [word for word in rest if word not in ("-s", "--silent", "--if-present", "run", "run-script")]
    known = rest[:1] in (["run"], ["run-script"], ["test"], ["t"]) or manager != "npm"
    name = {"t": "test"}.get(quiet[0], quiet[0]) if quiet else ""
    return (name, int(manager == "npm")) if known and len(quiet) == 1 and name in scripts else (None, 0)


def program_of(command: ScriptCommand) -> tuple[str, tuple[str, ...], bool]:
    """Return the program behind wrappers, its arguments, and whether it is called without any."""
    words = list(command.words)
    direct = True
    while words:
        head = words[0].rpartition("/")[2]
        if head in _WRAPPERS or (head in _MANAGERS and words[1:2] == ["exec"]) or head in ("yarn", "pnpm"):
            words = words[2 if words[1:2] in (["exec"], ["run"], ["dlx"]) else 1 :]
            while words and (words[0].startswith("-") or ("=" in words[0] and "/" not in words[0].partition("=")[0])):
                words.pop(0)
            direct = False
        elif head == "node" and (script := _script_of(words)) is not None:
            words, direct = words[script:], False
            name = words[0].rpartition("/")[2]
            return name.removesuffix(".js").removesuffix(".mjs").removesuffix(".cjs"), tuple(words[1:]), direct
        else:
            return head, tuple(words[1:]), direct
    return "", (), direct


def without(words: Sequence[str], flags: Set[str], options: Set[str]) -> list[str]:
    """Arguments without some flags, and without some options and the value that follows each.

    >>> without(["-R", "dot", "--bail", "--timeout=5", "test"], {"--bail"}, {"-R"})
    ['--timeout=5', 'test']
    """
    kept: list[str] = []
    skip = False
    for word in words:
        name, sign, _ = word.partition("=")
        if skip and not word.startswith("-"):
            skip = False
            continue
        skip = name in options and not sign
        if name not in flags and name not in options:
            kept.append(word)
    return kept


def _script_of(words: list[str]) -> int | None:
    """Return the index of the script of node_modules that node runs; None if there is none."""
    for index, word in enumerate(words[1:], start=1):
        if not word.startswith("-"):
            return index if "node_modules/" in word else None
    return None
