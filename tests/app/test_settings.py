"""Settings of `fairwitness verify`: the person's own files, key by key, and nothing that is not understood."""

import hashlib
import os
from pathlib import Path

import platformdirs
import pytest

from fairwitness.app.settings.verify import user_file, verify_settings
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.verify.checks import DeclaredCheck, ReportFormat, VerifySettings
from fairwitness.errors import UsageError
from support.trust import trust

EVERYTHING = """
[verify]
disable = ["ruff"]
roots = ["api", "web/app", "."]
mutants = 5
mutants_s = 30
[[verify.check]]
name = "tests"
argv = ["{python}", "-m", "pytest", "--junitxml={report}"]
report = "junit"
report_on = "file"
select = ["{python}", "-m", "pytest", "{ids}"]
timeout_s = 120
[verify.setup]
network = true
commands = [["uv", "sync"]]
env = { UV_OFFLINE = "1" }
[verify.sandbox]
tier = "ll"
memory_mb = 512
"""


def read(folder: Path, project: str | None = None, user: str | None = None) -> tuple[VerifySettings, str]:
    """The settings of a checkout and a user's file with these texts."""
    theirs = folder / "user" / "fairwitness.toml"
    top = folder / "checkout"
    top.mkdir(exist_ok=True)
    theirs.parent.mkdir(exist_ok=True)
    if project is not None:
        (top / "fairwitness.toml").write_text(project)
        trust(top)
    if user is not None:
        theirs.write_text(user)
    return verify_settings(top, user=theirs)


@pytest.mark.req("X5")
def test_a_plain_clone_needs_no_settings(tmp_path: Path) -> None:
    assert read(tmp_path) == (VerifySettings(), hashlib.sha256().hexdigest())
    assert verify_settings(None, user=tmp_path / "nowhere")[0] == VerifySettings()


def test_every_setting_can_be_said(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, EVERYTHING)
    assert (settings.disable, settings.roots, settings.mutants) == (("ruff",), ("api", "web/app", "."), 5)
    assert settings.check == (
        DeclaredCheck(
            name="tests",
            argv=("{python}", "-m", "pytest", "--junitxml={report}"),
            report=ReportFormat.JUNIT,
            report_on="file",
            select=("{python}", "-m", "pytest", "{ids}"),
            timeout_s=120,
        ),
    )
    assert (settings.setup.network, settings.setup.commands) == (True, (("uv", "sync"),))
    assert (settings.sandbox.tier, settings.sandbox.memory_mb) == (SandboxTier.LANDLOCK, 512)


def test_the_project_has_the_last_word_key_by_key(tmp_path: Path) -> None:
    user = "[verify]\nmutants = 1\ndisable = ['a']\n[verify.sandbox]\nprocesses = 9\nmemory_mb = 100\n"
    project = "[verify]\ndisable = []\n[verify.sandbox]\nmemory_mb = 200\n"
    settings, _ = read(tmp_path, project, user)
    assert (settings.mutants, settings.disable) == (1, ())
    assert (settings.sandbox.processes, settings.sandbox.memory_mb) == (9, 200)


def test_the_hash_names_what_was_read(tmp_path: Path) -> None:
    texts = ((None, None), ("[verify]\n", None), (None, "# theirs"), ("[verify]\n", "# theirs"), ("# other", None))
    seen = set()
    for number, (project, user) in enumerate(texts):
        (tmp_path / str(number)).mkdir()
        seen.add(read(tmp_path / str(number), project, user)[1])
    assert len(seen) == len(texts)
    (tmp_path / "b").mkdir()
    assert read(tmp_path / "b", "[verify]\n") == read(tmp_path / "b", "[verify]\n")


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("[verify]\nmutnats = 3\n", "verify.mutnats", "no such field"),
        ("[verify]\nmutants = '3'\n", "verify.mutants", ""),
        ("[verify]\nmutants = 21\n", "verify.mutants", "at most 20"),
        ("[verify]\nmutants = true\n", "verify.mutants", ""),
        ("[verify]\nmutants_s = nan\n", "verify", "finite"),
        ("[verify]\nmutants_s = 2026-01-01\n", "verify", "only texts"),
        ("[verify]\ndisable = 'ruff'\n", "verify.disable", "a list"),
        ("[verify]\ndisable = ['no good id']\n", "verify.disable[0]", "text like"),
        ("[verify]\nroots = ['../other']\n", "verify.roots[0]", "a folder of the repository"),
        ("[verify]\nroots = ['/etc']\n", "verify.roots[0]", "a folder of the repository"),
        ("[verify]\ncheck = 1\n", "verify.check", ""),
        ("[[verify.check]]\nname = 'tests'\n", "verify.check[0].argv", "this field"),
        ("[[verify.check]]\nname = 'tests'\nargv = []\n", "verify.check[0].argv", "at least 1"),
        ("[[verify.check]]\nname = 'tests'\nargv = 'pytest -q'\n", "verify.check[0].argv", "a list"),
        (
            "[[verify.check]]\nname = 'unit'\nargv = ['x']\n",
            "verify.check[0].name",
            "one of ide-diagnostics, syntax-check",
        ),
        ("[[verify.check]]\nname = 'scope'\nargv = ['x']\n", "verify.check[0].name", "one of"),
        ("[[verify.check]]\nname = 'tests'\nargv = ['x']\nroot = '..'\n", "verify.check[0].root", "a folder"),
        ("[[verify.check]]\nname = 'tests'\nargv = ['x']\ntier = 5\n", "verify.check[0].tier", "at most 4"),
        ("[[verify.check]]\nname = 'tests'\nargv = ['x']\nreport = 'xml'\n", "verify.check[0].report", "'junit'"),
        (
            "[[verify.check]]\nname = 'tests'\nargv = ['x']\nreport = 'junit'\nreport_on = 'file'\n",
            "verify.check[0].argv",
            "{report}",
        ),
        ("[[verify.check]]\nname = 'tests'\nargv = ['x']\nselect = ['x']\n", "verify.check[0].select", "{ids}"),
        (
            "[[verify.check]]\nname = 'tests'\nargv = ['x']\n[[verify.check]]\nname = 'tests'\nargv = ['y']\n",
            "verify.check[1].id",
            "an id that no other check has",
        ),
        ("[verify.sandbox]\ntier = 'docker'\n", "verify.sandbox.tier", "'ns'"),
        ("[verify.setup]\nnetwork = 'yes'\n", "verify.setup.network", "true or false"),
        ("[setup]\nnetwork = true\n", "setup", "[verify.setup]"),
        ("[[check]]\nname = 'tests'\n", "check", "[verify.check]"),
        ("[verfiy]\nmutants = 1\n", "verfiy", "only the table [verify]"),
        ("verify = 3\n", "verify", "a table"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_sentence(tmp_path: Path, text: str, key: str, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert refused.value.what.startswith(f"fairwitness.toml: {key}: expected ")
    assert expected in refused.value.what
    assert "\n" not in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize(
    "text",
    [
        "[verify]\napi_key = 'sk-123'\n",
        "[verify.setup.env]\nPIP_PASSWORD = 'sk-123'\n",
        "[verify.setup.env]\nGH_TOKEN = 'sk-123'\n",
        "[verify]\nclientSecret = 'sk-123'\n",
        "[other]\nkey = 'sk-123'\n",
        "[[verify.check]]\nname = 'tests'\nargv = ['x']\npassword = 'sk-123'\n",
    ],
)
def test_a_secret_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no key, token, password") as refused:
        read(tmp_path, text)
    assert "sk-123" not in refused.value.what + refused.value.next_step


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[verify", "is not TOML"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[verify]\na = " + b"[" * 5000, "nested too deeply"),
        (b"[verify]\na = 1\na = 2\n", "is not TOML"),
        (b"[verify]\na = " + b"1" * 5000, "is not TOML"),
        (b"[verify]\nx\x00 = 1", "is not TOML"),
        (b"#" * 300_000, "larger than"),
        (b"[verify]\n" + b".".join([b"a"] * 3000) + b" = 1\n", "more than 100 parts"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "fairwitness.toml").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        verify_settings(tmp_path, user=tmp_path / "nowhere")
    assert words in refused.value.what
    assert refused.value.what.isprintable()


def test_a_link_in_the_checkout_is_refused_and_one_of_the_person_followed(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("[verify]\nmutants = 3\n")
    top = tmp_path / "checkout"
    top.mkdir()
    (tmp_path / "user.toml").symlink_to(real)
    assert verify_settings(top, user=tmp_path / "user.toml")[0].mutants == 3
    (top / "fairwitness.toml").symlink_to(real)
    with pytest.raises(UsageError, match="link"):
        verify_settings(top, user=tmp_path / "nowhere")


def test_a_problem_of_the_users_file_names_that_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, "[verify]\nmutants = 1\n", "[verify]\nmutants = 99\n")
    assert refused.value.what.startswith(str(tmp_path / "user" / "fairwitness.toml"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "fairwitness.toml").write_text("")
    (tmp_path / "fairwitness.toml").chmod(0)
    with pytest.raises(UsageError, match="EACCES"):
        verify_settings(tmp_path, user=tmp_path / "nowhere")


def test_the_users_file_lies_where_the_platform_keeps_settings() -> None:
    assert user_file() == platformdirs.user_config_path("fairwitness") / "fairwitness.toml"
