"""The library that the demo works on: lengths, and converting them exactly."""

_SETTINGS = """\
[verify]
mutants = 2

[[verify.check]]
name = "type-check"
argv = ["{python}", "tools/check_types.py", "measure"]
report = "compiler"
timeout_s = 60
writes = false
"""

_CHECK_TYPES = '''\
"""The type checker of this repository: every function says what it takes and gives. Usage: check_types.py PACKAGE"""

import ast
import sys
from pathlib import Path


def main() -> int:
    """Prints every function that leaves a type out; 1 if there are any."""
    count = 0
    for path in sorted(Path(sys.argv[1]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                if node.returns is None or any(each.annotation is None for each in node.args.args):
                    count += 1
                    print(f"{path.as_posix()}:{node.lineno}:1: error: {node.name} does not say its types")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
'''

_README = """\
# measure

Lengths and how to convert them, exactly and without dependencies.

    convert(3, "km", "m")

`python3 -m unittest` runs the tests, `python3 tools/check_types.py measure` the type checker.
"""

_LENGTH = '''\
"""Lengths, in millimetres."""

LENGTH = {"mm": 1, "cm": 10, "m": 1_000, "km": 1_000_000}
'''

_KINDS = '''\
"""Every kind of quantity, and which one a unit belongs to."""

from measure.length import LENGTH

KINDS = (LENGTH,)


def kind_of(unit: str) -> dict[str, int]:
    """The units that a unit can be converted into, each with its size."""
    for kind in KINDS:
        if unit in kind:
            return kind
    raise ValueError(f"{unit!r} is no unit")
'''

_CONVERT = '''\
"""From one unit to another."""

from fractions import Fraction

from measure.kinds import kind_of


def convert(amount: Fraction | int, unit: str, to: str) -> Fraction:
    """An amount in another unit of the same kind, exactly."""
    kind = kind_of(unit)
    if to not in kind:
        raise ValueError(f"{unit} cannot be converted into {to}")
    return Fraction(amount) * kind[unit] / kind[to]
'''

_TEST_CONVERT = '''\
"""Lengths are converted exactly."""

import unittest
from fractions import Fraction

from measure.convert import convert


class Lengths(unittest.TestCase):
    def test_a_length_is_converted(self) -> None:
        self.assertEqual([convert(3, "km", "m"), convert(5, "cm", "mm")], [3000, 50])

    def test_nothing_is_rounded(self) -> None:
        self.assertEqual(convert(1, "mm", "m"), Fraction(1, 1000))

    def test_what_is_no_unit_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "'ell' is no unit"):
            convert(1, "ell", "m")
'''

FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": _README,
    "fairwitness.toml": _SETTINGS,
    "measure/__init__.py": '"""Quantities and their units."""\n',
    "measure/convert.py": _CONVERT,
    "measure/kinds.py": _KINDS,
    "measure/length.py": _LENGTH,
    "tests/__init__.py": '"""What the library promises."""\n',
    "tests/test_convert.py": _TEST_CONVERT,
    "tools/check_types.py": _CHECK_TYPES,
}
