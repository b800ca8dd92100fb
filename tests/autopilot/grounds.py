"""A small catalogue with a roadmap, a recorded team for every step of it, and runs carried by the real engine.

Each phase of the roadmap adds parts (`parts/<phase>-<task>`, whose content is `good`); a shell script holds that every
part is good, so that a whole phase takes seconds. How it is used:

    grounds = Grounds.lay_out(tmp_path, phases=2, after={2: (1,)}, breaker={"no_progress_threshold": 2})
    grounds.plays("verify-1-1-1", {"pass": False})      # what a dispatch answers instead, field by field
    grounds.plays("p1-part-1", calls=[part("1-part", "bad\\n")], usage=(50_000, 10))
    run = grounds.begin()                               # all phases; or begin("1-2", "complete", cycles=1)
    assert run.carry() is End.COMPLETED                 # to its end, or until it waits for a person or is paused

Dispatches are called by their instance: `research-<phase>-<pass>-<number>`, likewise `plan`, `plan_check`, `verify`,
`judge` and `rate`; `p<phase>-<task>-<n>` with `-check-<k>` (from 0) and `-debug-<k>` (from 1) behind it,
`p<phase>-cycle-<n>`, `p<phase>-debug-<n>-debug-1`, where n counts the graphs of the phase; and `self-audit-<n>` (with
`autopilot={"audit": True}`). For each there is a good session from the start, for up to `TRIES` passes, steps and
attempts, so a test says only what differs. A further try of the same dispatch has a `number` above 1.

The run (see `runs.py`) says what came of it: `events`, `types`, `steps`, `state`, `statuses`, `verdicts`, `passes`,
`outcomes`, `transcript`, `observations`, `file`, `parts`. `resume` takes a clock for what a cooldown keeps back;
`carry_with` carries by another clock, or with less time for a role.
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autopilot.runs import Run as Run
from autopilot.sessions import Document as Document
from autopilot.team import TRIES, Team, criterion_of, role_of
from autopilot.team import part as part
from fairwitness.agents.cassette_file import Cassette, name_of, spell
from fairwitness.agents.roles import ROLES
from fairwitness.app.runs.begin_autopilot import PhasesRequest, begin_autopilot
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.demo.bundle import commit_files
from fairwitness.runs.autopilot.own_files import gitignore_with
from feature.grounds import git
from support.trust import trust

Calls = Sequence[tuple[str, Document]]
Answer = Document | Callable[[Document], Document]
"""Fields that differ from the good answer, or what makes another answer of it."""

CHECK = """\
# every part that is named, or else every part there is, is good; it takes its time over a slow one
test $# -gt 0 || set -- parts/*
if grep -qsx slow "$@"; then sleep 60; fi
for part in "$@"; do
  grep -qx good "$part" || { echo "$part is no good"; exit 1; }
done
echo OK
"""
MOMENT = "2026-03-05T09:00:00Z"
USAGE = (900, 40)
"""Tokens of every turn, read and written."""
_CONFIG = {
    "project": {
        "type": "unknown",
        "commands": {"compile": None, "test": "sh check.sh", "lint": None, "build": None},
        "commands_source": "user-override",
        "spec_paths": [".planning/REQUIREMENTS.md", ".planning/ROADMAP.md"],
    }
}
_SENT_BACK = 6
_NO_PROMPT = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True)
class Grounds:
    """A repository with a roadmap, and the recordings of its team."""

    top: Path
    cassettes: Path
    team: Team

    @staticmethod
    def lay_out(
        root: Path,
        *,
        phases: int = 1,
        tasks: Mapping[int, tuple[str, ...]] | None = None,
        after: Mapping[int, tuple[int, ...]] | None = None,
        breaker: Mapping[str, int] | None = None,
        autopilot: Mapping[str, Any] | None = None,
        settings: str = "",
    ) -> "Grounds":
        """A roadmap of so many phases.

        `tasks` of a phase are called `part` where nothing is said; `after` says on which phases one rests; `breaker`
        and `autopilot` are settings of those tables, and `settings` further lines of `fairwitness.toml`.
        """
        named = {phase: (tasks or {}).get(phase, ("part",)) for phase in range(1, phases + 1)}
        team = Team(named)
        table = {"quick_phase_seconds": 0, "audit": False, **(autopilot or {})}
        lines = ["[verify]", "mutants = 0", "", "[[verify.check]]", 'name = "tests"', 'argv = ["sh", "check.sh"]', ""]
        lines += ["[autopilot]", *(f"{name} = {json.dumps(value)}" for name, value in table.items()), ""]
        lines += ["[autopilot.breaker]", *(f"{name} = {value}" for name, value in (breaker or {}).items()), ""]
        files = {
            ".gitignore": gitignore_with(""),
            "fairwitness.toml": "\n".join(lines) + settings,
            "check.sh": CHECK,
            "parts/first": "good\n",
            ".planning/ROADMAP.md": roadmap(named, after or {}),
            ".planning/REQUIREMENTS.md": "# Requirements\n\n"
            + "".join(f"- **CAT-{phase}**: The catalogue has the parts of phase {phase}.\n" for phase in named),
            ".planning/config.json": json.dumps(_CONFIG, indent=2) + "\n",
        }
        top = commit_files(root / "catalogue", files, subject="feat: a catalogue", committed_at=MOMENT)
        trust(top)
        git(top, "config", "user.name", "Ada")
        git(top, "config", "user.email", "ada@example.org")
        grounds = Grounds(top, root / "cassettes", team)
        grounds.cassettes.mkdir()
        for name in team.sessions:
            grounds.plays(name)
        return grounds

    def good(self, name: str) -> Document:
        """What somebody answers who does well."""
        return copy.deepcopy(self.team.sessions[name].answer)

    def plays(
        self,
        name: str,
        answer: Answer | None = None,
        *,
        calls: Calls | None = None,
        words: str = "Done.",
        usage: tuple[int, int] = USAGE,
        number: int = 1,
        whole: Document | None = None,
        insists: bool = False,
    ) -> None:
        """Puts the recording of a dispatch in place: the good one, as far as nothing else is said.

        `calls` stand in place of those of the good session, `whole` in place of its whole answer. Who `insists` gives
        the same answer again whenever it is sent back as malformed, and when the dispatch is tried again.
        """
        known = self.team.sessions.get(name)
        said = {} if known is None else copy.deepcopy(known.answer)
        if callable(answer):
            said = answer(said)
        else:
            said |= answer or {}
        if calls is None:
            calls = [(each.tool.value, each.args) for turn in known.turns for each in turn.calls] if known else ()
        role = role_of(name)
        header = CassetteHeader(
            cassette=1, role=role, instance=name, model="scripted", prompt=_NO_PROMPT, answer=ROLES[role].answer
        )
        made = tuple(CassetteCall(tool=tool, args=dict(args), ok=None) for tool, args in calls)
        turns = [_turn(0, "I do it.", made, None, usage)] if made else []
        for _ in range(_SENT_BACK if insists else 1):
            turns.append(_turn(len(turns), words, (), said if whole is None else whole, usage))
        for again in range(TRIES if insists else 1):
            file = self.cassettes / name_of(role, name, number + again)
            file.write_bytes(spell(Cassette(header, tuple(turns))))

    def forgets(self, name: str, number: int = 1) -> None:
        """Takes a recording away: whoever asks for it fails."""
        (self.cassettes / name_of(role_of(name), name, number)).unlink()

    def commit(self, path: str, content: str, subject: str = "docs: more") -> str:
        """A commit of the person's own; its name."""
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(content)
        git(self.top, "add", "-A")
        git(self.top, "commit", "-qm", subject)
        return git(self.top, "rev-parse", "HEAD").strip()

    def begin(self, phases: str = "all", *flags: str, **wanted: Any) -> "Run":
        """A run that is written down and not yet carried."""
        asked = PhasesRequest(phases, flags, agents="cassette", cassettes=self.cassettes, **wanted)
        return Run(self.top, begin_autopilot(self.top, asked).run_id)


def _turn(
    number: int, text: str, calls: tuple[CassetteCall, ...], submitted: Document | None, usage: tuple[int, int]
) -> CassetteTurn:
    return CassetteTurn(turn=number, text=text, calls=calls, submitted=submitted, usage=usage, ms=0, seen=None)


def roadmap(tasks: Mapping[int, tuple[str, ...]], after: Mapping[int, tuple[int, ...]]) -> str:
    """A roadmap whose phases add these parts."""
    sections = []
    for phase, names in tasks.items():
        rests = ", ".join(f"Phase {other}" for other in after.get(phase, ())) or "Nothing"
        wanted = [criterion_of(phase, name) for name in names]
        listed = "\n".join(f"{at}. {each.text}, verified by `{each.command}`" for at, each in enumerate(wanted, 1))
        sections.append(
            f"### Phase {phase}: Parts of {phase}\n\n**Goal**: The catalogue has the parts of phase {phase}.\n"
            f"**Type**: data\n**Depends on**: {rests}\n**Requirements**: CAT-{phase}\n"
            f"**Success Criteria**:\n\n{listed}\n\n**Plans**: made by the run\n"
        )
    lines = "\n".join(f"- [ ] **Phase {phase}: Parts of {phase}** - more parts" for phase in tasks)
    return "\n".join(("# Roadmap\n\n## Phases\n", f"{lines}\n", "## Phase Details\n", *sections))
