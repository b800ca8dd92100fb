"""Sections of a debug session keep their rules, whatever an agent writes."""

from pathlib import Path

import pytest

from fairwitness.errors import Immutable
from fairwitness.store.artifacts import Broken, Policy, SectionRule, Store, check_sections, debug_policy

OLD = """---
status: investigating
trigger: "it broke"
---

## Current Focus
<!-- the present -->

hypothesis: one

## Symptoms

expected: a
actual: b

## Eliminated

- hypothesis: zero
  evidence: none

## Evidence

- checked: x
  found: y

## Resolution

root_cause:
"""
DEBUG = debug_policy(gathering=False)
FENCED = "```text\n## Symptoms\nnot a heading\n```"


def broken(new: str, old: str = OLD, policy: Policy = DEBUG) -> dict[str, str]:
    return {one.section: one.reason for one in check_sections(old, new, policy)}


@pytest.mark.req("A17")
@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("status: investigating", "status: fixing"),
        ("hypothesis: one", "hypothesis: two\ntest: how"),
        ("hypothesis: one", FENCED),
        ("hypothesis: one", "~~~\n## Evidence\n```\n~~~"),
        ("  found: y\n", "  found: y\n\n- checked: z\n  found: w\n"),
        ("  found: y\n", f"  found: y\n- found:\n{FENCED}\n"),
        ("root_cause:", "root_cause: found"),
        ("actual: b\n", "actual: b\n\n\n"),
        ("trigger:", "## a comment in the front matter\ntrigger:"),
    ],
)
def test_a_change_that_the_rules_allow_is_no_break(was: str, becomes: str) -> None:
    assert broken(OLD.replace(was, becomes, 1)) == {}


@pytest.mark.req("A17")
@pytest.mark.parametrize(
    ("was", "becomes", "breaks"),
    [
        ("actual: b", "actual: c", {"Symptoms": "must stay as it is"}),
        ("actual: b", "actual: b\nerrors: none", {"Symptoms": "must stay as it is"}),
        ("- hypothesis: zero\n  evidence: none", "", {"Eliminated": "may only grow at its end"}),
        ("- checked: x", "- checked: w\n- checked: x", {"Evidence": "may only grow at its end"}),
        ("  found: y", "  found: y, or not", {"Evidence": "may only grow at its end"}),
        ("## Symptoms\n\nexpected: a\nactual: b\n", "", {"Symptoms": "is gone"}),
        ("## Symptoms", "## symptoms", {"symptoms": "is not one of this file's", "Symptoms": "is gone"}),
        ("## Resolution", "## Notes\n\n## Resolution", {"Notes": "is not one of this file's"}),
        (
            "hypothesis: one",
            "```\nnever closed",
            dict.fromkeys(("Symptoms", "Eliminated", "Evidence", "Resolution"), "is gone"),
        ),
        (
            "root_cause:",
            "## Evidence\n\n- checked: x\n  found: y",
            {"Evidence": "appears twice"},
        ),
    ],
)
def test_a_change_against_the_rules_names_its_section(was: str, becomes: str, breaks: dict[str, str]) -> None:
    assert broken(OLD.replace(was, becomes, 1)) == breaks


@pytest.mark.req("A17")
def test_sections_keep_their_order() -> None:
    first, *middle, last = OLD.split("\n## ")
    swapped = "\n## ".join([first, *middle[:2], middle[3], middle[2], last])
    assert broken(swapped) == {"Eliminated": "changed its place", "Evidence": "changed its place"}


@pytest.mark.req("A17")
def test_symptoms_may_change_only_while_they_are_gathered() -> None:
    new = OLD.replace("actual: b", "actual: c")
    assert broken(new, policy=debug_policy(gathering=True)) == {}
    assert list(broken(new, policy=debug_policy(gathering=False))) == ["Symptoms"]


def test_a_new_file_may_have_all_sections_of_its_policy_and_no_others() -> None:
    assert broken(OLD, old="") == {}
    assert broken(OLD + "\n## More\n", old="") == {"More": "is not one of this file's"}


def test_a_section_without_a_rule_must_stay() -> None:
    old = "## Odd\n\nx\n"
    assert broken(old, old) == {}
    assert broken("## Odd\n\ny\n", old) == {"Odd": "must stay as it is"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("## A\n### B\n#### C\n# D\n##E\n    ## F\n", ["A"]),
        ("   ## A ##\n##\tB\r\n", ["A", "B"]),
        ("````\n## A\n```\n## B\n````\n## C\n", ["C"]),
        ("``` not ` a fence\n## A\n", ["A"]),
        ("---\nno end\n## A\n", ["A"]),
        ("", []),
    ],
)
def test_headings_are_found_as_markdown_has_them(text: str, names: list[str]) -> None:
    missing = check_sections(text, "", {})
    assert missing == [Broken(name, "is gone") for name in names]


@pytest.mark.req("A17")
def test_the_store_refuses_the_write_and_names_every_broken_section(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = ".planning/debug/it-broke.md"
    first = store.put_sections(path, OLD, DEBUG)
    assert store.get(path, sha256=first.sha256) == OLD.encode()
    with pytest.raises(Immutable) as caught:
        store.put_sections(path, OLD.replace("actual: b", "actual: c").replace("found: y", "found: z"), DEBUG)
    assert "'Symptoms' must stay" in caught.value.what
    assert "'Evidence' may only grow" in caught.value.what
    assert store.get(path) == OLD.encode()
    store.put_sections(path, OLD.replace("found: y\n", "found: y\n- checked: z\n"), DEBUG)
    assert b"checked: z" in store.get(path)


def test_a_file_that_is_no_text_cannot_be_revised_by_section(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("session.md", b"\xff")
    with pytest.raises(Immutable, match="UTF-8"):
        store.put_sections("session.md", OLD, DEBUG)


@pytest.mark.req("A17")
def test_the_rules_of_a_debug_session_are_these() -> None:
    assert dict(DEBUG) == {
        "Current Focus": SectionRule.OVERWRITE,
        "Symptoms": SectionRule.IMMUTABLE,
        "Eliminated": SectionRule.APPEND,
        "Evidence": SectionRule.APPEND,
        "Resolution": SectionRule.OVERWRITE,
    }
