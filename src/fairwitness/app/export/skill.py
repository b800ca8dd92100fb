"""The skill: how an agent gets evidence for a change, checks documents, and reports honestly."""

from collections.abc import Iterator

from fairwitness.app.export.pages import Page, table, worded
from fairwitness.app.export.references import REFERENCES
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Risk, Size
from fairwitness.rules.evidence_worth import ACCEPTED_SOURCES, CHECKS, CheckKind, depth_of, effective_size

NAME = "fairwitness"
FOLDERS = (".agents/skills/fairwitness", ".claude/skills/fairwitness")
"""The folder of the open format, and that of Claude Code."""

_DESCRIPTION = (
    "Proves code changes with `fairwitness verify` and checks pipeline documents with `fairwitness schema check`."
    " Use it before you say that a change works or that tests pass, after any change to code, tests or build files,"
    " when a"
    " verification is blocked, and when you write or read documents under docs/feature/."
)


def skill() -> Iterator[Page]:
    """Return every file of the skill for every folder."""
    standard = depth_of(effective_size(Size.STANDARD, Risk.GREEN), Policy()).checks
    large = depth_of(effective_size(Size.LARGE, Risk.RED), Policy()).checks
    evidence = worded(
        "evidence",
        standard=str(standard),
        large=str(large),
        checks=table(("check", "a pass counts", "whose yes satisfies", "whose no shuts", "says"), _checks()),
    )
    for folder in FOLDERS:
        yield Page(f"{folder}/SKILL.md", worded("skill"), {"name": NAME, "description": _DESCRIPTION})
        yield Page(f"{folder}/references/evidence.md", evidence)
        for name, text in REFERENCES.items():
            yield Page(f"{folder}/references/{name}.md", text())


def _checks() -> Iterator[tuple[str, str, str, str, str]]:
    for kind in CHECKS:
        heard = ACCEPTED_SOURCES[kind.voice]
        yes, no = (", ".join(sorted(voices)) or "none" for voices in heard)
        yield f"`{kind.name}`", _counts(kind), yes, no, kind.says


def _counts(kind: CheckKind) -> str:
    return "yes" if kind.counts else "no"
