"""Exported agents say what the program does, drift from it is noticed, and no file of a person is ever touched."""

import importlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.agents.prompt_text import PROMPTS
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import fields_of, form_of
from fairwitness.app.export.completions import CONDITIONS
from fairwitness.app.export.definition import SECTIONS, VALUES
from fairwitness.app.export.documents import DOCUMENTS, FOLDER, NINE
from fairwitness.app.export.hosts import CLAUDE, VSCODE, Host
from fairwitness.app.export.overview import PROMPT, diagram
from fairwitness.app.export.pages import WORDS, Page, worded
from fairwitness.app.export.references import MEANINGS, REFERENCES
from fairwitness.app.export.skill import FOLDERS
from fairwitness.app.export.writer import TARGETS, export, is_untouched, sealed
from fairwitness.cli.command_list import COMMANDS
from fairwitness.contracts.common.markdown import headings, split_sections
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import MATRIX_TOOLS, POLICIES, Role, Tool
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.document import SIGNATURES
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.errors import UnsafePath, UsageError
from fairwitness.kit import front_matter
from fairwitness.rules.feature_retry import bounds
from fairwitness.rules.feature_routes import ROUTES
from fairwitness.rules.review import VERDICT_OF
from fairwitness.rules.tool_policy import access
from fairwitness.store.layout.feature import FeatureLayout

GOLDEN = Path(__file__).parent / "exported"
REGENERATE = "FAIRWITNESS_GOLDEN"
"""Set in the environment, the golden files are written anew."""

PAGES = {target: {page.path: page for page in pages()} for target, pages in TARGETS.items()}
EVERY_PAGE = [
    pytest.param(page, id=f"{target}:{path}") for target, pages in PAGES.items() for path, page in pages.items()
]
DEFINITIONS = [
    pytest.param(role, host, PAGES[target][host.agent_path(role)], id=f"{target}:{role.value}")
    for target, host in (("vscode", VSCODE), ("claude", CLAUDE))
    for role in NINE
]


def _found(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _rows(text: str, *head: str) -> list[list[str]]:
    """The rows of the table that has this head."""
    lines = text.splitlines()
    start = lines.index(f"| {' | '.join(head)} |")
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.req("P15")
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_exported_is_what_was_looked_at_last(target: str, tmp_path: Path) -> None:
    export(target, tmp_path)
    if os.environ.get(REGENERATE):
        shutil.rmtree(GOLDEN / target, ignore_errors=True)
        shutil.copytree(tmp_path, GOLDEN / target)
    assert _found(tmp_path) == _found(GOLDEN / target), f"if this is meant: {REGENERATE}=1 pytest {Path(__file__).name}"


@pytest.mark.req("P15")
def test_vs_code_gets_nine_definitions_three_references_one_prompt_and_an_overview() -> None:
    agents = {f".github/agents/{role.value}.agent.md" for role in NINE}
    references = {f".github/agents/{name}.md" for name in ("schemas", "dispatch-patterns", "severity-taxonomy")}
    assert len(agents) == 9
    assert set(PAGES["vscode"]) == agents | references | {".github/agents/README.md", PROMPT}
    assert PROMPT == ".github/prompts/feature-workflow.prompt.md"


@pytest.mark.req("P15")
@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_a_definition_has_the_published_sections_and_the_words_that_the_program_sends(
    role: Role, host: Host, page: Page
) -> None:
    assert headings(page.body) == SECTIONS
    assert page.body.startswith(f"# {ROLES[role].title}\n\n> **Type:** Agent definition\n")
    told = _flat(page.body)
    for line in (PROMPTS / f"{ROLES[role].prompt}.md").read_text().splitlines():
        if line and not line.startswith("#") and "{" not in line:
            assert _flat(line) in told
    assert re.search(r"\{[a-z_]+\}", page.body) is None
    assert f"(`{role.value}`)" in dict(split_sections(page.body))["Anti-Drift Anchor"]
    assert host.name in page.body


@pytest.mark.req("P15")
@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_the_table_of_tools_is_the_policy(role: Role, host: Host, page: Page) -> None:
    shown = {Tool(tool): said for tool, said, _ in _rows(page.body, "tool", "access", host.name)}
    assert shown == {tool: access(role, tool) for tool in {*MATRIX_TOOLS, *POLICIES[role].tools}}
    reach = dict(split_sections(page.body))["Tool Access"]
    for output in POLICIES[role].outputs:
        assert f"`{FOLDER}/{output}`" in reach
    for argv in POLICIES[role].programs:
        assert f"`{' '.join(argv)}`" in reach


@pytest.mark.req("P15")
@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_the_front_matter_gives_no_tool_that_the_policy_does_not(role: Role, host: Host, page: Page) -> None:
    has = POLICIES[role].tools
    named = page.head["tools"]
    tools = named if isinstance(named, list) else re.findall(r"\w+(?:\([^)]*\))?", named)
    theirs = {tool.partition("(")[0] for tool in tools}
    assert theirs == {host.tools[tool] for tool in has if tool in host.tools}
    writes = {"edit/createFile", "edit/editFiles", "Write", "Edit"}
    runs = {"execute/runInTerminal", "Bash"}
    assert bool(theirs & writes) is bool(has & {Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE})
    assert bool(theirs & runs) is (Tool.RUN_IN_TERMINAL in has)
    assert theirs.isdisjoint({"agent", "Agent"}) is (role is not Role.ORCHESTRATOR)


@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_the_orchestrator_may_start_the_other_eight_and_nobody_starts_anybody_else(
    role: Role, host: Host, page: Page
) -> None:
    started = page.head.get("agents", re.findall(r"Agent\((.*)\)", str(page.head["tools"])))
    if role is not Role.ORCHESTRATOR:
        assert started == []
        return
    names = started if host is VSCODE else started[0].split(", ")
    assert names == [other.value for other in NINE if other is not Role.ORCHESTRATOR]


def test_every_tool_of_the_published_matrix_has_a_name_in_vs_code() -> None:
    assert set(MATRIX_TOOLS) <= set(VSCODE.tools)
    assert set(MATRIX_TOOLS) - set(CLAUDE.tools) == {Tool.MEMORY}


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_a_head_is_read_back_as_it_was_meant_and_each_field_takes_one_line(page: Page) -> None:
    if not page.head:
        assert not page.text.startswith("---")
        return
    read = front_matter.parse(sealed(page))
    assert read == {**page.head, "body": page.body}
    assert sealed(page).splitlines().index("---", 1) == len(page.head) + 2


@pytest.mark.req("P15")
@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_link_leads_to_a_page_of_the_same_export(page: Page) -> None:
    every = next(pages for pages in PAGES.values() if page.path in pages)
    for link in re.findall(r"\]\(([^)]+)\)", page.body):
        assert os.path.normpath(Path(page.path).parent / link) in every


def _commands() -> dict[str, click.Command]:
    modules = {command.name: command.module for command in COMMANDS} | {"agents": "fairwitness.cli.commands.agents"}
    return {name: importlib.import_module(module).command for name, module in modules.items()}


def _said(text: str) -> Iterator[list[str]]:
    """Every command line of ours in a text."""
    for span in re.findall(r"`(fairwitness [^`]+)`", text) + re.findall(r"^(fairwitness .+)$", text, re.MULTILINE):
        yield span.split()[1:]


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_command_that_a_page_tells_to_run_exists(page: Page) -> None:
    commands = _commands()
    for words in _said(page.text):
        command = commands[words[0]]
        if isinstance(command, click.Group) and len(words) > 1:
            command = command.commands[words[1]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.req("P15")
@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_a_definition_says_that_nothing_enforces_it_and_where_evidence_comes_from(
    role: Role, host: Host, page: Page
) -> None:
    assert "> **Enforcement:** none here." in page.body
    rules = dict(split_sections(page.body))["Operating Rules"]
    assert "Nothing enforces this file." in rules
    assert "`fairwitness verify`" in rules
    spec = ROLES[role]
    if spec.is_dispatched:
        assert f"{spec.timeout_s / 60:g} minutes, {spec.turns} turns and {spec.budget.tokens:,} tokens" in _flat(rules)
    if host is CLAUDE and spec.is_dispatched:
        assert page.head["maxTurns"] == spec.turns


@pytest.mark.req("P15")
@pytest.mark.parametrize("role", [role for role in NINE if ROLES[role].answer])
def test_the_reference_names_every_field_that_a_role_returns(role: Role) -> None:
    schemas = PAGES["vscode"][".github/agents/schemas.md"].body
    answer = ROLES[role].answer
    assert answer is not None
    for contract in (answer, *ROLES[role].documents.values()):
        assert f"\n## {contract} " in schemas
        fields = [field for field in fields_of(form_of(contract, ()).schema) if "properties" not in field.node]
        for field in fields:
            assert f"`{field.way}`" in schemas
            assert f"`{field.way}`" in PAGES["vscode"][VSCODE.agent_path(role)].body or contract != answer


@pytest.mark.req("P12", "P15")
def test_every_loop_has_the_bound_that_the_rules_give_it() -> None:
    page = REFERENCES["dispatch-patterns"]()
    assert {
        loop: (int(times), counted, then)
        for loop, times, counted, then in _rows(page, "loop", "at most", "counted in", "then")
    } == {loop.value: tuple(bound) for loop, bound in bounds(Policy()).items()}


@pytest.mark.req("P15")
def test_every_way_out_of_a_step_stands_in_the_table_and_no_other() -> None:
    told = {
        (step, outcome): then
        for step, outcome, then, _ in _rows(REFERENCES["dispatch-patterns"](), "step", "outcome", "then", "because")
    }
    for (step, outcome), route in ROUTES.items():
        then = told.pop((step.value, outcome.value.replace("_", " ")), None)
        if route.to is not None:
            assert then == f"{route.action.value} to {route.to.value}"
        elif then is None:
            assert outcome == "blocker" or "cannot end this way" in route.because
    assert told == {}


@pytest.mark.req("P15")
def test_the_severities_mean_what_the_reviewer_is_told_and_do_what_the_rules_say() -> None:
    rows = _rows(
        REFERENCES["severity-taxonomy"](),
        *("severity", "means", "verdict on its category", "left open, confidence at most"),
    )
    assert [row[0] for row in rows] == list(Severity)
    assert all(VERDICT_OF[Severity(severity)] == verdict for severity, _, verdict, _ in rows)
    words = _flat((PROMPTS / "adversarial-reviewer.md").read_text())
    assert all(f"{severity.value}: {meaning}" in words for severity, meaning in MEANINGS.items())


@pytest.mark.req("P15")
def test_the_diagram_shows_every_step_and_every_loop_with_its_end() -> None:
    lines = [line.strip() for line in diagram().splitlines()]
    assert lines[0] == "flowchart TD"
    for step in Step:
        node = step.value.replace("-", "")
        assert sum(line.startswith((f"{node}[", f"{node}{{")) and f'"{step.value}: ' in line for line in lines) == 1
        assert sum(line.startswith(f"{node} --> ") for line in lines) == 1
    assert len([step for step in Step if step.value[-1].isdigit()]) == 10
    back = [line for line in lines if "revise:" in line or "replan:" in line]
    assert len(back) == sum(route.action in ("revise", "replan") for route in ROUTES.values())
    assert 'step6 -. "replan: at most 3 iterations" .-> step4' in back
    for host in (VSCODE, CLAUDE):
        assert f"```mermaid\n{diagram()}\n```" in next(
            page.body for pages in PAGES.values() if (page := pages.get(host.reference_path("README")))
        )


@pytest.mark.req("P15")
def test_documents_lie_where_the_policies_and_the_store_have_them() -> None:
    layout = FeatureLayout("login")
    values = {
        "focus": Focus.IMPACT,
        "task-id": "task-01",
        "scope": ReviewScope.CODE,
        "perspective": Perspective.SECURITY,
    }
    known = {
        layout.research(Focus.IMPACT),
        layout.spec,
        layout.design,
        layout.plan,
        layout.task("task-01"),
        layout.implementation_report("task-01"),
        layout.verification_report("task-01"),
        layout.review_verdict(ReviewScope.CODE, Perspective.SECURITY),
        layout.knowledge,
        layout.decisions,
    }
    named = set()
    for document in DOCUMENTS:
        if document.path is not None:
            (producer,) = document.producers
            assert re.sub(r"<.*>", "*", document.path) in POLICIES[producer].outputs
            named.add(f"{layout.folder}/" + re.sub(r"<([a-z-]+)>", lambda match: values[match[1]], document.path))
    assert named == known
    assert {ROLES[role].answer for role in NINE} - {None} <= {document.contract for document in DOCUMENTS}


def test_a_condition_is_written_for_every_status_an_agent_may_return_and_for_no_other() -> None:
    assert set(CONDITIONS) == {
        (agent, status) for agent, signature in SIGNATURES.items() for status in signature.statuses
    }


def test_every_parameter_of_the_nine_has_its_values() -> None:
    assert set(VALUES) == {(role, name) for role in NINE for name in ROLES[role].parameters}


def test_pages_beside_the_agents_can_be_neither_chosen_nor_started() -> None:
    for name in (*REFERENCES, "README"):
        head = PAGES["vscode"][f".github/agents/{name}.md"].head
        assert head["user-invocable"] is False
        assert head["disable-model-invocation"] is True
        assert head["tools"] == []
    # Claude Code takes whatever lies beneath its folder for an agent
    assert {Path(path).stem for path in PAGES["claude"] if path.startswith(".claude/agents/")} == {*NINE}


@pytest.mark.parametrize(("role", "host", "page"), DEFINITIONS)
def test_a_definition_is_short_enough_for_those_who_read_it(role: Role, host: Host, page: Page) -> None:
    assert len(page.body) < 30_000
    assert page.head["name"] == role.value == Path(page.path).name.removesuffix(host.ending)
    assert len(page.head["description"]) < 400


@pytest.mark.req("P15")
def test_the_skill_is_one_that_the_open_format_takes_and_is_the_same_in_both_places() -> None:
    pages = PAGES["skill"]
    for folder in FOLDERS:
        head = pages[f"{folder}/SKILL.md"].head
        assert head["name"] == Path(folder).name
        assert 1 <= len(head["description"]) <= 1024
        assert len(pages[f"{folder}/SKILL.md"].body.splitlines()) < 500
    texts = [
        {path.removeprefix(folder): page.text for path, page in pages.items() if folder in path} for folder in FOLDERS
    ]
    assert texts[0] == texts[1]
    assert len(pages) == 2 * len(texts[0])


def test_words_with_a_place_left_over_are_noticed() -> None:
    with pytest.raises(AssertionError, match="leading"):
        worded("leading", setup="step-0")
    used = {path.stem for path in WORDS.iterdir()}
    assert used == {"dispatch-patterns", "evidence", "feature-workflow", "leading", "overview"} | {
        *("rules", "schemas", "severity-taxonomy", "skill"),
    }


@pytest.mark.req("P15")
@pytest.mark.parametrize("target", TARGETS)
def test_a_second_export_changes_nothing_even_if_git_turned_the_line_ends(target: str, tmp_path: Path) -> None:
    first = export(target, tmp_path)
    assert (first.unchanged, first.kept) == ([], [])
    turned = tmp_path / first.written[0]
    turned.write_bytes(turned.read_bytes().replace(b"\n", b"\r\n"))
    before = {path: (tmp_path / path).stat().st_ino for path in first.written}
    again = export(target, tmp_path)
    assert (again.written, again.unchanged, again.kept) == ([], first.written, [])
    assert {path: (tmp_path / path).stat().st_ino for path in first.written} == before


@pytest.mark.req("P15")
def test_a_file_that_a_person_wrote_or_edited_is_kept_and_named(tmp_path: Path) -> None:
    foreign = tmp_path / ".github/agents/spec.agent.md"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("# Mine\n")
    binary = tmp_path / ".github/agents/README.md"
    binary.write_bytes(b"\xff\xfe")
    first = export("vscode", tmp_path)
    edited = tmp_path / ".github/agents/planner.agent.md"
    edited.write_text(edited.read_text().replace("You cut work", "You hack at work"))
    again = export("vscode", tmp_path)
    assert len(first.written) == 12
    assert len(again.unchanged) == 11
    assert again.written == []
    foreign_kept, edited_kept = (
        "was not written by this command and is kept; move it away to have ours written",
        "was edited after it was exported and is kept; delete it to have it written anew",
    )
    assert again.kept == [
        f".github/agents/spec.agent.md {foreign_kept}",
        f".github/agents/planner.agent.md {edited_kept}",
        f".github/agents/README.md {foreign_kept}",
    ]
    assert foreign.read_text() == "# Mine\n"
    assert binary.read_bytes() == b"\xff\xfe"
    assert "You hack at work" in edited.read_text()


@pytest.mark.req("P15")
def test_a_file_of_an_earlier_release_is_replaced(tmp_path: Path) -> None:
    path = ".github/agents/spec.agent.md"
    old = tmp_path / path
    old.parent.mkdir(parents=True)
    old.write_text(sealed(Page(path, "# As it was once\n", {"name": "spec"})))
    assert path in export("vscode", tmp_path).written
    assert old.read_text() == sealed(PAGES["vscode"][path])


def test_a_check_writes_nothing_and_says_what_would_be_written(tmp_path: Path) -> None:
    would = export("skill", tmp_path, check=True)
    assert would.written == list(PAGES["skill"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("P15")
@pytest.mark.parametrize("planted", [".github", ".github/agents", ".github/agents/verifier.agent.md"])
def test_a_planted_link_stops_the_export_before_anything_is_written(planted: str, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    link = inside / planted
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "file" if planted.endswith(".md") else outside)
    with pytest.raises(UnsafePath):
        export("vscode", inside)
    assert _found(outside) == {"file": "theirs"}
    assert [path for path in inside.rglob("*") if path.is_file() and not path.is_symlink()] == []


def test_a_target_that_is_not_there_is_refused_and_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'emacs'"):
        export("emacs", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    written = export("claude", tmp_path / "new").written
    assert sorted(_found(tmp_path / "new")) == sorted(written)


_SEALED = [sealed(page) for pages in PAGES.values() for page in pages.values()]


@given(text=st.sampled_from(_SEALED), data=st.data())
def test_no_edit_of_any_place_goes_unnoticed(text: str, data: st.DataObject) -> None:
    assert is_untouched(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    new = data.draw(st.text(max_size=10))
    changed = text[:start] + new + text[end:]
    assert is_untouched(changed) is (changed == text)
