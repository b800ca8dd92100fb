"""Secrets are taken out of what is stored, whatever they look like and wherever they stand; the rest stays."""

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.agents.redaction import Redactor, redact
from fairwitness.errors import UsageError

GENERATED = settings(max_examples=300)

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEow"
    + "IBAAKCAQEA" * 8
    + "\nabc=\n-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
SECRETS = {
    "anthropic": "sk-ant-" + "api03-Ab1" * 4,
    "openai": "sk-proj-" + "aB3" * 12,
    "openai old": "sk-" + "aB3d" * 12,
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "a1B2_" * 6,
    "aws": "AKIA" + "ABCD1234" * 2,
    "gitlab": "glpat-" + "a1B2" * 5,
    "slack": "xoxb-" + "1234567890-" * 2,
    "stripe": "sk_live_" + "a1B2" * 6,
    "google": "AIza" + "a1B2_" * 7,
    "npm": "npm_" + "a1B2" * 9,
    "pypi": "pypi-AgE" + "a1B2" * 15,
    "hugging": "hf_" + "a1B2" * 8,
    "jwt": JWT,
    "pem": PEM,
    "openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz" + "aC1rZXkt" * 8 + "\n-----END OPENSSH PRIVATE KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\nlQOY"
    + "BF1a2b3c" * 8
    + "\n-----END PGP PRIVATE KEY BLOCK-----",
    "pem cut off": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkq" * 4 + "\n" + "MIIEvQIBADANBgkq" * 4,
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize(
    "around",
    ["{}", "key is {} there", "'{}',", "a\n{}\nb", '{{"x": "{}"}}', "https://h/?k={}&x=1", "x={}", "\\n{}\\n", "({})."],
)
def test_a_secret_that_is_known_by_its_form_goes_wherever_it_stands(secret: str, around: str) -> None:
    plain = around.format(secret)
    found = redact(plain)
    assert secret not in found
    assert "[redacted: " in found
    assert secret[10:26] not in found
    assert redact(found) == found
    assert redact(json.dumps(plain)).count(json.dumps(secret)[5:25]) == 0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted: credentials]"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', '{"authorization": "Basic [redacted: credentials]"}'),
        ("curl -H 'Authorization: token 0123456789ab'", "curl -H 'Authorization: token [redacted: credentials]'"),
        ("sent bearer abcdef123456 there", "sent bearer [redacted: bearer token] there"),
        ("x-api-key: abcd1234efgh", "x-api-key: [redacted: secret]"),
        ("Cookie: session=abcdef; theme=dark\nHost: x", "Cookie: [redacted: cookie]\nHost: x"),
        ("password=hunter2hunter2", "password=[redacted: secret]"),
        ("password = 'swordfish'", "password = '[redacted: secret]'"),
        ('{"password": "swordfish", "user": "me"}', '{"password": "[redacted: secret]", "user": "me"}'),
        ('{\\"password\\": \\"swordfish\\"}', '{\\"password\\": \\"[redacted: secret]\\"}'),
        ("DB_PASSWORD=correcthorse\nUSER=me", "DB_PASSWORD=[redacted: secret]\nUSER=me"),
        ("secret: str = 'abcdef'", "secret: str = '[redacted: secret]'"),
        ("client_secret := abcd1234ef", "client_secret := [redacted: secret]"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted: secret]"),
        ("postgres://me:hunter2@db/x", "postgres://me:[redacted: password in an address]@db/x"),
        ("machine h login me password abc123", "machine h login me password [redacted: netrc line]"),
        ("//registry/:_authToken=abcdefgh1", "//registry/:_authToken=[redacted: npm token]"),
    ],
)
def test_only_the_secret_itself_is_taken_out(text: str, kept: str) -> None:
    assert redact(text) == kept
    assert redact(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "password: str",
        "def login(password: str, token: Token) -> None:",
        "token = next(tokens)",
        "token = parser.token2(text)",
        "api_key = os.environ['API_KEY']",
        "password = settings.password1.value",
        "password = getpass()",
        'password = "{password}"',
        "TOKEN=$TOKEN1234",
        "token: <your-token-1>",
        'token: "***"',
        "tokens_in: 123456, tokens_out: 12",
        '"tokens": "123456789a"',
        "max_token=100000000",
        "the password is checked in src/auth.py",
        "uses bearer authentication",
        "1 passed in 0.02s",
        "sha256:" + "0123456789abcdef" * 4,
        "secret_name = 'x'",
        "sk-1",
        "https://example.com:8080/@x",
        "-----BEGIN PUBLIC KEY-----",
        "Cookie monster",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_what_the_caller_knows_goes_in_every_spelling() -> None:
    known = 'p"ss/wörd+1'
    redactor = Redactor(known=(known, "other-one"))
    for spelling in (
        known,
        json.dumps(known),
        json.dumps(known, ensure_ascii=False),
        quote(known, safe=""),
        base64.b64encode(known.encode()).decode(),
        base64.urlsafe_b64encode(known.encode()).decode(),
    ):
        found = redactor.redact(f"a {spelling} b")
        assert "[redacted: known]" in found, spelling
        assert redactor.redact(found) == found
    assert redactor.redact("another-one") == "an[redacted: known]"
    assert redactor.redact("nothing") == "nothing"
    lines = Redactor(known=("first-line-of-a-key\nsecond-line-of-a-key\nx",))
    assert lines.redact("> second-line-of-a-key") == "> [redacted: known]"


def test_a_secret_too_short_to_be_told_from_text_is_refused() -> None:
    with pytest.raises(UsageError, match="a secret of 1 characters"):
        Redactor(known=("x",))
    with pytest.raises(UsageError, match="a secret of 0 characters"):
        Redactor(known=("",))


def test_plain_values_are_redacted_all_through() -> None:
    key = SECRETS["openai"]
    value = {
        "path": "src/a.py",
        "content": f"key = '{key}'\n",
        "edits": [{"old_string": key, "n": 3, "ok": True, "none": None}],
        "password": "correct horse battery",
        "token": "{token}",
        "pin": ("1234", key),
        key: 1,
    }
    assert Redactor().redact_all(value) == snapshot(
        {
            "path": "src/a.py",
            "content": "key = '[redacted: OpenAI key]'\n",
            "edits": [{"old_string": "[redacted: OpenAI key]", "n": 3, "ok": True, "none": None}],
            "password": "[redacted: secret]",
            "token": "{token}",
            "pin": ["1234", "[redacted: OpenAI key]"],
            "[redacted: OpenAI key]": 1,
        }
    )


_PIECES = st.one_of(
    st.sampled_from(
        [
            *SECRETS.values(),
            "password=",
            "token: ",
            '"',
            "'",
            "\\",
            "Bearer ",
            "Authorization: ",
            "Cookie: ",
            "=",
            ":",
            " ",
        ]
    ),
    st.text(max_size=12),
)


@GENERATED
@given(st.lists(_PIECES, max_size=8).map("".join))
def test_redacting_twice_changes_nothing_more_and_no_secret_is_left(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    for name in ("pem", "openssh", "pgp"):
        assert SECRETS[name] not in once


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----" * 20_000,
        "-----BEGIN PRIVATE KEY-----" + "A" * 500_000,
        "password" * 60_000,
        "password=" * 60_000,
        "a-" * 250_000,
        "machine " * 60_000,
        "machine" + " " * 500_000,
        "eyJ" * 160_000,
        "PuTTY-User-Key-File-2" * 20_000,
        "authorization:" * 30_000,
        "token: " + "x" * 500_000,
        "http://" + "a:" * 200_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    redact(text)
    assert time.perf_counter() - began < 20
