"""What differs from day to day is made the same, and nothing else is."""

import re
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.agents.normalization import digest, normalize

GENERATED = settings(max_examples=400)
ROOT = "/tmp/fairwitness-tree-x1y2z3ab/tree"


def _same(text: str) -> str:
    return normalize(text, root=ROOT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 passed in 0.02s", "1 passed in 12.30s"),
        ("=== 1 failed, 2 passed in 0.12s ===", "== 1 failed, 2 passed in 61.02s (0:01:01) =="),
        ("took 4s", "took 17s"),
        ("platform linux -- Python 3.11.7, pytest-9.2.0", "platform linux -- Python 3.12.1, pytest-8.0.0, x-1"),
        ("plugins: cov-1, xdist-3", "plugins: anyio-4"),
        ("compiled in 1.3 ms", "compiled in 20 ms"),
        ("--- PASS: TestOne (0.00s)", "--- PASS: TestOne (1.25s)"),
        ("ok  \tpkg\t0.003s", "ok  \tpkg\t1.1s"),
        (
            "    Finished `dev` profile [unoptimized] target(s) in 0.45s",
            "    Finished `dev` profile [unoptimized] target(s) in 3.01s",
        ),
        ("# duration_ms 12.345", "# duration_ms 8"),
        ('"duration_ms": 12.3,', '"duration_ms": 4,'),
        ("Time:        1.234 s", "Time:        2 s"),
        ("real\t0m0.123s", "real\t1m10.456s"),
        ("  2 passing (12ms)", "  2 passing (3s)"),
        ("2026-02-26T14:30:00Z INFO start", "2027-11-01T01:02:03.456Z INFO start"),
        ("[2026-02-26 14:30:00,123] start", "[2026-02-27 09:00:00,456] start"),
        ("Date:   Thu Feb 26 14:30:00 2026 +0000", "Date:   Fri Mar 6 04:05:06 2026 +0100"),
        ("14:30:00 start", "09:01:02.5 start"),
        ('127.0.0.1 - [26/Feb/2026:14:30:00 +0000] "GET /"', '127.0.0.1 - [27/Feb/2026:10:00:00 +0000] "GET /"'),
        ("started with pid 123", "started with pid 45678"),
        ("PID=1 up", "PID=99999 up"),
        ("==123==ERROR: heap", "==4567==ERROR: heap"),
        ("listening on 127.0.0.1:45123", "listening on 127.0.0.1:60001"),
        ("http://localhost:45123/x", "http://localhost:39999/x"),
        ("<A object at 0x7f0011223344>", "<A object at 0x55aa>"),
        ("E   assert <A object at 0x7f0011223344> is None", "E   assert <A object at 0x7f9911223344> is None"),
        ("commit 0123456789abcdef0123456789abcdef01234567", "commit 89abcdef0123456789abcdef0123456789abcdef"),
        ("a1b2c3d fix the login", "9f8e7d6 fix the login"),
        ("index 1234567..89abcde 100644", "index aaaaaaa..bbbbbbb 100644"),
        ("Using --randomly-seed=123", "Using --randomly-seed=98765"),
        (f"{ROOT}/src/a.py:3: error", "{root}/src/a.py:3: error"),
        (f"rootdir: {ROOT}", "rootdir: {root}"),
        ("/tmp/tmpab12cd3f/out.txt", "/tmp/tmpzz99_x00/out.txt"),
        ("/tmp/pytest-of-root/pytest-1/test_a0/x", "/tmp/pytest-of-me/pytest-22/test_a0/x"),
        ("/tmp/fairwitness-run-ab12cd3f/home/x", "/var/tmp/fairwitness-run-zz12cd3f/home/x"),
        ("/home/me/env/lib/python3.11/site-packages/x/y.py:3", "/opt/v/lib/python3.12/site-packages/x/y.py:3"),
        ("/usr/lib/python3.11/unittest/case.py", "/root/.pyenv/versions/3.11.7/lib/python3.11/unittest/case.py"),
    ],
)
def test_what_differs_from_day_to_day_is_the_same(one: str, other: str) -> None:
    assert _same(one) == _same(other)
    assert _same(_same(one)) == _same(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 passed in 0.02s", "2 passed in 0.02s"),
        ("1 passed in 0.02s", "1 failed in 0.02s"),
        ("exit code 0", "exit code 1"),
        ("exit code 1", "exit code 10"),
        ("ended by signal 9 (SIGKILL)", "ended by signal 11 (SIGSEGV)"),
        ("src/a.py:3: error", "src/b.py:3: error"),
        ("src/a.py:3: error", "src/a.py:4: error"),
        ("src/a1b2c3d.py", "src/a1b2c3e.py"),
        ("a1b2c3d.py", "a1b2c3e.py"),
        ("test_a1b2c3d4 PASSED", "test_a1b2c3d5 PASSED"),
        ("E   assert 1 == 2", "E   assert 1 == 3"),
        ("E   assert '1.3 ms' == '1.4 ms'", "E   assert '1.3 ms' == '1.5 ms'"),
        ("AssertionError: '2024-01-01T00:00:00Z' != 'x'", "AssertionError: '2024-01-02T00:00:00Z' != 'x'"),
        ("AssertionError: 'abc1234' != 'abc1235'", "AssertionError: 'abc1234' != 'abc1236'"),
        ('    Expected: "10:00:00"', '    Expected: "10:00:01"'),
        ("    Received: 3.5 s", "    Received: 3.6 s"),
        ("    got 1.5s, want 2.5s", "    got 1.6s, want 2.5s"),
        ("  left: 10:00:00", "  left: 10:00:01"),
        ("+timeout = 1.5 s", "+timeout = 2.5 s"),
        ("-    pid = 123", "-    pid = 124"),
        ("1\tSTART = '10:00:00'", "1\tSTART = '10:00:01'"),
        ("2024-01-01", "2024-01-02"),
        ("waits 30 seconds", "waits 31 seconds"),
        ("processed 3 files", "processed 4 files"),
        ("process 3 of 5", "process 4 of 5"),
        ("one at a time 3 files", "one at a time 4 files"),
        ("port 8080", "port 8081"),
        ("localhost:8000", "localhost:8001"),
        ("version 3.11.7", "version 3.11.8"),
        ("80% covered", "90% covered"),
        ("/tmp/notes/a.txt", "/tmp/notes/b.txt"),
        ("/tmp/tmpab12cd3f/a.txt", "/tmp/tmpab12cd3f/b.txt"),
        ("/tmp/tmpfile.txt", "/tmp/tmpfiles.txt"),
        (f"{ROOT}-2/a.py", f"{ROOT}/a.py"),
        ("site-packages/x.py", "site-packages/y.py"),
        ("0x10", "0x11"),
        ("tests/a.py ..F.", "tests/a.py .FF."),
        ("a\nb", "b\na"),
        ("ERROR: one\nERROR: two", "ERROR: two\nERROR: one"),
    ],
)
def test_what_is_a_fact_stays_different(one: str, other: str) -> None:
    assert _same(one) != _same(other)


def test_tests_may_be_reported_in_any_order() -> None:
    pytest_verbose = [
        "tests/a.py::test_one PASSED                    [ 33%]\ntests/a.py::test_two[x y] FAILED  [ 66%]\n",
        "tests/a.py::test_two[x y] FAILED  [ 33%]\ntests/a.py::test_one PASSED                    [100%]\n",
    ]
    xdist = [
        "[gw0] [ 50%] PASSED tests/a.py::x\n[gw1] [100%] FAILED tests/a.py::y",
        "[gw1] [ 50%] FAILED tests/a.py::y\n[gw0] [100%] PASSED tests/a.py::x",
    ]
    dots = ["tests/a.py ..F [ 50%]\ntests/b.py .s [100%]", "tests/b.py s. [ 40%]\ntests/a.py F.. [100%]"]
    summary = [
        "FAILED tests/a.py::x - assert 1 == 2\nFAILED tests/b.py::y - KeyError",
        "FAILED tests/b.py::y - KeyError\nFAILED tests/a.py::x - assert 1 == 2",
    ]
    cargo = ["test a::one ... ok\ntest a::two ... FAILED\n", "test a::two ... FAILED\ntest a::one ... ok\n"]
    for one, other in (pytest_verbose, xdist, dots, summary, cargo):
        assert _same(one) == _same(other)
    assert _same(cargo[0]) != _same("test a::one ... FAILED\ntest a::two ... ok\n")
    assert _same("test a ... ok\nbetween\ntest b ... ok") != _same("test b ... ok\nbetween\ntest a ... ok")


def test_a_whole_output_of_pytest() -> None:
    assert _same(
        f"""\
exit code 1
stdout:
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.6.0
Using --randomly-seed=2412413
rootdir: {ROOT}
collected 3 items

tests/test_b.py .                                                        [ 33%]
tests/test_a.py F.                                                       [100%]

    def test_one() -> None:
>       assert one() == 2
E       assert 1 == 2

tests/test_a.py:5: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_one - assert 1 == 2
========================= 1 failed, 2 passed in 0.12s ==========================
"""
    ) == snapshot("""\
exit code 1
stdout:
=== test session starts ===
platform linux -- {versions}
Using --randomly-seed={seed}
rootdir: {root}
collected 3 items

tests/test_a.py .F                                                       [{percent}]
tests/test_b.py .                                                        [{percent}]

    def test_one() -> None:
>       assert one() == 2
E       assert 1 == 2

tests/test_a.py:5: AssertionError
=== short test summary info ===
FAILED tests/test_a.py::test_one - assert 1 == 2
=== 1 failed, 2 passed in {duration} ===
""")


@GENERATED
@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.floats(0, 500), st.floats(0, 500))
def test_counts_decide_and_times_do_not(passed: int, failed: int, other: int, took: float, again: float) -> None:
    one = _same(f"=== {failed} failed, {passed} passed in {took:.2f}s ===")
    assert one == _same(f"=== {failed} failed, {passed} passed in {again:.2f}s ===")
    assert (one == _same(f"=== {failed} failed, {other} passed in {again:.2f}s ===")) is (passed == other)
    assert (_same(f"exit code {passed}, no output") == _same(f"exit code {other}, no output")) is (passed == other)


_NAME = st.from_regex(r"[a-z0-9_]{1,12}(\.[a-z]{1,3})?", fullmatch=True)


@GENERATED
@given(st.lists(_NAME, min_size=1, max_size=4), st.lists(_NAME, min_size=1, max_size=4), st.integers(1, 999))
def test_names_of_files_and_tests_are_never_made_equal(one: list[str], other: list[str], line: int) -> None:
    first, second = "/".join(["src", *one]), "/".join(["src", *other])
    for text in ("{}:{}: error: odd", "FAILED {}::test_x - {}", "./{} is not there ({})", "{root}/{}:{}"):
        left, right = (text.replace("{root}", ROOT).format(path, line) for path in (first, second))
        assert (_same(left) == _same(right)) is (first == second)


@GENERATED
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\n/%"), max_size=60),
    st.sampled_from(["E   ", "> ", "12\t", "AssertionError: "]),
)
def test_what_an_assertion_says_stays_as_it_is(text: str, start: str) -> None:
    assume("0x" not in text)
    assert _same(f"{start}{text}") == f"{start}{text}"


@GENERATED
@given(st.text(st.sampled_from("0123456789abcdef .:-/smnuT[]%=E\n\tPASED{}"), max_size=80))
def test_making_it_the_same_twice_changes_nothing_more(text: str) -> None:
    once = _same(text)
    assert _same(once) == once


def test_a_root_that_is_everything_is_not_replaced() -> None:
    assert normalize("/etc/passwd", root="/") == "/etc/passwd"
    assert normalize("/w/x", root="/w/") == "{root}/x"


@GENERATED
@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_a_digest_knows_where_one_text_ends(one: list[str], other: list[str]) -> None:
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest(one))
    assert (digest(one) == digest(other)) is (one == other)
    assert digest(["\ud800"]) != digest([""])


@pytest.mark.parametrize(
    "text",
    [
        *("a::" * 100_000, "/a" * 150_000, "0" * 300_000, "abcdef0" * 50_000, "1." * 150_000, "[ " * 150_000),
        *("tests/a.py " + "." * 300_000, "12:" * 100_000, "/tmp/" * 60_000, "index " * 60_000, "= " * 150_000),
        *(" " * 300_000, "time " + " " * 300_000),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    _same(text)
    assert time.perf_counter() - began < 20
