"""Discovered commands, really run: the report appears where the check says, and names every thing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from fairwitness.contracts.verify.checks import CheckSpec, VerifySettings
from fairwitness.contracts.verify.results import Report
from fairwitness.verify.discovery.repository_checks import discover
from fairwitness.verify.reports import read_report
from support.fixtures import works
from verify.discovery.repository import Files, check_of
from verify.discovery.tree_files import FolderFiles


class Done(NamedTuple):
    """What came of a command."""

    code: int
    report: Report
    output: str

    @property
    def outcomes(self) -> dict[str, str]:
        """Each thing and what was said of it."""
        return {item.id: item.outcome.value for item in self.report.items}


def run(check: CheckSpec, folder: Path, *ids: str) -> Done:
    """Runs a check as the harness would, without a sandbox, and reads its report."""
    root = folder / check.root
    private = folder.with_name(f"{folder.name}-private")
    private.mkdir(exist_ok=True)
    report = private / "report"
    report.unlink(missing_ok=True)
    places = {"{python}": sys.executable, "{report}": str(report), "{tmp}": str(private), "{root}": str(root)}
    argv: list[str] = []
    words = check.select if ids and check.select else check.argv
    for word in words:
        filled = word
        for place, value in places.items():
            filled = filled.replace(place, value)
        argv += ids if word == "{ids}" else (filled,)
    kept = ("PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "RUSTUP_TOOLCHAIN")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    done = subprocess.run(argv, cwd=root, capture_output=True, env={**env, "NO_COLOR": "1"}, check=False)
    on = {"stdout": done.stdout, "stderr": done.stderr}
    content = on[check.report_on] if check.report_on in on else report.read_bytes() if report.exists() else None
    read = read_report(check.report, content, exit_code=done.returncode, root=str(root))
    return Done(done.returncode, read, (done.stdout + done.stderr).decode(errors="replace"))


def written(folder: Path, files: Files) -> Path:
    """A folder with these files."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def run_of(folder: Path, id_: str, *ids: str) -> Done:
    """Discovers a check in a folder and runs it; nothing may be left in the tree by one that says it writes nothing."""
    check = check_of(discover(FolderFiles(folder), VerifySettings()), id_)
    before = sorted(path for path in folder.rglob("*"))
    done = run(check, folder, *ids)
    if not check.writes:
        assert sorted(path for path in folder.rglob("*")) == before
    return done


def needs(program: str) -> pytest.MarkDecorator:
    """Skips where a tool chain is missing, and says which."""
    return pytest.mark.skipif(not works(program), reason=f"there is no {program} on this machine that runs")


PYTEST = """
import pytest

def test_right(): assert True
def test_wrong(): assert False
class TestMany:
    @pytest.mark.parametrize("n", [1, 2])
    def test_each(self, n): assert n == 1
    @pytest.mark.skip
    def test_later(self): ...
"""


@pytest.mark.req("P9")
def test_pytest_reports_every_test_even_if_a_file_cannot_be_collected(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "r",
        {"pytest.ini": "[pytest]\naddopts = -x\n", "t/test_a.py": PYTEST, "t/test_b.py": "import nothing_there"},
    )
    done = run_of(folder, "pytest")
    assert done.report.problems == ()
    assert done.outcomes == {
        "t/test_a.py::test_right": "passed",
        "t/test_a.py::test_wrong": "failed",
        "t/test_a.py::TestMany::test_each[1]": "passed",
        "t/test_a.py::TestMany::test_each[2]": "failed",
        "t/test_a.py::TestMany::test_later": "skipped",
        "t/test_b.py": "error",
    }
    again = run_of(folder, "pytest", "t/test_a.py::TestMany::test_each[2]")
    assert again.outcomes == {"t/test_a.py::TestMany::test_each[2]": "failed"}


def test_pytest_in_a_project_below_names_tests_from_its_own_folder(tmp_path: Path) -> None:
    files = {
        "pytest.ini": "[pytest]\n",
        "api/pyproject.toml": "[tool.pytest.ini_options]\n",
        "api/test_a.py": "def test_a(): pass\n",
    }
    done = run_of(written(tmp_path / "r", files), "api/pytest")
    assert done.outcomes == {"test_a.py::test_a": "passed"}


def test_unittest_finds_its_tests_in_a_folder_that_is_no_package(tmp_path: Path) -> None:
    case = (
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.fail()\n"
    )
    done = run_of(written(tmp_path / "r", {"tests/test_a.py": case}), "unittest")
    assert done.report.problems == ()
    assert done.outcomes == {"test_a.A.test_a": "passed", "test_a.A.test_b": "failed"}


def test_unittest_runs_one_test_again_by_its_id(tmp_path: Path) -> None:
    case = (
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.fail()\n"
    )
    folder = written(tmp_path / "r", {"tests/__init__.py": "", "tests/test_a.py": case})
    assert set(run_of(folder, "unittest").outcomes) == {"tests.test_a.A.test_a", "tests.test_a.A.test_b"}
    assert run_of(folder, "unittest", "tests.test_a.A.test_a").outcomes == {"tests.test_a.A.test_a": "passed"}


def test_the_syntax_of_every_python_file_is_checked_and_nothing_written(tmp_path: Path) -> None:
    files = {"a.py": "x = 1\n", "pkg/b.py": "def f(:\n", "pkg/c.py": "return 1\n", "lib/setup.py": "", "lib/d.py": "("}
    files |= {"tests/fixtures/bad.py": "(", "pkg/ü.py": "x = (\n"}
    folder = written(tmp_path / "r", files)
    (folder / "link.py").symlink_to("pkg/b.py")
    (folder / "nul.py").write_bytes(b"x = 1\0")
    done = run_of(folder, "python-syntax")
    assert done.code == 1
    assert {item.path for item in done.report.items} == {"pkg/b.py", "pkg/c.py", "pkg/ü.py", "nul.py"}
    assert done.report.problems == ()
    for name in ("pkg/b.py", "pkg/c.py", "pkg/ü.py", "nul.py"):
        (folder / name).unlink()
    assert run_of(folder, "python-syntax") == Done(0, Report(items=()), "")


def test_packages_are_imported_and_a_silent_exit_is_no_import(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[project]\nname = 'x'\n",
        "src/good/__init__.py": "print('hello')\n",
        "src/bad/__init__.py": "import nothing_there\n",
        "src/gone/__init__.py": "import os\nos._exit(0)\n",
        "src/space/inner.py": "",
        "src/json/__init__.py": "",
    }
    done = run_of(written(tmp_path / "r", files), "python-imports")
    assert done.code == 1
    assert done.report.problems == ()
    assert {item.path: item.message for item in done.report.items} == {
        "src/bad/__init__.py": "ModuleNotFoundError: No module named 'nothing_there'",
        "src/gone/__init__.py": "importing it ended the process",
    }


def test_ruff_and_mypy_report_what_they_find_and_change_nothing(tmp_path: Path) -> None:
    manifest = "[tool.ruff]\nfix = true\nlint.select = ['F401']\n[tool.mypy]\npretty = true\nerror_summary = false\n"
    folder = written(tmp_path / "r", {"pyproject.toml": manifest, "a.py": "import os\nx: int = 'a'\n"})
    for id_, word in (("ruff", "F401"), ("mypy", "assignment")):
        done = run_of(folder, id_)
        assert (done.code, done.report.problems, len(done.report.items)) == (1, (), 1), id_
        assert word in done.report.items[0].id
    (folder / "a.py").write_text("x: int = 1\n")
    assert [run_of(folder, id_).report for id_ in ("ruff", "mypy")] == [Report(items=()), Report(items=())]


NODE = """
import { describe, it, test } from "node:test";
import assert from "node:assert";
test("right <&>", () => {});
test("wrong", () => assert.equal(1, 2));
test("later", { skip: "why" }, () => {});
test("never", { todo: true }, () => assert.ok(false));
describe("many", () => {
  it("one", () => {});
  describe("deep", () => { it("two", () => {}); });
});
"""
NODE_OUTCOMES = {
    "test/a.test.mjs::right <&>": "passed",
    "test/a.test.mjs::wrong": "failed",
    "test/a.test.mjs::later": "skipped",
    "test/a.test.mjs::never": "xfailed",
    "test/a.test.mjs::many > one": "passed",
    "test/a.test.mjs::many > deep > two": "passed",
    "test/b.test.mjs::wrong": "passed",
    "test/c.test.mjs": "error",
}


@needs("node")
@needs("npm")
@pytest.mark.req("P9")
@pytest.mark.parametrize("script", ["node --test", "node -e 0 && node --test test/*.mjs"])
def test_node_reports_every_test_with_its_file(tmp_path: Path, script: str) -> None:
    files = {"package.json": f'{{"name": "x", "scripts": {{"test": "{script}"}}}}', "test/a.test.mjs": NODE}
    files |= {"test/b.test.mjs": "import test from 'node:test'; test('wrong', () => {});", "test/c.test.mjs": "let = ;"}
    done = run_of(written(tmp_path / "r", files), "node-test")
    assert done.report.problems == ()
    assert done.outcomes == NODE_OUTCOMES
    assert {item.path for item in done.report.items} == {"test/a.test.mjs", "test/b.test.mjs", "test/c.test.mjs"}


@needs("node")
def test_a_group_that_breaks_by_itself_is_told(tmp_path: Path) -> None:
    broken = "const { describe, it, before } = require('node:test');\n"
    broken += "describe('g', () => { before(() => { throw new Error('x'); }); it('a', () => {}); });\n"
    files = {"package.json": '{"name": "x", "scripts": {"test": "node --test"}}', "test/a.test.js": broken}
    done = run_of(written(tmp_path / "r", files), "node-test")
    assert done.code == 1
    assert "failed" in done.outcomes.values()
    assert done.report.problems == ()


@needs("node")
def test_the_syntax_of_every_javascript_file_is_checked(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "x"}',
        "a.js": "#!/usr/bin/env node\nreturn require('x');\n",
        "b.js": "import x from 'y';\nexport const z = await 1;\n",
        "c.cjs": "let a = ;\n",
        "d.mjs": "\n\nexport const = 1;\n",
        "lib/e.js": "function (\n",
        "node_modules/f/f.js": "(",
        "sub/package.json": '{"name": "y"}',
        "sub/g.js": "(",
    }
    done = run_of(written(tmp_path / "r", files), "node-syntax")
    assert done.code == 1
    assert {item.path for item in done.report.items} == {"c.cjs", "d.mjs", "lib/e.js"}
    assert done.report.problems == ()


@needs("make")
@needs("cc")
def test_make_runs_a_program_that_speaks_tap(tmp_path: Path) -> None:
    program = '#include <stdio.h>\nint main(void) {\n  printf("1..%d\\n", 2);\n'
    program += '  printf("ok 1 - a\\nnot ok 2 - b\\n");\n  return 1;\n}\n'
    files = {"Makefile": "t: tests/t.c\n\tcc -o t tests/t.c\ntest: t\n\t./t\n", "tests/t.c": program}
    done = run_of(written(tmp_path / "r", files), "make-test")
    assert done.report.problems == ()
    assert done.outcomes == {"a": "passed", "b": "failed"}


@needs("make")
def test_make_is_known_by_its_exit_code_otherwise(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", {"Makefile": "test:\n\t@./t.sh\n", "t.sh": "#!/bin/sh\nexit 3\n"})
    (folder / "t.sh").chmod(0o755)
    assert run_of(folder, "make-test").outcomes == {"exit": "failed"}


@needs("cmake")
@needs("ctest")
@needs("c++")
@pytest.mark.req("P9")
def test_cmake_configures_builds_and_reports_each_test_outside_the_tree(tmp_path: Path) -> None:
    lists = "cmake_minimum_required(VERSION 3.16)\nproject(x CXX)\nenable_testing()\nadd_executable(t t.cpp)\n"
    lists += "add_test(NAME first COMMAND t)\nadd_test(NAME second COMMAND t fail)\n"
    folder = written(
        tmp_path / "r r", {"CMakeLists.txt": lists, "t.cpp": "int main(int c, char**) { return c > 1; }\n"}
    )
    done = run_of(folder, "ctest")
    assert done.report.problems == ()
    assert done.outcomes == {"first": "passed", "second": "failed"}
    assert sorted(path.name for path in folder.iterdir()) == ["CMakeLists.txt", "t.cpp"]
    assert run_of(folder, "cmake-build").code == 0
    (folder / "t.cpp").write_text("int main( {\n")
    assert run_of(folder, "cmake-build").code != 0


@needs("cargo")
@pytest.mark.req("P9")
def test_cargo_tests_a_crate_without_a_network(tmp_path: Path) -> None:
    code = "pub fn two() -> i32 { 2 }\n#[cfg(test)]\nmod tests {\n"
    code += "  #[test] fn right() { assert_eq!(crate::two(), 2); }\n"
    code += "  #[test] fn wrong() { assert_eq!(crate::two(), 3); }\n}\n"
    manifest = '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
    folder = written(tmp_path / "r", {"Cargo.toml": manifest, "src/lib.rs": code})
    done = run_of(folder, "cargo-test")
    assert done.report.problems == ()
    assert done.outcomes == {"tests::right": "passed", "tests::wrong": "failed"}
    assert not (folder / "target").exists()
