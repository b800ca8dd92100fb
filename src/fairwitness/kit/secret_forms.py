"""Patterns of secrets that are recognizable by their form alone: keys and tokens of known vendors.

Every pattern matches a bounded length of text, so that a search takes linear time.
"""

import re

SECRET_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(r"-----BEGIN (?:[A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    ("putty key", re.compile(r"\bPuTTY-User-Key-File-\d")),
    ("netrc line", re.compile(r"\bmachine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<secret>\S{3,200})")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA|AGPA|AROA|ABIA|ACCA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})")),
    ("GitLab token", re.compile(r"\bgl(?:pat|ptt|rt|dt|soat)-[A-Za-z0-9_-]{20,64}")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}|\bxapp-\d-[A-Za-z0-9-]{10,250}")),
    ("Slack webhook", re.compile(r"https://hooks\.slack\.com/services/T\w{6,20}/B\w{6,20}/\w{16,40}")),
    ("Anthropic key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{16,200}")),
    ("OpenAI key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}")),
    ("Stripe key", re.compile(r"\b[rs]k_live_[A-Za-z0-9]{16,200}")),
    ("Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b|//[\w.-]{3,80}/:_authToken=(?P<secret>[^\s$]{8,200})")),
    ("PyPI token", re.compile(r"\bpypi-AgE[A-Za-z0-9_-]{50,200}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,60}\b")),
    ("JSON web token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,2000}")),
    ("password in an address", re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"]{1,80}:(?P<secret>[^\s:/@'\"{}$<>]{3,80})@")),
)  # fmt: skip
"""Kinds of secrets with their patterns; the group `secret` marks the secret if it is only a part of the match."""
