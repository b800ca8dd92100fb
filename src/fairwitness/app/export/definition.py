"""The definition of a role as a file: its instructions in the published sections, and the limits of its policy."""

from collections.abc import Iterator, Mapping

from fairwitness.agents.prompt_text import PROMPTS
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import explain
from fairwitness.app.export import completions
from fairwitness.app.export.documents import DOCUMENTS, FOLDER, read_by, written_by
from fairwitness.app.export.hosts import Host, started_by
from fairwitness.app.export.pages import Page, code, item, table, worded
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.markdown import split_sections
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import MATRIX_TOOLS, POLICIES, Access, Role, Tool
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.rules.feature_retry import BoundedLoop, bounds
from fairwitness.rules.feature_routes import AGENT_OF
from fairwitness.rules.tool_policy import access

SECTIONS = (
    "Role & Purpose",
    "Input Schema",
    "Output Schema",
    "Workflow",
    "Completion Contract",
    "Operating Rules",
    "Self-Verification",
    "Tool Access",
    "Anti-Drift Anchor",
)
"""The sections of every definition, in order."""

VALUES: Mapping[tuple[Role, str], tuple[str, ...]] = {
    (Role.RESEARCHER, "focus"): tuple(Focus),
    (Role.SPEC, "mode"): tuple(ApprovalMode),
    (Role.REVIEWER, "perspective"): tuple(Perspective),
    (Role.REVIEWER, "scope"): tuple(ReviewScope),
    (Role.REVIEWER, "round"): tuple(str(number + 1) for number in range(Policy().review.code_rounds)),
    (Role.PLANNER, "mode"): ("initial", "replan", "extension"),
    (Role.IMPLEMENTER, "task_id"): ("task-01", "task-02", "…"),
    (Role.VERIFIER, "task_id"): ("task-01", "task-02", "…"),
}
"""The possible values of a role's parameters."""


def definition(role: Role, host: Host) -> Page:
    """Return the file of a role for a program."""
    spec = ROLES[role]
    described = (
        f"{_purpose(spec)} A role of Fair Witness's feature pipeline ({steps_of(role)}), to be called in a run only."
    )
    sections = zip(SECTIONS, _sections(spec, host), strict=True)
    parts = (_opening(spec), *(f"## {heading}\n\n{text.strip()}" for heading, text in sections))
    return Page(host.agent_path(role), "\n\n".join(parts) + "\n", host.head(role, host.tools_of(role), described))


def steps_of(role: Role) -> str:
    """Return the steps of a role in words.

    >>> steps_of(Role.REVIEWER), steps_of(Role.ORCHESTRATOR)
    ('step-3b, step-7', 'step-0 to step-9')
    """
    if role is Role.ORCHESTRATOR:
        return f"{Step.SETUP.value} to {Step.COMMIT.value}"
    return ", ".join(step.value for step, agent in AGENT_OF.items() if agent == role.value)


def _purpose(spec: RoleSpec) -> str:
    if spec.is_dispatched:
        return spec.purpose
    return f"{spec.purpose} Here an agent plays it all the same, and nothing makes it keep to its tables."


def _opening(spec: RoleSpec) -> str:
    reads = code(each.contract for each in read_by(spec.role)) or "the request and the repository"
    writes = code(POLICIES[spec.role].outputs) or "no file"
    return "\n".join(
        (
            f"# {spec.title}",
            "",
            "> **Type:** Agent definition",
            f"> **Pipeline Step:** {steps_of(spec.role)}",
            f"> **Inputs:** {reads}",
            f"> **Outputs:** {writes}{' and the files of its task' if POLICIES[spec.role].source else ''}",
            "> **Enforcement:** none here. Fair Witness's runtime enforces these limits; without it they are advice.",
            "",
            "---",
        )
    )


def _sections(spec: RoleSpec, host: Host) -> Iterator[str]:
    introduction, sections = _words(spec)
    yield f"{_purpose(spec)}\n\n{introduction}"
    yield "\n\n".join((sections["What you get"].strip(), *_inputs(spec)))
    yield "\n\n".join((sections["What to return"].strip(), *_outputs(spec, host)))
    yield sections["How to work"] if spec.is_dispatched else f"{sections['How to work'].strip()}\n\n{_leading()}"
    signs = spec.answer is not None and issubclass(entry_of(spec.answer).shape, SignedDocument)
    yield completions.contract(FeatureAgent(spec.role.value), signs=signs)
    yield _rules(spec, host)
    yield f"{sections['Before you answer'].strip()}\n{_last_check(spec)}"
    yield "\n\n".join(_reach(spec, host))
    anchor = " ".join(sections["Remember"].split())
    yield f"**REMEMBER:** You are **{spec.title}** (`{spec.role.value}`). {anchor} Stay in this role."


def _words(spec: RoleSpec) -> tuple[str, dict[str, str]]:
    """Return the introduction of a role with its variants, and its sections."""
    text = (PROMPTS / f"{spec.prompt}.md").read_text(encoding="utf-8")
    introduction = text.partition("\n")[2].partition("\n## ")[0].strip()
    return "\n\n".join(part for part in (introduction, _variants(spec)) if part), dict(split_sections(text))


def _variants(spec: RoleSpec) -> str:
    if spec.variants is None:
        return ""
    folder = PROMPTS / spec.variants.folder
    values = VALUES[spec.role, spec.variants.parameter]
    return "\n".join(item((folder / f"{value}.md").read_text(encoding="utf-8")) for value in values)


def _inputs(spec: RoleSpec) -> Iterator[str]:
    found = read_by(spec.role)
    if found:
        yield "Documents of the run that you may be given:"
        yield "\n".join(
            f"- `{each.contract}`: {each.what}{f' (`{FOLDER}/{each.path}`)' if each.path else ''}" for each in found
        )
    if spec.parameters:
        listed = "\n".join(f"  {name}: {' | '.join(VALUES[spec.role, name])}" for name in spec.parameters)
        yield f"Whoever calls you gives a value to each parameter:\n\n```yaml\nparameters:\n{listed}\n```"


def _outputs(spec: RoleSpec, host: Host) -> Iterator[str]:
    if spec.answer is None:
        yield "Nobody fills in a form for you, and you write no file: what you return is the last line of the run."
        return
    answer = next(each for each in DOCUMENTS if each.contract == spec.answer)
    where = f"`{FOLDER}/{answer.path}`" if answer.path else "your last message, in one fenced `yaml` block"
    yield (
        f"Your answer is one `{spec.answer}`, in {where}. No program fills anything in here: every field below is"
        f" yours, header included. All are required but those marked optional; {host.link('schemas')} says the same."
    )
    yield explain(spec.answer, ())
    for other in written_by(spec.role):
        if other.contract != spec.answer:
            yield f"Besides, `{FOLDER}/{other.path}`, a `{other.contract}`: {other.what}."
            yield explain(other.contract, ())
    pages = [output for output in POLICIES[spec.role].outputs if output.endswith(".md")]
    if pages:
        yield f"For people, the same in prose: {code(f'{FOLDER}/{page}' for page in pages)}."


def _leading() -> str:
    """Return what the orchestrator must do itself outside of Fair Witness's runtime."""
    _, intake = _words(ROLES[Role.INTAKE])
    return worded(
        "leading",
        setup=Step.SETUP.value,
        intake=intake["How to work"],
        verify=Step.VERIFY.value,
        commit=Step.COMMIT.value,
    )


def _rules(spec: RoleSpec, host: Host) -> str:
    has_terminal = Tool.RUN_IN_TERMINAL in POLICIES[spec.role].tools
    return worded(
        "rules",
        limits=_limits(spec),
        who_verifies="Run it" if has_terminal else "You have no terminal: ask the lead to run it",
        inside=str(bounds(Policy())[BoundedLoop.INSIDE_CALL].times),
        schemas=host.link("schemas"),
        patterns=host.link("dispatch-patterns"),
        severities=host.link("severity-taxonomy"),
    )


def _limits(spec: RoleSpec) -> str:
    if not spec.is_dispatched:
        return "which agents you start and how often"
    minutes, tokens = spec.timeout_s / 60, f"{spec.budget.tokens:,}"
    return f"and that one call of you takes no more than {minutes:g} minutes, {spec.turns} turns and {tokens} tokens"


def _last_check(spec: RoleSpec) -> str:
    paths = [f"{FOLDER}/{each.path}" for each in written_by(spec.role)]
    if not paths:
        return "- `fairwitness schema check` accepts every document that you were handed."
    if Tool.RUN_IN_TERMINAL in POLICIES[spec.role].tools:
        return f"- `fairwitness schema check` accepts {code(paths)}."
    return f"- You said that no one has run `fairwitness schema check` on {code(paths)} yet: you have no terminal."


def _reach(spec: RoleSpec, host: Host) -> Iterator[str]:
    policy = POLICIES[spec.role]
    shown = [tool for tool in Tool if tool in MATRIX_TOOLS or tool in policy.tools]
    yield table(
        ("tool", "access", host.name),
        ((f"`{tool.value}`", access(spec.role, tool).value, _there(spec.role, tool, host)) for tool in shown),
    )
    writes = code(f"{FOLDER}/{output}" for output in policy.outputs)
    lines = [f"- You may write only: {writes}{', and the files that your task declares' if policy.source else ''}."]
    if not policy.outputs and not policy.source:
        lines = ["- You may write no file."]
    if Tool.RUN_IN_TERMINAL in policy.tools:
        lines.append(f"- You may run: {code(' '.join(argv) for argv in policy.programs)}.")
        if policy.project_commands:
            lines.append("- Besides, any program of the project's toolchain, such as its tests and checkers.")
        lines.append(
            "- Besides, `fairwitness verify`, `fairwitness schema check`, `fairwitness ledger`, `fairwitness evidence`."
        )
    if started_by(spec.role):
        lines.append(f"- You may start only: {code(started_by(spec.role))}.")
    yield "\n".join(lines)


def _there(role: Role, tool: Tool, host: Host) -> str:
    if access(role, tool) is Access.DENIED:
        return ""
    return f"`{host.tools[tool]}`" if tool in host.tools else "not there"
