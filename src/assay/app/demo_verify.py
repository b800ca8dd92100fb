"""The demo's scenes about a change: an honest one holds, and a lie that the test command calls green does not."""

import os
import subprocess
import sys
from pathlib import Path

from assay.app.scenes import Scene
from assay.app.verify import Request, verify
from assay.errors import NotReady
from assay.steps.verify.model import Told

_SHOP = '''\
def price(total, rate=0):
    """What a customer pays after a rebate in percent."""
    return total - total * rate // 100
'''
_TESTS = """\
import unittest

from shop import price


class Prices(unittest.TestCase):
    def test_full_price(self):
        self.assertEqual(price(100), 100)

    def test_rebate(self):
        self.assertEqual(price(200, 10), 180)
"""
_HONEST = {
    "shop.py": f"{_SHOP}\n\ndef shipping(total):\n    if total >= 50:\n        return 0\n    return 5\n",
    "test_shipping.py": """\
import unittest

from shop import shipping


class Shipping(unittest.TestCase):
    def test_large_orders_are_free(self):
        self.assertEqual(shipping(50), 0)

    def test_small_orders_pay(self):
        self.assertEqual(shipping(49), 5)
""",
}
_LIE = {
    "shop.py": _SHOP.replace("total * rate // 100", "rate"),
    "test_shop.py": _TESTS.replace("assertEqual(price(200, 10), 180)", "assertLess(price(200, 10), 200)"),
}


def play(folder: Path) -> tuple[Scene, ...]:
    """Two branches of a small project, each verified against its base."""
    repository = _project(folder)
    return (
        _verified(repository, "honest", "an agent adds a function with good tests", "holds"),
        _verified(repository, "lie", "another breaks the code and softens the test; the tests pass", "blocked"),
    )


def _verified(repository: Path, branch: str, title: str, promised: str) -> Scene:
    try:
        report = verify(Request(where=repository, base="main", head=branch), tell=_unheard)
    except NotReady as error:
        return Scene(title, "not tried", "not tried", (error.what, error.next_step))
    answer = report.answer
    if answer.answer == "open":
        return Scene(title, promised, "holds", (*(f"{line.id}: {line.after.value}" for line in report.checks),))
    reasons = [f"stands against it: {one}" for one in answer.missing]
    findings = [f"{one.path}:{one.line}: {one.text}" for one in report.findings if one.blocks]
    return Scene(title, promised, "blocked", (*reasons, *findings))


def _unheard(_told: Told) -> None:
    """The demo tells its story at the end."""


def _project(folder: Path) -> Path:
    number = 1
    while (repository := folder / f"shop-{number}").exists():
        number += 1
    repository.mkdir()
    _git(repository, "init", "-q", "-b", "main")
    _commit(repository, {"shop.py": _SHOP, "test_shop.py": _TESTS})
    for branch, files in (("honest", _HONEST), ("lie", _LIE)):
        _git(repository, "checkout", "-q", "-b", branch, "main")
        _commit(repository, files)
    _git(repository, "checkout", "-q", "main")
    return repository


def _commit(repository: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (repository / name).write_text(content)
    _git(repository, "add", "-A")
    _git(repository, "commit", "-q", "-m", "a change")


def _git(repository: Path, *arguments: str) -> None:
    """Git as the demo's own person, whatever the real one has configured."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
    }
    subprocess.run(["git", *arguments], cwd=repository, env=environment, check=True, stdout=sys.stderr)


_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}
