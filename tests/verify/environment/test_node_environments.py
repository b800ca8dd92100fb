"""A Node project's dependencies come from its lock alone, and its own packages from the worktree."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import CheckSpec, Language, Project, ReportFormat, SetupSettings
from fairwitness.verify.environment.model import Environment, NoEnvironment, ResolvedCommand, Unavailable
from fairwitness.verify.environment.node_modules import furnish, node_origin_problem
from fairwitness.verify.environment.resolve import resolve
from verify.environment.shops import Bench, write

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm on this machine")

TILL = Project(root=".", language=Language.NODE, manifests=("package.json", "package-lock.json"), packages=("till",))
MANIFEST = {"name": "till", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}}
HASH = "41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng=="
LOCK = {
    "name": "till",
    "version": "1.0.0",
    "lockfileVersion": 3,
    "requires": True,
    "packages": {
        "": {"name": "till", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}},
        "node_modules/is-number": {
            "version": "7.0.0",
            "resolved": "https://registry.npmjs.org/is-number/-/is-number-7.0.0.tgz",
            "integrity": f"sha512-{HASH}",
            "engines": {"node": ">=0.12.0"},
        },
    },
}
TEST = "const test = require('node:test');\nconst till = require('./till.js');\n"
TEST += "test('total', () => { if (till.total(1, 2) !== 3) throw new Error('wrong'); });\n"
CODE = "const isNumber = require('is-number');\nexports.total = (a, b) => isNumber(a) ? a + b : NaN;\n"


def till(folder: Path, **more: str) -> Path:
    """A project with one real dependency."""
    files = {
        "package.json": json.dumps(MANIFEST),
        "package-lock.json": json.dumps(LOCK),
        "till.js": CODE,
        "till.test.js": TEST,
    }
    return write(folder, {**files, **more})


def node(*argv: str, tool: str = "node") -> CheckSpec:
    """A check of the project."""
    return CheckSpec(
        id=tool,
        name="tests",
        tier=2,
        root=".",
        language=Language.NODE,
        tool=tool,
        argv=argv,
        report=ReportFormat.TAP,
        writes=True,
        required=True,
        found_in="package.json",
    )


PERSON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
TESTS = node("node", "--test", "--test-reporter=tap", "till.test.js")


def pretend_install(user_checkout: Path, version: str = "7.0.0") -> Path:
    """What `npm ci` would leave, without a registry."""
    about = {"version": version}
    files = {
        "is-number/package.json": json.dumps({"name": "is-number", "version": version, "bin": {"is-number": "cli.js"}}),
        "is-number/index.js": "module.exports = (value) => typeof value === 'number';\n",
        "is-number/cli.js": "#!/usr/bin/env node\nconsole.log(require('is-number')(1));\n",
        ".package-lock.json": json.dumps({"lockfileVersion": 3, "packages": {"node_modules/is-number": about}}),
    }
    modules = write(user_checkout / "node_modules", files)
    (modules / "is-number/cli.js").chmod(0o755)
    (modules / ".bin").mkdir()
    (modules / ".bin/is-number").symlink_to("../is-number/cli.js")
    return modules


@pytest.mark.req("P9")
def test_a_real_dependency_is_installed_from_the_lock(bench: Bench, tmp_path: Path) -> None:
    asked = subprocess.run(["npm", "view", "is-number@7.0.0", "version"], capture_output=True, check=False, timeout=60)
    if asked.returncode:
        pytest.skip("the npm registry cannot be reached")
    tree = till(tmp_path / "tree")
    environment = bench.ready(tree, TILL, settings=SetupSettings(network=True), environ={**PERSON, **_certificates()})
    assert (environment.prepared_by, environment.network_used) == ("npm ci", True)
    ran = bench.run(environment, tree, TESTS, TILL)
    assert ran.passed, ran.said
    assert ran.problem is None
    assert bench.ready(tree, TILL, environ=PERSON) == environment  # found again, without network
    assert not (tree / "node_modules").is_symlink()
    assert (tree / "node_modules" / "is-number").is_symlink()


@pytest.mark.req("P9")
def test_what_npm_fetched_before_is_enough_without_network(bench: Bench, tmp_path: Path) -> None:
    fetched = till(tmp_path / "fetched")
    command = ["npm", "ci", "--ignore-scripts", "--cache", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=fetched, capture_output=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip("the npm registry cannot be reached")
    tree = till(tmp_path / "tree")
    environment = bench.ready(tree, TILL, environ={**PERSON, "npm_config_cache": str(tmp_path / "cache")})
    assert (environment.prepared_by, environment.network_used) == ("npm ci", False)
    assert bench.run(environment, tree, TESTS, TILL).passed


def _certificates() -> dict[str, str]:
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    return {"NODE_EXTRA_CA_CERTS": bundle} if Path(bundle).exists() else {}


@pytest.mark.req("P9")
def test_the_persons_modules_are_taken_only_for_equal_locks(bench: Bench, tmp_path: Path) -> None:
    user_checkout = till(tmp_path / "persons")
    modules = pretend_install(user_checkout)
    tree = till(tmp_path / "tree")
    environment = bench.ready(tree, TILL, user_checkout=user_checkout, environ=PERSON)
    assert environment.prepared_by == "the checkout's node_modules (locks equal)"
    assert environment.node_modules == modules
    ran = bench.run(environment, tree, TESTS, TILL)
    assert ran.passed, ran.said
    write(tree, {"package-lock.json": json.dumps({**LOCK, "version": "1.0.1"})})
    answer = bench.prepare(tree, TILL, user_checkout=user_checkout, environ=PERSON)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.startswith("npm ci without network failed: ")
    assert answer.reason.endswith("the checkout's node_modules is for another package-lock.json")
    assert answer.environmental


@pytest.mark.req("P9")
def test_modules_that_are_behind_the_lock_are_passed_over(bench: Bench, tmp_path: Path) -> None:
    user_checkout = till(tmp_path / "persons")
    pretend_install(user_checkout, version="6.0.0")
    answer = bench.prepare(till(tmp_path / "tree"), TILL, user_checkout=user_checkout, environ=PERSON)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.endswith("the checkout's node_modules holds another is-number than the lock")


@pytest.mark.req("P9")
def test_without_a_lock_nothing_is_installed(bench: Bench, tmp_path: Path) -> None:
    tree = till(tmp_path / "tree")
    (tree / "package-lock.json").unlink()
    answer = bench.prepare(tree, TILL, environ=PERSON, settings=SetupSettings(network=True))
    assert isinstance(answer, NoEnvironment)
    assert "npm install is refused" in answer.reason
    assert not answer.environmental
    write(tree, {"yarn.lock": "# yarn lockfile v1\n"})
    answer = bench.prepare(tree, TILL, environ=PERSON)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "Fair Witness cannot install from yarn.lock"


@pytest.mark.req("P9")
def test_a_broken_lock_is_the_trees_own_fault(bench: Bench, tmp_path: Path) -> None:
    tree = till(tmp_path / "tree", **{"package-lock.json": '{"lockfileVersion": 3, '})
    answer = bench.prepare(tree, TILL, environ=PERSON)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "package-lock.json is not a valid npm lock file"
    assert not answer.environmental
    write(tree, {"package.json": "{"})
    assert bench.prepare(tree, TILL, environ=PERSON) == NoEnvironment(
        "package.json cannot be read", environmental=False
    )


def test_commands_of_the_person_may_bring_the_modules(bench: Bench, tmp_path: Path) -> None:
    tree = till(tmp_path / "tree")
    pretend_install(tmp_path / "store")
    make = ("cp", "-r", "vendored", "{env}/node_modules")
    shutil.move(tmp_path / "store/node_modules", tree / "vendored")
    environment = bench.ready(tree, TILL, environ=PERSON, settings=SetupSettings(commands=(make,)))
    assert environment.prepared_by == "the commands of [verify.setup]"
    assert bench.run(environment, tree, TESTS, TILL).passed
    answer = bench.prepare(tree, TILL, environ=PERSON, settings=SetupSettings(commands=(("true",),)))
    assert answer == NoEnvironment("the commands of [verify.setup] left no node_modules in {env}", environmental=False)


@pytest.mark.req("P9")
def test_a_lock_that_contradicts_its_manifest_is_the_trees_own_fault(bench: Bench, tmp_path: Path) -> None:
    tree = till(tmp_path / "tree", **{"package.json": json.dumps({**MANIFEST, "dependencies": {"is-number": "6.0.0"}})})
    answer = bench.prepare(tree, TILL, environ=PERSON)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.endswith("failed, and the lock and package.json disagree about is-number")
    assert not answer.environmental


def test_a_project_without_dependencies_needs_nothing(bench: Bench, tmp_path: Path) -> None:
    tree = till(
        tmp_path / "tree", **{"package.json": '{"name": "till"}', "till.js": "exports.total = (a, b) => a + b;\n"}
    )
    (tree / "package-lock.json").unlink()
    environment = bench.ready(tree, TILL, environ=PERSON)
    assert (environment.prepared_by, environment.node_modules) == ("node of this machine", None)
    assert bench.run(environment, tree, TESTS, TILL).passed


def workspaces(folder: Path, *, total: str) -> Path:
    """Two packages of one repository, the one built on the other."""
    lock = {
        "lockfileVersion": 3,
        "packages": {"": {}, "node_modules/sums": {"resolved": "packages/sums", "link": True}},
    }
    return write(
        folder,
        {
            "package.json": '{"name": "till", "workspaces": ["packages/*"]}',
            "package-lock.json": json.dumps(lock),
            "packages/sums/package.json": '{"name": "sums", "version": "1.0.0"}',
            "packages/sums/index.js": f"exports.total = {total};\n",
            "till.js": "exports.total = require('sums').total;\n",
            "till.test.js": TEST,
        },
    )


@pytest.mark.req("P9")
def test_packages_of_the_repository_itself_come_from_the_worktree(bench: Bench, tmp_path: Path) -> None:
    user_checkout = workspaces(tmp_path / "persons", total="(a, b) => a - b")
    modules = write(user_checkout / "node_modules", {".package-lock.json": '{"packages": {}}'})
    (modules / "sums").symlink_to("../packages/sums")
    tree = workspaces(tmp_path / "tree", total="(a, b) => a + b")
    environment = bench.ready(tree, TILL, user_checkout=user_checkout, environ=PERSON)
    assert environment.own == ("sums", "till")
    ran = bench.run(environment, tree, TESTS, TILL)
    assert ran.passed, ran.said
    assert ran.problem is None
    (tree / "node_modules/sums").unlink()
    (tree / "node_modules/sums").symlink_to(user_checkout / "packages/sums")
    assert (
        node_origin_problem(("sums",), tree)
        == f"`sums` was loaded from {user_checkout}/packages/sums, not from this tree"
    )


@pytest.mark.req("P9")
def test_a_package_of_the_repository_keeps_dependencies_of_its_own(bench: Bench, tmp_path: Path) -> None:
    user_checkout = workspaces(tmp_path / "persons", total="(a, b) => require('deep').add(a, b) - 100")
    modules = write(user_checkout / "node_modules", {".package-lock.json": '{"packages": {}}', "@till/x/index.js": ""})
    (modules / "sums").symlink_to("../packages/sums")
    write(user_checkout / "packages/sums/node_modules", {"deep/index.js": "exports.add = (a, b) => a + b;\n"})
    (user_checkout / "packages/sums/node_modules/sums").symlink_to("../../sums")
    tree = workspaces(tmp_path / "tree", total="(a, b) => require('deep').add(a, b)")
    environment = bench.ready(tree, TILL, user_checkout=user_checkout, environ=PERSON)
    ran = bench.run(environment, tree, TESTS, TILL)
    assert ran.passed, ran.said
    assert (tree / "node_modules/@till/x/index.js").exists()
    assert (tree / "packages/sums/node_modules/sums").resolve() == tree / "packages/sums"


def test_modules_that_the_tree_brings_itself_are_left_alone(tmp_path: Path) -> None:
    tree = till(tmp_path / "tree", **{"node_modules/own/index.js": "exports.here = true;\n"})
    prepared = write(tmp_path / "prepared", {"other/index.js": ""})
    environment = Environment(
        project=TILL, language=Language.NODE, digest="0", prepared_by="a test", node_modules=prepared
    )
    furnish(tree, TILL, environment)
    assert [entry.name for entry in (tree / "node_modules").iterdir()] == ["own"]


@pytest.mark.req("X5")
def test_programs_of_dependencies_are_started_from_outside_the_tree(bench: Bench, tmp_path: Path) -> None:
    user_checkout = till(tmp_path / "persons")
    modules = pretend_install(user_checkout)
    tree = till(tmp_path / "tree")
    environment = bench.ready(tree, TILL, user_checkout=user_checkout, environ=PERSON)
    ran = bench.run(environment, tree, node("{node_modules}/.bin/is-number", tool="is-number"), TILL)
    assert ran.said == "true\n"
    assert (ran.resolved.argv[0], ran.resolved.tool_version) == (f"{modules}/.bin/is-number", "7.0.0")
    by_name = resolve(
        node("is-number", tool="is-number"), environment, checkout=tree, report=tmp_path / "r", tmp=tmp_path
    )
    assert isinstance(by_name, ResolvedCommand)
    assert by_name.argv[0] == ran.resolved.argv[0]
    missing = resolve(
        node("{node_modules}/.bin/eslint"), environment, checkout=tree, report=tmp_path / "r", tmp=tmp_path
    )
    assert isinstance(missing, Unavailable)
    assert missing.reason.startswith("eslint is configured (package.json) but not installed")
