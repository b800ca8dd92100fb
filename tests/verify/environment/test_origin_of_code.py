"""Tests run the code of their own worktree, whatever else is installed; where they did not, it is no evidence."""

import sys
from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.verify.environment.model import Unavailable
from fairwitness.verify.environment.origin import origin_problem
from fairwitness.verify.environment.resolve import resolve
from verify.environment.shops import (
    MANIFEST,
    PRICE,
    PYTEST,
    SHOP,
    Bench,
    check,
    editable,
    install,
    lend_tools,
    shop,
    venv,
    wheel,
    write,
)

OTHER = '[project]\nname = "other"\nversion = "1"\n'


@pytest.mark.req("P9", "X5")
def test_an_editable_install_of_another_checkout_does_not_win(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    editable(site, "shop", user_checkout)
    worktree = shop(tmp_path / "worktree", price=2)
    environment = bench.ready(worktree, user_checkout=user_checkout)
    assert environment.prepared_by == "the checkout's .venv (manifests equal, requirements met)"
    ran = bench.run(environment, worktree)
    assert ran.passed, ran.said
    assert ran.problem is None
    write(worktree, {"src/shop/__init__.py": PRICE.format(3)})
    assert not bench.run(environment, worktree).passed  # the worktree's code, and no other, decides


@pytest.mark.req("P9")
def test_neither_do_finders_that_an_editable_install_puts_in_front(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    editable(site, "shop", user_checkout, line="import _shop_finder")
    finder = f"""
        import sys
        from importlib.machinery import PathFinder

        class Finder:
            def find_spec(self, name, path=None, target=None):
                return PathFinder.find_spec(name, [{str(user_checkout / "src")!r}]) if name == "shop" else None

        sys.meta_path.insert(0, Finder())
    """
    write(site, {"_shop_finder.py": "\n".join(line[8:] for line in finder.splitlines())})
    worktree = shop(tmp_path / "worktree", price=2)
    ran = bench.run(bench.ready(worktree, user_checkout=user_checkout), worktree)
    assert ran.passed, ran.said
    assert ran.problem is None


@pytest.mark.req("P9")
def test_a_stale_copy_of_the_project_does_not_win_either(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    install(site, wheel(tmp_path / "wheels", "shop", "0.9", {"shop/__init__.py": PRICE.format(1)}))
    child = (
        "import subprocess, sys\n\n\ndef test_child() -> None:\n    code = 'import shop; assert shop.price() == 2'\n"
    )
    child += "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    worktree = shop(tmp_path / "worktree", price=2)
    write(worktree, {"tests/test_child.py": child})
    ran = bench.run(bench.ready(worktree, user_checkout=user_checkout), worktree)
    assert ran.passed, ran.said
    assert ran.problem is None


@pytest.mark.req("P9")
def test_a_copy_that_another_distribution_brings_is_refused_as_evidence(bench: Bench, tmp_path: Path) -> None:
    user_checkout = shop(tmp_path / "persons", price=1)
    site = venv(user_checkout / ".venv")
    lend_tools(site)
    install(site, wheel(tmp_path / "wheels", "mall", "1.0", {"shop/__init__.py": PRICE.format(2)}))
    worktree = shop(tmp_path / "worktree", price=3, expected=2)  # wrong, and only the copy says what the test wants
    ran = bench.run(bench.ready(worktree, user_checkout=user_checkout), worktree)
    assert ran.passed
    assert ran.problem == f"`shop` was loaded from {site}, not from this tree"


@pytest.mark.req("X5")
def test_a_folder_named_like_the_tool_does_not_stand_in_for_it(bench: Bench, tmp_path: Path) -> None:
    fake = "import sys\nprint('5 passed')\nsys.exit(0)\n"
    worktree = shop(tmp_path / "worktree", price=2, expected=3)
    write(worktree, {"pytest/__init__.py": "", "pytest/__main__.py": fake, "pluggy.py": fake, "src/pytest.py": fake})
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.finished.result.exit_code == 1
    assert "1 failed" in ran.said
    assert ran.problem is None


@pytest.mark.req("X5")
def test_a_tool_that_only_the_tree_has_is_refused(bench: Bench, tmp_path: Path) -> None:
    worktree = shop(tmp_path / "worktree", price=2)
    write(worktree, {"fakecheck/__init__.py": "", "fakecheck/__main__.py": "print('fine')\n"})
    environment = bench.ready(worktree)
    spec = check("{python}", "-m", "fakecheck", report=ReportFormat.EXIT, tool="fakecheck")
    answer = resolve(spec, environment, checkout=worktree, report=tmp_path / "r", tmp=tmp_path)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith("fakecheck is configured (pyproject.toml) but not installed")
    assert answer.environmental


@pytest.mark.req("X5")
def test_customizing_modules_of_the_tree_do_not_run(bench: Bench, tmp_path: Path) -> None:
    forge = "import os\nos.write(1, b'forged')\nos._exit(0)\n"
    worktree = shop(tmp_path / "worktree", price=2, expected=3)
    write(
        worktree,
        {
            f"{folder}{name}.py": forge
            for folder in ("", "src/", "tests/")
            for name in ("sitecustomize", "usercustomize")
        },
    )
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.finished.result.exit_code == 1
    assert "forged" not in ran.said


@pytest.mark.req("X5")
def test_a_run_that_ends_before_its_end_leaves_a_problem(bench: Bench, tmp_path: Path) -> None:
    worktree = shop(tmp_path / "worktree", price=2, expected=3)
    write(worktree, {"tests/conftest.py": "import os\nos._exit(0)\n"})
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.passed
    assert ran.problem == "the run ended before it recorded what it loaded"


def test_modules_beside_the_tests_of_a_flat_layout_are_found(bench: Bench, tmp_path: Path) -> None:
    project = SHOP.model_copy(update={"packages": ("till",), "sources": (".",)})
    test = "import till\n\n\ndef test_sum() -> None:\n    assert till.total([1, 2]) == 3\n"
    worktree = write(
        tmp_path / "worktree", {"till.py": "total = sum\n", "tests/unit/test_till.py": test, "pyproject.toml": OTHER}
    )
    ran = bench.run(bench.ready(worktree, project), worktree, project=project)
    assert ran.passed, ran.said
    assert ran.problem is None


def test_workers_of_a_parallel_run_load_the_worktree_too(bench: Bench, tmp_path: Path) -> None:
    worktree = shop(tmp_path / "worktree", price=2)
    spec = PYTEST.model_copy(update={"argv": (*PYTEST.argv, "-n", "1")})
    ran = bench.run(bench.ready(worktree), worktree, spec)
    assert ran.passed, ran.said
    assert ran.problem is None


def test_processes_started_afresh_know_the_project_and_its_entry_points(bench: Bench, tmp_path: Path) -> None:
    manifest = MANIFEST + '[project.scripts]\nshop-price = "shop:main"\n'
    test = """
        import importlib.metadata, multiprocessing, subprocess, sys
        import shop

        def test_spawned() -> None:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.apply(shop.price) == 2

        def test_command() -> None:
            assert subprocess.check_output(["shop-price"]) == b"2\\n"
            assert subprocess.check_output([sys.executable, "-m", "shop.cli"], cwd="/") == b"2\\n"

        def test_version() -> None:
            assert importlib.metadata.version("shop") == "1.2"
    """
    code = PRICE.format(2) + "\n\ndef main() -> None:\n    print(price())\n"
    files = {
        "pyproject.toml": manifest,
        "src/shop/__init__.py": code,
        "src/shop/cli.py": "import shop\n\nshop.main()\n",
        "tests/test_processes.py": "\n".join(line[8:] for line in test.splitlines()),
    }
    worktree = write(tmp_path / "worktree", files)
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.passed, ran.said
    assert ran.problem is None


def test_unittest_is_started_the_same_way(bench: Bench, tmp_path: Path) -> None:
    worktree = shop(tmp_path / "worktree", price=2)
    test = "import unittest\nimport shop\n\n\nclass Prices(unittest.TestCase):\n"
    test += "    def test_price(self):\n        self.assertEqual(shop.price(), 2)\n"
    write(worktree, {"tests/test_unit.py": test})
    (worktree / "tests/test_shop.py").unlink()
    spec = check(
        "{python}", "-m", "unittest", "discover", "-s", "tests", "-v", report=ReportFormat.UNITTEST, tool="unittest"
    )
    ran = bench.run(bench.ready(worktree), worktree, spec)
    assert ran.passed, ran.said
    assert ran.problem is None
    assert ran.resolved.tool_version == f"Python {sys.version.split()[0]}"


@pytest.mark.req("X5")
def test_a_script_of_the_tree_is_started_behind_what_is_installed(bench: Bench, tmp_path: Path) -> None:
    script = "import sys\nimport helper, pluggy, shop\n"
    script += "print(pluggy.__version__ != 'forged', shop.price(), sys.argv)\n"
    files = {"manage.py": script, "helper.py": "", "pluggy/__init__.py": "__version__ = 'forged'\n"}
    worktree = shop(tmp_path / "worktree", files, price=2)
    spec = check("{python}", "manage.py", "test", report=ReportFormat.UNITTEST, tool="django")
    ran = bench.run(bench.ready(worktree), worktree, spec)
    assert ran.said == f"True 2 ['{worktree}/manage.py', 'test']\n"
    assert ran.problem is None
    assert ran.resolved.origin is not None


def test_names_that_a_package_lends_to_others_are_not_its_own_code(bench: Bench, tmp_path: Path) -> None:
    lending = PRICE.format(2) + "\nimport sys\nimport pluggy\nsys.modules['shop.packages'] = pluggy\n"
    worktree = shop(tmp_path / "worktree", {"src/shop/__init__.py": lending}, price=2)
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.passed, ran.said
    assert ran.problem is None


@pytest.mark.req("X5")
def test_a_word_on_the_origin_that_is_a_link_is_none(bench: Bench, tmp_path: Path) -> None:
    worktree = shop(tmp_path / "worktree", price=2)
    ran = bench.run(bench.ready(worktree), worktree)
    assert ran.resolved.origin is not None
    moved = ran.resolved.origin.rename(tmp_path / "moved")
    ran.resolved.origin.symlink_to(moved)
    assert origin_problem(SHOP, ran.resolved, worktree) == "the run left no record of what it loaded"
