"""What a prompt promises is in the brief: in every dispatch of the recorded runs, and in every trial of a role."""

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS
from fairwitness.agents.roles import ROLES
from fairwitness.app.agents.trial import brief_of
from fairwitness.app.assembly.agent_choice import instance_of
from fairwitness.contracts.common.tools import Role
from support.fixtures import ROOT
from support.promises import broken, holds, promises, prompts_in, sections_of

DISPATCHED = [role for role, spec in ROLES.items() if spec.is_dispatched]
RUNS = ROOT / "src" / "fairwitness" / "runs"
NO_WORKFLOW = {Role.QUESTIONING}
"""No workflow calls it; it can be tried."""


@pytest.mark.parametrize("role", DISPATCHED)
def test_a_trial_keeps_every_promise(role: Role) -> None:
    spec = ROLES[role]
    brief = brief_of(spec, instance_of(spec, None), run_id="run", dispatch_id="try-1", moment="2026-02-26T14:30:00Z")
    assert promises(role)
    assert broken(role, {section.title: section.text for section in brief.inputs}) == []


@pytest.mark.parametrize("role", sorted(set(DISPATCHED) - NO_WORKFLOW))
def test_a_section_that_is_promised_for_some_cases_is_one_that_a_brief_can_have(role: Role) -> None:
    source = "\n".join(path.read_text() for path in sorted(RUNS.rglob("*.py")))
    unknown = [
        title
        for promise in promises(role)
        for title in promise.titles
        if f'"{title}' not in source and not title.startswith("Research: ")
    ]
    assert unknown == []


@pytest.fixture(
    scope="module",
    params=[
        "",
        *(pytest.param(flag, marks=pytest.mark.width("sweep")) for flag in ("--light", "--forge", "--autopilot")),
    ],
)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Role, list[str]]:
    """The prompts of each role in a recorded run."""
    place: Path = tmp_path_factory.mktemp("demo") / "d"
    words = [FAIRWITNESS, "demo", "--dir", str(place), "--plain", *filter(None, [request.param])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, 4), done.stderr
    found = defaultdict(list)
    for role, prompt in prompts_in(place):
        found[role].append(prompt)
    return found


@pytest.mark.req("P15", "A3", "F8")
def test_every_dispatch_of_a_recorded_run_gets_what_its_prompt_promises(told: dict[Role, list[str]]) -> None:
    assert len(told) >= 5
    for role, prompts in told.items():
        for prompt in prompts:
            assert broken(role, sections_of(prompt)) == [], (role, list(sections_of(prompt)))


_HAD = {
    Role.SPEC: ("Concerns about the request", "Research: impact"),
    Role.REVIEWER: ("The request", "The specification", "The change", "The design", "Findings"),
    Role.VERIFIER: ("The change", "What the program ran"),
    Role.KNOWLEDGE: ("The specification", "The design", "The plan"),
    Role.JUDGE: ("The change", "The plan"),
    Role.REFINERY: ("Walkthrough of",),
}


def test_sections_that_were_missing_are_there(told: dict[Role, list[str]]) -> None:
    for role, titles in _HAD.items():
        for title in titles if role in told else ():
            assert any(holds(sections_of(prompt), title) for prompt in told[role]), (role, title)
