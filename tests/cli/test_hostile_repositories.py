"""Files of a repository that are made to break the reader: `verify` blocks with a reason and never breaks."""

import json
from pathlib import Path

import pytest

from cli.test_verify import HONEST, commit, shop, verify
from support.ladder import widened

__all__ = ["shop"]
DEEP = "[" * 5_000 + "]" * 5_000
FILES: dict[str, dict[str, str]] = {
    "a deep pyproject.toml": {"pyproject.toml": f'[project]\nname = "x"\nversion = "1"\nx = {DEEP}\n'},
    "deep lock files": {
        "uv.lock": f"a = {DEEP}\n",
        "poetry.lock": f"a = {DEEP}\n",
        "requirements.txt": "x" + " " * 90_000,
    },
    "a deep package.json": {"package.json": "[" * 100_000},
    "a long line": {"test_long.py": "def test_a():\n    return" + " " * 100_000 + "!\n"},
    "deep Python": {"deep.py": f"x = {DEEP}\n", "signs.py": "x = " + "-" * 100_000 + "1\n"},
    "names": {"-rf": "", "$(touch pwned)": "", "a\nb": "", "\x1b[2J": "", "--output=x": "", "test_\u202e.py": ""},
}


@pytest.mark.req("X5")
@pytest.mark.parametrize("name", widened(FILES, ["a deep pyproject.toml"]))
def test_a_hostile_file_blocks_or_holds_with_a_reason(shop: Path, name: str) -> None:
    commit(shop, {**HONEST, **FILES[name]})
    done = verify(shop, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert "internal error" not in done.stderr
    answer = json.loads(done.stdout)["answer"]
    assert (answer["answer"] == "open") is (done.returncode == 0)
    assert not (shop / "pwned").exists()
