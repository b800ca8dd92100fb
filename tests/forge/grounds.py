"""A small catalogue, a recorded team that plans and fills it, and forge runs that are carried to their end.

Every task adds a part; a quick check holds that every part is good. What an agent does and says is up to each test.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.cassette_file import name_of
from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.app.runs.begin_feature import RunRequest
from fairwitness.app.runs.begin_forge import begin_forge
from fairwitness.app.runs.drive import drive, record_resumed
from fairwitness.app.state import state_of
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import DispatchOutcome
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.dag import AgentType, NodeState, NodeType
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.helper_limits import ROLE_OF
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.store.artifacts import Store
from feature.grounds import Turn, call, cassette, git
from support.graph.team import MOMENT, lay_out
from support.trust import trust

Document = dict[str, Any]
REQUEST = "Fill the catalogue with good parts."
SPEC = "A part is one line: good.\n"
SECTIONS = ("Summary", "Approach", "Issues Encountered", "Testing")
CR_BODY = "## Description\nIt is missing.\n\n## Impact Assessment\nLittle.\n\n## Proposed Resolution\nAdd it.\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a plan."""

    id: str
    after: tuple[str, ...] = ()
    agent: AgentType = 2

    def plain(self) -> Document:
        """As it stands in the graph."""
        is_refinery = self.agent == "refinery"
        return {
            "id": self.id,
            "type": (NodeType.REFINERY if is_refinery else NodeType.TASK).value,
            "agentType": self.agent,
            "dependencies": list(self.after),
            "status": NodeState.PENDING.value,
        }

    def document(self) -> Document:
        """What its worker is told."""
        return {
            "id": self.id,
            "title": f"The part {self.id}",
            "type": self.agent,
            "dependencies": list(self.after),
            "acceptance_criteria": [f"parts/{self.id} is good"],
            "evidence": [{"criterion": f"parts/{self.id} is good", "command": f"sh check.sh parts/{self.id}"}],
            "estimated_complexity": "small",
            "status": NodeState.PENDING.value,
            "branch": None,
            "attemptId": None,
            "body": f"## Description\n\nAdd parts/{self.id}.\n\n## Context\n\nNone.\n\n## Instructions\n\nBe quick.\n",
        }


ONE, TWO = Node("task-001"), Node("task-002")
JOIN = Node("refinery-001", ("task-001", "task-002"), "refinery")
LAST = Node("task-003", ("refinery-001",))


def planned(*nodes: Node, questions: Sequence[str] = (), **differs: Any) -> Document:
    """A captain's plan; what only the harness knows is left out."""
    tasks = [node for node in nodes if node.agent != "refinery"]
    plain: Document = {
        "specs": [{"name": "parts", "body": SPEC}],
        "tasks": [node.document() for node in tasks],
        "dag": {
            "nodes": [node.plain() for node in nodes],
            "metadata": {"totalTasks": len(tasks), "totalRefineries": len(nodes) - len(tasks)},
        },
        "assumptions": ["Nobody wants more parts than these."],
        "open_questions": list(questions),
    }
    return plain | differs


def added(*nodes: Node, edges: Sequence[tuple[str, str]] = (), **differs: Any) -> Document:
    """What a captain adds for a change request; each edge is who waits, and for whom."""
    plain: Document = {
        "specs": [],
        "tasks": [node.document() for node in nodes if node.agent != "refinery"],
        "overlay": {
            "crId": "cr-001",
            "appliedAt": MOMENT,
            "addedNodes": [node.plain() for node in nodes],
            "addedEdges": [{"from": before, "to": after} for after, before in edges],
        },
        "assumptions": [],
        "open_questions": [],
    }
    return plain | differs


def as_answer(document: Document) -> CaptainReturn:
    """The same as a captain's answer that was read."""
    return CaptainReturn.model_validate({**document, "dag": None})


def walked(*files: str, tests: Mapping[str, str] | None = None, **differs: Any) -> Document:
    """A walkthrough of work that is said to be done."""
    said: Document = {
        "status": "completed",
        "confidence": 0.9,
        "time_spent_minutes": 1,
        "files_changed": [{"path": path, "reason": "the task asks for it"} for path in files],
        "body": "".join(f"## {title}\n\nNothing more to say.\n\n" for title in SECTIONS),
    }
    if tests:
        said["tests"] = [{"name": name, "result": result} for name, result in tests.items()]
    return said | differs


def wanted(status: str = "pending") -> Document:
    """A change request as a refinery returns it."""
    return {
        "id": "cr-001",
        "title": "A part is missing",
        "emitted_by": "refinery-001",
        "emitted_at": MOMENT,
        "status": status,
        "reason": "Two parts do not meet.",
        "affected_tasks": ["task-001"],
        "suggested_changes": "Add one between them.",
        "body": CR_BODY,
    }


def part(name: str, content: str = "good\n") -> tuple[str, dict[str, Any]]:
    """Writes a part."""
    return call("create_file", path=f"parts/{name}", content=content)


def worked(*calls: tuple[str, dict[str, Any]], said: Document | None = None) -> tuple[Turn, ...]:
    """Somebody who makes some calls and tells of them."""
    files = [args["path"] for tool, args in calls if tool == "create_file"]
    last = Turn("Done.", submitted={"walkthrough": walked(*files) if said is None else said})
    return (Turn("I do it.", calls), last) if calls else (last,)


def refined(
    *calls: tuple[str, dict[str, Any]], requests: Sequence[Document] = (), fixes: Sequence[str] = ()
) -> tuple[Turn, ...]:
    """A refinery that makes some calls, says which files it mended, and may ask for more than was planned."""
    *first, last = worked(*calls)
    assert last.submitted is not None
    none: Document = {name: [] for name in ("merged_branches", "unmerged", "failing_tests")}
    more = {"fixes": [{"path": path, "reason": "it is needed"} for path in fixes], "change_requests": list(requests)}
    return (*first, Turn("Joined.", submitted={**none, **more, **last.submitted}))


@dataclass(frozen=True, slots=True)
class Grounds:
    """A repository and the recordings of its team."""

    top: Path
    cassettes: Path

    @staticmethod
    def lay_out(root: Path, *nodes: Node, settings: str = "") -> "Grounds":
        """The catalogue, a captain who plans these nodes, and a worker for each who does it well at the first try."""
        grounds = Grounds(lay_out(root / "catalogue"), root / "cassettes")
        git(grounds.top, "config", "user.name", "Ada")
        git(grounds.top, "config", "user.email", "ada@example.org")
        if settings:
            with (grounds.top / "fairwitness.toml").open("a") as file:
                file.write(settings)
            git(grounds.top, "commit", "-qam", "settings")
            trust(grounds.top)
        grounds.cassettes.mkdir()
        grounds.plans(planned(*nodes))
        for node in nodes:
            grounds.does(node)
        return grounds

    def adds(self, files: Mapping[str, str], settings: str = "") -> None:
        """More files of the repository, and more settings."""
        for path, content in files.items():
            (self.top / path).parent.mkdir(parents=True, exist_ok=True)
            (self.top / path).write_text(content)
        with (self.top / "fairwitness.toml").open("a") as file:
            file.write(settings)
        git(self.top, "add", "--all")
        git(self.top, "commit", "-qm", "more")
        trust(self.top)

    def plans(self, answer: Document, number: int = 1, *, plan: int = 1) -> None:
        """What the captain returns when he is asked for a plan for the n-th time."""
        self.record(Role.CAPTAIN, f"captain-{plan}", (Turn("A plan.", submitted=answer),), number)

    def replans(self, *answers: Document, request: str = "cr-001") -> None:
        """What the captain makes of a change request, one time after the other."""
        for number, answer in enumerate(answers, start=1):
            self.record(Role.CAPTAIN, f"captain-{request}", (Turn("An answer.", submitted=answer),), number)

    def does(self, node: Node, turns: Sequence[Turn] | None = None, *, attempt: int = 1, sessions: int = 1) -> None:
        """What the agent of an attempt does; well, if nothing is said. A call that failed is made in two sessions."""
        is_refinery = node.agent == "refinery"
        role = Role.REFINERY if is_refinery else ROLE_OF[int(node.agent)]
        well = refined() if is_refinery else worked(part(node.id))
        for number in range(1, sessions + 1):
            self.record(role, f"{node.id}-{attempt}", well if turns is None else turns, number)

    def record(self, role: Role, instance: str, turns: Sequence[Turn], number: int = 1) -> None:
        """Puts a recording in place."""
        (self.cassettes / name_of(role, instance, number)).write_bytes(cassette(role, instance, turns))

    def begin(self, *, is_autonomous: bool = True) -> "Run":
        """A run that is written down and not yet carried."""
        asked = RunRequest(
            request=REQUEST, slug=None, is_autonomous=is_autonomous, agents="cassette", cassettes=self.cassettes
        )
        return Run(self.top, begin_forge(self.top, asked).run_id)


@dataclass(frozen=True, slots=True)
class Run:
    """One run, carried by the real engine in this process."""

    top: Path
    run_id: str

    def carry(self) -> WatchEnd:
        """To its end; one that had ended goes on first, as `fairwitness resume` has it."""
        with follow_run(self.top, self.run_id) as followed:
            if followed.view.is_over:
                record_resumed(self.top, followed.view)
            end = drive(self.top, followed, lambda *_: None)
        assert isinstance(end, WatchEnd), f"a signal ended it: {end}"
        return end

    @contextmanager
    def context(self) -> Iterator[ForgeRunRecord]:
        """The run's book and files."""
        with open_forge_run(self.top, self.run_id) as context:
            yield context

    def events(self, kind: str | None = None, **data: Any) -> list[Document]:
        """What the events of a kind say, in their order; only those that say this, too."""
        with self.context() as context:
            found = [event for event in context.log.ledger.events(self.run_id) if kind in (None, event.type)]
        return [event.data for event in found if all(event.data.get(name) == value for name, value in data.items())]

    def types(self) -> list[str]:
        """What happened, by its kind."""
        with self.context() as context:
            return [event.type for event in context.log.ledger.events(self.run_id)]

    def wait_for(self, kind: str) -> None:
        """Until an event of a kind stands in the run, which somebody else carries on a machine that may be busy."""
        until = time.monotonic() + 250
        while kind not in self.types():
            assert time.monotonic() < until, kind
            time.sleep(0.05)

    def outcomes(self) -> dict[str, DispatchOutcome]:
        """What came of each dispatch that ended."""
        with self.context() as context:
            ledger = context.log.ledger
            names = [row.subject for row in ledger.observations(self.run_id, ENDED)]
            found = {name: ended(ledger, self.run_id, name) for name in names}
            return {name: done.outcome for name, done in found.items() if done is not None}

    def transcript(self, dispatch_id: str) -> str:
        """Everything that was said and done in a dispatch, prompts included."""
        with self.context() as context:
            done = ended(context.log.ledger, self.run_id, dispatch_id)
            assert done is not None
            assert done.transcript is not None
            kept = Store(state_of(context.repository))
            return kept.get(f"outputs/{done.transcript.removeprefix('sha256:')}", sha256=done.transcript).decode()

    def prompt(self, dispatch_id: str) -> str:
        """What an agent was told first."""
        rows = map(json.loads, self.transcript(dispatch_id).splitlines())
        return str(next(row["text"] for row in rows if row["kind"] == "prompt"))

    def states(self) -> dict[str, str]:
        """How far every node is."""
        with self.context() as context:
            return {name: node.status.value for name, node in context.log.run().nodes.items()}

    def file(self, path: str) -> str:
        """A file of the run's folder."""
        with self.context() as context:
            return (self.top / context.layout.folder / path).read_text()

    def state(self) -> Document:
        """`run-state.json`."""
        plain: Document = json.loads(self.file("run-state.json"))
        return plain

    def show(self, path: str) -> str:
        """A file on the branch of the run."""
        with self.context() as context:
            order = context.log.order()
            assert order is not None
            return git(self.top, "show", f"{order.options.target}:{path}")

    def files(self) -> str:
        """The files on the branch of the run."""
        with self.context() as context:
            order = context.log.order()
            assert order is not None
            return git(self.top, "ls-tree", "-r", "--name-only", order.options.target)

    def parts(self) -> set[str]:
        """The parts on the branch of the run."""
        with self.context() as context:
            order = context.log.order()
            assert order is not None
            listed = git(self.top, "ls-tree", "-r", "--name-only", order.options.target, "parts/")
        return {line.removeprefix("parts/") for line in listed.splitlines()} - {"first"}
