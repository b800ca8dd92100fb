"""What a prompt promises its agent, and whether a brief holds it.

A prompt names the sections of its brief in bold, in *What you get*. A bullet that begins with such a name is always
kept: every brief holds one of the sections that it names. The others say when a section is there.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fairwitness.agents.prompt_text import PROMPTS
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.common.tools import Role

_BOLD = re.compile(r"\*\*(.+?)\*\*")


class Promise(NamedTuple):
    """One bullet: the titles of the sections that it names, and whether one of them is always there."""

    titles: tuple[str, ...]
    is_always: bool


def promises(role: Role) -> list[Promise]:
    """What the prompt of a role promises."""
    text = (PROMPTS / f"{ROLES[role].prompt}.md").read_text()
    part = text.partition("## What you get\n")[2].partition("\n## ")[0]
    bullets = [" ".join(bullet.split()) for bullet in part.split("\n- ")[1:]]
    return [
        Promise(tuple(_BOLD.findall(bullet)), bullet.startswith("**")) for bullet in bullets if _BOLD.search(bullet)
    ]


def holds(sections: Mapping[str, str], title: str) -> bool:
    """Whether there is a section of this title, or one that begins with it, that says something."""
    return any((name == title or name.startswith(f"{title} ")) and text.strip() for name, text in sections.items())


def broken(role: Role, sections: Mapping[str, str]) -> list[Promise]:
    """The promises that are always to be kept and that these sections break."""

    def is_kept(promise: Promise) -> bool:
        return any(holds(sections, title) for title in promise.titles)

    return [promise for promise in promises(role) if promise.is_always and not is_kept(promise)]


def sections_of(prompt: str) -> dict[str, str]:
    """The inputs of a prompt by their titles."""
    found = re.search(r"^<(data-[0-9a-f]{16})>$", prompt, re.MULTILINE)
    if found is None:
        return {}
    fence = found[1]
    pattern = rf"^### ([^\n]+)\n\n<{fence}>\n(.*?)\n</{fence}>$"
    return dict(re.findall(pattern, prompt, re.MULTILINE | re.DOTALL))


def prompts_in(state: Path) -> Iterator[tuple[Role, str]]:
    """The first prompt of each dispatch whose transcript is kept below a folder."""
    titles = {f"\n# {spec.title}\n": role for role, spec in ROLES.items()}
    for path in sorted(state.rglob("outputs/*")):
        for line in path.read_bytes().splitlines():
            if not line.startswith(b'{"') or b'"prompt"' not in line:
                break
            said = json.loads(line)
            if said.get("kind") == "prompt":
                yield next(role for title, role in titles.items() if title in said["text"]), said["text"]
            break
