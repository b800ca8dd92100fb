"""PLAN.md shows the tasks as they were planned, in elements that no text can leave."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.plan import PlanCriterion, PlanTask, TaskKind
from fairwitness.contracts.autopilot.returns import PlannerReturn
from fairwitness.contracts.autopilot.vocabulary import Complexity
from fairwitness.runs.autopilot.pages_phase import plan_page, task_element
from runs.autopilot.written import PHASE, phase, plan_task, planner
from runs.feature.markdown_reader import HOSTILE, seen

_TASK = re.compile(r"^<task id=\"([^\"]+)\" type=\"([^\"]+)\" complexity=\"([^\"]+)\">$(.*?)^</task>$", re.M | re.S)
_PART = re.compile(r"^  <(\w+)>\n(.*?)^  </\1>$", re.M | re.S)


def _read(page: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """The tasks of a page, as any reader of elements would find them."""
    return [
        (name, kind, complexity, {part: _text(inside) for part, inside in _PART.findall(body)})
        for name, kind, complexity, body in _TASK.findall(page)
    ]


def _text(inside: str) -> str:
    lines = "\n".join(line.removeprefix("    ") for line in inside.split("\n"))
    return lines.strip().replace("&lt;", "<").replace("&amp;", "&")


@pytest.mark.req("A6")
def test_a_plan_for_people() -> None:
    tasks = (
        plan_task(),
        plan_task(2, kind=TaskKind.HUMAN_VERIFY, complexity=Complexity.COMPLEX, requirements=("REQ-01", "REQ-09")),
    )
    page = plan_page(PHASE, ("REQ-01", "REQ-02"), tasks, planner(total_tasks=2, waves=2))
    assert page == snapshot("""\
# Plan of phase 5: Line numbers

Rendered by Fair Witness from what the planner wrote.

A task is done when the command of every criterion passes, not when an agent says so.

2 tasks in 2 waves; the planner calls the phase medium.

## Wave 1

### Task 05-01

Test script: `.planning/phases/5/tests/task-05-01.sh`

```xml
<task id="05-01" type="auto" complexity="simple">
  <files>
    src/token.py
  </files>
  <action>
    Carry the line in the token.
    Leave the order alone.
  </action>
  <verify>
    - Tokens carry lines -- verified by: `grep -n 'line: int' src/token.py 2>&1 && true`
  </verify>
  <done>
    A token knows its line.
  </done>
</task>
```

## Wave 2

### Task 05-02

Test script: `.planning/phases/5/tests/task-05-02.sh`

```xml
<task id="05-02" type="checkpoint:human-verify" complexity="complex">
  <files>
    src/token.py
  </files>
  <action>
    Carry the line in the token.
    Leave the order alone.
  </action>
  <verify>
    - Tokens carry lines -- verified by: `grep -n 'line: int' src/token.py 2>&1 && true`
  </verify>
  <done>
    A token knows its line.
  </done>
</task>
```

## Traceability

| Requirement | Tasks | Of the phase |
| --- | --- | --- |
| REQ-01 | `05-01`, `05-02` | yes |
| REQ-02 | **no task** | yes |
| REQ-09 | `05-02` | no, only the plan names it |

## Dependencies between plans

- plan 02 after plan 01

## Concerns of the planner

None were named.
""")


@pytest.mark.req("A6")
def test_a_plan_that_was_counted_otherwise_says_both_numbers() -> None:
    page = plan_page(PHASE, (), (plan_task(requirements=()),), planner(total_tasks=6, waves=2))
    assert "1 task in 1 wave;" in page
    assert "**The planner counted otherwise:** 6 tasks in 2 waves." in page
    assert "The phase has no requirements, and the plan names none." in page


@pytest.mark.req("A6")
def test_a_task_is_found_again_as_it_was_planned() -> None:
    task = plan_task(action="Use `<b>` &amp; &lt;task&gt; </task>\n  and\n\n<verify> no more", done="a < b && c > d")
    [(name, kind, complexity, parts)] = _read(plan_page(PHASE, (), (task,), planner()))
    assert (name, kind, complexity) == (task.id, "auto", "simple")
    assert parts == {
        "files": "src/token.py",
        "action": task.action,
        "verify": "- Tokens carry lines -- verified by: `grep -n 'line: int' src/token.py 2>&1 && true`",
        "done": task.done,
    }
    assert html.unescape(str(task_element(task))).count("&amp;") == 1


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo `date`", "`` echo `date` ``"),
        ("cat <<E\nx\nE", "`cat <<E\\nx\\nE`"),
        ("printf '\x1b[2J'", "`printf '\\x1b[2J'`"),
        ("echo '</verify>'", "`echo '&lt;/verify>'`"),
    ],
)
def test_a_command_stays_in_its_line(command: str, shown: str) -> None:
    task = plan_task(criteria=(PlanCriterion(criterion="It\nholds", command=command),))
    assert f"    - It holds -- verified by: {shown}\n" in task_element(task)


TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from([*"<>/&;`#|-= \n\t\r", "task", "verify", "```", "lt", "amp", "\x1b"]), max_size=30).map(
        "".join
    ),
)


@pytest.mark.req("A6")
@given(TEXTS, TEXTS)
@settings(max_examples=200)
def test_no_text_leaves_its_element_or_the_page(one: str, other: str) -> None:
    criterion = PlanCriterion.model_construct(criterion=one, command=other)
    tasks = [
        PlanTask.model_construct(
            **dict(plan_task(number)) | {"action": one, "done": other, "criteria": (criterion,), "requirements": (one,)}
        )
        for number in (1, 2)
    ]
    said = PlannerReturn.model_construct(
        plans_created=1, waves=2, total_tasks=2, complexity=Complexity.SIMPLE, dependencies=(one,), concerns=(other,)
    )
    page = plan_page(phase(other), (one,), tasks, said)
    assert [(task[0], sorted(task[3])) for task in _read(page)] == [
        ("05-01", ["action", "done", "files", "verify"]),
        ("05-02", ["action", "done", "files", "verify"]),
    ]
    rendered = seen(page)
    assert rendered.headings[1:] == (
        "## Wave 1",
        "### Task 05-01",
        "## Wave 2",
        "### Task 05-02",
        "## Traceability",
        "## Dependencies between plans",
        "## Concerns of the planner",
    )
    assert rendered.tables == ((3, 3),)
