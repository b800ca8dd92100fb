"""Secrets are taken out of what is stored, whatever they look like and wherever they stand; the rest stays."""

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.errors import UsageError
from fairwitness.kit.redaction import (
    Redactor,
    forget,
    know,
    redact,
    redact_bytes,
    redact_forms,
    redact_values,
    secrets_in,
)

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
    "slack": "xoxb-" + "2468013579-" * 2,
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
        ("//registry/:_authToken=abcdefhg1", "//registry/:_authToken=[redacted: npm token]"),
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


HONEST = [
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "d41d8cd98f00b204e9800998ecf8427e  file.txt",
    "123e4567-e89b-12d3-a456-426614174000",
    "tests/test_a.py::test_b[123e4567-e89b-12d3-a456-426614174000] PASSED",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "x" * 36,
    "postgresql://scott:tiger@localhost/test",
    "http://user:password@example.com/",
    '_SK_START = b"-----BEGIN OPENSSH ' + 'PRIVATE KEY-----"\n_SK_END = b"-----END OPENSSH PRIVATE KEY-----"\n',
    "sk-toggleable__label-arrow sk-estimator-doc-link-and-more",
    "private_key = rsa_key_2048",
]


@pytest.mark.parametrize("text", HONEST)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_in_bytes_that_are_no_text_goes_and_every_other_byte_stays(secret: str) -> None:
    found = redact_bytes(b"\xff\xfe\x80 " + secret.encode() + b" \x00\xc3\n")
    assert secret.encode() not in found
    assert found.startswith(b"\xff\xfe\x80 [redacted: ")
    assert found.endswith(b"\x00\xc3\n")


def test_lines_behind_a_secret_of_several_lines_keep_their_numbers() -> None:
    found = redact(f"1\n{PEM}\nlast")
    assert found.split("\n").index("last") == f"1\n{PEM}\nlast".split("\n").index("last")


def test_a_key_in_colours_in_a_url_and_in_a_diff_goes() -> None:
    key = SECRETS["openai"]
    for text in (f"\x1b[31m{key}\x1b[0m", f"\x1b[1;32m{key}", f"a%3D{key}", f"\\u003d{key}"):
        assert key not in redact(text), text
    diff = "".join(f"+{line}\n" for line in PEM.split("\n"))
    assert "IBAAKCAQEA" not in redact(diff)


def test_what_the_environment_calls_a_secret_is_known() -> None:
    found = secrets_in(
        {
            "MY_API_KEY": "k-4711-4711",
            "DATABASE_URL": "postgres://me:s3cr3t-s3cr3t@db/x",
            "PWD": "/home/ada/work",
            "MAX_TOKEN": "100000000",
            "DB_PASSWORD": "postgres",
            "EDITOR": "k-4712-4712",
        }
    )
    assert list(found) == ["k-4711-4711", "s3cr3t-s3cr3t"]


def test_what_this_process_was_told_goes_until_it_is_forgotten() -> None:
    know("tiny", "told-once-1")
    try:
        assert redact("x told-once-1 tiny") == "x [redacted: known] tiny"
        assert redact_forms("told-once-1") == "[redacted: known]"
        assert redact_values({"a": ["told-once-1", 1]}) == {"a": ["[redacted: known]", 1]}
    finally:
        forget("told-once-1")
    assert redact("x told-once-1") == "x told-once-1"


def test_code_that_an_agent_edits_keeps_values_that_only_a_name_announces() -> None:
    assert redact_forms("password = 'swordfish'") == "password = 'swordfish'"
    assert SECRETS["github"] not in redact_forms(f"token = '{SECRETS['github']}'")
