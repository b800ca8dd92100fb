"""A check becomes a command of real programs with a closed set of variables."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import CheckSpec, Language, Project, ReportFormat
from fairwitness.verify.environment.model import Environment, NoEnvironment, ResolvedCommand, Unavailable
from fairwitness.verify.environment.resolve import resolve
from support.fixtures import works
from verify.environment.shops import PYTEST, SHOP, Bench, check, machine, shop, write

MADE = Environment(
    project=SHOP,
    language=Language.PYTHON,
    digest="0" * 64,
    prepared_by="a test",
    python=Path(sys.executable),
    env={"PATH": "/env/bin:/usr/bin"},
    versions={"python": "3.11.7", "pytest": "9.9"},
    installed=frozenset({"pytest"}),
    search=(Path("/usr/bin"), Path("/bin")),
)


def resolved(
    spec: CheckSpec, tmp_path: Path, environment: Environment = MADE, ids: tuple[str, ...] = ()
) -> ResolvedCommand:
    """A check that can be run."""
    answer = resolve(
        spec, environment, checkout=tmp_path / "tree", report=tmp_path / "r" / "report", tmp=tmp_path, ids=ids
    )
    assert isinstance(answer, ResolvedCommand), answer
    return answer


def test_every_place_that_a_command_leaves_open_is_filled(tmp_path: Path) -> None:
    spec = check("env", "{report}", "x{tmp}", "{root}", "{node_modules}/y", "{python}", report=ReportFormat.EXIT)
    tree = tmp_path / "tree"
    filled = (str(tmp_path / "r/report"), f"x{tmp_path}", str(tree), f"{tree}/node_modules/y", sys.executable)
    assert resolved(spec, tmp_path).argv[1:] == filled


def test_a_program_handed_over_whole_keeps_its_braces(tmp_path: Path) -> None:
    text = "value = f'{root}'\nprint(value)\n"
    assert resolved(check("{python}", "-I", "-c", text, report=ReportFormat.EXIT), tmp_path).argv[-1] == text


def test_ids_become_words_of_their_own(tmp_path: Path) -> None:
    spec = PYTEST.model_copy(update={"select": ("{python}", "-m", "pytest", "{ids}", "--x={ids}")})
    assert resolved(spec, tmp_path, ids=("a::b", "c d")).argv[-3:] == ("a::b", "c d", "--x=a::b,c d")
    answer = resolve(PYTEST, MADE, checkout=tmp_path, report=tmp_path / "r", tmp=tmp_path, ids=("a",))
    assert answer == Unavailable("pytest cannot run only some of its tests", environmental=False)


@pytest.mark.req("X5")
def test_nothing_is_inherited_and_nothing_of_the_tree_is_on_a_path(tmp_path: Path) -> None:
    answer = resolved(PYTEST, tmp_path)
    assert not {"PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV"} & set(answer.env)
    assert answer.env["PATH"] == "/env/bin:/usr/bin"
    assert (answer.env["PYTHONHASHSEED"], answer.env["HOME"]) == ("0", str(tmp_path))
    assert Path(answer.argv[0]).is_absolute()
    assert answer.tool_version == "9.9"
    assert answer.origin == tmp_path / "r/report.origin"
    assert answer.loads


@pytest.mark.req("X5")
def test_only_packages_that_nobody_else_brings_are_taken_from_the_tree_first(tmp_path: Path) -> None:
    greedy = SHOP.model_copy(update={"packages": ("shop", "pytest", "json")})
    answer = resolve(PYTEST, MADE, checkout=tmp_path, report=tmp_path / "r", tmp=tmp_path, project=greedy)
    assert isinstance(answer, ResolvedCommand)
    assert answer.argv[answer.argv.index("--own") + 1] == "shop"
    assert answer.argv[answer.argv.index("--packages") + 1] == "shop,pytest,json"


@pytest.mark.req("P9")
def test_a_tool_that_is_not_installed_says_so(tmp_path: Path) -> None:
    for spec in (check("{python}", "-m", "mypy", tool="mypy"), check("no-such-tool"), check("{tmp}/planted")):
        answer = resolve(spec, MADE, checkout=tmp_path / "tree", report=tmp_path / "r", tmp=tmp_path)
        assert isinstance(answer, Unavailable)
        assert answer.environmental
    mypy = resolve(check("{python}", "-m", "mypy"), MADE, checkout=tmp_path, report=tmp_path / "r", tmp=tmp_path)
    reason = "mypy is configured (pyproject.toml) but not installed in what was prepared by a test"
    assert mypy == Unavailable(reason, environmental=True)


@pytest.mark.req("X5")
def test_a_program_of_the_tree_cannot_pose_as_the_machines(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"bin/env": "#!/bin/sh\n", "run.sh": "#!/bin/sh\n"})
    (tree / "bin/env").chmod(0o755)
    search = (tree / "bin", Path("/usr/bin"))
    posing = Environment(project=SHOP, language=Language.OTHER, digest="0", prepared_by="a test", search=search)
    assert resolved(check("env"), tmp_path, posing).argv == ("/usr/bin/env",)
    named = resolve(check(str(tree / "bin/env")), posing, checkout=tree, report=tmp_path / "r", tmp=tmp_path)
    assert isinstance(named, Unavailable)
    script = resolved(check("./run.sh", "x"), tmp_path, posing)
    assert script.argv == ("/bin/sh", "-c", 'exec "$0" "$@"', "./run.sh", "x")


def test_tools_that_replace_the_process_still_leave_their_word(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"src/shop/bad.py": "import os\n"}, price=1)
    environment = bench.ready(tree)
    spec = check("{python}", "-m", "ruff", "check", ".", tool="ruff", report=ReportFormat.RUFF, writes=False)
    ran = bench.run(environment, tree, spec)
    assert "F401" in ran.said
    assert (ran.finished.result.exit_code, ran.problem) == (1, None)


def test_a_type_checker_sees_what_is_installed(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"src/shop/user.py": "import pluggy\n\npluggy.no_such_thing()\n"}, price=1)
    spec = check("{python}", "-m", "mypy", "src/shop/user.py", tool="mypy", report=ReportFormat.MYPY, writes=False)
    ran = bench.run(bench.ready(tree), tree, spec)
    assert "user.py:3: error" in ran.said
    assert "import-not-found" not in ran.said
    assert ran.problem is None


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_interpreters_that_a_makefile_starts_know_the_worktree_too(bench: Bench, tmp_path: Path) -> None:
    tree = shop(
        tmp_path / "tree", {"Makefile": 'all:\n\tcd / && python -c "import shop; print(shop.price())"\n'}, price=7
    )
    ran = bench.run(bench.ready(tree), tree, check("make", "-s", tool="make", report=ReportFormat.EXIT))
    assert ran.said == "7\n"
    assert ran.resolved.origin is None


@pytest.mark.skipif(not works("cargo"), reason="there is no cargo on this machine that runs")
def test_cargo_is_found_behind_its_manager_and_builds_outside_the_tree(bench: Bench, tmp_path: Path) -> None:
    rust = Project(root=".", language=Language.RUST, manifests=("Cargo.toml",))
    code = "pub fn price() -> i32 { 2 }\n#[test]\nfn asks() { assert_eq!(price(), 2); }\n"
    files = {"Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n', "src/lib.rs": code}
    tree = write(tmp_path / "tree", files)
    person = {"PATH": f"{Path(shutil.which('cargo') or '').parent}:/usr/bin:/bin", "HOME": str(Path.home())}
    environment = bench.ready(tree, rust, environ=person)
    ran = bench.run(environment, tree, check("cargo", "test", tool="cargo", report=ReportFormat.CARGO), rust)
    assert ran.passed, ran.said
    assert "1 passed" in ran.said
    assert ran.resolved.tool_version.startswith("cargo ")
    assert not (tree / "target").exists()
    missing = '[[package]]\nname = "no-such-crate"\nversion = "9.9.9"\nsource = "registry+https://x"\n'
    write(tree, {"Cargo.lock": missing})
    answer = bench.prepare(tree, rust, environ=person)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "the crate no-such-crate-9.9.9 of Cargo.lock is not on this machine"


def test_c_is_built_with_the_machines_compiler(bench: Bench, tmp_path: Path) -> None:
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("there is no C compiler or no make on this machine")
    native = Project(root=".", language=Language.NATIVE, manifests=("Makefile",))
    makefile = "test: shop\n\t./shop\nshop: shop.c\n\t$(CC) -o shop shop.c\n"
    tree = write(tmp_path / "tree", {"Makefile": makefile, "shop.c": "int main(void) { return 0; }\n"})
    environment = bench.ready(tree, native, environ=machine("/usr/local/bin"))
    assert environment.prepared_by == "the tools of this machine"
    ran = bench.run(environment, tree, check("make", "test", tool="make", report=ReportFormat.EXIT), native)
    assert ran.passed, ran.said


def test_a_language_without_its_tools_says_which(bench: Bench, tmp_path: Path) -> None:
    go = Project(root=".", language=Language.GO, manifests=("go.mod",))
    answer = bench.prepare(write(tmp_path / "tree", {"go.mod": "module shop\n"}), go, environ=machine("/nonexistent"))
    if isinstance(answer, Environment):
        pytest.skip("there is Go on this machine")
    assert answer == NoEnvironment(
        "go is not on the PATH", environmental=True, next_step="install go, or put it on the PATH"
    )


def test_a_tool_that_only_looks_at_text_may_be_the_persons_own(tmp_path: Path) -> None:
    tools = write(tmp_path / "tools", {"ruff": "#!/bin/sh\necho ruff 0.99.1\n", "pytest": "#!/bin/sh\n"})
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = replace(MADE, versions={"python": "3.11.7"}, search=(tools,))
    answer = resolved(check("{python}", "-m", "ruff", "check", tool="ruff"), tmp_path, environment)
    assert answer.argv == (str(tools / "ruff"), "check")
    assert (answer.tool_version, answer.origin) == ("ruff 0.99.1", None)
    assert tools / "ruff" in answer.read
    tests = resolve(PYTEST, environment, checkout=tmp_path / "tree", report=tmp_path / "r", tmp=tmp_path)
    assert isinstance(tests, Unavailable)  # its plugins and the project's dependencies are the environment's


def test_go_and_java_get_private_caches_and_what_was_fetched_before(bench: Bench, tmp_path: Path) -> None:
    tools = write(tmp_path / "tools", {"go": "#!/bin/sh\necho go version go1.99\n", "java": "#!/bin/sh\necho 17.0\n"})
    for tool in tools.iterdir():
        tool.chmod(0o755)
    home = tmp_path / "home"
    (home / "go/pkg/mod").mkdir(parents=True)
    (home / ".m2/repository").mkdir(parents=True)
    person = machine(str(tools), HOME=str(home))
    go = Project(root=".", language=Language.GO, manifests=("go.mod",))
    java = Project(root=".", language=Language.JAVA, manifests=("pom.xml",))
    tree = write(tmp_path / "tree", {"go.mod": "module shop\n", "pom.xml": "<project/>\n", "vendor/modules.txt": ""})
    prepared = bench.ready(tree, go, environ=person)
    answer = resolved(check("go", "test", "-json", "./...", tool="go"), tmp_path, prepared)
    assert (answer.env["GOFLAGS"], answer.env["GOCACHE"]) == ("-mod=vendor", f"{tmp_path}/go-build")
    assert home / "go/pkg/mod" in answer.read
    assert answer.tool_version == "go version go1.99"
    assert bench.ready(tree, java, environ=person).env["MAVEN_OPTS"] == f"-Dmaven.repo.local={home}/.m2/repository"
