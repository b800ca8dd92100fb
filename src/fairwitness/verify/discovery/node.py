"""Checks of a Node project: its tests, with a report that names every test, and its other checks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fairwitness.contracts.verify.checks import Language, Project, ReportFormat
from fairwitness.verify.discovery.documents import UnreadableDocument, texts
from fairwitness.verify.discovery.programs import NODE_REPORTER, NODE_SYNTAX
from fairwitness.verify.discovery.roots import folders_above, has_tests, is_member
from fairwitness.verify.discovery.scripts import ScriptCommand, expand, program_of, without
from fairwitness.verify.discovery.specs import ProjectChecks
from fairwitness.verify.discovery.tree import TOP, IndexedTree, inside, join

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


class NodeTestRunner(NamedTuple):
    """The options for a test runner's report, and the project's own arguments that conflict with them."""

    options: tuple[str, ...]
    report: ReportFormat
    report_on: str = "file"
    flags: frozenset[str] = frozenset()
    """Flags that stop early, wait for changes, write into the tree, or pass without a test."""
    values: frozenset[str] = frozenset()
    """Options with a value that redirect the report."""


_WAITS = frozenset({"--watch", "-w", "--bail", "-b"})
_JEST = frozenset({"--watch", "--watchAll", "--bail", "-b", "--json", "--passWithNoTests", "--updateSnapshot", "-u"})
_MOCHA = frozenset({"--reporter", "-R", "--reporter-option", "--reporter-options", "-O"})
RUNNERS: Mapping[str, NodeTestRunner] = {
    "jest": NodeTestRunner(
        ("--ci", "--json", "--outputFile={report}"), ReportFormat.JEST, "file", _JEST, frozenset({"--outputFile"})
    ),
    "react-scripts": NodeTestRunner(
        ("--watchAll=false", "--ci", "--json", "--outputFile={report}"),
        ReportFormat.JEST,
        "file",
        _JEST,
        frozenset({"--outputFile"}),
    ),
    "vitest": NodeTestRunner(
        ("--run", "--reporter=junit", "--outputFile={report}"),
        ReportFormat.JUNIT,
        "file",
        frozenset({"--watch", "-w", "--ui", "--run", "--passWithNoTests", "--update", "-u"}),
        frozenset({"--reporter", "--outputFile", "--bail"}),
    ),
    "mocha": NodeTestRunner(
        ("--reporter", "xunit", "--reporter-option", "output={report}"), ReportFormat.JUNIT, "file", _WAITS, _MOCHA
    ),
    "ava": NodeTestRunner(
        ("--tap",),
        ReportFormat.TAP,
        "stdout",
        frozenset({"--watch", "-w", "--tap", "-t", "--fail-fast", "--update-snapshots", "-u"}),
    ),
    "tap": NodeTestRunner(("--reporter=tap",), ReportFormat.TAP, "stdout", _WAITS, frozenset({"--reporter", "-R"})),
    "tape": NodeTestRunner((), ReportFormat.TAP, "stdout"),
}
_HARMLESS = frozenset({"eslint", "prettier", "standard", "xo", "echo", "biome", "stylelint"})
"""Programs that often precede the tests in a script and do not affect them."""


def _add_tests(
    tree: IndexedTree, project_checks: ProjectChecks, manifest: Mapping[str, object], dependencies: set[str]
) -> None:
    """Add the project's tests."""
    declared = manifest.get("scripts")
    scripts: Mapping[str, object] = declared if isinstance(declared, dict) else {}
    script = scripts.get("test")
    where = project_checks.where("package.json", "scripts.test")
    if not isinstance(script, str) or not has_tests(script):
        _add_tests_without_script(tree, project_checks, dependencies)
        return
    commands = [command for command in expand(scripts, "test") or () if not _is_harmless(command)]
    if len(commands) == 1 and _add_direct(project_checks, commands[0], where):
        return
    last = commands[-1] if commands else None
    if last is not None and _add_through_npm(project_checks, scripts, last, where):
        return
    project_checks.add_check(
        "npm-test", "tests", ("npm", "run", "test", "--silent"), tool="npm", writes=True, found_in=where
    )


def _is_harmless(command: ScriptCommand) -> bool:
    program, arguments, _ = program_of(command)
    return program in _HARMLESS or (program == "tsc" and "--noEmit" in arguments)


def _add_direct(project_checks: ProjectChecks, command: ScriptCommand, where: str) -> bool:
    """Add the tests of a script that is one plain command, which needs no shell or npm; return whether it is one."""
    program, arguments, direct = program_of(command)
    if not command.is_plain or not direct:
        return False
    if program == "node" and "--test" in arguments:
        rest = [word for word in arguments if word != "--test" and not word.startswith(("--test-reporter", "--watch"))]
        _add(
            project_checks,
            "node-test",
            ("node", "--test", *NODE_TEST, *rest),
            "node",
            ReportFormat.JUNIT,
            "file",
            where,
        )
        return True
    runner = RUNNERS.get(program)
    if runner is None or (program == "react-scripts" and arguments[:1] != ("test",)):
        return False
    if program == "vitest" and arguments[:1] in (("run",), ("watch",), ("dev",)):
        arguments = arguments[1:]
    kept = without(arguments, runner.flags, runner.values)
    argv = (f"{{node_modules}}/.bin/{program}", *kept, *runner.options)
    _add(project_checks, program, argv, program, runner.report, runner.report_on, where)
    return True


def _add_through_npm(
    project_checks: ProjectChecks, scripts: Mapping[str, object], last: ScriptCommand, where: str
) -> bool:
    """Add tests that only a shell can run: npm runs them, and the last command gets our options at the end."""
    program, arguments, _ = program_of(last)
    argv: tuple[str, ...] = ("npm", "run", "test", "--silent")
    if program == "node" and "--test" in arguments:
        # node takes no options after its arguments, but npm passes them to every node it starts, unless a script
        # sets its own
        if any("NODE_OPTIONS" in text for text in texts(list(scripts.values()))):
            return False
        argv = (*argv, f"--node-options={' '.join(NODE_TEST)}")
        _add(project_checks, "node-test", argv, "node", ReportFormat.JUNIT, "file", where)
        return True
    runner = RUNNERS.get(program)
    if runner is None or not last.takes_arguments:
        return False
    if runner.options:
        argv = (*argv, *["--"] * (1 + last.dashes), *runner.options)
    _add(project_checks, program, argv, program, runner.report, runner.report_on, where)
    return True


def _add(
    project_checks: ProjectChecks,
    id_: str,
    argv: Sequence[str],
    tool: str,
    report: ReportFormat,
    report_on: str,
    where: str,
) -> None:
    project_checks.add_check(
        id_, "tests", argv, tool=tool, report=report, report_on=report_on, writes=True, found_in=where
    )


def _add_tests_without_script(tree: IndexedTree, project_checks: ProjectChecks, dependencies: set[str]) -> None:
    """Add tests that no script runs: for a runner among the dependencies, or for node's own runner."""
    for program in ("jest", "vitest", "mocha", "ava"):
        if program in dependencies:
            runner = RUNNERS[program]
            argv = (f"{{node_modules}}/.bin/{program}", *runner.options)
            where = project_checks.where("package.json", "devDependencies")
            _add(project_checks, program, argv, program, runner.report, runner.report_on, where)
            return
    for folder in ("test", "tests", "__tests__", "."):
        for name in tree.names(
            project_checks.root if folder == "." else join(project_checks.root, folder), *_TEST_FILES
        )[:_LOOKED_AT]:
            path = name if folder == "." else f"{folder}/{name}"
            if _NODE_TEST_FILE.search(tree.text(join(project_checks.root, path)) or ""):
                argv = ("node", "--test", *NODE_TEST)
                _add(project_checks, "node-test", argv, "node", ReportFormat.JUNIT, "file", project_checks.where(path))
                return


def dependencies_of(manifest: Mapping[str, object]) -> set[str]:
    """Return the names of everything a package.json depends on."""
    groups = [manifest.get(f"{kind}ependencies") for kind in ("d", "devD", "peerD", "optionalD")]
    return {name for group in groups if isinstance(group, dict) for name in texts(list(group))}


_MANIFESTS = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml"),
    *("lerna.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".nvmrc", ".node-version", "bun.lock"),
)
_ESLINT = ("eslint.config.*", ".eslintrc", ".eslintrc.*")
_SCRIPTS = {
    "lint": ("lint", "npm-lint"),
    "typecheck": ("type-check", "npm-typecheck"),
    "type-check": ("type-check", "npm-typecheck"),
    "check-types": ("type-check", "npm-typecheck"),
    "build": ("build", "npm-build"),
}
_COMPILED = re.compile(r"^(?:@babel/|babel-|react-scripts$|react-native$|next$|gatsby$|expo$|flow-bin$|preact$)")
"""Dependencies of projects whose .js files contain more than JavaScript, which node rejects."""
_NO_FILES = re.compile(r'"files"\s*:\s*\[\s*\]')
_MOST_MEMBERS = 500
_ESLINT_OURS = frozenset({"--fix", "--cache", "--fix-dry-run", "--color"})
_ESLINT_VALUES = frozenset({"-f", "--format", "-o", "--output-file", "--cache-location"})


def add_node_checks(tree: IndexedTree, project_checks: ProjectChecks, others: Iterable[str]) -> None:
    """Add a Node project and its checks; `others` are Node projects below it."""
    manifest = tree.json(join(project_checks.root, "package.json"))
    nested = tuple(others)
    project_checks.project = _describe(tree, project_checks.root, manifest, _members(tree, project_checks.root))
    if not isinstance(manifest, dict):
        reason = manifest.reason if isinstance(manifest, UnreadableDocument) else "it holds no object"
        project_checks.add_unreadable("package.json", reason)
        return
    dependencies = dependencies_of(manifest)
    declared = manifest.get("scripts")
    scripts: Mapping[str, object] = declared if isinstance(declared, dict) else {}
    _add_tests(tree, project_checks, manifest, dependencies)
    _add_syntax(tree, project_checks, dependencies, nested)
    _add_tsc(tree, project_checks, scripts)
    _add_eslint(tree, project_checks, manifest, scripts)
    _add_scripts(project_checks, scripts)


def _describe(tree: IndexedTree, root: str, manifest: Any, members: list[str]) -> Project:
    above = [folder for folder in folders_above(root) if is_member(tree, folder, root)]
    folders = [*above, root, *members]
    names = [manifest.get("name")] if isinstance(manifest, dict) else []
    for member in members:
        inner = tree.json(join(member, "package.json"))
        names += [inner.get("name")] if isinstance(inner, dict) else []
    return Project(
        root=root,
        language=Language.NODE,
        manifests=tuple(
            join(folder, name) for folder in folders for name in _MANIFESTS if tree.has(join(folder, name))
        ),
        packages=tuple(dict.fromkeys(name for name in texts(names) if name.strip() and name.isprintable())),
        sources=(root,),
    )


def _members(tree: IndexedTree, root: str) -> list[str]:
    """Return the workspaces of a project."""
    named = tree.folders_with({"package.json"})
    below = [folder for folder in named if folder != root and inside(folder, root)]
    return [folder for folder in below[:_MOST_MEMBERS] if is_member(tree, root, folder)]


def _add_syntax(
    tree: IndexedTree, project_checks: ProjectChecks, dependencies: set[str], nested: tuple[str, ...]
) -> None:
    own = [
        path
        for path in tree.under(project_checks.root)
        if path.endswith((".js", ".mjs", ".cjs")) and not any(inside(path, other) for other in nested)
    ]
    if not own or any(_COMPILED.match(name) for name in dependencies):
        return
    start = 0 if project_checks.root == TOP else len(project_checks.root) + 1
    argv = (
        "node",
        "--experimental-vm-modules",
        "--no-warnings",
        "-e",
        NODE_SYNTAX,
        "--",
        *(other[start:] for other in nested),
    )
    project_checks.add_check(
        "node-syntax",
        "syntax-check",
        argv,
        tool="node",
        report=ReportFormat.COMPILER,
        found_in=project_checks.where(own[0][start:]),
    )


def _add_tsc(tree: IndexedTree, project_checks: ProjectChecks, scripts: Mapping[str, object]) -> None:
    text = tree.text(join(project_checks.root, "tsconfig.json"))
    if text is None:
        return
    plain = _without_comments(text)
    own = _plain_script(scripts, ("typecheck", "type-check", "check-types"), "tsc")
    # a configuration that only references others checks nothing by itself, and passes
    points_only = '"references"' in plain and _NO_FILES.search(plain) is not None
    if own is not None:
        options = without(own, {"--noEmit", "--watch", "-w"}, {"--pretty"})
        argv = ["{node_modules}/.bin/tsc", *options]
        points_only = any(word in ("-b", "--build") for word in options)
    else:
        argv = ["{node_modules}/.bin/tsc", *(["-b"] if points_only else [])]
    argv += ["--pretty", "false"] if points_only else ["--noEmit", "--pretty", "false"]
    project_checks.add_check(
        "tsc",
        "type-check",
        argv,
        tool="typescript",
        report=ReportFormat.TSC,
        writes=points_only or '"incremental"' in plain or '"composite"' in plain,
        found_in=project_checks.where("tsconfig.json"),
    )


def _without_comments(text: str) -> str:
    """Return JSON without comments, precise enough to search for keys."""
    text = "\n".join(line.partition("//")[0] for line in text.split("\n"))
    kept, at = [], 0
    while (begin := text.find("/*", at)) >= 0:
        kept.append(text[at:begin])
        end = text.find("*/", begin + 2)
        at = end + 2 if end >= 0 else len(text)
    return " ".join([*kept, text[at:]])


def _add_eslint(
    tree: IndexedTree, project_checks: ProjectChecks, manifest: Mapping[str, object], scripts: Mapping[str, object]
) -> None:
    config = tree.names(project_checks.root, *_ESLINT)
    own = _plain_script(scripts, ("lint", "eslint"), "eslint")
    if not config and "eslintConfig" not in manifest and own is None:
        return
    arguments = without(own if own is not None else (".",), _ESLINT_OURS, _ESLINT_VALUES)
    project_checks.add_check(
        "eslint",
        "lint",
        ("{node_modules}/.bin/eslint", *arguments, "-f", "json", "-o", "{report}"),
        report=ReportFormat.ESLINT,
        report_on="file",
        found_in=project_checks.where(config[0]) if config else project_checks.where("package.json", "scripts.lint"),
    )


def _plain_script(scripts: Mapping[str, object], names: tuple[str, ...], program: str) -> tuple[str, ...] | None:
    """Return the arguments with which a project itself calls a tool; None if no script is just that call."""
    for name in names:
        commands = expand(scripts, name)
        if commands is not None and len(commands) == 1 and commands[0].is_plain:
            called, arguments, direct = program_of(commands[0])
            if called == program and direct:
                return arguments
    return None


def _add_scripts(project_checks: ProjectChecks, scripts: Mapping[str, object]) -> None:
    """Add scripts that do what no other check does."""
    tools = {check.id.rpartition("/")[2] for check in project_checks.checks}
    for script, (name, id_) in _SCRIPTS.items():
        text = scripts.get(script)
        if not isinstance(text, str) or not text.strip() or id_ in tools:
            continue
        commands = expand(scripts, script)
        if commands is not None and all(_is_known(command, tools) for command in commands):
            continue
        tools.add(id_)
        project_checks.add_check(
            id_,
            name,
            ("npm", "run", script, "--silent"),
            tool="npm",
            writes=True,
            found_in=project_checks.where("package.json", f"scripts.{script}"),
        )


def _is_known(command: ScriptCommand, tools: set[str]) -> bool:
    """Return True if a command is already run as a check of its own; one that builds in stages is not the same."""
    program, arguments, _ = program_of(command)
    return program in ("eslint", "tsc") and program in tools and not {"-b", "--build"}.intersection(arguments)
