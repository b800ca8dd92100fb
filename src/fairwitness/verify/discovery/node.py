"""A Node project: its manifest and locks, and what it is checked by besides its tests."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairwitness.contracts.verify.checks import Language, Project, ReportFormat
from fairwitness.verify.discovery.documents import Unreadable, texts
from fairwitness.verify.discovery.node_tests import dependencies_of, look_for_tests
from fairwitness.verify.discovery.programs import NODE_SYNTAX
from fairwitness.verify.discovery.roots import folders_above, is_member
from fairwitness.verify.discovery.scripts import Command, expand, program_of, without
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import TOP, Tree, inside, join

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
"""Tools for projects whose .js files are more than JavaScript; node would refuse them."""
_NO_FILES = re.compile(r'"files"\s*:\s*\[\s*\]')
_MOST_MEMBERS = 500
_ESLINT_OURS = frozenset({"--fix", "--cache", "--fix-dry-run", "--color"})
_ESLINT_VALUES = frozenset({"-f", "--format", "-o", "--output-file", "--cache-location"})


def look_at_node(tree: Tree, found: Found, others: Iterable[str]) -> None:
    """Notes a Node project and its checks; `others` are Node projects below it."""
    manifest = tree.json(join(found.root, "package.json"))
    nested = tuple(others)
    found.project = _describe(tree, found.root, manifest, _members(tree, found.root))
    if not isinstance(manifest, dict):
        reason = manifest.reason if isinstance(manifest, Unreadable) else "it holds no object"
        found.unreadable("package.json", reason)
        return
    dependencies = dependencies_of(manifest)
    declared = manifest.get("scripts")
    scripts: Mapping[str, object] = declared if isinstance(declared, dict) else {}
    look_for_tests(tree, found, manifest, dependencies)
    _note_syntax(tree, found, dependencies, nested)
    _note_tsc(tree, found, scripts)
    _note_eslint(tree, found, manifest, scripts)
    _note_scripts(found, scripts)


def _describe(tree: Tree, root: str, manifest: Any, members: list[str]) -> Project:
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


def _members(tree: Tree, root: str) -> list[str]:
    """The workspaces of a project."""
    named = tree.folders_with({"package.json"})
    below = [folder for folder in named if folder != root and inside(folder, root)]
    return [folder for folder in below[:_MOST_MEMBERS] if is_member(tree, root, folder)]


def _note_syntax(tree: Tree, found: Found, dependencies: set[str], nested: tuple[str, ...]) -> None:
    own = [
        path
        for path in tree.under(found.root)
        if path.endswith((".js", ".mjs", ".cjs")) and not any(inside(path, other) for other in nested)
    ]
    if not own or any(_COMPILED.match(name) for name in dependencies):
        return
    start = 0 if found.root == TOP else len(found.root) + 1
    argv = (
        "node",
        "--experimental-vm-modules",
        "--no-warnings",
        "-e",
        NODE_SYNTAX,
        "--",
        *(other[start:] for other in nested),
    )
    found.check(
        "node-syntax",
        "syntax-check",
        argv,
        tool="node",
        report=ReportFormat.COMPILER,
        found_in=found.where(own[0][start:]),
    )


def _note_tsc(tree: Tree, found: Found, scripts: Mapping[str, object]) -> None:
    text = tree.text(join(found.root, "tsconfig.json"))
    if text is None:
        return
    plain = _without_comments(text)
    own = _plain_script(scripts, ("typecheck", "type-check", "check-types"), "tsc")
    # a configuration that only points at others checks nothing by itself, and passes
    points_only = '"references"' in plain and _NO_FILES.search(plain) is not None
    if own is not None:
        options = without(own, {"--noEmit", "--watch", "-w"}, {"--pretty"})
        argv = ["{node_modules}/.bin/tsc", *options]
        points_only = any(word in ("-b", "--build") for word in options)
    else:
        argv = ["{node_modules}/.bin/tsc", *(["-b"] if points_only else [])]
    argv += ["--pretty", "false"] if points_only else ["--noEmit", "--pretty", "false"]
    found.check(
        "tsc",
        "type-check",
        argv,
        tool="typescript",
        report=ReportFormat.TSC,
        writes=points_only or '"incremental"' in plain or '"composite"' in plain,
        found_in=found.where("tsconfig.json"),
    )


def _without_comments(text: str) -> str:
    """JSON with comments without them, as far as a search for keys needs it."""
    text = "\n".join(line.partition("//")[0] for line in text.split("\n"))
    kept, at = [], 0
    while (begin := text.find("/*", at)) >= 0:
        kept.append(text[at:begin])
        end = text.find("*/", begin + 2)
        at = end + 2 if end >= 0 else len(text)
    return " ".join([*kept, text[at:]])


def _note_eslint(tree: Tree, found: Found, manifest: Mapping[str, object], scripts: Mapping[str, object]) -> None:
    config = tree.names(found.root, *_ESLINT)
    own = _plain_script(scripts, ("lint", "eslint"), "eslint")
    if not config and "eslintConfig" not in manifest and own is None:
        return
    arguments = without(own if own is not None else (".",), _ESLINT_OURS, _ESLINT_VALUES)
    found.check(
        "eslint",
        "lint",
        ("{node_modules}/.bin/eslint", *arguments, "-f", "json", "-o", "{report}"),
        report=ReportFormat.ESLINT,
        report_on="file",
        found_in=found.where(config[0]) if config else found.where("package.json", "scripts.lint"),
    )


def _plain_script(scripts: Mapping[str, object], names: tuple[str, ...], program: str) -> tuple[str, ...] | None:
    """The arguments with which a project itself calls a tool; None if no script is just that call."""
    for name in names:
        commands = expand(scripts, name)
        if commands is not None and len(commands) == 1 and commands[0].is_plain:
            called, arguments, direct = program_of(commands[0])
            if called == program and direct:
                return arguments
    return None


def _note_scripts(found: Found, scripts: Mapping[str, object]) -> None:
    """Scripts that do something no other check does."""
    tools = {check.id.rpartition("/")[2] for check in found.checks}
    for script, (name, id_) in _SCRIPTS.items():
        text = scripts.get(script)
        if not isinstance(text, str) or not text.strip() or id_ in tools:
            continue
        commands = expand(scripts, script)
        if commands is not None and all(_is_known(command, tools) for command in commands):
            continue
        tools.add(id_)
        found.check(
            id_,
            name,
            ("npm", "run", script, "--silent"),
            tool="npm",
            writes=True,
            found_in=found.where("package.json", f"scripts.{script}"),
        )


def _is_known(command: Command, tools: set[str]) -> bool:
    """True if a command is already run as a check of its own; one that builds in stages is not the same."""
    program, arguments, _ = program_of(command)
    return program in ("eslint", "tsc") and program in tools and not {"-b", "--build"}.intersection(arguments)
