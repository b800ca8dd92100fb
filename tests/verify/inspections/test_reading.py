"""How texts are read before anything is found in them: lines compared, comments told apart, Python parsed."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.config_values import NotRead, items_of, settings_of, spelled
from fairwitness.verify.inspections.languages import Lang
from fairwitness.verify.inspections.lexer import lexed
from fairwitness.verify.inspections.line_diff import line_changes, lines_of
from fairwitness.verify.inspections.literals import literal_atoms
from fairwitness.verify.inspections.model import (
    FINDINGS_PER_FILE,
    TEXT_LENGTH,
    ChangedText,
    FindingRule,
    bounded,
    finding_at,
    quoted,
)
from fairwitness.verify.inspections.python_source import DEPTH, UnreadableSource, parse, shape

FEW_LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "x"]), max_size=30).map(lambda lines: "\n".join(lines))


@given(FEW_LINES, FEW_LINES)
def test_what_is_neither_removed_nor_added_is_the_same_text(before: str, after: str) -> None:
    removed, added = line_changes(before, after)
    kept = [line for number, line in enumerate(lines_of(before), 1) if number not in removed]
    assert kept == [line for number, line in enumerate(lines_of(after), 1) if number not in added]


@given(st.text())
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert line_changes(text, text) == ((), ())


def test_a_large_file_is_compared_around_its_unique_lines() -> None:
    lines = [f"line {number}" for number in range(50_000)]
    changed = [*lines[:10], "new", *lines[10:-10], *lines[-9:]]
    removed, added = line_changes("\n".join(lines), "\n".join(changed))
    assert (removed, added) == ((49_991,), (11,))


def test_a_large_file_without_unique_lines_counts_as_changed() -> None:
    before = "x\n" + "a\nb\n" * 5_000 + "y\n"
    after = "z\n" + "b\na\n" * 5_000 + "w\n"
    removed, added = line_changes(before, after)
    assert len(removed) == len(added) == 10_002


@given(st.sampled_from(list(Lang)), st.text())
def test_taking_a_text_apart_moves_nothing(language: Lang, text: str) -> None:
    source = lexed(text, language)
    whole = text.split("\n")
    for lines in (source.code, source.bare):
        assert [len(line) for line in lines] == [len(line) for line in whole]


@pytest.mark.parametrize(
    ("language", "text", "code", "comments"),
    [
        (Lang.SCRIPT, "a // b", "a", ["// b"]),
        (Lang.SCRIPT, "a /* b */ c", "a         c", ["/* b */"]),
        (Lang.SCRIPT, "x = '// no';", "x = '// no';", []),
        (Lang.SCRIPT, "x = /[/*]/; // yes", "x = /[/*]/;", ["// yes"]),
        (Lang.SCRIPT, "x = a / b; // yes", "x = a / b;", ["// yes"]),
        (Lang.SCRIPT, "return /'/; // yes", "return /'/;", ["// yes"]),
        (Lang.RUST, "/* a /* b */ c */ d", "                  d", ["/* a /* b */ c */"]),
        (Lang.RUST, "/* open", "", ["/* open"]),
        (Lang.RUST, 'r#"// "no"#; // yes', 'r#"// "no"#;', ["// yes"]),
        (Lang.RUST, "fn f<'a>() {} // yes", "fn f<'a>() {}", ["// yes"]),
        (Lang.RUST, "'\"' // yes", "'\"'", ["// yes"]),
        (Lang.NATIVE, 'R"x(// no)x"; // yes', 'R"x(// no)x";', ["// yes"]),
        (Lang.NATIVE, "'\\'' // yes", "'\\''", ["// yes"]),
        (Lang.NATIVE, "1'000 // yes", "1'000", ["// yes"]),
        (Lang.JAVA, '"""// no"""; // yes', '"""// no""";', ["// yes"]),
        (Lang.GO, "`// no` // yes", "`// no`", ["// yes"]),
        (Lang.PYTHON, "x = '# no'  # yes", "x = '# no'", ["# yes"]),
        (Lang.PYTHON, "x = rb'''# no'''  # yes", "x = rb'''# no'''", ["# yes"]),
    ],
)
def test_comments_are_told_from_strings(language: Lang, text: str, code: str, comments: list[str]) -> None:
    source = lexed(text, language)
    assert source.code[0].rstrip() == code
    assert [said for _, said in source.comments] == comments


def test_a_text_that_is_too_long_is_all_code() -> None:
    text = "// x\n" * 250_000
    assert lexed(text, Lang.SCRIPT).comments == ()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000,
        "-" * 100_000 + "1",
        "a" + ".b" * 5_000,
        "x = " + "+".join("1" * 10_000),
        "x = " + "[" * (DEPTH // 2) + "]" * (DEPTH // 2) + "+ 1" * DEPTH,
        "a\rb",
        "\0",
        "x = '\ud800'",
        "1" * 6_000,
        "x" * 500_001,
        "def f(:",
    ],
)
def test_python_that_cannot_be_read_is_refused_without_a_traceback(text: str) -> None:
    with pytest.raises(UnreadableSource):
        parse(text)


def test_a_shape_is_blind_to_layout_and_docstrings_and_to_nothing_else() -> None:
    one = parse('def f(a: int):\n    """x"""\n    return a  # c\n')
    assert shape(one) == shape(parse("def f(a: int): return (a)"))
    assert shape(one) != shape(parse("def f(a: str): return a"))
    assert shape(one, annotations=False) == shape(parse("def f(a: str): return a"), annotations=False)
    assert shape(parse("1")) != shape(parse("True"))
    assert shape(parse("x = 0x" + "f" * 10_000)) != shape(parse("x = 0x" + "e" * 10_000))


@pytest.mark.parametrize(
    ("code", "atoms"),
    [
        ("90", (("n", 90),)),
        ("-90", (("n", -90),)),
        ("'a' + 'b'", (("s", "ab"),)),
        ("10 * 9 - 1 + 1", (("n", 90),)),
        ("{'a': 1}", (("s", "a"), ("n", 1))),
        ("[1, (2, b'x')]", (("n", 1), ("n", 2), ("s", "x"))),
        ("Decimal('90')", (("s", "90"),)),
        ("True", (("b", True),)),
        ("2 ** 90", None),
        ("-'a'", None),
        ("'a' * 5", None),
        ("10 ** 20 + 1", None),
        ("f(1)", None),
        ("a", None),
        ("None", None),
        ("1e400", None),
        ("{**a}", None),
    ],
)
def test_values_that_are_written_out(code: str, atoms: tuple[tuple[str, object], ...] | None) -> None:
    assert literal_atoms(ast.parse(code, mode="eval").body) == atoms


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.toml", "x = ["),
        ("a.toml", "x = " + "[" * 2_000),
        ("a.toml", "a." * 20_000 + "b = 1"),
        ("a.ini", "no section"),
        ("a.json", "{"),
        ("a.json", "3"),
        ("a.yml", "a: &x 1"),
        ("a.xyz", "a"),
        ("a.json", "[" + "1," * 300_000 + "1]"),
        ("a.json", "{" + ",".join(f'"k{n}": 1' for n in range(6_000)) + "}"),
    ],
)
def test_settings_that_cannot_be_told_are_refused(path: str, text: str) -> None:
    with pytest.raises(NotRead):
        settings_of(path, text)


def test_settings_are_flat_and_items_are_found_by_their_names() -> None:
    text = "steps:\n  - name: a\n    run: x\n  - name: a\n    run: y\n  - z: 1\nempty: {}\nday: [1, true]\n"
    assert settings_of("a.yml", text) == {
        ("steps", "name a", "name"): "a",
        ("steps", "name a", "run"): "x",
        ("steps", "name a (2)", "name"): "a",
        ("steps", "name a (2)", "run"): "y",
        ("steps", "item 2", "z"): 1,
        ("empty",): (),
        ("day",): ("1", "true"),
    }
    assert settings_of("a.toml", "day = 2026-01-01\n") == {("day",): "2026-01-01"}
    assert spelled(("a", "b", "c")) == "[a.b] c"
    assert spelled(("a",)) == "a"
    assert items_of(None) == ()


def test_a_finding_is_safe_to_show() -> None:
    finding = finding_at(FindingRule.SECRET, "a\x1b.py", 1, "x\x1b[31m" * 100, blocks=True)
    assert finding.text.isprintable()
    assert len(finding.text) == TEXT_LENGTH
    assert (finding.path, finding.subject) == ("a\x1b.py", "a\x1b.py")
    assert len(quoted("word " * 100)) < 100


def test_many_findings_block_if_one_of_the_rest_does() -> None:
    quiet = [finding_at(FindingRule.SECRET, "a.py", n, "x", blocks=False) for n in range(FINDINGS_PER_FILE)]
    loud = finding_at(FindingRule.SECRET, "a.py", 99, "x", blocks=True)
    assert bounded([*quiet, loud])[-1].blocks
    assert not bounded([*quiet, quiet[0]])[-1].blocks


def test_a_change_knows_its_lines() -> None:
    change = ChangedText.between("a.py", "a\nb\n", "a\nc\nd\n")
    assert (change.removed, change.added) == ((2,), (2, 3))
    assert ChangedText.between("a.py", None, "a\n").added == (1,)
    assert ChangedText.between("a.py", "a\n", None).removed == (1,)
