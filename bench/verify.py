"""What `fairwitness verify` costs beside running the same commands by hand, before and after, in a shell."""

import os
import subprocess
import sys
import tempfile
import textwrap
from itertools import product
from pathlib import Path

from bench.measure import medians, report

BIN = Path(sys.executable).parent
MODULES = 12
CODE = """
def total(prices, rate):
    result = 0
    for price in prices:
        if price > rate:
            result += price - rate
    return result
"""
TEST = """
import time

from shop.m{number} import total


def test_sum():
    time.sleep(0.1)
    assert total([5, 7], 2) == 8


def test_cheap():
    assert total([1], 2) == 0
"""


def run() -> bool:
    """Prints cold and cached runs against a shell that runs the checks at both commits."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-") as folder:
        repository = _repository(Path(folder) / "repository")
        base, head = (Path(folder) / name for name in ("base", "head"))
        for place, ref in ((base, "HEAD~1"), (head, "HEAD")):
            subprocess.run(["git", "clone", "-q", str(repository), str(place)], check=True)
            subprocess.run(
                [
                    "git",
                    "checkout",
                    "-q",
                    subprocess.check_output(["git", "rev-parse", ref], cwd=repository, text=True).strip(),
                ],
                cwd=place,
                check=True,
            )
        _verify(repository)  # prepares the environment, as an earlier verification would have
        measured = medians(
            {
                "the commands by hand, base then head": lambda: _by_hand(base, head),
                "fairwitness verify, nothing known": lambda: _verify(repository, "--no-cache"),
                "fairwitness verify, everything known": lambda: _verify(repository),
            },
            rounds=3,
        )
    return report(
        "verify", measured, "the commands by hand, base then head", {"fairwitness verify, everything known": 1.0}
    )


def _verify(repository: Path, *arguments: str) -> None:
    done = subprocess.run(
        [BIN / "fairwitness", "verify", "--quiet", *arguments],
        cwd=repository,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"bench: the sample change does not hold\n{done.stdout}{done.stderr}")


def _by_hand(*places: Path) -> None:
    commands = (
        ["python", "-m", "compileall", "-q", "."],
        ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        ["ruff", "check", "--no-cache", "."],
        ["python", "-c", "import shop"],
    )
    for place, command in product(places, commands):
        subprocess.run(command, cwd=place, env=_environment(), stdout=subprocess.DEVNULL, check=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}


def _repository(place: Path) -> Path:
    """A project of some modules whose tests take about a second and a half, and a change with tests."""
    files = {"shop/__init__.py": "", "ruff.toml": "line-length = 100\n", "pytest.ini": "[pytest]\npythonpath = .\n"}
    for number in range(MODULES):
        files[f"shop/m{number}.py"] = CODE.lstrip()
        files[f"tests/test_m{number}.py"] = TEST.lstrip().format(number=number)
    _commit(place, files, first=True)
    change = {
        "shop/m0.py": CODE.lstrip() + "\n\ndef largest(prices):\n    return max(prices) if prices else 0\n",
        "tests/test_largest.py": textwrap.dedent(
            """\
            from shop.m0 import largest


            def test_largest():
                assert largest([3, 9, 4]) == 9


            def test_nothing():
                assert largest([]) == 0
            """
        ),
    }
    _commit(place, change, first=False)
    return place


def _commit(place: Path, files: dict[str, str], *, first: bool) -> None:
    place.mkdir(exist_ok=True)
    git = ["git", "-c", "user.name=Bench", "-c", "user.email=bench@localhost"]
    if first:
        subprocess.run([*git, "init", "-q", "-b", "main"], cwd=place, check=True)
    for path, content in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
    subprocess.run([*git, "add", "-A"], cwd=place, check=True)
    subprocess.run([*git, "commit", "-qm", "change"], cwd=place, check=True)
