"""The texts of requirements are found under their ids, in the ways in which people write specifications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.rules.requirement_texts import LONGEST, requirement_texts

pytestmark = pytest.mark.req("A2")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("- **REQ-01**: It starts in a second.", id="item"),
        pytest.param("- [ ] **REQ-01** – It starts in\n  a second.\n- REQ-02: no", id="box, over two lines"),
        pytest.param("* `REQ-01` It starts in a second.", id="code"),
        pytest.param("1. REQ-01: It starts\n   in a second.\n\nMore.", id="numbered"),
        pytest.param("### REQ-01\n\nIt starts in a second.\n\nWhy: because.", id="heading"),
        pytest.param("### [REQ-01] It starts in a second.\n## Next", id="heading with text"),
        pytest.param("| REQ-01 | It starts in a second. |\n| REQ-02 | no |", id="table"),
        pytest.param("REQ-01: It starts in a second.", id="line"),
        pytest.param("REQ-012: no\nREQ-01-B: no\n\nREQ-01: It starts in a second.", id="longer ids are others"),
        pytest.param("```\nREQ-01: no\n```\nREQ-01: It starts in a second.", id="an example is none"),
        pytest.param("REQ-01:\n\n## Next\n\n- REQ-01: It starts in a second.", id="the first text counts"),
        pytest.param("### REQ-01\n- It starts in a second.\n- REQ-02: no", id="a list under a heading"),
        pytest.param("REQ-01: It starts in a second.\nREQ-2: no", id="the next line is another's"),
    ],
)
def test_a_description_is_found(spec: str) -> None:
    found = requirement_texts([spec], ["REQ-01"])
    assert found == {"REQ-01": found["REQ-01"]}
    assert found["REQ-01"].removeprefix("- ") == "It starts in a second."


def test_the_first_specification_counts_and_what_is_nowhere_is_left_out() -> None:
    assert requirement_texts(["A1: one", "A1: two\n\nA2: three", "\x00"], ["A1", "A2", "A3"]) == {
        "A1": "one",
        "A2": "three",
    }


def test_a_line_that_starts_with_another_word_with_a_number_goes_on() -> None:
    assert requirement_texts(["A1: sums are of\nsha256 and\nutf8 only"], ["A1"]) == {
        "A1": "sums are of sha256 and utf8 only"
    }


def test_a_long_text_is_cut() -> None:
    assert len(requirement_texts([f"A1: {'x' * 3000}"], ["A1"])["A1"]) == LONGEST


@given(st.text(alphabet="A1-: \n|#*`[]x", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for found in requirement_texts([text], ["A1", "A-1"]).values():
        assert found.strip()
        assert len(found.splitlines()) == 1
