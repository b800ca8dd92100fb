"""The library that the demo works on: names of things in a larder, and nothing else yet."""

from fairwitness.app.demo_feature import house_tools
from fairwitness.runs.autopilot.ignored import gitignore_with

_LINT = "tools/lint.py"
_SETTINGS = """\
[verify]
mutants = 2

[[verify.check]]
name = "lint"
argv = ["{python}", "tools/lint.py", "larder", "tests", "tools"]
report = "compiler"
timeout_s = 60

[autopilot]
quick_phase_seconds = 0  # recorded agents answer at once
"""

_README = """\
# larder

What is in the larder, what is missing, and how long it keeps; without dependencies.

    tidy("  Brown   Rice")

`python3 -m unittest` runs the tests, `python3 tools/lint.py larder tests tools` the linter. Where this is going stands
in `.planning/ROADMAP.md`.
"""

NAMES = '''\
"""Names of things, as people write them and as they are kept."""


def tidy(name: str) -> str:
    """One spelling of a name: small letters, and one space between words."""
    return " ".join(name.lower().split())
'''

_TEST_NAMES = '''\
"""A name has one spelling."""

import unittest

from larder.names import tidy


class Names(unittest.TestCase):
    def test_letters_and_spaces_do_not_matter(self) -> None:
        self.assertEqual([tidy("  Brown   Rice"), tidy("oats")], ["brown rice", "oats"])
'''

FILES = {
    ".gitignore": gitignore_with("__pycache__/\n"),
    "README.md": _README,
    "fairwitness.toml": _SETTINGS,
    "larder/__init__.py": '"""What is in the larder."""\n',
    "larder/names.py": NAMES,
    "tests/__init__.py": '"""What the library promises."""\n',
    "tests/test_names.py": _TEST_NAMES,
    _LINT: house_tools.FILES[_LINT],
}
