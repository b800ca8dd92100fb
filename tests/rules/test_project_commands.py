"""The commands of a project: what manifests tell, who wins, the settings `init` writes, and locked specifications."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.autopilot.roadmap import (
    CommandKind,
    CommandsSource,
    ProjectConfig,
    ProjectSettings,
    ProjectType,
)
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.verify.checks import CheckSpec, Discovered, Language, Project, ReportFormat
from fairwitness.rules.project_commands import (
    MANIFESTS,
    MOST_SIGNS,
    Detected,
    commands_of,
    detect_commands,
    with_checks,
)
from fairwitness.rules.roadmap import config_template
from fairwitness.rules.spec_lock import SpecTurn, spec_changes, spec_locks, spec_paths

GENERATED = settings(max_examples=150)
AT = "2026-02-26T14:30:00Z"
CARGO = '[package]\nname = "x"\n'


def _hash(sign: str) -> str:
    return f"sha256:{sign * 64}"


def _commands(**manifests: str) -> list[str | None]:
    names = {name.partition(".")[0].lower(): name for name in MANIFESTS}
    found = detect_commands({names[name]: text for name, text in manifests.items()})
    assert found.problems == ()
    return [found.commands.get(kind) for kind in CommandKind]


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("package", "commands"),
    [
        ({}, [None] * 4),
        (
            {"scripts": {"test": "jest", "lint": "eslint", "build": "vite", "types": "tsc"}},
            ["types", "test", "lint", "build"],
        ),
        ({"scripts": {"test": 'echo "Error: no test specified" && exit 1', "tests": "x"}}, [None, "tests", None, None]),
        ({"scripts": {"test": "", "lint": 5, "build": "b"}}, [None, None, None, "build"]),
        ({"scripts": []}, [None] * 4),
    ],
)
@pytest.mark.parametrize("runner", ["npm", "pnpm"])
def test_scripts_of_a_package_are_its_commands(
    package: dict[str, object], commands: list[str | None], runner: str
) -> None:
    said = package if runner == "npm" else package | {"packageManager": f"{runner}@9.1.0"}
    expected = [None if name is None else f"{runner} run {name}" for name in commands]
    assert _commands(package=json.dumps(said)) == expected


@pytest.mark.req("A2")
def test_typescript_is_compiled_without_a_script_and_an_unknown_runner_is_not_run() -> None:
    tsc = "npx --no-install tsc --noEmit"
    assert _commands(package='{"devDependencies": {"typescript": "5"}}') == [tsc, None, None, None]
    package = {"scripts": {"compile": "x"}, "dependencies": {"typescript": "5"}, "packageManager": "rm -rf@1"}
    assert _commands(package=json.dumps(package)) == ["npm run compile", None, None, None]


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", ["python -m compileall -q .", None, None, None]),
        (
            "[tool.mypy]\n[tool.ruff]\n[tool.pytest.ini_options]",
            ["python -m mypy .", "python -m pytest", "python -m ruff check .", None],
        ),
        (
            '[project]\ndependencies = ["Pyright>=1", 5, ">="]\n[project.optional-dependencies]'
            '\ndev = ["flake8"]\nbad = 3\n'
            '[dependency-groups]\nt = ["pytest ; x", {include-group = "u"}, "build"]',
            ["python -m pyright", "python -m pytest", "python -m flake8", "python -m build"],
        ),
        (
            '[tool.poetry.group.dev.dependencies]\nmypy = "1"\n'
            '[tool.poetry.dev-dependencies]\npylint = "3"\n[tool.poetry.group]\nx = 1',
            ["python -m mypy .", None, "python -m pylint .", None],
        ),
    ],
)
def test_packages_and_tools_of_a_python_project_are_its_commands(text: str, commands: list[str | None]) -> None:
    assert _commands(pyproject=text) == commands


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", [None] * 4),
        ("build lint : x\n\tcheck:\n", [None, None, "make lint", "make build"]),
        ("test := 1\nlint ::= 2\nbuild = a:b\n# check: x\n", [None] * 4),
        (".PHONY: test lint\nX = \\\ntest: no\ncheck:: all\n\n", [None, "make check", None, None]),
        (
            "define test\nlint: x\nendef\nall:\n$(OUT)/types: x\ntypecheck: ; x\n",
            ["make typecheck", None, None, "make all"],
        ),
    ],
)
def test_targets_of_a_makefile_are_its_commands(text: str, commands: list[str | None]) -> None:
    assert _commands(makefile=text) == commands


@pytest.mark.req("A2")
def test_the_first_manifest_that_tells_a_command_decides() -> None:
    texts = {
        "Makefile": "test:\n",
        "Cargo.toml": CARGO,
        "pyproject.toml": "",
        "package.json": '{"scripts": {"test": "x"}}',
    }
    seen = []
    while texts:
        found = detect_commands(texts)
        seen.append((found.type, found.manifest))
        del texts[str(found.manifest)]
    assert seen == [(kind, name) for kind, name in zip(ProjectType, MANIFESTS, strict=False)]
    assert detect_commands({}) == Detected(ProjectType.UNKNOWN, None, {}, ())
    assert detect_commands({"package.json": "{}", "Cargo.toml": "[workspace]\nx = 1"}).manifest == "Cargo.toml"
    assert _commands(cargo=CARGO) == ["cargo check", "cargo test", "cargo clippy", "cargo build"]


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", "[]"),
        ("package.json", "{"),
        ("package.json", "[" * 100_000),
        ("package.json", "\0\udcff"),
        ("pyproject.toml", "= 1"),
        ("pyproject.toml", "a = " + "[" * 100_000),
        ("Cargo.toml", ""),
        ("Makefile", "x" * (MOST_SIGNS + 1)),
    ],
)
def test_a_manifest_that_cannot_be_read_is_a_problem_and_not_passed_over(name: str, text: str) -> None:
    found = detect_commands({name: text, "Makefile": text if name == "Makefile" else "test:\n"})
    assert (found.manifest, dict(found.commands)) == (name, {})
    assert [problem.where for problem in found.problems] == [(name,)]


@pytest.mark.req("A2")
@GENERATED
@given(st.dictionaries(st.sampled_from(MANIFESTS), st.text(max_size=60) | st.sampled_from(["{}", "test:\n", CARGO])))
def test_any_manifests_have_an_answer(manifests: dict[str, str]) -> None:
    found = detect_commands(manifests)
    assert (found.type is ProjectType.UNKNOWN) == (found.manifest is None)
    assert not (found.commands and found.problems)
    assert ProjectConfig.model_validate_json(config_template(found)).project.commands == found.commands


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("said", "source", "test", "lint"),
    [
        ({}, None, "make test", None),
        ({"test": "tox"}, None, "tox", None),
        ({"test": None}, None, None, None),
        ({"test": None}, CommandsSource.USER_OVERRIDE, None, None),
        ({"test": None, "lint": "x"}, CommandsSource.AUTO_DETECTED, "make test", "x"),
        ({"test": "old"}, CommandsSource.AUTO_DETECTED, "old", None),
    ],
)
def test_what_a_person_says_wins_even_if_it_is_nothing(
    said: dict[str, str | None], source: CommandsSource | None, test: str | None, lint: str | None
) -> None:
    detected = detect_commands({"Makefile": "test:\n"})
    project = ProjectSettings.model_validate({"commands": said, "commands_source": source})
    assert commands_of(project, detected) == {"compile": None, "test": test, "lint": lint, "build": None}
    assert commands_of(None, detected)[CommandKind.TEST] == "make test"


@pytest.mark.req("A2")
def test_the_settings_that_init_writes_hold_what_was_detected_and_no_null() -> None:
    text = config_template(detect_commands({"Makefile": "test:\n"}))
    assert json.loads(text) == {
        "project": {
            "type": "makefile",
            "manifest": "Makefile",
            "commands": {"test": "make test"},
            "commands_source": "auto-detected",
            "spec_paths": [".planning/REQUIREMENTS.md", ".planning/PROJECT.md", ".planning/ROADMAP.md"],
        }
    }
    assert "null" not in config_template(detect_commands({}))


@pytest.mark.req("A2")
def test_every_specification_that_exists_is_locked_and_the_roadmap_always() -> None:
    config = ProjectConfig(project=ProjectSettings(spec_paths=("docs/spec.md", "docs/none.md")))
    paths = spec_paths(config)
    assert paths == ("docs/spec.md", "docs/none.md", ".planning/ROADMAP.md")
    assert spec_paths(ProjectConfig(project=ProjectSettings()), "ROADMAP.md")[-1] == "ROADMAP.md"
    locks = spec_locks(paths, {".planning/ROADMAP.md": _hash("a"), "docs/spec.md": _hash("b"), "other": _hash("c")}, AT)
    assert [(lock.path, lock.hash) for lock in locks] == [
        ("docs/spec.md", _hash("b")),
        (".planning/ROADMAP.md", _hash("a")),
    ]


@pytest.mark.req("A2")
def test_a_specification_that_changed_went_or_came_is_told() -> None:
    locks = tuple(SpecLock(path=path, hash=_hash(path), locked_at=AT) for path in "abc")
    found = {"a": _hash("a"), "b": _hash("d"), "d": _hash("d"), "other": _hash("e")}
    changes = spec_changes(locks, ("a", "d", "e"), found)
    assert [(change.path, change.turn, change.locked, change.found) for change in changes] == [
        ("b", SpecTurn.CHANGED, _hash("b"), _hash("d")),
        ("c", SpecTurn.MISSING, _hash("c"), None),
        ("d", SpecTurn.NEW, None, _hash("d")),
    ]


@pytest.mark.req("A2")
@GENERATED
@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("01").map(_hash)),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("01").map(_hash)),
)
def test_nothing_is_told_exactly_when_nothing_is_different(before: dict[str, str], after: dict[str, str]) -> None:
    locks = spec_locks("abcd", before, AT)
    assert (spec_changes(locks, "abcd", after) == ()) == (before == after)


def _check(name: str, *argv: str, root: str = ".", required: bool = True) -> CheckSpec:
    return CheckSpec(
        id=name,
        name=name,
        tier=2,
        root=root,
        language=Language.PYTHON,
        tool=argv[0],
        argv=argv,
        report=ReportFormat.EXIT,
        writes=True,
        required=required,
        found_in="setup.py",
    )


TYPED = {
    ("{python}", "-m", "unittest", "discover", "-s", "tests"): "python -m unittest discover -s tests",
    ("{python}", "-m", "ruff", "check", "."): "python -m ruff check .",
    ("{python}", "-m", "mypy", "--cache-dir={tmp}/mypy", "a.py"): "python -m mypy a.py",
    ("{python}", "-m", "pytest", "-o", "x=y", "--junitxml={report}", "-q", "testing", "more"): (
        "python -m pytest testing more"
    ),
    ("{python}", "run.py", "{report}"): None,
}


@pytest.mark.req("A2")
def test_required_checks_that_verify_finds_complete_what_the_manifests_say() -> None:
    project = Project(root=".", language=Language.PYTHON, manifests=("setup.py",))
    found = Discovered(
        projects=(project,),
        checks=(
            _check("tests", "{python}", "-m", "pytest", "--junitxml={report}"),
            _check("lint", "{python}", "-m", "flake8", required=False),
            _check("build", "make", "a b"),
            _check("type-check", "tsc", "--out={tmp}"),
            _check("tests", "npm", "test", root="web"),
            _check("import-check", "python"),
        ),
        undiscovered=(),
    )
    nothing = detect_commands({})
    assert with_checks(nothing, found) == nothing._replace(
        type=ProjectType.PYTHON, commands={CommandKind.TEST: "python -m pytest", CommandKind.BUILD: "make 'a b'"}
    )
    for argv, typed in TYPED.items():
        one = Discovered(projects=(project,), checks=(_check("tests", *argv),), undiscovered=())
        assert with_checks(nothing, one).commands.get(CommandKind.TEST) == typed
    made = detect_commands({"Makefile": "test:\n\ttrue\n"})
    assert with_checks(made, found).commands[CommandKind.TEST] == "make test"
    assert with_checks(made, found).type is ProjectType.MAKEFILE
    other = Project(root=".", language=Language.OTHER, manifests=())
    assert with_checks(nothing, Discovered(projects=(other,), checks=(), undiscovered=())) == nothing
