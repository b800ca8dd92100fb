"""The bootstrap's own promises, kept on every Python it may meet; and how its word is judged."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairwitness.verify.environment.interpreters import BOOTSTRAP, PROBE
from fairwitness.verify.environment.origin import judge_origin
from fairwitness.verify.environment.programs.bootstrap import MISSING, RECORD, REFUSED
from verify.environment.shops import PRICE, SHOP, shop, write


def pythons() -> list[str]:
    """Our own interpreter, the system's, and those that stand beside ours where a manager keeps several."""
    beside = Path(sys.base_prefix).parent.glob("3.*/bin/python3")
    able = [str(path) for path in sorted(beside) if int(path.parents[1].name.split(".")[1]) >= 8]
    return [sys.executable, *([found] if (found := shutil.which("python3", path="/usr/bin")) else []), *able]


def boot(python: str, tree: Path, origin: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The bootstrap, started as a check would start it."""
    options = ["--checkout", str(tree), "--origin", str(origin), "--sources", f"{tree}/src:{tree}"]
    command = [python, str(BOOTSTRAP), *options, "--packages", "shop", "--own", "shop", "--", *words]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("python", pythons())
def test_it_runs_on_every_python_there_is(tmp_path: Path, python: str) -> None:
    test = "import shop, unittest\n\n\nclass T(unittest.TestCase):\n"
    test += "    def test(self):\n        assert shop.price() == 4\n"
    tree = shop(tmp_path / "tree", {"tests/test_shop.py": test}, price=4)
    done = boot(python, tree, tmp_path / "origin", "unittest", "discover", "-s", "tests")
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "origin").read_bytes()
    assert judge_origin(SHOP, content, tree, loads=True) is None
    last = json.loads(content.splitlines()[-1])
    assert last["packages"]["shop"]["file"] == str(tree / "src/shop/__init__.py")
    assert json.loads(subprocess.check_output([python, "-I", str(PROBE)]))["markers"]["os_name"] == "posix"


def test_a_tool_that_is_not_there_ends_with_its_own_code(tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", price=1)
    assert boot(sys.executable, tree, tmp_path / "origin", "no_such_tool").returncode == MISSING
    problem = judge_origin(SHOP, (tmp_path / "origin").read_bytes(), tree, loads=True)
    assert problem == f"no_such_tool is not installed in {sys.prefix}"


@pytest.mark.req("X5")
def test_a_tool_of_the_tree_ends_with_its_own_code(tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", {"fake/__init__.py": "", "fake/__main__.py": "print('fine')\n"}, price=1)
    assert (
        boot(sys.executable, tree, tmp_path / "origin", "fake").returncode == MISSING
    )  # the tree is not on the path yet
    done = boot(sys.executable, tree, tmp_path / "other", "json.tool", "--help")
    assert done.returncode == 0
    site = write(tmp_path / "site", {"fake.pth": str(tree)})
    program = f"import site, sys; site.addsitedir({str(site)!r}); sys.argv = ['x'] + sys.argv[1:]; "
    program += (
        f"exec(compile(open({str(BOOTSTRAP)!r}).read().replace('not inside(entry, checkout)', 'True'), 'b', 'exec'))"
    )
    options = ["--checkout", str(tree), "--origin", str(tmp_path / "third"), "--", "fake"]
    command = [sys.executable, "-c", f"__file__ = 'b'; {program}", *options]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == REFUSED, refused.stderr
    problem = judge_origin(SHOP, (tmp_path / "third").read_bytes(), tree, loads=False)
    assert problem == f"fake would have been loaded from the tree itself ({tree}/fake/__main__.py)"


def test_a_tool_whose_own_needs_are_missing_is_broken_and_not_absent(tmp_path: Path) -> None:
    tree = shop(tmp_path / "tree", price=1)
    done = boot(sys.executable, tree, tmp_path / "origin", "http.no_such_part")
    assert done.returncode == MISSING


def record(role: str, **more: object) -> bytes:
    """A line of the origin file."""
    return json.dumps({"record": RECORD, "role": role, **more}).encode() + b"\n"


def package(file: str | None, *, outside: tuple[str, ...] = ()) -> dict[str, object]:
    """What is said of the shop."""
    return {"shop": {"file": file, "folders": [], "outside": list(outside)}}


START = record("start", tool={"name": "pytest", "file": "/site/pytest/__main__.py", "version": "9"})


@pytest.mark.req("X5")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "the run left no record of what it loaded"),
        (b"", "the record of what was loaded is damaged or was not written by Fair Witness"),
        (b"{}\n", "the record of what was loaded is damaged or was not written by Fair Witness"),
        (START + b'{"record"', "the record of what was loaded is damaged or was not written by Fair Witness"),
        (
            START + record("tool", packages=["shop"]),
            "the record of what was loaded is damaged or was not written by Fair Witness",
        ),
        (
            START + record("tool", packages={"shop": {}}),
            "the record of what was loaded is damaged or was not written by Fair Witness",
        ),
        (START, "the run ended before it recorded what it loaded"),
        (record("tool", packages={}), "the run ended before it recorded what it loaded"),
        (
            START + record("tool", packages=package("/site-packages/shop/__init__.py")),
            "`shop` was loaded from /site-packages, not from this tree",
        ),
        (
            START + record("child", packages=package("/tree/shop.py", outside=("/other/src/shop/part.py",))),
            "the run ended before it recorded what it loaded",
        ),
        (
            START + record("child", packages=package("/o/shop.py")) + record("tool", packages=package("/tree/shop.py")),
            "`shop` was loaded from /o, not from this tree",
        ),
        (
            record("start", tool={"file": "/tree/pytest/__main__.py"}) + record("tool", packages={}),
            "the tool itself came from this tree (/tree/pytest/__main__.py)",
        ),
        (START + record("tool", packages={}), None),
        (START + record("tool", packages=package("/tree/src/shop/__init__.py")), None),
        (START + record("tool", packages={"other": {"file": "/x", "outside": ["/x"]}}), None),
    ],
)
def test_the_word_on_what_was_loaded_is_judged(content: bytes | None, problem: str | None) -> None:
    assert judge_origin(SHOP, content, Path("/tree"), loads=True) == problem


def test_a_checker_need_not_come_to_an_end() -> None:
    assert judge_origin(SHOP, START, Path("/tree"), loads=False) is None


def test_a_package_spread_over_folders_needs_one_in_the_tree(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"src/shop/part.py": PRICE.format(1), "run.py": "import shop.part\n"})
    done = boot(sys.executable, tree, tmp_path / "origin", "timeit", "-n", "1", "import shop.part")
    assert done.returncode == 0, done.stderr
    assert judge_origin(SHOP, (tmp_path / "origin").read_bytes(), tree, loads=True) is None
