"""C, C++ and whatever else is built by CMake or make: their build, their tests, and other targets of a Makefile."""

import re
from collections.abc import Iterator

from fairwitness.contracts.verify.checks import CheckSpec, Project, ReportFormat
from fairwitness.verify.discovery.roots import MAKEFILES
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import Tree, join

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


def look_at_native(tree: Tree, found: Found, beside: list[Found]) -> None:
    """Notes what CMake and make offer; `beside` is what was found of other languages in the same folder."""
    makefile = tree.first(found.root, *MAKEFILES)
    checks = [check for other in beside for check in other.checks]
    if makefile is not None and beside and not tree.has(join(found.root, "CMakeLists.txt")):
        # the Makefile of a project in another language calls that language's tools, in its environment
        found.language = beside[0].language
        _note_make(tree, found, makefile, checks)
        return
    names = [name for name in _MANIFESTS if tree.has(join(found.root, name))]
    found.project = Project(
        root=found.root,
        language=found.language,
        manifests=tuple(join(found.root, name) for name in names),
        sources=(found.root,),
    )
    if "CMakeLists.txt" in names:
        _note_cmake(tree, found)
    if makefile is not None:
        _note_make(tree, found, makefile, [*checks, *found.checks])


def _note_cmake(tree: Tree, found: Found) -> None:
    # One command for all stages: ctest configures and builds into our folder, and then runs itself there.
    build = ["ctest", "--build-and-test", "{root}", "{tmp}/build", "--build-generator", "Unix Makefiles"]
    where = found.where("CMakeLists.txt")
    lists = [path for path in tree.under(found.root) if path.rpartition("/")[2] == "CMakeLists.txt"]
    if any(_CTEST.search(tree.text(path) or "") for path in lists[:_LOOKED_AT]):
        run = ["ctest", "--test-dir", "{tmp}/build", "--output-junit", "{report}", "--no-tests=error"]
        found.check(
            "ctest",
            "tests",
            [*build, "--test-command", *run],
            tool="ctest",
            report=ReportFormat.JUNIT,
            report_on="file",
            writes=True,
            found_in=where,
        )
    found.check("cmake-build", "build", build, tool="cmake", writes=True, found_in=where)


def _note_make(tree: Tree, found: Found, makefile: str, beside: list[CheckSpec]) -> None:
    recipes = _recipes(tree.text(join(found.root, makefile)) or "")
    for target, name, id_ in _TARGETS:
        if target not in recipes or any(check.id.endswith(id_) for check in found.checks):
            continue
        if target == "check" and found.has("tests"):
            continue  # most often another word for the same, or both at once
        recipe = "\n".join(_all_of(recipes, target))[: 5 * _LONGEST]
        if recipe.strip() and any(_is_same(check, recipe) for check in beside if check.name == name):
            continue
        prints_tap = name == "tests" and _prints_tap(tree, found, recipe)
        found.check(
            id_,
            name,
            ("make", "-s", "-f", makefile, target),
            tool="make",
            report=ReportFormat.TAP if prints_tap else ReportFormat.EXIT,
            writes=True,
            found_in=found.where(makefile, target),
        )


def _recipes(text: str) -> dict[str, tuple[list[str], str]]:
    """Each target with the targets before it and the lines that make it."""
    found: dict[str, tuple[list[str], str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n")[:20_000]:
        if line.startswith("\t"):
            for target in current:
                before, recipe = found[target]
                if len(recipe) < _LONGEST:
                    found[target] = (before, f"{recipe}{line.strip()[:_LONGEST]}\n")
            continue
        rule = _RULE.match(line[:_LONGEST])
        if rule is None:
            if line.strip() and not line.startswith("#"):
                current = []
            continue
        needed, _, inline = rule.group(2).lstrip(":").partition(";")
        current = rule.group(1).split()
        for target in current:
            before, recipe = found.get(target, ([], ""))
            found[target] = (
                [*before, *needed.partition("#")[0].split()][:50],
                recipe + (f"{inline}\n" if inline else ""),
            )
    return found


def _all_of(recipes: dict[str, tuple[list[str], str]], target: str) -> Iterator[str]:
    """The lines of a target and of all it needs or calls, each target once."""
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
    """True if a recipe runs what a check of another tool already runs."""
    id_ = check.id.rpartition("/")[2]
    pattern = _SAME.get(re.sub(r"^unittest-.*", "unittest", id_))
    if pattern is None and check.name == "tests" and check.language == "node":
        pattern = _NODE_TESTS
    if pattern is None and id_.startswith("npm-"):
        pattern = rf"(?:npm|yarn|pnpm) +(?:run +)?{re.escape(id_.removeprefix('npm-'))}"
    return pattern is not None and re.search(pattern, recipe) is not None


def _prints_tap(tree: Tree, found: Found, recipe: str) -> bool:
    """True if the recipe, or the one test program there is, speaks TAP; of several, the plans would mix."""
    if _TAP.search(recipe):
        return True
    start = 0 if found.root == "." else len(found.root) + 1
    programs = [
        path
        for path in tree.under(found.root)
        if path.endswith(_PROGRAMS) and re.search(r"(?:^|[/_.-])(?:test|tests|t|check)(?:[/_.-]|$)", path[start:])
    ]
    printing = [path for path in programs[:_LOOKED_AT] if _TAP.search(tree.text(path) or "")]
    plans = [path for path in printing if "1.." in (tree.text(path) or "")]
    return len(plans) == 1
