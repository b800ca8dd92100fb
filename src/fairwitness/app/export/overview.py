"""The overview page of the exported set with a diagram of the pipeline, and the prompt that starts it."""

from collections.abc import Iterator, Mapping

from fairwitness.agents.roles import ROLES
from fairwitness.app.export.definition import steps_of
from fairwitness.app.export.documents import DOCUMENTS, FOLDER, NINE
from fairwitness.app.export.hosts import CLAUDE, VSCODE, Host
from fairwitness.app.export.pages import Page, table, worded
from fairwitness.app.export.references import ABOUT
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.facts import Step
from fairwitness.rules.feature_retry import Bound, BoundedLoop, bounds
from fairwitness.rules.feature_routes import AGENT_OF, GATE_OF, ROUTES, Action, RouteOutcome

PROMPT = ".github/prompts/feature-workflow.prompt.md"

_BOUNDS = bounds(Policy())
_LOOP_OF: Mapping[Step, BoundedLoop] = {
    Step.SETUP: BoundedLoop.HUMAN,
    Step.RESEARCH_GATE: BoundedLoop.HUMAN,
    Step.SPEC: BoundedLoop.HUMAN,
    Step.DESIGN_REVIEW: BoundedLoop.DESIGN_REVISION,
    Step.PLAN_GATE: BoundedLoop.HUMAN,
    Step.VERIFY: BoundedLoop.REPLAN,
    Step.CODE_REVIEW: BoundedLoop.CODE_REVIEW,
}
"""The loop of a step that asks for a revision."""

_START: Mapping[str, str] = {
    VSCODE.name: (
        "Choose the agent `orchestrator` in the chat and give it the request, or type `/feature-workflow` where\n"
        "prompt files are still read. The agents have their tools under the names that VS Code gives them; another\n"
        "program that reads this folder leaves out the names it does not know, and the agents lack those tools there."
    ),
    CLAUDE.name: (
        "Start `claude --agent orchestrator` and give it the request: only the main agent of a session may start the\n"
        "others. Claude Code holds an agent to its list of tools and its number of turns, and to nothing else here."
    ),
}


def diagram() -> str:
    """Return the steps, transitions and bounded loops as a Mermaid diagram."""
    return "\n".join(("flowchart TD", *(f"    {line}" for line in _lines())))


def _lines() -> Iterator[str]:
    for step, agent in AGENT_OF.items():
        who = agent.value if agent is not None else "a person" if step in GATE_OF else "Fair Witness, or a person"
        opening, closing = ("{{", "}}") if agent is None and step in GATE_OF else ("[", "]")
        yield f'{_node(step)}{opening}"{step.value}: {_name(step)}<br/>{who}"{closing}'
    for step in Step:
        done = ROUTES[step, RouteOutcome.DONE]
        yield f"{_node(step)} --> {_node(done.to) if done.to is not None else 'finished'}"
    for step in Step:
        back = ROUTES[step, RouteOutcome.NEEDS_REVISION]
        if back.to is not None and back.action in (Action.REVISE, Action.REPLAN):
            yield f'{_node(step)} -. "{back.action.value}: {_end(_BOUNDS[_LOOP_OF[step]])}" .-> {_node(back.to)}'
    yield 'finished(["one commit, or a person decides"])'
    yield 'anywhere(["any step"]) -. "a blocker" .-> halted(["the run halts"])'


def _node(step: Step) -> str:
    return step.value.replace("-", "")


def _name(step: Step) -> str:
    return step.name.lower().replace("_", " ")


def _end(bound: Bound) -> str:
    return f"at most {bound.times} {bound.counted}"


def overview(host: Host) -> str:
    """Return the page that explains the exported files, how to begin, and what is not enforced."""
    return worded(
        "overview",
        host=host.name,
        start=_START[host.name],
        diagram=diagram(),
        roles=table(("agent", "step", "what it is for", "answers with", "wants a model that is"), _roles()),
        references="\n".join(f"- [{name}.md]({name}.md): {about}" for name, about in ABOUT.items()),
        folder=FOLDER,
    )


def _roles() -> Iterator[tuple[str, str, str, str, str]]:
    for role in NINE:
        spec = ROLES[role]
        answer = f"`{spec.answer}`" if spec.answer is not None else "one line"
        yield f"`{role.value}`", steps_of(role), spec.purpose, answer, spec.model.value


def prompt() -> Page:
    """Return the file that starts the pipeline from a chat."""
    head = {
        "name": "feature-workflow",
        "description": "Leads a feature from a request to a reviewed and verified change.",
        "argument-hint": f"the feature, and {' or '.join(ApprovalMode)}",
        "agent": Role.ORCHESTRATOR.value,
    }
    artifacts = table(
        ("artifact", "path"),
        (
            ("agent definitions", f"`{VSCODE.agents}/`"),
            *((about, f"`{VSCODE.reference_path(name)}`") for name, about in ABOUT.items()),
            ("the request", f"`{FOLDER}/initial-request.md`"),
            *((f"`{each.contract}`", f"`{FOLDER}/{each.path}`") for each in DOCUMENTS if each.path is not None),
        ),
    )
    return Page(PROMPT, worded("feature-workflow", autonomous=ApprovalMode.AUTONOMOUS.value, artifacts=artifacts), head)
