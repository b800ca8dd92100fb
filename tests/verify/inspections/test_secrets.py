"""Secrets on added lines: found, never repeated, and placeholders left alone.

The secrets are put together here, so that this file holds none.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.secrets import CANARY, masked, secrets
from verify.inspections.changes import blocking, said

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

MIXED = "q7Zr9LmW2xKp4Tn8"
"""Looks random, means nothing."""
KNOWN_FORMS = {
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "open ssh key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "netrc line": "machine host.invalid login joe password " + MIXED,
    "AWS access key": "AKIA" + "Q7ZR9LMW2XKP4TN8",
    "GitHub token": "ghp_" + MIXED * 2 + "q7Zr",
    "GitHub fine token": "github_pat_" + MIXED * 2,
    "GitLab token": "glpat-" + MIXED + "q7Zr9",
    "Slack token": "xoxb-" + "48392716-" + MIXED,
    "Anthropic key": "sk-ant-" + MIXED * 2,
    "OpenAI key": "sk-" + MIXED * 3,
    "OpenAI project key": "sk-proj-" + MIXED * 3,
    "Stripe key": "sk_live_" + MIXED,
    "Google key": "AIza" + MIXED * 2 + "q7Z",
    "npm token": "npm_" + MIXED * 2 + "q7Zr",
    "npm line": "//registry.invalid/:_authToken=" + MIXED,
    "JSON web token": "eyJ" + MIXED + ".eyJ" + MIXED + "." + MIXED,
    "canary": "fairwitness-canary-" + "0123456789abcdef",
}
VALUE = MIXED + "q7Zr9LmW"


@pytest.mark.parametrize("path", ["src/a.py", "tests/test_a.py", "docs/a.md", "config.yml", ".netrc", "notes"])
@pytest.mark.parametrize("secret", KNOWN_FORMS.values(), ids=KNOWN_FORMS.keys())
def test_a_known_form_is_found_everywhere_and_never_repeated(path: str, secret: str) -> None:
    findings = secrets([ChangedText.between(path, "x\n", f"x\n{secret}\n")])
    assert blocking(findings) == {"secret"}
    assert all(MIXED not in finding.text and secret not in finding.text for finding in findings)
    assert {finding.line for finding in findings} == {2}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/a.py", f'password = "{VALUE}"'),
        ("src/a.py", f"api_key = '{VALUE}'"),
        ("src/a.js", f'const secret = "{VALUE}";'),
        ("config.yml", f"db_password: {VALUE}"),
        ("app.ini", f"password = {VALUE}"),
        ("src/a.py", f"url = 'postgres://joe:{VALUE}@db.invalid/shop'"),
    ],
)
def test_a_value_that_is_called_a_secret_is_found_in_code_and_configuration(path: str, line: str) -> None:
    findings = secrets([ChangedText.between(path, "", line + "\n")])
    assert blocking(findings) == {"secret"}
    assert all(VALUE not in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("tests/test_a.py", f'password = "{VALUE}"'),
        ("docs/a.md", f'password = "{VALUE}"'),
        ("tests/test_a.py", f"url = 'postgres://joe:{VALUE}@db.invalid/shop'"),
        ("src/a.py", 'password = "changeme"'),
        ("src/a.py", 'api_key = "your-api-key-here"'),
        ("src/a.py", 'api_key = "xxxxxxxxxxxxxxxx"'),
        ("src/a.py", 'password = os.environ["PASSWORD"]'),
        ("src/a.py", 'parser.add_argument("--password", help="the password to use")'),
        ("src/a.py", 'SECRET_FIELD = "client_secret"'),
        ("src/a.py", "aws = 'AKIA" + "IOSFODNN7EXAMPLE'"),
        ("src/a.py", "url = 'postgres://user:password@localhost/db'"),
        ("src/a.py", "x = 'an ordinary sentence'"),
        ("package-lock.json", '"integrity": "sha512-' + MIXED * 5 + '=="'),
        ("poetry.lock", 'hash = "sha256:' + "9f86d081884c7d659a2feaa0c55ad015" * 2 + '"'),
        ("config.yml", "password: ${DB_PASSWORD}"),
        ("src/a.py", "token_" + "count = 42"),
    ],
)
def test_placeholders_names_and_digests_are_no_secrets(path: str, line: str) -> None:
    assert secrets([ChangedText.between(path, "", line + "\n")]) == ()


def test_a_text_that_only_looks_random_is_said_and_does_not_block() -> None:
    line = "x = '" + "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b'" + "\n"
    assert said(secrets([ChangedText.between("src/a.py", "", line)])) == {("secret", False)}


def test_a_secret_that_was_there_or_is_gone_is_no_finding() -> None:
    line = KNOWN_FORMS["GitHub token"] + "\n"
    assert secrets([ChangedText.between("a.py", line + "x = 1\n", "x = 1\n" + line)]) == ()
    assert secrets([ChangedText.between("a.py", line, "")]) == ()
    assert secrets([ChangedText.between("a.py", line, None)]) == ()


def test_a_change_that_is_too_large_gets_our_own_patterns_and_says_so() -> None:
    text = "x = 1\n" * 5_001 + KNOWN_FORMS["Slack token"] + "\n"
    findings = secrets([ChangedText.between("a.py", None, text)])
    assert said(findings) == {("secret", True), ("scan-limited", False)}


@given(st.text())
def test_a_mask_shows_little(secret: str) -> None:
    shown = masked(secret).partition("…")[0]
    assert len(shown) <= 4
    assert len(shown) * 3 <= len(secret)


def test_the_canary_has_one_form() -> None:
    assert CANARY.fullmatch("fairwitness-canary-" + "ab" * 16)
    assert not CANARY.search("fairwitness-canary-short")


@given(
    st.sampled_from(["a.py", "b.yml", "package-lock.json", "tests/t.js"]), st.none() | st.text(), st.none() | st.text()
)
def test_no_text_makes_it_raise(path: str, before: str | None, after: str | None) -> None:
    secrets([ChangedText.between(path, before, after)])
