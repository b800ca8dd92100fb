"""A small catalogue with a roadmap, a recorded team for every step of it, and autopilot runs carried by the real engine.

Each phase of the roadmap adds parts (`parts/<phase>-<task>`, whose content is `good`); a shell script holds that every
part is good, so that a whole phase takes seconds. How it is used:

    grounds = Grounds.lay_out(tmp_path, phases=2, after={2: (1,)}, breaker={"no_progress_threshold": 2})
    grounds.plays("verify-1-1-1", {"pass": False})      # what a dispatch answers instead, field by field
    grounds.plays("p1-part-1", calls=[part("1-part", "bad\\n")], usage=(50_000, 10))
    run = grounds.begin()                               # WantedPhases("all"); or begin("1-2", "complete", cycles=1)
    assert run.carry() is End.COMPLETED                 # to its end, or until it waits for a person or is paused

Dispatches are called by their instance: `research-<phase>-<pass>-<number>`, `plan-…`, `plan_check-…`, `verify-…`,
`judge-…`, `rate-…`, then `p<phase>-<task>-<attempt>` with `-check-<k>` and `-debug-<k>` behind it, `p<phase>-cycle-<n>`,
`p<phase>-debug-<n>-debug-1` and `self-audit-<n>`, where n counts the graphs of the phase. For each of them there is a good session from the start (see `TRIES`), so a test
says only what differs. A further try of the same dispatch has a `number` above 1. The run says what came of it: `events`,
`state`, `verdicts`, `outcomes`, `transcript`, `file`, `parts`. `carry_with` takes another clock or less time for a role.
"""

import asyncio
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.agents.cassettes import Cassette, name_of, spell
from assay.agents.roles import ROLES
from assay.app.autopilot import WantedPhases, begin_autopilot
from assay.app.autopilot_room import AutopilotRoom, opened_autopilot, resume_autopilot
from assay.app.carrying import carry, record_resumed
from assay.app.demo_autopilot import scripts
from assay.app.demo_autopilot.roadmap import Held
from assay.app.demo_feature.scripts import Session, create
from assay.app.demo_repository import lay_out_files
from assay.app.runs import End
from assay.app.state import state_of
from assay.app.watching import watching
from assay.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from assay.contracts.agents.dispatch import Outcome
from assay.contracts.autopilot.passes import PhasePass, Verdict
from assay.contracts.autopilot.state import State
from assay.contracts.common.tools import Role
from assay.kit.clock import Clock, system_clock
from assay.steps.autopilot.ignored import gitignore_with
from assay.steps.dispatch.account import ENDED
from assay.steps.dispatch.recording import ended
from assay.store.artifacts import Store
from feature.grounds import call, git

Document = dict[str, Any]
Calls = Sequence[tuple[str, Document]]
Answer = Document | Callable[[Document], Document]
"""Fields that differ from the good answer, or what makes another answer of it."""

CHECK = """\
# every part that is named, or else every part there is, is good
test $# -gt 0 || set -- parts/*
for part in "$@"; do
  grep -qx good "$part" || { echo "$part is no good"; exit 1; }
done
echo OK
"""
MOMENT = "2026-03-05T09:00:00Z"
USAGE = (900, 40)
"""Tokens of every turn, read and written."""
TRIES = 3
"""For so many passes of a phase, steps of a pass and attempts of a task there is a good session."""
_CONFIG = {
    "project": {
        "type": "unknown",
        "commands": {"compile": None, "test": "sh check.sh", "lint": None, "build": None},
        "commands_source": "user-override",
        "spec_paths": [".planning/REQUIREMENTS.md", ".planning/ROADMAP.md"],
    }
}
_NO_PROMPT = "sha256:" + "0" * 64
_STEPS = {
    "research": Role.PHASE_RESEARCHER,
    "plan": Role.PHASE_PLANNER,
    "plan_check": Role.PLAN_CHECKER,
    "verify": Role.PHASE_VERIFIER,
    "judge": Role.JUDGE,
    "rate": Role.RATER,
    "self": Role.SELF_AUDIT,
}


def role_of(name: str) -> Role:
    """Whose dispatch that is."""
    if re.search(r"-check-\d+$", name):
        return Role.MINI_VERIFIER
    if re.search(r"-debug-\d+$", name):
        return Role.DEBUGGER
    return _STEPS.get(name.partition("-")[0], Role.EXECUTOR)


def part(name: str, content: str = "good\n") -> tuple[str, Document]:
    """Writes a part."""
    return call("create_file", path=f"parts/{name}", content=content)


def path_of(phase: int, task: str) -> str:
    """The part that a task adds."""
    return f"parts/{phase}-{task}"


def held(phase: int, task: str) -> Held:
    """What must hold when a task is done."""
    return Held(f"The part {phase}-{task} is a good one", f"sh check.sh {path_of(phase, task)}")


def _task(phase: int, name: str) -> scripts.Task:
    path, wanted = path_of(phase, name), held(phase, name)
    return scripts.Task(
        phase,
        name,
        f"Add the part {path}, whose only line is: good.",
        f"{path} is there.",
        (wanted,),
        (f"CAT-{phase}", wanted.criterion),
        (create(path, "good\n"),),
        (f"{path}:1 -- good",),
    )


class Team:
    """The good sessions of a roadmap, by the instance of their dispatch."""

    def __init__(self, tasks: Mapping[int, tuple[str, ...]]) -> None:
        self._tasks = {phase: tuple(_task(phase, name) for name in names) for phase, names in tasks.items()}
        self.sessions = {session.instance: session for session in self._all()}

    def _all(self) -> Iterator[Session]:
        for phase, tasks in self._tasks.items():
            for number in range(1, TRIES + 1):
                for session in self._steps(phase, tasks, number):
                    *_, step = re.split(r"-\d+-\d+-\d+$", session.instance)[:1]
                    for try_ in range(1, TRIES + 1):
                        yield _called(session, f"{step}-{phase}-{number}-{try_}")
                yield from self._work(phase, tasks, number)
        yield self._audit()

    def _steps(self, phase: int, tasks: Sequence[scripts.Task], number: int) -> Iterator[Session]:
        seen = [(each.held[0], each.evidence[0]) for each in tasks]
        paths = tuple(path for task in tasks for path in task.writes)
        yield scripts.researched(phase, ("A part is one line.",), "Write the parts.", ("None.",), ("check.sh",))
        yield scripts.planned(phase, tasks)
        yield scripts.plan_checked(phase, 9.0, "One part for each task.")
        nothing: Document = {"status": "n/a", "detail": "the project has no such command"}
        checks = {
            "compile": nothing,
            "lint": nothing,
            "build": nothing,
            "tests": {"status": True, "detail": "sh check.sh -> OK"},
        }
        commands = ["sh check.sh -> OK", *(f"{each.command} -> OK" for each, _ in seen)]
        yield scripts.verified(phase, number, seen, paths, more={"automated_checks": checks, "commands_run": commands})
        yield scripts.judged(
            phase,
            number,
            (f"Nothing holds that {paths[0]} has no further line.",),
            (f"{paths[0]}:1 -- good", "sh check.sh -> OK"),
            f"I looked at {paths[0]} before I read what the verifier says, and found one line. We differ in nothing.",
            paths,
        )
        card = [
            scripts.Scored(each, 9.3 + at % 3 / 10, where, f"{where.partition(':')[0]} is good; no test of its own.")
            for at, (each, where) in enumerate(seen)
        ]
        yield scripts.rated(phase, number, card, "Every part is there, and each is good.", "None: only new files.")

    def _work(self, phase: int, tasks: Sequence[scripts.Task], attempt: int) -> Iterator[Session]:
        for task in tasks:
            for session in scripts.carried_out(task):
                yield _called(session, session.instance.replace(f"-{task.id}-1", f"-{task.id}-{attempt}"))
            node = f"p{phase}-{task.id}-{attempt}"
            for number in range(1, TRIES + 1):
                yield _called(
                    scripts.checked(node, ((task.held[0], task.evidence[0]),), task.writes), f"{node}-check-{number}"
                )
                yield _mended(f"{node}-debug-{number}", task)
        first, met = tasks[0], f"it stays as it was -- {tasks[0].evidence[0]}"
        cycle = f"p{phase}-cycle-{attempt}"
        notes = (create(f"notes/{phase}-{attempt}", "looked at\n"),)
        yield scripts.worked(cycle, f"p{phase}-cycle", (met,), (f"{first.held[0].command} -> OK",), notes, ())
        yield scripts.checked(cycle, ((first.held[0], first.evidence[0]),), ())
        yield _mended(f"p{phase}-debug-{attempt}-debug-1", first)

    def _audit(self) -> Session:
        results = [
            {
                "phase_id": str(phase),
                "requirements_checked": [
                    {
                        "requirement_id": f"CAT-{phase}",
                        "expected": "The catalogue has its parts.",
                        "actual_found": "They are there.",
                        "file_line_evidence": tasks[0].evidence[0],
                        "status": "pass",
                        "gap_description": None,
                        "fix_complexity": None,
                    }
                ],
            }
            for phase, tasks in self._tasks.items()
        ]
        count = len(results)
        aggregate = {
            "total_requirements_checked": count,
            "passed_on_first_check": count,
            "gaps_found": 0,
            "gap_details": [],
        }
        answer = {"audit_results": results, "aggregate": aggregate}
        return Session(Role.SELF_AUDIT, "self-audit-1", 1, answer, "All of it is there.")


def _called(session: Session, name: str) -> Session:
    return Session(session.role, name, 1, session.answer, session.last_words, session.turns)


def _mended(name: str, task: scripts.Task) -> Session:
    answer: Document = {
        "fixed": True,
        "changes": [f"{path} is good now" for path in task.writes],
        "remaining_issues": [],
        "failure_categories": [],
    }
    return Session(Role.DEBUGGER, name, 1, answer, "Mended.", (scripts.Said("It is written anew.", task.changes),))


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

        `tasks` of a phase are called `part` where nothing is said; `after` says on which phases one rests; `breaker` and
        `autopilot` are settings of those tables, and `settings` further lines of `assay.toml`.
        """
        named = {phase: (tasks or {}).get(phase, ("part",)) for phase in range(1, phases + 1)}
        team = Team(named)
        table = {"quick_phase_seconds": 0, "audit": False, **(autopilot or {})}
        lines = ["[verify]", "mutants = 0", "", "[[verify.check]]", 'name = "tests"', 'argv = ["sh", "check.sh"]', ""]
        lines += ["[autopilot]", *(f"{name} = {json.dumps(value)}" for name, value in table.items()), ""]
        lines += ["[autopilot.breaker]", *(f"{name} = {value}" for name, value in (breaker or {}).items()), ""]
        files = {
            ".gitignore": gitignore_with(""),
            "assay.toml": "\n".join(lines) + settings,
            "check.sh": CHECK,
            "parts/first": "good\n",
            ".planning/ROADMAP.md": roadmap(named, after or {}),
            ".planning/REQUIREMENTS.md": "# Requirements\n\n"
            + "".join(f"- **CAT-{phase}**: The catalogue has the parts of phase {phase}.\n" for phase in named),
            ".planning/config.json": json.dumps(_CONFIG, indent=2) + "\n",
        }
        top = lay_out_files(root / "catalogue", files, subject="feat: a catalogue", moment=MOMENT)
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
    ) -> None:
        """Puts the recording of a dispatch in place: the good one, as far as nothing else is said.

        `calls` stand in place of those of the good session, `whole` in place of its whole answer.
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
        turns.append(_turn(len(turns), words, (), said if whole is None else whole, usage))
        (self.cassettes / name_of(role, name, number)).write_bytes(spell(Cassette(header, tuple(turns))))

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
        asked = WantedPhases(phases, flags, agents="cassette", cassettes=self.cassettes, **wanted)
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
        wanted = [held(phase, name) for name in names]
        listed = "\n".join(f"{at}. {each.criterion}, verified by `{each.command}`" for at, each in enumerate(wanted, 1))
        sections.append(
            f"### Phase {phase}: Parts of {phase}\n\n**Goal**: The catalogue has the parts of phase {phase}.\n"
            f"**Type**: data\n**Depends on**: {rests}\n**Requirements**: CAT-{phase}\n"
            f"**Success Criteria**:\n\n{listed}\n\n**Plans**: made by the run\n"
        )
    lines = "\n".join(f"- [ ] **Phase {phase}: Parts of {phase}** - more parts" for phase in tasks)
    return "\n".join(("# Roadmap\n\n## Phases\n", f"{lines}\n", "## Phase Details\n", *sections))


@dataclass(frozen=True, slots=True)
class Run:
    """One run, carried by the real engine in this process."""

    top: Path
    run_id: str

    def carry(self) -> End:
        """To its end, or until it waits; one that had ended goes on first, as `assay resume` has it."""
        with watching(self.top, self.run_id) as followed:
            if followed.look.is_over or followed.look.status == "paused":
                record_resumed(self.top, followed.look)
            end = carry(self.top, followed, lambda *_: None)
        assert isinstance(end, End), f"a signal ended it: {end}"
        return end

    def resume(self, *, clock: Clock = system_clock) -> bool:
        """Writes down that it goes on; `NotReady` while its breaker cools down."""
        return resume_autopilot(self.top, self.run_id, clock=clock)

    @contextmanager
    def room(self) -> Iterator[AutopilotRoom]:
        """The run's book and files."""
        with opened_autopilot(self.top, self.run_id) as room:
            yield room

    def rows(self, kind: str | None = None) -> list[Any]:
        """Events with everything that stands around them, in their order."""
        with self.room() as room:
            return [event for event in room.book.ledger.events(self.run_id) if kind in (None, event.type)]

    def events(self, kind: str | None = None, **data: Any) -> list[Document]:
        """What the events of a kind say, in their order; only those that say this, too."""
        found = [event.data for event in self.rows(kind)]
        return [each for each in found if all(each.get(name) == value for name, value in data.items())]

    def types(self) -> list[str]:
        """What happened, by its kind."""
        return [event.type for event in self.rows()]

    def state(self) -> State:
        """As its events tell it."""
        with self.room() as room:
            return room.book.state().state

    def statuses(self) -> dict[str, str]:
        """How the phases stand."""
        return {phase: record.status.value for phase, record in self.state().phases.items()}

    def passes(self) -> tuple[PhasePass, ...]:
        """Every pass that was begun."""
        with self.room() as room:
            return room.book.passes()

    def verdicts(self) -> tuple[Verdict, ...]:
        """What followed from the passes."""
        with self.room() as room:
            return room.book.verdicts()

    def observations(self, kind: str) -> list[Any]:
        """Rows of a kind."""
        with self.room() as room:
            return list(room.book.ledger.observations(self.run_id, kind))

    def steps(self) -> list[tuple[str, str, bool]]:
        """The steps that ended: their pass, what they were, and whether they were good."""
        found = [(row.subject, row.detail["document"]) for row in self.observations("step")]
        return [(name, plain["step"], plain["good"]) for name, plain in found]

    def outcomes(self) -> dict[str, Outcome]:
        """What came of each dispatch that ended, in their order."""
        with self.room() as room:
            ledger = room.book.ledger
            names = [row.subject for row in ledger.observations(self.run_id, ENDED)]
            found = {name: ended(ledger, self.run_id, name) for name in names}
            return {name: done.outcome for name, done in found.items() if done is not None}

    def transcript(self, dispatch_id: str) -> str:
        """Everything that was said and done in a dispatch, prompts included."""
        with self.room() as room:
            done = ended(room.book.ledger, self.run_id, dispatch_id)
            assert done is not None
            assert done.transcript is not None
            kept = Store(state_of(room.repository))
            return kept.get(f"outputs/{done.transcript.removeprefix('sha256:')}", sha256=done.transcript).decode()

    def file(self, path: str) -> str:
        """A file of the checkout, in which the run's own folders are."""
        return (self.top / path).read_text()

    @property
    def target(self) -> str:
        """The run's own branch."""
        return f"assay/{self.run_id}/target"

    def parts(self) -> set[str]:
        """The parts on the branch of the run."""
        listed = git(self.top, "ls-tree", "-r", "--name-only", self.target, "parts/")
        return {line.removeprefix("parts/") for line in listed.splitlines()} - {"first"}
