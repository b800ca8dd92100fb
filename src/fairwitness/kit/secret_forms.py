"""What a secret looks like: the keys and tokens of known vendors, private keys, and passwords in addresses.

Every pattern matches a bounded length of text and begins at a fixed word, its sign, so that a search takes linear time
and costs little where no sign occurs. What only looks random (a hash, a UUID, a base64 fixture) is no secret here.
"""

import re
from dataclasses import dataclass
from functools import cached_property

_EDGE = r"(?:\b|(?<=\\[nrt])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9a-fA-F]{2})|(?<=[\[;]\dm)|(?<=[\[;]\d\dm))"
"""A word boundary, or the end of an escape in JSON, in a URL or on a terminal, which ends with a letter or digit."""
_MIXED = r"(?=[A-Za-z_-]{0,200}\d)(?=[a-z0-9_-]{0,200}[A-Z])"
"""A digit and a capital: words joined by hyphens have the charset of a key, but not both of these."""

_GAP = (
    r"(?:[\s\"'|>+,()]|\\[nr]|-(?!-)|b(?=[\"'])"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\\]{0,100})"
)
"""What stands between the lines of a key: line ends, headers, and the marks of a literal, a diff or a quotation."""


@dataclass(frozen=True)
class SecretForm:
    """A kind of secret."""

    kind: str
    signs: tuple[str, ...]
    """The pattern matches only at one of these words."""
    expression: str
    may_be_word: bool = False
    """Whether a person chooses it, so that words such as `password` are placeholders."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The group `secret` marks the secret if it is only a part of the match; compiled when a sign occurs."""
        return re.compile(self.expression, re.ASCII | re.DOTALL)


def _form(kind: str, signs: tuple[str, ...], rest: str, *, edge: bool = True, may_be_word: bool = False) -> SecretForm:
    either = "|".join(map(re.escape, sorted(signs, key=len, reverse=True)))
    return SecretForm(kind, signs, rf"{_EDGE if edge else ''}(?:{either}){rest}", may_be_word)


SECRET_FORMS: tuple[SecretForm, ...] = (
    _form(
        "private key",
        ("-----BEGIN ",),
        r"(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?={_GAP}{{0,60}}[A-Za-z0-9+/=]{{24}})(?:{_GAP}|[A-Za-z0-9+/=]){{0,16384}}+"
        r"(?:-----END [A-Z0-9 ]{0,48}-----)?",
        edge=False,
    ),
    _form(
        "private key",
        ("PuTTY-User-Key-File-",),
        r"\d(?:(?:(?!PuTTY-).){0,8192}?Private-MAC: ?[0-9a-f]{1,128})?",
        edge=False,
    ),
    _form("private key", ("AGE-SECRET-KEY-1",), r"[0-9A-Z]{58}", edge=False),
    _form("netrc line", ("machine",), r"\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<secret>\S{3,200})"),
    _form("AWS access key", ("AKIA", "ASIA", "AGPA", "AROA", "ABIA", "ACCA"), r"[0-9A-Z]{16}\b"),
    _form("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,255}", edge=False),
    _form("GitHub token", ("github_pat_",), r"[A-Za-z0-9_]{22,255}", edge=False),
    _form("GitLab token", ("glpat-", "glptt-", "glrt-", "gldt-", "glsoat-"), r"[A-Za-z0-9_-]{20,64}"),
    _form("Slack token", tuple(f"xox{kind}-" for kind in "abeoprs"), r"[A-Za-z0-9-]{10,250}"),
    _form("Slack token", ("xapp-",), r"\d-[A-Za-z0-9-]{10,250}"),
    _form("Slack webhook", ("https://hooks.slack.com/services/",), r"T\w{6,20}/B\w{6,20}/\w{16,40}", edge=False),
    _form("Anthropic key", ("sk-ant-",), r"[A-Za-z0-9_-]{16,200}"),
    _form("OpenAI key", ("sk-",), rf"(?:{_MIXED}[A-Za-z0-9_-]{{20,200}}|(?:or-v1-)?[0-9a-f]{{32,200}}\b)"),
    _form("Stripe key", ("sk_live_", "rk_live_"), r"[A-Za-z0-9]{16,200}"),
    _form("Google key", ("AIza",), r"[0-9A-Za-z_-]{35}\b"),
    _form("Google key", ("ya29.",), rf"{_MIXED}[0-9A-Za-z_-]{{30,2000}}"),
    _form("Google key", ("GOCSPX-",), r"[0-9A-Za-z_-]{28}\b"),
    _form("Groq key", ("gsk_",), r"[A-Za-z0-9]{48,64}\b"),
    _form("xAI key", ("xai-",), r"[A-Za-z0-9]{60,100}\b"),
    _form("Perplexity key", ("pplx-",), r"[A-Za-z0-9]{40,64}\b"),
    _form("npm token", ("npm_",), r"[A-Za-z0-9]{36}\b"),
    _form("npm token", ("/:_authToken=",), r"(?P<secret>[^\s$]{8,200})", edge=False),
    _form("PyPI token", ("pypi-AgE",), r"[A-Za-z0-9_-]{50,200}"),
    _form("RubyGems token", ("rubygems_",), r"[0-9a-f]{48}\b"),
    _form("Hugging Face token", ("hf_",), r"[A-Za-z0-9]{30,60}\b"),
    _form("Docker token", ("dckr_pat_",), r"[A-Za-z0-9_-]{27}\b"),
    _form("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]{64}\b"),
    _form("Databricks token", ("dapi",), r"[0-9a-f]{32}\b"),
    _form("SendGrid key", ("SG.",), r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b"),
    _form("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[0-9a-fA-F]{32}\b"),
    _form("Vault token", ("hvs.", "hvb."), rf"{_MIXED}[A-Za-z0-9_-]{{24,200}}"),
    _form("Azure key", ("AccountKey=",), r"(?P<secret>[A-Za-z0-9+/]{86}==)"),
    _form("Fair Witness token", ("fairwitness-",), rf"(?:[0-9a-f]{{48}}|{_MIXED}[A-Za-z0-9_-]{{43}})(?![A-Za-z0-9_-])"),
    _form(
        "JSON web token",
        ("eyJ",),
        r"[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,2000}+\.[A-Za-z0-9_-]{10,2000}",
    ),
    _form(
        "password in an address",
        ("://",),
        r"[^\s:/@'\"]{0,80}:(?P<secret>[^\s:/@'\"{}$<>\\]{3,80})@",
        edge=False,
        may_be_word=True,
    ),
)  # fmt: skip

_MADE_UP = re.compile(
    r"example|changeme|change[-_]me|placeholder|dummy|redacted|your[-_]|<[^>]{1,60}>|\$\{|\{\{|x{4,}|\*{4,}|\.{3}|…|"
    r"^(.)\1*$|0{8,}",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"1234567|abcdefg|deadbeef|(?:^|[^a-z])(?:fake|sample|todo|insert|secret|password|passwd|passwort|pwd|test(?:ing|pass)?|foo|bar|baz|none|null"
    r"|user|admin|pass|pw|tiger|token|key)(?:$|[^a-z])",
    re.IGNORECASE,
)


def is_placeholder(secret: str, *, may_be_word: bool) -> bool:
    """Return whether something of the form of a secret is made up, such as AWS's own `AKIA…EXAMPLE`.

    `may_be_word` says that a person chooses such secrets: then words like `password` are made up, too.
    """
    return _MADE_UP.search(secret) is not None or (may_be_word and _WORDS.search(secret) is not None)
