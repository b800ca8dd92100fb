"""What Rust, Go, Java, C and C++ repositories offer, and what a Makefile adds to any."""

import pytest

from fairwitness.contracts.verify.checks import LONG_S, Language
from verify.discovery.repository import Offer, check_of, look, offers, reasons

RUST = {
    "cargo-test": ("tests", "cargo"),
    "cargo-check": ("ide-diagnostics", "exit"),
    "cargo-clippy": ("lint", "exit"),
    "cargo-fmt": ("lint", "exit"),
}
GO = {"go-test": ("tests", "go-test"), "go-vet": ("ide-diagnostics", "exit"), "go-build": ("build", "exit")}
CMAKE = {"cmake-build": ("build", "exit")}
CTEST = CMAKE | {"ctest": ("tests", "junit")}
MAKE_TEST = {"make-test": ("tests", "exit")}
PYTEST = {"pytest": ("tests", "junit"), "python-syntax": ("syntax-check", "compiler")}
GRADLE = {"gradle-test": ("tests", "exit"), "gradle-build": ("build", "exit")}
PYTHON = {"test_a.py": "def test_a(): pass\n"}
TAP_PROGRAM = 'int main() { printf("1..%d\\n", 2); printf("ok %d - a\\n", 1); }\n'

OFFERS = [
    Offer("a crate", {"Cargo.toml": "[package]\nname='x'\n"}, RUST),
    Offer("a module of Go", {"go.mod": "module x\n"}, GO),
    Offer("Maven", {"pom.xml": "<project/>"}, {"maven-test": ("tests", "exit"), "maven-build": ("build", "exit")}),
    Offer("Gradle", {"build.gradle": ""}, GRADLE),
    Offer("Gradle in Kotlin", {"build.gradle.kts": ""}, GRADLE),
    Offer("CMake", {"CMakeLists.txt": "project(x)\n"}, CMAKE),
    Offer("CMake with tests", {"CMakeLists.txt": "project(x)\nenable_testing()\n"}, CTEST),
    Offer(
        "CMake with tests below",
        {"CMakeLists.txt": "project(x)\nadd_subdirectory(t)\n", "t/CMakeLists.txt": "ADD_TEST(NAME a COMMAND a)\n"},
        CTEST,
    ),
    Offer("a Makefile without a word", {"Makefile": "x.o: x.c\n\tcc -c x.c\n"}, {}),
    Offer("make test", {"Makefile": "test: x\n\t./x\n"}, MAKE_TEST),
    Offer("make check", {"Makefile": "check:\n\t./x\n"}, {"make-check": ("tests", "exit")}),
    Offer("make test and check", {"Makefile": "check: test\ntest:\n\t./x\n"}, MAKE_TEST),
    Offer(
        "make all and lint",
        {"GNUmakefile": "all:\n\tcc x.c\nlint:\n\t./lint.sh\n"},
        {"make-build": ("build", "exit"), "make-lint": ("lint", "exit")},
    ),
    Offer("a variable is no target", {"Makefile": "test := 1\ncheck ::= 2\n"}, {}),
    Offer("TAP in the recipe", {"Makefile": "test:\n\t@echo 1..1; echo ok 1\n"}, {"make-test": ("tests", "tap")}),
    Offer(
        "TAP in the one test program",
        {"Makefile": "test: t\n\t./t\n", "tests/t.c": TAP_PROGRAM},
        {"make-test": ("tests", "tap")},
    ),
    Offer(
        "TAP in two test programs",
        {"Makefile": "test: t\n\t./t && ./u\n", "tests/t.c": TAP_PROGRAM, "tests/u.c": TAP_PROGRAM},
        MAKE_TEST,
    ),
    Offer("make test is pytest", {**PYTHON, "Makefile": "test:\n\t$(PYTHON) -m pytest -x\n"}, PYTEST),
    Offer(
        "make test is pytest, further down",
        {**PYTHON, "Makefile": "test: unit\nunit:\n\t$(MAKE) -s inner\ninner:\n\tuv run pytest\n"},
        PYTEST,
    ),
    Offer("make test is something else", {**PYTHON, "Makefile": "test:\n\t./end-to-end.sh\n"}, PYTEST | MAKE_TEST),
    Offer("make test is cargo", {"Cargo.toml": "", "Makefile": "test:\n\tcargo +nightly test --all\n"}, RUST),
    Offer("make test is go", {"go.mod": "", "Makefile": "test:\n\tgo test ./...\nbuild:\n\tgo build ./...\n"}, GO),
    Offer(
        "make test is npm",
        {"package.json": '{"name": "x", "scripts": {"test": "jest"}}', "Makefile": "test:\n\tnpm test\n"},
        {"jest": ("tests", "jest-json")},
    ),
    Offer(
        "make test is cmake",
        {
            "CMakeLists.txt": "enable_testing()",
            "Makefile": "all:\n\tcmake --build b\ntest: all\n\tctest --test-dir b\n",
        },
        CTEST,
    ),
]


@pytest.mark.req("P9")
@pytest.mark.req("X5")
@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.says)
def test_a_repository_offers_what_its_tool_chain_runs(offer: Offer) -> None:
    assert offers(look(offer.files)) == offer.checks


def test_cargo_compiles_outside_the_tree_and_needs_no_network() -> None:
    argv = check_of(look({"Cargo.toml": "[package]\n", "Cargo.lock": ""}), "cargo-test").argv
    assert argv == ("cargo", "test", "--no-fail-fast", "--offline", "--target-dir", "{tmp}/target", "--locked")


def test_a_workspace_is_one_project_and_its_crates_belong_to_it() -> None:
    files = {
        "Cargo.toml": "[workspace]\nmembers = ['crates/*']\nexclude = ['crates/old']\n",
        "crates/a/Cargo.toml": "[package]\n",
        "crates/old/Cargo.toml": "[package]\n",
        "crates/own/Cargo.toml": "[workspace]\n",
    }
    found = look(files)
    assert [project.root for project in found.projects] == [".", "crates/old", "crates/own"]
    assert "--workspace" in check_of(found, "cargo-test").argv
    assert "crates/a/Cargo.toml" in found.projects[0].manifests


def test_cmake_configures_builds_and_tests_by_one_command() -> None:
    check = check_of(look({"code/CMakeLists.txt": "project(x)\nenable_testing()\n"}), "code/ctest")
    assert check.argv[:4] == ("ctest", "--build-and-test", "{root}", "{tmp}/build")
    assert check.argv[-4:] == ("{tmp}/build", "--output-junit", "{report}", "--no-tests=error")
    assert check.report_on == "file"
    assert check.root == "code"
    assert check.timeout_s == LONG_S


def test_a_makefile_beside_another_language_uses_that_languages_environment() -> None:
    found = look({**PYTHON, "Makefile": "test:\n\t./end-to-end.sh\n"})
    assert check_of(found, "make-test").language is Language.PYTHON
    assert [project.language for project in found.projects] == [Language.PYTHON]


@pytest.mark.parametrize("manifest", ["meson.build", "configure.ac", "Gemfile", "composer.json", "Package.swift"])
def test_a_tool_that_discovery_does_not_know_is_said(manifest: str) -> None:
    found = look({manifest: ""})
    assert found.checks == ()
    assert "discovery cannot run" in next(iter(reasons(found).values()))


def test_a_broken_manifest_of_cargo_counts_as_missing_tests() -> None:
    found = look({"Cargo.toml": "[package\n"})
    assert found.checks == ()
    assert [(told.id, told.required) for told in found.undiscovered] == [("Cargo.toml", True)]
