"""The tests of a Node project: the runner behind its test script, asked for a report that names every test."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.verify.discovery.documents import texts
from fairwitness.verify.discovery.programs import NODE_REPORTER
from fairwitness.verify.discovery.roots import has_tests
from fairwitness.verify.discovery.scripts import Command, expand, program_of, without
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import Tree, join

NODE_TEST = (f"--test-reporter={NODE_REPORTER}", "--test-reporter-destination={report}")
_NODE_TEST_FILE = re.compile(r"""(?:require\(|from|import)\s*["']node:test["']""")
_TEST_FILES = (
    "*.test.js",
    "*.test.mjs",
    "*.test.cjs",
    "*-test.js",
    "*_test.js",
    "test-*.js",
    "test.js",
    "*.js",
    "*.mjs",
)
_LOOKED_AT = 200


class Runner(NamedTuple):
    """How a test runner is asked for its report, and what of the project's own arguments would be in the way."""

    options: tuple[str, ...]
    report: ReportFormat
    report_on: str = "file"
    flags: frozenset[str] = frozenset()
    """What would stop early, wait for changes, write into the tree, or pass without a test."""
    values: frozenset[str] = frozenset()
    """What would send the report elsewhere, followed by a value."""


_WAITS = frozenset({"--watch", "-w", "--bail", "-b"})
_JEST = frozenset({"--watch", "--watchAll", "--bail", "-b", "--json", "--passWithNoTests", "--updateSnapshot", "-u"})
_MOCHA = frozenset({"--reporter", "-R", "--reporter-option", "--reporter-options", "-O"})
RUNNERS: Mapping[str, Runner] = {
    "jest": Runner(
        ("--ci", "--json", "--outputFile={report}"), ReportFormat.JEST, "file", _JEST, frozenset({"--outputFile"})
    ),
    "react-scripts": Runner(
        ("--watchAll=false", "--ci", "--json", "--outputFile={report}"),
        ReportFormat.JEST,
        "file",
        _JEST,
        frozenset({"--outputFile"}),
    ),
    "vitest": Runner(
        ("--run", "--reporter=junit", "--outputFile={report}"),
        ReportFormat.JUNIT,
        "file",
        frozenset({"--watch", "-w", "--ui", "--run", "--passWithNoTests", "--update", "-u"}),
        frozenset({"--reporter", "--outputFile", "--bail"}),
    ),
    "mocha": Runner(
        ("--reporter", "xunit", "--reporter-option", "output={report}"), ReportFormat.JUNIT, "file", _WAITS, _MOCHA
    ),
    "ava": Runner(
        ("--tap",),
        ReportFormat.TAP,
        "stdout",
        frozenset({"--watch", "-w", "--tap", "-t", "--fail-fast", "--update-snapshots", "-u"}),
    ),
    "tap": Runner(("--reporter=tap",), ReportFormat.TAP, "stdout", _WAITS, frozenset({"--reporter", "-R"})),
    "tape": Runner((), ReportFormat.TAP, "stdout"),
}
_HARMLESS = frozenset({"eslint", "prettier", "standard", "xo", "echo", "biome", "stylelint"})
"""What often stands before the tests in a script and changes nothing for them."""


def look_for_tests(tree: Tree, found: Found, manifest: Mapping[str, object], dependencies: set[str]) -> None:
    """Notes the project's tests."""
    declared = manifest.get("scripts")
    scripts: Mapping[str, object] = declared if isinstance(declared, dict) else {}
    script = scripts.get("test")
    where = found.where("package.json", "scripts.test")
    if not isinstance(script, str) or not has_tests(script):
        _look_without_script(tree, found, dependencies)
        return
    commands = [command for command in expand(scripts, "test") or () if not _is_harmless(command)]
    if len(commands) == 1 and _note_direct(found, commands[0], where):
        return
    last = commands[-1] if commands else None
    if last is not None and _note_through_npm(found, scripts, last, where):
        return
    found.check("npm-test", "tests", ("npm", "run", "test", "--silent"), tool="npm", writes=True, found_in=where)


def _is_harmless(command: Command) -> bool:
    program, arguments, _ = program_of(command)
    return program in _HARMLESS or (program == "tsc" and "--noEmit" in arguments)


def _note_direct(found: Found, command: Command, where: str) -> bool:
    """A script that is one plain command needs no shell and no npm."""
    program, arguments, direct = program_of(command)
    if not command.is_plain or not direct:
        return False
    if program == "node" and "--test" in arguments:
        rest = [word for word in arguments if word != "--test" and not word.startswith(("--test-reporter", "--watch"))]
        _note(found, "node-test", ("node", "--test", *NODE_TEST, *rest), "node", ReportFormat.JUNIT, "file", where)
        return True
    runner = RUNNERS.get(program)
    if runner is None or (program == "react-scripts" and arguments[:1] != ("test",)):
        return False
    if program == "vitest" and arguments[:1] in (("run",), ("watch",), ("dev",)):
        arguments = arguments[1:]
    kept = without(arguments, runner.flags, runner.values)
    argv = (f"{{node_modules}}/.bin/{program}", *kept, *runner.options)
    _note(found, program, argv, program, runner.report, runner.report_on, where)
    return True


def _note_through_npm(found: Found, scripts: Mapping[str, object], last: Command, where: str) -> bool:
    """What only a shell can run is run by npm, with our options at the end, where the last command gets them."""
    program, arguments, _ = program_of(last)
    argv: tuple[str, ...] = ("npm", "run", "test", "--silent")
    if program == "node" and "--test" in arguments:
        # node takes no options behind its arguments, but npm hands them to every node it starts, unless a script
        # sets its own
        if any("NODE_OPTIONS" in text for text in texts(list(scripts.values()))):
            return False
        argv = (*argv, f"--node-options={' '.join(NODE_TEST)}")
        _note(found, "node-test", argv, "node", ReportFormat.JUNIT, "file", where)
        return True
    runner = RUNNERS.get(program)
    if runner is None or not last.takes_arguments:
        return False
    if runner.options:
        argv = (*argv, *["--"] * (1 + last.dashes), *runner.options)
    _note(found, program, argv, program, runner.report, runner.report_on, where)
    return True


def _note(
    found: Found, id_: str, argv: Sequence[str], tool: str, report: ReportFormat, report_on: str, where: str
) -> None:
    found.check(id_, "tests", argv, tool=tool, report=report, report_on=report_on, writes=True, found_in=where)


def _look_without_script(tree: Tree, found: Found, dependencies: set[str]) -> None:
    """Tests that no script runs: by a runner among the dependencies, or written for node's own."""
    for program in ("jest", "vitest", "mocha", "ava"):
        if program in dependencies:
            runner = RUNNERS[program]
            argv = (f"{{node_modules}}/.bin/{program}", *runner.options)
            where = found.where("package.json", "devDependencies")
            _note(found, program, argv, program, runner.report, runner.report_on, where)
            return
    for folder in ("test", "tests", "__tests__", "."):
        for name in tree.names(found.root if folder == "." else join(found.root, folder), *_TEST_FILES)[:_LOOKED_AT]:
            path = name if folder == "." else f"{folder}/{name}"
            if _NODE_TEST_FILE.search(tree.text(join(found.root, path)) or ""):
                argv = ("node", "--test", *NODE_TEST)
                _note(found, "node-test", argv, "node", ReportFormat.JUNIT, "file", found.where(path))
                return


def dependencies_of(manifest: Mapping[str, object]) -> set[str]:
    """The names of everything a package.json depends on."""
    groups = [manifest.get(f"{kind}ependencies") for kind in ("d", "devD", "peerD", "optionalD")]
    return {name for group in groups if isinstance(group, dict) for name in texts(list(group))}
