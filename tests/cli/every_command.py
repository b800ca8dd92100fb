"""Every command of the command list with words that it can be called with, for tests of all that is printed.

A command without an entry fails `test_every_command_is_called`: a new command is called with hostile text from the day
it is added.
"""

import re
from collections.abc import Iterator

import click

from fairwitness.cli.command_list import COMMANDS
from fairwitness.cli.group import command_named

WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "feature": (("{text}", "--agents", "{text}"), ("@{text}",)),
    "forge": (("{text}", "--agents", "{text}"),),
    "autopilot init": (("--{text}",),),
    "autopilot lock": (("{text}",), ()),
    "autopilot metrics": ((),),
    "autopilot report": (("{run}",), ("{text}",), ()),
    "autopilot resume": (("{text}",), ()),
    "autopilot run": (("{text}",), ()),
    "autopilot status": (("{run}",), ("{text}",), ()),
    "verify": (("--base", "{text}"), ("--base", "main", "--json")),
    "doctor": ((),),
    "demo": (("{text}",),),
    "adopt": (("{text}",),),
    "trust": ((), ("{text}",)),
    "agents export": (("--target", "{text}"),),
    "agents list": ((), ("--json",)),
    "agents show": (("{text}",), ("implementer",)),
    "agents try": (("{text}",),),
    "status": ((), ("{run}",), ("{text}",), ("{run}", "--json")),
    "watch": (("{text}",),),
    "resume": (("{text}",),),
    "inbox": ((), ("--json",)),
    "answer": (("{run}", "{text}"), ("{text}",)),
    "verdict": (("{text}", "pass"), ("{text}", "{text}")),
    "cancel": (("{text}",),),
    "rollback": (("{text}",),),
    "report": (("{run}",), ("{text}",)),
    "replay": (("{run}",), ("{text}",), ("--file", "{text}")),
    "knowledge apply": (("{run}", "{text}"), ("{text}", "1")),
    "knowledge forget": (("{text}",),),
    "knowledge list": ((), ("--json",)),
    "knowledge proposals": ((), ("{run}",), ("{text}",)),
    "plan approve": (("{text}",),),
    "plan edit": (("{run}", "{text}"), ("{text}",)),
    "plan show": (("{run}",), ("{text}",)),
    "cr approve": (("{text}",), ("{text}", "{run}")),
    "cr list": ((), ("{run}",), ("{text}",)),
    "cr reject": (("{text}",), ("{text}", "{run}")),
    "cr show": (("{text}",), ("{text}", "{run}")),
    "dag show": ((), ("{run}",), ("{text}",)),
    "task show": (("{task}", "{run}"), ("{text}", "{run}"), ("{text}", "{text}")),
    "retry": (("{text}", "{run}"), ("{text}",)),
    "pause": (("{text}",),),
    "worker": (("--{text}",),),
    "events": ((), ("{run}",), ("{run}", "--json"), ("{text}",)),
    "gate explain": ((), ("{run}",), ("{run}", "{text}"), ("{text}",)),
    "evidence bundle": ((), ("{run}",), ("{text}",)),
    "evidence show": (("1",), ("1", "--json"), ("{text}",)),
    "ledger gates": ((), ("{run}",), ("{text}",)),
    "ledger query": (("--list",), ("{text}",), ("{text}", "{text}")),
    "ledger verify": ((), ("{text}",)),
    "schema check": (("{text}",), ("{file}",)),
    "schema export": (("{text}",),),
    "schema list": ((),),
}
"""By command the words of each call. `{run}`, `{task}` and `{file}` are of the repository, `{text}` is hostile."""


_FIELD = re.compile(r"\{(\w+)\}")


def leaves() -> Iterator[str]:
    """Every command that can be called, as it is typed."""
    for entry in COMMANDS:
        yield from _below(command_named(entry.name), entry.name)


def _below(command: click.Command, name: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield name
        return
    context = click.Context(command)
    for inner in command.list_commands(context):
        found = command.get_command(context, inner)
        assert found is not None
        yield from _below(found, f"{name} {inner}")


def calls(command: str, **texts: str) -> Iterator[tuple[str, ...]]:
    """Every call of a command for which all texts are given, word by word."""
    for words in WORDS[command]:
        if set(_FIELD.findall(" ".join(words))) <= texts.keys():
            yield (*command.split(), *(word.format(**texts) for word in words))
