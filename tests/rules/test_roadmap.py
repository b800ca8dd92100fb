"""The roadmap as text: what is read, every problem with its line, ranges of phases, and texts that mean harm."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.roadmap import Roadmap
from fairwitness.contracts.common.problems import Problem, ProblemLevel, spell_path
from fairwitness.rules.markdown_lines import MOST_SIGNS
from fairwitness.rules.phases import read_range
from fairwitness.rules.roadmap import ROADMAP_TEMPLATE, read_roadmap
from rules.roadmap_texts import chained, listed, phase_text, roadmaps, written

GENERATED = settings(max_examples=100)
PIECES = st.sampled_from(
    [
        *(
            "- [ ] **Phase 1: a**",
            "- [x] **Phase 2: b**",
            "### Phase 1: a",
            "### Phase 2: b",
            "## Phases",
            "```",
            "<!--",
        ),
        *("**Goal**: x", "Goal: y", "**Depends on**: Phase 1", "**Depends on:** Nothing", "**Type**: ui", "-->", "~~~"),
        *(
            "**Success Criteria**:",
            "1. it runs",
            "  - verified by `make`",
            "2.",
            "- [ ] x",
            "**Requirements**: A1, [",
            "",
        ),
        *(
            "\ttext",
            "    # Phase 9: c",
            "**Plans**:",
            "---",
            "\0",
            "Phase ٣",
            "- [?] **Phase 3: c**",
            "`",
            "(",
            "| a |",
        ),
    ]
)


def _said(problems: tuple[Problem, ...]) -> list[str]:
    return [
        f"{spell_path(problem.where)}: {'(warning) ' if problem.level is ProblemLevel.WARNING else ''}"
        f"{problem.expected} | {problem.found}"
        for problem in problems
    ]


def _roadmap(text: str) -> Roadmap:
    reading = read_roadmap(text)
    assert reading.roadmap is not None, _said(reading.problems)
    return reading.roadmap


def _one(**fields: str) -> str:
    return listed("1") + phase_text("1", **fields)


@pytest.mark.req("A2")
def test_a_roadmap_says_all_of_its_phases_in_the_order_of_numbers() -> None:
    text = """\
# Roadmap: a shop

## Phases

- [ ] **Phase 10: Last** - the end
- [x] **Phase 1: Sign in** - who is there
- [ ] **Phase 1.1: Sign out**

## Phase Details

### Phase 1: Sign in
**Goal**: People can
sign in
**Type**: ui
**Depends on**: Nothing (first phase)
**Requirements**: [AUTH-01, AUTH-02 (by mail, at first)]
**Success Criteria** (what must be TRUE):
  1. The page shows a form, verified by `curl -f  localhost`.
  2. A wrong password is told
     - in words
     - verified by: ``grep '`' page``
**Plans**: 2 plans

Plans:
- [ ] 01-01: the form

### Phase 1.1: Sign out (INSERTED)
**Goal:** **People** can leave
**Depends on:** 1
**Requirements**:
- **AUTH-03**: a button
- [ ] AUTH-04
**Success Criteria:** (what must be true)
- [x] The session ends

  within a second

A remark that belongs to no criterion,
in two lines.

- Nothing is left

## Phase 10: Last
Goal: [To be planned]
Depends on:
- Phase 1.1 (needs [all] of it), Phase 1
- Phase 01
Requirements: TBD
Success Criteria: People come back

## Progress

| Phase | Status |
"""
    reading = read_roadmap(text)
    assert _said(reading.problems) == []
    assert reading.roadmap is not None
    assert reading.roadmap.plain()["phases"] == snapshot(
        [
            {
                "id": "1",
                "name": "Sign in",
                "type": "ui",
                "depends_on": [],
                "goal": "People can sign in",
                "requirements": [{"id": "AUTH-01"}, {"id": "AUTH-02", "text": "by mail, at first"}],
                "criteria": [
                    {"text": "The page shows a form", "command": "curl -f  localhost"},
                    {"text": "A wrong password is told; in words", "command": "grep '`' page"},
                ],
                "done": True,
            },
            {
                "id": "1.1",
                "name": "Sign out",
                "type": "mixed",
                "depends_on": ["1"],
                "goal": "**People** can leave",
                "requirements": [{"id": "AUTH-03", "text": "a button"}, {"id": "AUTH-04"}],
                "criteria": [
                    {"text": "The session ends within a second", "command": None},
                    {"text": "Nothing is left", "command": None},
                ],
                "done": False,
            },
            {
                "id": "10",
                "name": "Last",
                "type": "mixed",
                "depends_on": ["1.1", "1"],
                "goal": "[To be planned]",
                "requirements": [],
                "criteria": [{"text": "People come back", "command": None}],
                "done": False,
            },
        ]
    )


@pytest.mark.req("A2")
@GENERATED
@given(roadmaps())
def test_what_is_written_is_what_is_read(roadmap: Roadmap) -> None:
    reading = read_roadmap(written(roadmap))
    assert reading.roadmap == roadmap
    assert all(problem.level is ProblemLevel.WARNING for problem in reading.problems)
    assert read_roadmap(written(roadmap).replace("\n", "\r\n")).roadmap == roadmap


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("said", "depends_on", "problems"),
    [
        ("Phase 2 (independent)", (), 1),
        ("Phase N-1 (independent)", (), 1),
        ("Phase 2 [Independent of it]", (), 1),
        ("Phase 2 (not independent)", ("2",), 0),
        ("Phase 2 (uses its tables, mostly), Phase 3", ("2", "3"), 0),
        ("Phase 2, Phase 3 (independent)", ("2",), 1),
        ("Nothing", (), 0),
        ("None (independent)", (), 1),
        ("Independent.", (), 0),
        ("n/a", (), 0),
        ("phase 02, 3, Phase 2", ("2", "3"), 0),
        ("[Phase 2, Phase 3]", ("2", "3"), 0),
    ],
)
def test_a_phase_called_independent_waits_for_nothing(said: str, depends_on: tuple[str, ...], problems: int) -> None:
    reading = read_roadmap(chained(p1=said, p2="Nothing", p3="Nothing"))
    assert reading.roadmap is not None
    assert reading.roadmap.phases[0].depends_on == depends_on
    assert [problem.level for problem in reading.problems] == [ProblemLevel.WARNING] * problems


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    "said", ["Phase 2-3", "Phase N-1", "Phases 2", "Phase 2 and Phase 3", "Nothing, Phase 2", "TBD", ""]
)
def test_a_dependency_that_can_be_read_in_two_ways_is_refused(said: str) -> None:
    reading = read_roadmap(chained(p1=said, p2="Nothing", p3="Nothing"))
    assert reading.roadmap is None
    assert [spell_path(problem.where) for problem in reading.problems] == ["line 6"]


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", snapshot(["line 1: at least one phase: - [ ] **Phase 1: name** | none"])),
        ("# A text\n\nabout nothing\n", snapshot(["line 1: at least one phase: - [ ] **Phase 1: name** | none"])),
        (chained(p1="Phase 7"), snapshot(["line 4: a phase of the roadmap | Phase 7"])),
        (
            chained(p1="Phase 3", p2="Nothing", p3="Phase 1"),
            snapshot(["line 6: phases that do not wait for each other in a ring | 1 → 3 → 1"]),
        ),
        (chained(p1="Phase 1"), snapshot(["line 4: phases that do not wait for each other in a ring | 1 → 1"])),
        (listed("1", "1") + phase_text("1"), snapshot(["line 2: one line for phase 1 | another after line 1"])),
        (
            listed("1") + phase_text("1") + phase_text("01"),
            snapshot(["line 8: one heading for phase 1 | another after line 2"]),
        ),
        (
            listed("1", "2") + phase_text("1"),
            snapshot(['line 2: a heading "### Phase 2: name 2" with its details | none']),
        ),
        (
            listed("1") + phase_text("1") + phase_text("2"),
            snapshot(['line 8: a list line "- [ ] **Phase 2: name 2**" | none']),
        ),
        (
            _one(criteria="**Success Criteria**:\n1. it runs\n2.\n3. verified by `make`\n4. x, verified by ` `"),
            snapshot(
                [
                    "line 7: a criterion with a text | nothing",
                    "line 8: a criterion with a text | verified by `make`",
                    "line 9: a command between the backticks | x, verified by ` `",
                ]
            ),
        ),
        (
            _one(criteria="**Success Criteria**:\n1. x, verified by `"),
            snapshot(["line 6: a command between the backticks | x, verified by `"]),
        ),
        (_one(criteria="**Success Criteria**:"), snapshot(["line 5: a list of at least one criterion | nothing"])),
        (
            _one(criteria="**Success Criteria**: TBD"),
            snapshot(["line 5: (warning) criteria, before the phase is run | TBD"]),
        ),
        (
            _one(criteria="**Success Criteria**:\n1. verified by a look\n2. unverified by `make`"),
            snapshot(
                [
                    "line 6: (warning) the command in backticks at the very end | verified by a look",
                    "line 7: (warning) the command in backticks at the very end | unverified by `make`",
                ]
            ),
        ),
        (
            _one(criteria="", goal="", depends=""),
            snapshot(
                [
                    "line 2: a line **Goal**: under the heading | none",
                    "line 2: a line **Depends on**: under the heading | none",
                    "line 2: a line **Success Criteria**: under the heading | none",
                ]
            ),
        ),
        (_one(goal="**Goal**:"), snapshot(["line 3: what the phase is for | nothing"])),
        (_one(more="**Goal**: another"), snapshot(['line 7: "goal" once in a phase | another after line 3'])),
        (_one(more="**Type**: backend"), snapshot(["line 7: one of ui, protocol, data, mixed | backend"])),
        (
            _one(more="**Requirements**: all of them, A1, A1, ,"),
            snapshot(
                [
                    "line 7: an id such as REQ-01, and then what it asks for | all of them",
                    "line 7: each requirement once | A1",
                    "line 7: an id such as REQ-01, and then what it asks for | nothing",
                    "line 7: an id such as REQ-01, and then what it asks for | nothing",
                ]
            ),
        ),
        (
            "- [?] **Phase 1: a**\n- [] **Phase 2: b**\n- **Phase 3: c**",
            snapshot(
                [
                    "line 1: a box, [ ] or [x], before the phase's name | - [?] **Phase 1: a**",
                    'line 1: a heading "### Phase 1: a" with its details | none',
                    "line 2: a box, [ ] or [x], before the phase's name | - [] **Phase 2: b**",
                    'line 2: a heading "### Phase 2: b" with its details | none',
                    "line 3: a box, [ ] or [x], before the phase's name | - **Phase 3: c**",
                    'line 3: a heading "### Phase 3: c" with its details | none',
                ]
            ),
        ),
        (
            "- [ ] **Phase 6a: a**\n- [ ] **Phase N: b**\n- [ ] **Phase 1**: c\n- [ ] **Phase two**",
            snapshot(
                [
                    'line 1: "Phase 6: name" or "Phase 6.1: name" | Phase 6a: a',
                    'line 2: "Phase 6: name" or "Phase 6.1: name" | Phase N: b',
                    'line 3: "Phase 6: name" or "Phase 6.1: name" | Phase 1',
                    'line 4: "Phase 6: name" or "Phase 6.1: name" | Phase two',
                ]
            ),
        ),
        (
            "- [ ] Phase 1: a\n- [ ] **Phase 2: b\n- **Bold** words\n- [ ] **other** words",
            snapshot(
                [
                    'line 1: bold letters: "**Phase 6: name**" | - [ ] Phase 1: a',
                    'line 1: a heading "### Phase 1: a" with its details | none',
                    'line 2: bold letters: "**Phase 6: name**" | - [ ] **Phase 2: b',
                    'line 2: a heading "### Phase 2: b" with its details | none',
                ]
            ),
        ),
        (
            "### Phase ٣: a\n### Phase 1\n### Phase : b\n## Phase Details\n",
            snapshot(
                [
                    'line 1: "Phase 6: name" or "Phase 6.1: name" | Phase ٣: a',
                    'line 2: "Phase 6: name" or "Phase 6.1: name" | Phase 1',
                    'line 3: "Phase 6: name" or "Phase 6.1: name" | Phase : b',
                ]
            ),
        ),
        (
            listed("1") + phase_text("1").replace("name 1", "another"),
            snapshot(["line 2: (warning) the name of line 1, name 1 | another"]),
        ),
    ],
)
def test_each_mistake_is_one_clear_problem_with_its_line(text: str, said: list[str]) -> None:
    reading = read_roadmap(text)
    assert _said(reading.problems) == said
    assert (reading.roadmap is None) == any(problem.level is ProblemLevel.ERROR for problem in reading.problems)


@pytest.mark.req("A2")
def test_nothing_inside_a_code_block_or_a_comment_is_a_phase() -> None:
    hidden = "### Phase 2: b\n- [ ] **Phase 3: c**\n**Goal**: x\n"
    text = "\n".join(
        (
            listed("1"),
            f"```text\n{hidden}```",
            f"- ~~~~\n~~~\n{hidden}~~~~~",
            f"<!--\n{hidden}-->\n<!-- ### Phase 4: d -->",
            "    ### Phase 5: e",
            phase_text("1", more=f"```\n{hidden}```\n```not a block```\n#### A remark\n- [ ] Phase 9: any\n"),
        )
    )
    assert [phase.id for phase in _roadmap(text).phases] == ["1"]


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x\n```\n" + listed("1"), "line 2: a code block that is closed by ``` | the end of the text"),
        ("<!--\n" + listed("1"), "line 1: a comment that is closed by --> | the end of the text"),
        (listed("1") + "\0\1\2", "line 2: plain text | the character U+0000"),
        ("a\r\nb\u202ec", "line 2: plain text | the character U+202E"),
        ("\udcff", "line 1: plain text | the character U+DCFF"),
        ("a\u2028b", "line 1: plain text | the character U+2028"),
        ("x" * (MOST_SIGNS + 1), "line 1: at most 1000000 characters | 1000001 characters"),
    ],
)
def test_a_text_that_cannot_be_read_to_its_end_is_refused(text: str, said: str) -> None:
    assert _said(read_roadmap(text).problems) == [said]
    assert read_roadmap(text).roadmap is None


@pytest.mark.req("A2")
def test_tabs_byte_order_marks_and_other_line_ends_change_nothing() -> None:
    text = chained(p1="Nothing", p2="Phase 1")
    odd = "\ufeff" + text.replace("- [ ] ", "-\t[ ]\t").replace(": ", ":\t").replace("1. ", "\t1.\t").replace(
        "\n", "\r"
    )
    assert _roadmap(odd) == _roadmap(text)


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    "text",
    [
        _one(criteria="**Success Criteria**:\n1. a\n" + "x\n" * 100_000),
        _one(criteria="**Success Criteria**:\n1. a " + "`" * 900_000),
        _one(depends="**Depends on**: " + "Phase 1, " * 100_000),
        _one(goal="**Goal**:" + " " * 900_000),
        "#" * 900_000,
        "- [ ] **Phase 1: " * 50_000,
        "*" * 900_000,
        listed("1") * 20_000,
    ],
)
def test_a_huge_text_is_answered_soon(text: str) -> None:
    assert len(read_roadmap(text).problems) <= 501


@pytest.mark.req("A2")
@GENERATED
@given(st.lists(PIECES, max_size=25).map("\n".join) | st.text(max_size=200))
def test_any_text_is_a_roadmap_or_has_a_problem_in_one_of_its_lines(text: str) -> None:
    reading = read_roadmap(text)
    refused = [problem for problem in reading.problems if problem.level is ProblemLevel.ERROR]
    assert (reading.roadmap is None) == bool(refused)
    lines = [int(str(problem.where[0]).removeprefix("line ")) for problem in reading.problems]
    assert lines == sorted(lines)
    assert all(1 <= line <= text.count("\n") + text.count("\r") + 1 for line in lines)


@pytest.mark.req("A2")
def test_the_template_is_a_roadmap_without_a_single_remark() -> None:
    reading = read_roadmap(ROADMAP_TEMPLATE)
    assert reading.problems == ()
    assert reading.roadmap is not None
    assert [(phase.id, phase.depends_on, phase.done) for phase in reading.roadmap.phases] == [
        ("1", (), False),
        ("2", ("1",), False),
    ]
    assert "independent" not in ROADMAP_TEMPLATE.casefold()


SHOP = chained(
    p1="Nothing", p2="Phase 6", p3="Phase 1", p6="Phase 3", p6_1="Nothing", p6_10="6.1", p7="2", p7_1="Nothing"
)


@pytest.mark.req("A11")
@pytest.mark.parametrize(
    ("text", "finished", "left", "done"),
    [
        ("all", set(), "1 3 6 2 6.1 6.10 7 7.1", ""),
        (" ALL ", {"1", "6.1", "99"}, "3 6 2 6.10 7 7.1", "1 6.1"),
        ("2-7", set(), "3 6 2 6.1 6.10 7", ""),
        ("6.1-7", {"7"}, "6.1 6.10", "7"),
        ("7, 1,2", {"2"}, "1 7", "2"),
        ("1-3,3,06.1", set(), "1 3 2 6.1", ""),
        ("6.1", set(), "6.1", ""),
        ("6-6", {"6"}, "", "6"),
        ("next", set(), "1", ""),
        ("next", {"1", "3"}, "6", ""),
    ],
)
def test_a_range_names_phases_in_the_order_they_run(text: str, finished: set[str], left: str, done: str) -> None:
    reading = read_range(text, _roadmap(SHOP), finished)
    assert reading.problems == ()
    assert reading.selection is not None
    assert (" ".join(reading.selection.open), " ".join(reading.selection.finished)) == (left, done)


@pytest.mark.req("A11")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4", ["a phase of the roadmap | 4"]),
        ("1,5,4-8", [f"a phase of the roadmap | {one}" for one in "548"]),
        ("7-2", ["a range from the lower to the higher phase | 7-2"]),
        *(
            (text, None)
            for text in ("", ",", "1,", "-3", "3-", "1-2-3", "٣", "6a", "1e3", "resume", "3–7", "1..3", "all,1")
        ),
        ("next 3", ["phases such as 3-7, 3,5,8 or 6.1, or one of the words all and next | next 3"]),
        ("1," * 501, ["at most 1000 characters | 1002 characters"]),
        ("x" * 200, [f"phases such as 3-7, 3,5,8 or 6.1, or one of the words all and next | {'x' * 117}..."]),
    ],
)
def test_a_range_of_unknown_phases_or_nonsense_is_refused(text: str, said: list[str] | None) -> None:
    reading = read_range(text, _roadmap(SHOP), set())
    assert reading.selection is None
    assert reading.problems
    assert all(problem.where == ("range",) for problem in reading.problems)
    if said is not None:
        assert [f"{problem.expected} | {problem.found}" for problem in reading.problems] == said


@pytest.mark.req("A11")
def test_there_is_no_next_phase_when_all_are_finished() -> None:
    roadmap = _roadmap(SHOP)
    reading = read_range("next", roadmap, {phase.id for phase in roadmap.phases})
    assert reading.selection is None
    assert [problem.found for problem in reading.problems] == ["all phases are finished"]


@pytest.mark.req("A11")
@GENERATED
@given(roadmaps(), st.sets(st.integers(0, 5)), st.text(max_size=20))
def test_any_range_is_a_selection_or_a_problem(roadmap: Roadmap, places: set[int], text: str) -> None:
    finished = {phase.id for place, phase in enumerate(roadmap.phases) if place in places}
    reading = read_range(text, roadmap, finished)
    assert (reading.selection is None) == bool(reading.problems)
    everything = read_range("all", roadmap, finished).selection
    assert everything is not None
    assert {*everything.open, *everything.finished} == {phase.id for phase in roadmap.phases}
    following = read_range("next", roadmap, finished).selection
    assert (following is None) == (everything.open == ())
    if following is not None:
        assert following.open == everything.open[:1]
