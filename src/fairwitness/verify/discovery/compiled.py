"""Checks of compiled projects: Rust, Go, Maven and Gradle; C and C++ with CMake or make, and other Makefile targets."""

import re
from collections.abc import Iterator

from fairwitness.contracts.verify.checks import LONG_S, CheckSpec, Project, ReportFormat
from fairwitness.verify.discovery.documents import UnreadableDocument, at
from fairwitness.verify.discovery.roots import MAKEFILES
from fairwitness.verify.discovery.specs import ProjectChecks
from fairwitness.verify.discovery.tree import IndexedTree, inside, join

_RUST = ("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml", "build.rs")
_GO = ("go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt")
_JAVA = (
    *("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
    *("gradle.lockfile", "gradle/libs.versions.toml", "gradle/wrapper/gradle-wrapper.properties", ".mvn/maven.config"),
)


def add_rust_checks(tree: IndexedTree, project_checks: ProjectChecks) -> None:
    """Add a crate or a workspace of crates."""
    manifest = tree.toml(join(project_checks.root, "Cargo.toml"))
    crates = [
        path
        for path in tree.under(project_checks.root)
        if path.endswith("/Cargo.toml") and path != join(project_checks.root, "Cargo.toml")
    ]
    project_checks.project = _describe(
        tree, project_checks, _RUST, crates if at(manifest, "workspace") is not None else []
    )
    if isinstance(manifest, UnreadableDocument):
        project_checks.add_unreadable("Cargo.toml", manifest.reason)
        return
    where = project_checks.where("Cargo.toml")
    # What is compiled goes into our folder; without a lock file cargo still writes one into the tree.
    common = ["--offline", "--target-dir", "{tmp}/target"]
    common += ["--workspace"] if at(manifest, "workspace") is not None else []
    common += ["--locked"] if tree.has(join(project_checks.root, "Cargo.lock")) else []
    project_checks.add_check(
        "cargo-test",
        "tests",
        ("cargo", "test", "--no-fail-fast", *common),
        tool="cargo",
        report=ReportFormat.CARGO,
        writes=True,
        found_in=where,
    )
    # editors show the output of this command for Rust
    project_checks.add_check(
        "cargo-check",
        "ide-diagnostics",
        ("cargo", "check", "--all-targets", "--message-format=short", *common),
        tool="cargo",
        writes=True,
        timeout_s=LONG_S,
        found_in=where,
    )
    clippy = ("cargo", "clippy", "--all-targets", "--message-format=short", *common)
    project_checks.add_check(
        "cargo-clippy", "lint", clippy, tool="cargo", writes=True, timeout_s=LONG_S, found_in=where
    )
    project_checks.add_check(
        "cargo-fmt", "lint", ("cargo", "fmt", "--all", "--", "--check"), tool="cargo", found_in=where
    )


def add_go_checks(tree: IndexedTree, project_checks: ProjectChecks) -> None:
    """Add a Go module."""
    project_checks.project = _describe(tree, project_checks, _GO, [])
    where = project_checks.where("go.mod")
    project_checks.add_check(
        "go-test",
        "tests",
        ("go", "test", "-json", "./..."),
        tool="go",
        report=ReportFormat.GO_TEST,
        writes=True,
        found_in=where,
    )
    project_checks.add_check(
        "go-vet", "ide-diagnostics", ("go", "vet", "./..."), tool="go", timeout_s=LONG_S, found_in=where
    )
    # go build would write a single program into the tree; with this name it writes nothing
    project_checks.add_check(
        "go-build", "build", ("go", "build", "-o", "/dev/null", "./..."), tool="go", found_in=where
    )


def add_java_checks(tree: IndexedTree, project_checks: ProjectChecks) -> None:
    """Add a Maven or Gradle build.

    Both write one report for each test class into folders of the tree (target/surefire-reports,
    build/test-results/test) that no option moves to a file of ours, so the exit code is all that is taken from them.
    """
    inner = [
        path
        for path in tree.under(project_checks.root)
        if path.endswith(("/pom.xml", "/build.gradle", "/build.gradle.kts"))
    ]
    project_checks.project = _describe(tree, project_checks, _JAVA, inner)
    if tree.has(join(project_checks.root, "pom.xml")):
        where = project_checks.where("pom.xml")
        project_checks.add_check(
            "maven-test", "tests", ("mvn", "-o", "-q", "-B", "test"), tool="mvn", writes=True, found_in=where
        )
        package = ("mvn", "-o", "-q", "-B", "-DskipTests", "package")
        project_checks.add_check("maven-build", "build", package, tool="mvn", writes=True, found_in=where)
        return
    where = project_checks.where(tree.first(project_checks.root, "build.gradle", "build.gradle.kts") or "build.gradle")
    gradle = ("gradle", "--offline", "--no-daemon", "--console=plain", "--project-cache-dir", "{tmp}/gradle")
    project_checks.add_check("gradle-test", "tests", (*gradle, "test"), tool="gradle", writes=True, found_in=where)
    project_checks.add_check("gradle-build", "build", (*gradle, "assemble"), tool="gradle", writes=True, found_in=where)


def _describe(tree: IndexedTree, project_checks: ProjectChecks, names: tuple[str, ...], inner: list[str]) -> Project:
    own = [join(project_checks.root, name) for name in names if tree.has(join(project_checks.root, name))]
    return Project(
        root=project_checks.root,
        language=project_checks.language,
        manifests=tuple(dict.fromkeys([*own, *(path for path in inner if inside(path, project_checks.root))])),
        sources=(project_checks.root,),
    )


_MANIFESTS = ("CMakeLists.txt", "CMakePresets.json", "conanfile.txt", "conanfile.py", "vcpkg.json", *MAKEFILES)
_CTEST = re.compile(
    r"\b(?:enable_testing|add_test|include\s*\(\s*ctest|gtest_discover_tests|catch_discover_tests)\b", re.I
)
_RULE = re.compile(r"([A-Za-z0-9_.%/ -]{1,200}?):(?!:{0,2}=)(.*)")
_CALLS = re.compile(r"\$[({]MAKE[)}](?:[ \t]+-\S+)*[ \t]+([A-Za-z0-9_-]+)")
_TARGETS = (
    ("test", "tests", "make-test"),
    ("check", "tests", "make-check"),
    ("lint", "lint", "make-lint"),
    ("build", "build", "make-build"),
    ("all", "build", "make-build"),
)
_SAME = {
    "pytest": r"pytest|tox|nox\b",
    "unittest": r"unittest|tox|nox\b",
    "django": r"manage\.py +test",
    "ruff": r"ruff",
    "ruff-format": r"ruff",
    "flake8": r"flake8",
    "black": r"black",
    "mypy": r"mypy",
    "pyright": r"pyright",
    "python-build": r"-m +build|hatch +build|poetry +build|uv +build|setup\.py",
    "eslint": r"eslint|npm +run +lint|yarn +lint|pnpm +lint",
    "tsc": r"\btsc\b",
    "cargo-test": r"cargo[^\n;&|]{0,80}?\b(?:test|nextest)",
    "cargo-clippy": r"cargo[^\n;&|]{0,80}?\bclippy",
    "cargo-check": r"cargo[^\n;&|]{0,80}?\b(?:build|check)",
    "go-test": r"go +test|gotestsum",
    "go-vet": r"go +vet|golangci-lint",
    "go-build": r"go +(?:build|install)",
    "maven-test": r"mvnw? ",
    "maven-build": r"mvnw? ",
    "gradle-test": r"gradlew? ",
    "gradle-build": r"gradlew? ",
    "ctest": r"ctest|cmake",
    "cmake-build": r"cmake",
}
_NODE_TESTS = r"npm +(?:run +)?t(?:est)?\b|yarn +(?:run +)?test|pnpm +(?:run +)?test|jest|vitest|mocha|node +--test"
_TAP = re.compile(
    r"TAP version 1[34]|\b1\.\.%|^[ \t@]*(?:echo|printf)[ \t]+[\"']?1\.\.|[\"'](?:not )?ok %", re.MULTILINE
)
_PROGRAMS = (".c", ".cc", ".cpp", ".cxx", ".sh", ".h", ".t")
_LONGEST = 4_000
_LOOKED_AT = 100


def add_native_checks(tree: IndexedTree, project_checks: ProjectChecks, beside: list[ProjectChecks]) -> None:
    """Add what CMake and make offer; `beside` is what was found of other languages in the same folder."""
    makefile = tree.first(project_checks.root, *MAKEFILES)
    checks = [check for other in beside for check in other.checks]
    if makefile is not None and beside and not tree.has(join(project_checks.root, "CMakeLists.txt")):
        # the Makefile of a project in another language calls that language's tools, in its environment
        project_checks.language = beside[0].language
        _add_make(tree, project_checks, makefile, checks)
        return
    names = [name for name in _MANIFESTS if tree.has(join(project_checks.root, name))]
    project_checks.project = Project(
        root=project_checks.root,
        language=project_checks.language,
        manifests=tuple(join(project_checks.root, name) for name in names),
        sources=(project_checks.root,),
    )
    if "CMakeLists.txt" in names:
        _add_cmake(tree, project_checks)
    if makefile is not None:
        _add_make(tree, project_checks, makefile, [*checks, *project_checks.checks])


def _add_cmake(tree: IndexedTree, project_checks: ProjectChecks) -> None:
    # One command for all stages: ctest configures and builds into our folder, and then runs itself there.
    build = ["ctest", "--build-and-test", "{root}", "{tmp}/build", "--build-generator", "Unix Makefiles"]
    where = project_checks.where("CMakeLists.txt")
    lists = [path for path in tree.under(project_checks.root) if path.rpartition("/")[2] == "CMakeLists.txt"]
    if any(_CTEST.search(tree.text(path) or "") for path in lists[:_LOOKED_AT]):
        run = ["ctest", "--test-dir", "{tmp}/build", "--output-junit", "{report}", "--no-tests=error"]
        project_checks.add_check(
            "ctest",
            "tests",
            [*build, "--test-command", *run],
            tool="ctest",
            report=ReportFormat.JUNIT,
            report_on="file",
            writes=True,
            found_in=where,
        )
    project_checks.add_check("cmake-build", "build", build, tool="cmake", writes=True, found_in=where)


def _add_make(tree: IndexedTree, project_checks: ProjectChecks, makefile: str, beside: list[CheckSpec]) -> None:
    recipes = _recipes(tree.text(join(project_checks.root, makefile)) or "")
    for target, name, id_ in _TARGETS:
        if target not in recipes or any(check.id.endswith(id_) for check in project_checks.checks):
            continue
        if target == "check" and project_checks.has("tests"):
            continue  # usually an alias of the same target, or a target for both
        recipe = "\n".join(_all_of(recipes, target))[: 5 * _LONGEST]
        if recipe.strip() and any(_is_same(check, recipe) for check in beside if check.name == name):
            continue
        prints_tap = name == "tests" and _prints_tap(tree, project_checks, recipe)
        project_checks.add_check(
            id_,
            name,
            ("make", "-s", "-f", makefile, target),
            tool="make",
            report=ReportFormat.TAP if prints_tap else ReportFormat.EXIT,
            writes=True,
            found_in=project_checks.where(makefile, target),
        )


def _recipes(text: str) -> dict[str, tuple[list[str], str]]:
    """Return each target with its prerequisites and its recipe."""
    recipes: dict[str, tuple[list[str], str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n")[:20_000]:
        if line.startswith("\t"):
            for target in current:
                before, recipe = recipes[target]
                if len(recipe) < _LONGEST:
                    recipes[target] = (before, f"{recipe}{line.strip()[:_LONGEST]}\n")
            continue
        rule = _RULE.match(line[:_LONGEST])
        if rule is None:
            if line.strip() and not line.startswith("#"):
                current = []
            continue
        needed, _, inline = rule.group(2).lstrip(":").partition(";")
        current = rule.group(1).split()
        for target in current:
            before, recipe = recipes.get(target, ([], ""))
            recipes[target] = (
                [*before, *needed.partition("#")[0].split()][:50],
                recipe + (f"{inline}\n" if inline else ""),
            )
    return recipes


def _all_of(recipes: dict[str, tuple[list[str], str]], target: str) -> Iterator[str]:
    """Yield the lines of a target and of all it needs or calls, each target once."""
    waiting, seen = [target], set[str]()
    while waiting and len(seen) < 50:
        name = waiting.pop()
        if name in seen or name not in recipes:
            continue
        seen.add(name)
        before, recipe = recipes[name]
        yield recipe
        waiting += [*before, *_CALLS.findall(recipe)]


def _is_same(check: CheckSpec, recipe: str) -> bool:
    """Return True if a recipe runs what a check of another tool already runs."""
    id_ = check.id.rpartition("/")[2]
    pattern = _SAME.get(re.sub(r"^unittest-.*", "unittest", id_))
    if pattern is None and check.name == "tests" and check.language == "node":
        pattern = _NODE_TESTS
    if pattern is None and id_.startswith("npm-"):
        pattern = rf"(?:npm|yarn|pnpm) +(?:run +)?{re.escape(id_.removeprefix('npm-'))}"
    return pattern is not None and re.search(pattern, recipe) is not None


def _prints_tap(tree: IndexedTree, project_checks: ProjectChecks, recipe: str) -> bool:
    """Return True if the recipe, or the only test program, prints TAP; with several programs the plans would mix."""
    if _TAP.search(recipe):
        return True
    start = 0 if project_checks.root == "." else len(project_checks.root) + 1
    programs = [
        path
        for path in tree.under(project_checks.root)
        if path.endswith(_PROGRAMS) and re.search(r"(?:^|[/_.-])(?:test|tests|t|check)(?:[/_.-]|$)", path[start:])
    ]
    printing = [path for path in programs[:_LOOKED_AT] if _TAP.search(tree.text(path) or "")]
    plans = [path for path in printing if "1.." in (tree.text(path) or "")]
    return len(plans) == 1
