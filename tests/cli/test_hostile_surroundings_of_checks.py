"""What a repository or an environment brings along to change how checks are run: nothing of it counts or escapes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.runner import fairwitness
from cli.test_verify import HONEST, SHOP, commit, git, shop, verify
from support.ladder import widened

__all__ = ["shop"]
pytestmark = [pytest.mark.req("X5"), pytest.mark.timeout(600), pytest.mark.width("full")]
PLUGIN = "import pytest\n\n\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n" + (
    "    report = yield\n    report.outcome = 'passed'\n    report.longrepr = None\n    return report\n"
)
VARIABLES = {
    "PYTEST_PLUGINS": "evil",
    "PYTEST_ADDOPTS": "-p evil --exitfirst",
    "NODE_OPTIONS": "--require ./evil.js",
    "NODE_PATH": ".",
    "LD_LIBRARY_PATH": ".",
    "PYTHONSTARTUP": "evil.py",
    "PYTHONWARNINGS": "ignore",
    "BASH_ENV": "evil.sh",
    "ENV": "evil.sh",
    "PERL5OPT": "-Mevil",
    "RUBYOPT": "-revil",
    "GIT_EXTERNAL_DIFF": "./evil.sh",
}


def _escaped(repository: Path) -> list[str]:
    """The canaries that were written outside of the sandbox."""
    places = (repository, repository.parent, Path.home(), Path("/tmp"))
    return [str(place / "pwned-by-a-check") for place in places if (place / "pwned-by-a-check").exists()]


@pytest.fixture(autouse=True)
def _without_canaries(shop: Path) -> Iterator[None]:
    assert _escaped(shop) == []
    yield
    assert _escaped(shop) == []


@pytest.mark.parametrize("is_honest", [True, False])
def test_variables_that_load_code_do_not_reach_a_check(shop: Path, is_honest: bool) -> None:
    """A lie that `PYTEST_PLUGINS` of a careless shell would turn green is blocked, and no check sees a variable."""
    names = tuple(VARIABLES)
    honest = f"import os\n\n\ndef test_surroundings():\n    assert not set(os.environ) & set({names!r})\n"
    lie = {"shop.py": SHOP.replace("- total", "+ total + 1 - total")}
    commit(shop, {"evil.py": PLUGIN, "test_env.py": honest, **(HONEST if is_honest else lie)})
    done = verify(shop, **VARIABLES)
    assert done.returncode == (0 if is_honest else 1), done.stdout + done.stderr


def test_a_preloaded_library_reaches_neither_git_nor_a_check(shop: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = tmp_path / "evil.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "__attribute__((constructor)) static void begin(void) {\n"
        '  char name[64]; snprintf(name, sizeof name, "/proc/%d/comm", getpid());\n'
        '  char said[64] = {0}; FILE *in = fopen(name, "r"); if (in) { fgets(said, 63, in); fclose(in); }\n'
        f'  FILE *out = fopen("{tmp_path}/loaded", "a"); if (out) {{ fputs(said, out); fclose(out); }}\n}}\n'
    )
    library = tmp_path / "evil.so"
    assert os.spawnv(os.P_WAIT, compiler, ["cc", "-shared", "-fPIC", "-o", str(library), str(source)]) == 0
    seen = "import os\n\n\ndef test_preload():\n    assert 'LD_PRELOAD' not in os.environ\n"
    seen += "    assert 'evil.so' not in open('/proc/self/maps').read()\n"
    commit(shop, {**HONEST, "test_env.py": seen})
    done = verify(shop, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = set((tmp_path / "loaded").read_text().split())
    assert not {name for name in loaded if name.startswith(("git", "bwrap", "pytest"))}, loaded


RAN = "install-script-ran"
"""What an install script leaves where it is run."""
NPM = {
    ".npmrc": "script-shell=./evil.sh\nignore-scripts=false\nnode-options=--require ./evil.js\nregistry=http://127.0.0.1:9/\n",
    "evil.sh": f"#!/bin/sh\ntouch {RAN} ../pwned-by-a-check ~/pwned-by-a-check /tmp/pwned-by-a-check\n",
    "evil.js": "require('fs').writeFileSync('/tmp/pwned-by-a-check', 'x')\n",
    "evil/package.json": json.dumps({"name": "evil", "version": "1.0.0", "scripts": {"install": "sh ../evil.sh"}}),
    "evil/index.js": "module.exports = 7\n",
    "package.json": json.dumps(
        {
            "name": "shop",
            "version": "1.0.0",
            "dependencies": {"evil": "file:./evil"},
            "scripts": {"preinstall": "sh evil.sh", "postinstall": "sh evil.sh", "test": "node --test"},
        }
    ),
    "package-lock.json": json.dumps(
        {
            "name": "shop",
            "version": "1.0.0",
            "lockfileVersion": 3,
            "packages": {
                "": {
                    "name": "shop",
                    "version": "1.0.0",
                    "hasInstallScript": True,
                    "dependencies": {"evil": "file:./evil"},
                },
                "evil": {"version": "1.0.0", "hasInstallScript": True},
                "node_modules/evil": {"resolved": "evil", "link": True},
            },
        }
    ),
}
SETUP = (
    f"import os\nplaces = ('{RAN}', '../pwned-by-a-check', '~/pwned-by-a-check', '/tmp/pwned-by-a-check')\n"
    "for place in map(os.path.expanduser, places):\n"
    "    try:\n        open(place, 'w').close()\n    except OSError:\n        pass\n"
    "from setuptools import setup\n\nsetup(name='evil', version='1')\n"
)
PIP = {
    "requirements.txt": "./evil\n",
    "evil/setup.py": SETUP,
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\nno-build-isolation = true\n",
    ".pip/pip.conf": "[install]\ntarget = /tmp/pwned-by-a-check\n",
}


@pytest.mark.parametrize("files", [NPM, PIP], ids=["npm", "pip"])
def test_no_install_script_of_a_repository_is_run(shop: Path, files: dict[str, str]) -> None:
    """npm installs with `--ignore-scripts`; where the interpreter of the PATH serves, pip installs nothing."""
    commit(shop, {**HONEST, **files})
    done = verify(shop, "--json")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    answer = json.loads(done.stdout)["answer"]["answer"]
    assert (answer == "open") is (done.returncode == 0)
    assert [str(path) for path in shop.parent.rglob(RAN)] == []


@pytest.mark.parametrize(("script", "program"), [(NPM["evil.sh"], "sh"), (SETUP, sys.executable)], ids=["npm", "pip"])
def test_an_install_script_that_is_run_leaves_its_mark(tmp_path: Path, script: str, program: str) -> None:
    """The test above would see it."""
    work = tmp_path / "home" / "work"
    work.mkdir(parents=True)
    script = script.replace("/tmp/pwned-by-a-check", str(tmp_path / "home" / "elsewhere"))
    subprocess.run([program, "-"], input=script, text=True, cwd=work, env={"HOME": str(tmp_path / "home")}, check=False)
    assert (work / RAN).exists()
    assert (tmp_path / "home" / "pwned-by-a-check").exists()


NAMES = [
    "$(touch${IFS}pwned-by-a-check)",
    "a;touch${IFS}pwned-by-a-check",
    "--output=pwned-by-a-check",
    "-x",
    "\u202efdp.exe",
    "'\"`|&",
    "\u00e9\u2028x",
    "refs/heads/main",
    "n" * 200,
]


@pytest.mark.parametrize("name", widened(NAMES, [NAMES[0], NAMES[2]]))
def test_hostile_names_of_branches_tags_and_authors_are_words(shop: Path, name: str) -> None:
    base = git(shop, "rev-parse", "HEAD")
    for place in (f"refs/heads/{name}", f"refs/tags/{name}"):
        git(shop, "update-ref", place, base)
    author = f"\x1b]0;pwned\x07\u202e{name} <x>".replace("\n", " ")
    commit(shop, HONEST)
    git(
        shop,
        "-c",
        f"user.name={author}",
        "commit",
        "-q",
        "--amend",
        "--reset-author",
        "-m",
        f"\x1b[2J{name}\n\n{author}",
    )
    git(shop, "update-ref", f"refs/heads/{name}", "HEAD")
    git(shop, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    for words in (("verify",), ("verify", f"--base=refs/tags/{name}"), ("verify", "--base", name), ("status",)):
        done = verify(shop, *words[1:]) if words[0] == "verify" else fairwitness(*words, cwd=shop)
        said = done.stdout + done.stderr
        assert done.returncode in (0, 1, 2, 3), (words, said)
        assert "internal error" not in said, words
        assert all(sign.isprintable() or sign == "\n" for sign in said), (words, said)
    done = verify(shop, f"--base=refs/tags/{name}")
    assert done.returncode == 0, done.stdout + done.stderr
