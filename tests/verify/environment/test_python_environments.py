"""Where a Python project's dependencies come from, and what is said when they cannot be had."""

import sys
from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import ReportFormat, SetupSettings
from fairwitness.verify.environment.model import NoEnvironment
from verify.environment.shops import (
    MANIFEST,
    OWN_BIN,
    SHOP,
    Bench,
    check,
    editable,
    install,
    lend_tools,
    machine,
    shop,
    venv,
    wheel,
    write,
)

ASKING = '[project]\nname = "shop"\nversion = "1.2"\ndependencies = ["greeting=={}"]\n'
LOCK = 'version = 1\n\n[[package]]\nname = "greeting"\nversion = "{}"\nsource = {{ registry = "https://x/simple" }}\n'
LOCKED = SHOP.model_copy(update={"manifests": ("pyproject.toml", "uv.lock")})


def greeting(folder: Path, version: str) -> Path:
    """A wheel of a dependency."""
    return wheel(folder, "greeting", version, {"greeting/__init__.py": f"VERSION = {version!r}\n"})


@pytest.mark.req("P9")
def test_a_changed_manifest_builds_anew_and_an_equal_one_is_found_again(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    greeting(wheels, "1.0")
    greeting(wheels, "2.0")
    environ = machine(PIP_FIND_LINKS=str(wheels))
    test = "import greeting\n\n\ndef test_version() -> None:\n    assert greeting.VERSION == '{}'\n"
    tree = shop(tmp_path / "tree", price=1)
    write(tree, {"pyproject.toml": ASKING.format("1.0"), "tests/test_shop.py": test.format("1.0")})
    first = bench.ready(tree, environ=environ)
    assert first.prepared_by == "pip install of the declared dependencies"
    assert (first.network_used, first.versions["greeting"]) == (False, "1.0")
    assert (
        bench.ready(shop(tmp_path / "same", {"pyproject.toml": ASKING.format("1.0")}, price=9), environ=environ)
        == first
    )
    write(tree, {"pyproject.toml": ASKING.format("2.0")})
    second = bench.ready(tree, environ=environ)
    assert second.digest != first.digest
    assert second.versions["greeting"] == "2.0"
    assert first.python is not None
    assert first.python.exists()  # what was made once stays as it is


@pytest.mark.req("P9")
def test_a_dependency_that_cannot_be_had_is_named_with_what_to_do(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"pyproject.toml": ASKING.format("1.0")}, price=1)
    answer = bench.prepare(tree)
    assert isinstance(answer, NoEnvironment)
    assert (
        "pip install without network failed: ERROR: No matching distribution found for greeting==1.0" in answer.reason
    )
    assert "python3 of this machine lacks greeting==1.0" in answer.reason
    assert answer.environmental
    assert "network = true" in answer.next_step


@pytest.mark.req("P9")
def test_a_broken_lock_is_the_trees_own_fault(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"uv.lock": "[[package\n"}, price=1)
    answer = bench.prepare(tree, LOCKED)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.startswith("uv.lock is not a valid lock file: ")
    assert not answer.environmental


@pytest.mark.req("P9")
def test_the_persons_environment_is_taken_only_for_equal_locks(bench: Bench, tmp_path: Path) -> None:
    files = {"pyproject.toml": ASKING.format("1.0"), "uv.lock": LOCK.format("1.0")}
    user_checkout = shop(tmp_path / "persons", files, price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    install(site, greeting(tmp_path / "wheels", "1.0"))
    tree = shop(tmp_path / "tree", files, price=2)
    environment = bench.ready(tree, LOCKED, user_checkout=user_checkout)
    assert environment.prepared_by == "the checkout's .venv (locks equal)"
    assert bench.run(environment, tree).passed
    write(tree, {"uv.lock": LOCK.format("1.0") + "\n# another state\n"})
    answer = bench.prepare(tree, LOCKED, user_checkout=user_checkout)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.endswith(".venv is for another uv.lock")


@pytest.mark.req("P9")
def test_an_environment_that_is_behind_its_lock_is_passed_over(bench: Bench, tmp_path: Path) -> None:
    files = {"pyproject.toml": MANIFEST, "uv.lock": LOCK.format("2.0")}
    user_checkout = shop(tmp_path / "persons", files, price=1)
    site = venv(user_checkout / ".venv")
    install(site, greeting(tmp_path / "wheels", "1.0"))
    environment = bench.ready(shop(tmp_path / "tree", files, price=2), LOCKED, user_checkout=user_checkout)
    assert environment.prepared_by == "python3 of this machine"


@pytest.mark.req("X5")
def test_an_environment_that_is_part_of_the_tree_is_not_taken(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    write(
        user_checkout, {".venv/pyvenv.cfg": f"home = {user_checkout}/bin\n", "bin/python3": "#!/bin/sh\necho forged\n"}
    )
    (user_checkout / "bin/python3").chmod(0o755)
    (user_checkout / ".venv/bin").mkdir()
    (user_checkout / ".venv/bin/python").symlink_to(user_checkout / "bin/python3")
    environment = bench.ready(shop(tmp_path / "tree", price=1), user_checkout=user_checkout)
    assert environment.prepared_by == "python3 of this machine"


@pytest.mark.req("X5")
def test_an_interpreter_inside_the_repository_is_never_the_machines(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"bin/python3": "#!/bin/sh\necho forged\n"}, price=1)
    (tree / "bin/python3").chmod(0o755)
    environment = bench.ready(tree, environ=machine(f"{tree}/bin:{OWN_BIN}"))
    assert environment.search == (Path(OWN_BIN), Path("/usr/bin"), Path("/bin"))
    assert environment.versions["python"] == sys.version.split()[0]


def test_an_interpreter_of_another_version_is_not_taken(bench: Bench, tmp_path: Path) -> None:
    manifest = MANIFEST.replace("dependencies", 'requires-python = ">=4"\ndependencies')
    answer = bench.prepare(shop(tmp_path / "tree", {"pyproject.toml": manifest}, price=1))
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "there is no Python >=4 on the PATH that can be run in the sandbox"
    assert answer.environmental


def test_references_to_siblings_in_a_repository_lead_into_the_worktree(bench: Bench, tmp_path: Path) -> None:
    test = "import shop, stock\n\n\ndef test_both() -> None:\n    assert (shop.price(), stock.COUNT) == (2, 20)\n"
    user_checkout = shop(tmp_path / "persons", {"libs/stock/src/stock/__init__.py": "COUNT = 10\n"}, price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    editable(site, "stock", user_checkout / "libs/stock")
    tree = shop(tmp_path / "tree", {"libs/stock/src/stock/__init__.py": "COUNT = 20\n"}, price=2)
    write(tree, {"tests/test_shop.py": test})
    environment = bench.ready(tree, user_checkout=user_checkout)
    assert "libs/stock/src" in environment.editable
    ran = bench.run(environment, tree)
    assert ran.passed, ran.said


@pytest.mark.req("P9")
def test_commands_of_the_person_come_first_and_may_install_the_project_by_reference(
    bench: Bench, tmp_path: Path
) -> None:
    script = """
        import pathlib, subprocess, sys
        target = pathlib.Path(sys.argv[1])
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target / "venv")], check=True)
        site = next((target / "venv/lib").glob("python*/site-packages"))
        site.joinpath("shop.pth").write_text(str(pathlib.Path.cwd() / "src"))
        site.joinpath("extra.py").write_text("WORD = 'extra'")
    """
    files = {"make.py": "\n".join(line[8:] for line in script.splitlines())}
    base = shop(tmp_path / "base", files, price=1)
    settings = SetupSettings(commands=(("python3", "make.py", "{env}"),))
    prepared = bench.ready(base, settings=settings)
    assert prepared.prepared_by == "the commands of [verify.setup]"
    assert "src" in prepared.editable
    head = shop(tmp_path / "head", files, price=2)
    environment = bench.ready(head, settings=settings)
    assert "src" in environment.editable  # made from another checkout, and found again for this one
    code = "import extra, shop, sys; sys.exit(shop.price() != 2 or extra.WORD != 'extra')"
    smoke = check("{python}", "-c", code, tool="python", report=ReportFormat.EXIT)
    assert bench.run(environment, head, smoke).passed
    assert not bench.run(environment, base, smoke).passed


def test_a_command_that_fails_is_shown_with_its_last_words(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", price=1)
    failing = SetupSettings(commands=(("sh", "-c", "echo error: no such luck >&2; exit 1"),))
    answer = bench.prepare(tree, settings=failing)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason.endswith("failed: error: no such luck")
    missing = SetupSettings(commands=(("no-such-program", "{env}"),))
    assert bench.prepare(tree, settings=missing) == NoEnvironment(
        "no-such-program, a command of [verify.setup], is not installed",
        environmental=True,
        next_step="install no-such-program, or put it on the PATH",
    )
    nothing = SetupSettings(commands=(("true",),))
    answer = bench.prepare(tree, settings=nothing)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "the commands of [verify.setup] left no interpreter in {env}"


def test_commands_cannot_write_into_the_tree(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", price=1)
    answer = bench.prepare(tree, settings=SetupSettings(commands=(("touch", "planted"),)))
    assert isinstance(answer, NoEnvironment)
    assert not (tree / "planted").exists()


def test_what_nobody_can_read_is_said_at_once(bench: Bench, tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"pyproject.toml": '[tool.poetry]\nname = "shop"\n'}, price=1)
    answer = bench.prepare(tree)
    assert isinstance(answer, NoEnvironment)
    assert answer.reason == "pyproject.toml declares its dependencies for Poetry alone"
    assert "[verify.setup]" in answer.next_step


FAKE_UV = """#!/bin/sh
[ "$1" = --version ] && echo "uv 9.9" && exit 0
[ -e {fails} ] && echo "error: Failed to download \\`greeting\\`" >&2 && exit 2
echo "$@" > "$UV_PROJECT_ENVIRONMENT.asked"
while [ $# -gt 0 ]; do [ "$1" = --python ] && python=$2; shift; done
cp uv.lock "$UV_PROJECT_ENVIRONMENT.lock"
exec "$python" -m venv --without-pip "$UV_PROJECT_ENVIRONMENT"
"""


@pytest.mark.req("P9")
def test_uv_installs_its_own_lock_and_never_the_project(bench: Bench, tmp_path: Path) -> None:
    tools = write(tmp_path / "tools", {"uv": FAKE_UV.format(fails="/nonexistent")})
    (tools / "uv").chmod(0o755)
    files = {
        "pyproject.toml": ASKING.format("1.0") + '[dependency-groups]\ndev = ["greeting"]\n',
        "uv.lock": LOCK.format("1.0"),
    }
    tree = shop(tmp_path / "tree", files, price=1)
    environment = bench.ready(tree, LOCKED, environ=machine(f"{tools}:{OWN_BIN}"))
    assert environment.prepared_by == "uv sync"
    assert environment.python is not None
    made = environment.python.parents[1]
    asked = made.with_name("venv.asked").read_text().split()
    assert asked[:4] == ["sync", "--frozen", "--no-install-project", "--no-install-workspace"]
    assert asked[-3:] == ["--group", "dev", "--offline"]
    assert made.with_name("venv.lock").read_text() == files["uv.lock"]


def test_without_network_pip_takes_the_locks_versions_where_uv_finds_none(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    greeting(wheels, "1.0")
    greeting(wheels, "2.0")
    tools = write(tmp_path / "tools", {"uv": FAKE_UV.format(fails="/usr")})
    (tools / "uv").chmod(0o755)
    files = {"pyproject.toml": ASKING.format("1.0").replace("==", ">="), "uv.lock": LOCK.format("1.0")}
    tree = shop(tmp_path / "tree", files, price=1)
    environ = machine(f"{tools}:{OWN_BIN}", PIP_FIND_LINKS=str(wheels))
    environment = bench.ready(tree, LOCKED, environ=environ)
    assert environment.prepared_by == "pip install of the declared dependencies"
    assert environment.versions["greeting"] == "1.0"


@pytest.mark.req("P9")
def test_a_persons_environment_that_changes_is_another_one(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    site = venv(user_checkout / ".venv")
    tree = shop(tmp_path / "tree", price=1)
    before = bench.ready(tree, user_checkout=user_checkout)
    assert bench.ready(tree, user_checkout=user_checkout) == before
    install(site, greeting(tmp_path / "wheels", "1.0"))
    after = bench.ready(tree, user_checkout=user_checkout)
    assert after.digest != before.digest
    assert after.versions["greeting"] == "1.0"


@pytest.mark.req("X5")
def test_well_known_tools_are_installed_with_the_rest_and_unknown_names_are_not(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    greeting(wheels, "1.0")
    for name in ("black", "make"):
        wheel(wheels, name, "3.0", {f"{name}/__init__.py": "", f"{name}/__main__.py": "print('ran')\n"})
    tree = shop(tmp_path / "tree", {"pyproject.toml": ASKING.format("1.0")}, price=1)
    environ = machine(PIP_FIND_LINKS=str(wheels))
    environment = bench.ready(tree, environ=environ, tools=("black", "isort", "make", "unittest"))
    assert environment.versions["black"] == "3.0"
    assert not {"isort", "make"} & set(environment.versions)  # the one cannot be had, the other is no tool of Python's
    ran = bench.run(environment, tree, check("{python}", "-m", "black", report=ReportFormat.EXIT, tool="black"))
    assert (ran.said, ran.problem) == ("ran\n", None)
