"""Persons extend Fair Witness by files, packages by entry points, and repositories under test not at all."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from cli.graph_grounds import NEEDS_SANDBOX
from cli.runner import fairwitness
from fairwitness.kit.plugins import own_folders
from support.fixtures import ROOT

pytestmark = pytest.mark.timeout(600)

EXAMPLE = ROOT / "tests" / "fixtures" / "extension"
EVIL = """
from pathlib import Path
Path({marker!r}).write_text("loaded")
def find(paths, read): return []
def short(report): return "evil"
"""
ENTRIES = "[fairwitness.checks]\nevil = evil:find\n[fairwitness.reports]\nevil = evil:short\n"


def run(*command: str | Path, cwd: Path, code: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert code is None or done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `fairwitness` in an environment of its own, with the example installed from its own wheel."""
    place = tmp_path_factory.mktemp("extension")
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", place, EXAMPLE)
    run(*build, cwd=place)
    (wheel,) = place.glob("shop_checks-*.whl")
    venv.create(place / "venv", with_pip=True)
    python = place / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=place)
    # Fair Witness and its libraries come from this environment: there is no network
    (site,) = (place / "venv" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    script = place / "venv" / "bin" / "fairwitness"
    script.write_text(f"#!{python}\nfrom fairwitness.cli.main import main\nmain()\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a price list, and a change of it."""
    top = tmp_path / "shop"
    top.mkdir()
    for text in ("EUR\ntea 3.50\n", "EUR\ntea 3.70\n"):
        (top / "shop.prices").write_text(text)
        if not (top / ".git").exists():
            run("git", "init", "-q", "-b", "main", cwd=top)
        run("git", "add", "shop.prices", cwd=top)
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "prices", cwd=top)
    return top


def verified(script: Path, shop: Path, *more: str, code: int | None = None, paths: str = "") -> str:
    done = run(
        script,
        "verify",
        "--base",
        "HEAD~1",
        "--head",
        "HEAD",
        "--json",
        "--quiet",
        *more,
        cwd=shop,
        code=code,
        PYTHONPATH=paths,
    )
    assert "Traceback" not in done.stderr
    return done.stdout if done.stdout else done.stderr


@NEEDS_SANDBOX
@pytest.mark.req("P16")
def test_a_package_adds_a_check_and_a_report_format(installed: Path, shop: Path, tmp_path: Path) -> None:
    report = json.loads(verified(installed, shop, "--report", f"short={tmp_path / 'report.txt'}"))
    checks = {check["id"]: check for check in report["checks"]}
    assert checks["prices-eur"]["after"] == "passed", report
    lines = (tmp_path / "report.txt").read_text().splitlines()
    assert lines[0] == report["answer"]["answer"]
    assert "prices-eur passed" in lines
    refused = verified(installed, shop, "--report", "shorter=x", code=2)
    assert "there is no report format 'shorter'\nnext:  choose one of short\n" in refused
    assert "prices-eur" not in verified(Path(sys.executable).with_name("fairwitness"), shop)


def plant(folder: Path, marker: Path, name: str = "evil") -> None:
    """A package with entry points, as pip would install it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (folder / "evil.py").write_text(EVIL.format(marker=str(marker)))


@NEEDS_SANDBOX
@pytest.mark.req("X1")
def test_plug_ins_of_a_repository_are_never_loaded(installed: Path, shop: Path, tmp_path: Path) -> None:
    marker = tmp_path / "loaded"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for folder in (".", f".venv/lib/{version}/site-packages", "site-packages"):
        plant(shop / folder, marker)
    places = os.pathsep.join(str(shop / folder) for folder in ("site-packages", f".venv/lib/{version}/site-packages"))
    for paths in ("", places):
        report = json.loads(verified(installed, shop, paths=paths))
        assert "prices-eur" in {check["id"] for check in report["checks"]}
        refused = verified(installed, shop, "--report", "evil=x", code=2, paths=paths)
        assert "there is no report format 'evil'" in refused
    assert not marker.exists()


@NEEDS_SANDBOX
@pytest.mark.req("X1")
def test_a_module_of_the_repository_does_not_run_in_place_of_an_installed_one(
    installed: Path, shop: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "loaded"
    (shop / "shop_checks.py").write_text(EVIL.format(marker=str(marker)))
    said = verified(installed, shop, code=3, paths=str(shop))
    assert "shop-checks 1.0 has no module shop_checks in " in said
    assert not marker.exists()


def test_an_environment_inside_the_repository_adds_nothing() -> None:
    (own, *_) = own_folders(None)
    assert own == Path(sysconfig.get_path("purelib")).resolve()
    assert own_folders(own) == own_folders(own.parent.parent)
    assert own not in own_folders(own)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user configuration, with the examples of the documentation."""
    folder = tmp_path / "config" / "fairwitness"
    text = (ROOT / "docs" / "extending.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```toml\n")[1:]]
    for path, block in zip(("agents/mine", "roles/implementer", "prices/house-model"), blocks, strict=False):
        (folder / path).parent.mkdir(parents=True)
        (folder / f"{path}.toml").write_text(block)
        tomllib.loads(block)
    (folder / "prompts").mkdir()
    bundled = (ROOT / "src" / "fairwitness" / "agents" / "prompts" / "implementer.md").read_text()
    (folder / "prompts" / "my-implementer.md").write_text(bundled.replace("# ", "# MINE ", 1))
    return folder


def asked(home: Path, *arguments: str, code: int = 0) -> str:
    done = fairwitness(*arguments, cwd=home.parent, XDG_CONFIG_HOME=str(home.parent))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.req("X8")
def test_a_person_adds_an_agent_a_role_a_prompt_and_a_price(home: Path) -> None:
    run("git", "init", "-q", cwd=home.parent)
    (home / "fairwitness.toml").write_text('[agents]\ndefault = "mine"\n')
    assert re.search(r"^implementer +feature +mine ", asked(home, "agents", "list"), re.MULTILINE)
    shown = asked(home, "agents", "show", "implementer")
    assert "MINE" in shown
    assert "700,000 tokens" in shown  # 300,000 of the file, and 400,000 for the prompt that the agent itself sends
    prices = run(
        *(sys.executable, "-c"),
        "from fairwitness.agents.data_files import own_prices; print(own_prices()['house-model'].output)",
        cwd=home,
        XDG_CONFIG_HOME=str(home.parent),
    )
    assert prices.stdout == "1.2\n"


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("agents/mine.toml", "name = ", "is not TOML"),
        ("agents/mine.toml", 'name = "other"', "title: expected "),
        ("agents/mine.toml", b"\xff\xfe", "is not TOML"),
        ("roles/implementer.toml", "turns = 0", "turns: expected "),
        ("roles/implementer.toml", 'answer = "spec-output"', "answer: expected one of budget, "),
        ("roles/singer.toml", "turns = 3", "names no role; the roles are "),
        ("prices/a.toml", 'model = "m"\ninput = "a"\noutput = 1', "input: expected "),
        ("prompts/my-implementer.md", b"\xff\xfe", "is not a text in UTF-8"),
    ],
)
def test_a_broken_file_of_a_person_is_refused_in_one_sentence_with_its_path(
    home: Path, file: str, text: str | bytes, problem: str
) -> None:
    run("git", "init", "-q", cwd=home.parent)
    (home / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    said = asked(home, "agents", "show", "implementer", code=2)
    assert said.startswith(f"fairwitness: {home / file} {problem}"), said
    assert len(said.splitlines()) == 2
    assert said.splitlines()[1] == "next:  repair the file, or remove it"
    assert "usage" in asked(home, "--help").lower()
