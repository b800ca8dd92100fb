"""What a Node repository offers: the runner behind its test script, and every other check once."""

import json

import pytest

from fairwitness.contracts.verify.checks import Language
from fairwitness.verify.discovery.scripts import ScriptCommand, expand, words_of
from verify.discovery.repository import Offer, check_of, look, offers, reasons

NODE_TEST = {"node-test": ("tests", "junit")}
JEST = {"jest": ("tests", "jest-json")}
MOCHA = {"mocha": ("tests", "junit")}
VITEST = {"vitest": ("tests", "junit")}
EXIT = {"npm-test": ("tests", "exit")}
ESLINT = {"eslint": ("lint", "eslint")}
TSC = {"tsc": ("type-check", "tsc")}
SYNTAX = {"node-syntax": ("syntax-check", "compiler")}
NODE_TEST_FILE = "const { test } = require('node:test');\ntest('it', () => {});\n"


JEST_REPORT = ("--ci", "--json", "--outputFile={report}")
MOCHA_REPORT = ("--reporter", "xunit", "--reporter-option", "output={report}")


def package(**fields: object) -> dict[str, str]:
    """A repository with nothing but a package.json."""
    return {"package.json": json.dumps({"name": "x", **fields})}


def scripted(script: str, **scripts: str) -> dict[str, str]:
    """A repository with a test script."""
    return package(scripts={"test": script, **scripts})


OFFERS = [
    Offer("no scripts", package(), {}),
    Offer("a manifest that is only a mark", {"package.json": '{"type": "module"}'}, {}),
    Offer("the script that npm init writes", scripted('echo "Error: no test specified" && exit 1'), {}),
    Offer("node --test", scripted("node --test"), NODE_TEST),
    Offer("node --test with files", scripted("node --test test/"), NODE_TEST),
    Offer("node --test after a build", scripted("tsc && node --test dist/"), NODE_TEST),
    Offer("node --test with a glob", scripted("node --test test/*.js"), NODE_TEST),
    Offer("node --test under c8", scripted("c8 node --test"), NODE_TEST),
    Offer("node --test with options of its own", scripted("NODE_OPTIONS=--no-warnings node --test"), EXIT),
    Offer("jest", scripted("jest --coverage"), JEST),
    Offer("jest with a variable", scripted("cross-env CI=1 jest"), JEST),
    Offer("jest through npx", scripted("npx jest"), JEST),
    Offer("jest through yarn", scripted("yarn jest"), JEST),
    Offer("jest as a program of node", scripted("node --experimental-vm-modules node_modules/jest/bin/jest.js"), JEST),
    Offer("jest through another script", scripted("npm run unit", unit="jest"), JEST),
    Offer("jest in a CRA project", scripted("react-scripts test"), {"react-scripts": ("tests", "jest-json")}),
    Offer("vitest", scripted("vitest"), VITEST),
    Offer("vitest run", scripted("vitest run --coverage"), VITEST),
    Offer("mocha", scripted("mocha 'test/**/*.js'"), MOCHA),
    Offer("mocha after a linter", {**scripted("eslint . && mocha"), ".eslintrc": ""}, MOCHA | ESLINT),
    Offer("mocha under nyc", scripted("nyc --reporter=text mocha"), MOCHA),
    Offer("tap", scripted("tap"), {"tap": ("tests", "tap")}),
    Offer("tape with a glob", scripted("tape test/*.js"), {"tape": ("tests", "tap")}),
    Offer("ava", scripted("ava"), {"ava": ("tests", "tap")}),
    Offer("a runner we do not know", scripted("karma start"), EXIT),
    Offer("a pipe", scripted("tape test.js | tap-spec"), EXIT),
    Offer("alternatives", scripted("jest || true"), EXIT),
    Offer("scripts that call each other", scripted("npm run a", a="npm run b", b="npm run a"), EXIT),
    Offer("something after the tests", scripted("jest && node check.js"), EXIT),
    Offer("a hook after the tests", scripted("jest", posttest="node clean.js"), EXIT),
    Offer("a hook before the tests", scripted("jest", pretest="node make.js"), JEST),
    Offer("no script, jest required", package(devDependencies={"jest": "^29"}), JEST),
    Offer("no script, node's own tests", {**package(), "test/a.js": NODE_TEST_FILE}, NODE_TEST | SYNTAX),
    Offer("plain JavaScript", {**package(), "index.js": ""}, SYNTAX),
    Offer("JavaScript that is compiled", {**package(devDependencies={"@babel/core": "7"}), "index.js": "<a/>"}, {}),
    Offer("TypeScript", {**package(), "tsconfig.json": "{}"}, TSC),
    Offer("eslint's new file", {**package(), "eslint.config.mjs": ""}, ESLINT | SYNTAX),
    Offer("eslint's old file", {**package(), ".eslintrc.json": "{}"}, ESLINT),
    Offer("eslint in the manifest", package(eslintConfig={}), ESLINT),
    Offer("eslint as a script", package(scripts={"lint": "eslint src --ext .ts"}), ESLINT),
    Offer("another linter", package(scripts={"lint": "biome ci"}), {"npm-lint": ("lint", "exit")}),
    Offer(
        "a linter and more in one script",
        {**package(scripts={"lint": "eslint . && prettier --check ."}), ".eslintrc": ""},
        ESLINT | {"npm-lint": ("lint", "exit")},
    ),
    Offer(
        "the type checker as three scripts",
        {**package(scripts={"typecheck": "tsc --noEmit", "build": "tsc", "lint": "eslint ."}), "tsconfig.json": "{}"},
        TSC | ESLINT,
    ),
    Offer(
        "a build of its own",
        {**package(scripts={"build": "tsc -b && vite build"}), "tsconfig.json": "{}"},
        TSC | {"npm-build": ("build", "exit")},
    ),
]


@pytest.mark.req("P9")
@pytest.mark.req("X5")
@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.says)
def test_a_node_repository_offers_what_its_scripts_really_run(offer: Offer) -> None:
    assert offers(look(offer.files)) == offer.checks


@pytest.mark.parametrize(
    ("script", "argv"),
    [
        (
            "jest --coverage --watch --bail",
            ("{node_modules}/.bin/jest", "--coverage", "--ci", "--json", "--outputFile={report}"),
        ),
        ("vitest watch", ("{node_modules}/.bin/vitest", "--run", "--reporter=junit", "--outputFile={report}")),
        (
            "mocha -R dot 'test/**/*.js' --bail",
            (
                "{node_modules}/.bin/mocha",
                "test/**/*.js",
                "--reporter",
                "xunit",
                "--reporter-option",
                "output={report}",
            ),
        ),
        ("ava -t", ("{node_modules}/.bin/ava", "--tap")),
        (
            "mocha -t 5000 -u tdd test",
            ("{node_modules}/.bin/mocha", "-t", "5000", "-u", "tdd", "test", *MOCHA_REPORT),
        ),
        ("jest -t name -w 2 -u", ("{node_modules}/.bin/jest", "-t", "name", "-w", "2", *JEST_REPORT)),
        ("cross-env CI=1 jest", ("npm", "run", "test", "--silent", "--", "--ci", "--json", "--outputFile={report}")),
        (
            "node make.js && npm run unit",
            ("npm", "run", "test", "--silent", "--", "--", "--ci", "--json", "--outputFile={report}"),
        ),
        (
            "node make.js && yarn unit",
            ("npm", "run", "test", "--silent", "--", "--ci", "--json", "--outputFile={report}"),
        ),
        ("jest {report}", ("npm", "run", "test", "--silent", "--", "--ci", "--json", "--outputFile={report}")),
        ("jest; true", ("npm", "run", "test", "--silent")),
    ],
)
def test_a_plain_script_runs_directly_and_any_other_through_npm(script: str, argv: tuple[str, ...]) -> None:
    (tests,) = (check for check in look(scripted(script, unit="jest")).checks if check.name == "tests")
    assert tests.argv == argv
    assert tests.required
    assert tests.writes


def test_node_reports_through_our_reporter_however_it_is_started() -> None:
    direct = check_of(look(scripted("node --test --test-reporter=spec test/")), "node-test").argv
    assert direct[:2] == ("node", "--test")
    assert direct[2].startswith("--test-reporter=data:text/javascript,")
    assert direct[3:] == ("--test-reporter-destination={report}", "test/")
    through = check_of(look(scripted("tsc && node --test dist")), "node-test").argv
    assert through[:4] == ("npm", "run", "test", "--silent")
    assert through[4] == f"--node-options={direct[2]} --test-reporter-destination={{report}}"


@pytest.mark.parametrize(
    ("config", "scripts", "argv", "writes"),
    [
        ("{}", {}, ("--noEmit", "--pretty", "false"), False),
        ('{"compilerOptions": {"incremental": true}}', {}, ("--noEmit", "--pretty", "false"), True),
        ('{"files": [], "references": [{"path": "a"}]}', {}, ("-b", "--pretty", "false"), True),
        ('{/* "files": [], */ // "references"\n}', {}, ("--noEmit", "--pretty", "false"), False),
        (
            "{}",
            {"typecheck": "tsc -p tsconfig.check.json --noEmit"},
            ("-p", "tsconfig.check.json", "--noEmit", "--pretty", "false"),
            False,
        ),
    ],
)
def test_the_type_checker_is_called_so_that_it_checks_something(
    config: str, scripts: dict[str, str], argv: tuple[str, ...], writes: bool
) -> None:
    check = check_of(look({**package(scripts=scripts), "tsconfig.json": config}), "tsc")
    assert check.argv == ("{node_modules}/.bin/tsc", *argv)
    assert check.writes is writes


def test_eslint_runs_as_the_project_runs_it_but_fixes_nothing() -> None:
    script = "eslint src --ext .ts --fix --cache -f stylish --max-warnings 0"
    check = check_of(look(package(scripts={"lint": script})), "eslint")
    assert check.argv == (
        *("{node_modules}/.bin/eslint", "src", "--ext", ".ts", "--max-warnings", "0"),
        *("-f", "json", "-o", "{report}"),
    )
    assert check.report_on == "file"


def test_a_node_project_names_its_locks() -> None:
    names = ["package.json", "package-lock.json", ".npmrc"]
    (project,) = look({**package(), "package-lock.json": "{}", ".npmrc": "", "index.ts": ""}).projects
    assert (project.language, project.packages, project.sources) == (Language.NODE, ("x",), (".",))
    assert list(project.manifests) == names


@pytest.mark.parametrize("text", ["[]", "{", '{"a":', "null", '"x"', ""])
def test_a_manifest_that_says_nothing_counts_as_missing_tests(text: str) -> None:
    found = look({"package.json": text})
    assert found.checks == ()
    (told,) = found.undiscovered
    assert told.required
    assert told.reason.startswith("package.json cannot be read")


def test_the_last_of_two_equal_keys_counts_as_it_does_for_node() -> None:
    found = look({"package.json": '{"name": "x", "scripts": {"test": "jest"}, "scripts": {"test": "mocha"}}'})
    assert set(offers(found)) == {"mocha"}
    assert reasons(found) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", [("a", "b")]),
        ("a 'b c' \"d e\"f", [("a", "b c", "d ef")]),
        ("a&&b", [("a",), ("b",)]),
        ("A=1 B=2 c", [("c",)]),
        ("a ''", [("a", "")]),
        ("a | b", None),
        ("a > b", None),
        ("a; b", None),
        ("a & b", None),
        ("a && ", None),
        ("a 'b", None),
        ("a\x00b", None),
        ("", None),
        ("x" * 5000, None),
    ],
)
def test_a_script_is_read_as_far_as_it_is_words(text: str, words: list[tuple[str, ...]] | None) -> None:
    commands = words_of(text)
    assert (None if commands is None else [command.words for command in commands]) == words


def test_what_a_shell_would_change_is_not_plain() -> None:
    for text in ("a *", "a $B", 'a "$B"', "a ~", "A=1 b", "a {b,c}", "a '{tmp}'"):
        assert words_of(text) != [ScriptCommand(tuple(text.split()), is_plain=True)], text
        assert all(not command.is_plain for command in words_of(text) or ())


def test_scripts_without_an_end_are_given_up() -> None:
    assert expand({"a": "npm run b", "b": "npm run a"}, "a") is None
    assert expand({f"s{i}": f"npm run s{i + 1} && npm run s{i + 1}" for i in range(30)}, "s0") is None
