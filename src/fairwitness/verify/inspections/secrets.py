"""Secrets on the added lines of a change: detect-secrets' detectors and patterns of our own.

Nothing is verified over a network, and no secret is ever repeated: a finding shows its kind and at most four
characters. Forms that are secrets by themselves (keys, tokens, netrc lines) are looked for everywhere. Words like
`password = "…"` and texts that merely look random are looked for in production code and configuration only, and the
latter do not block. A placeholder is no secret, nor is a digest in a lock file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from fairwitness.kit.secret_forms import SECRET_FORMS, is_placeholder
from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.inspections.line_diff import lines_of
from fairwitness.verify.inspections.model import ChangedText, FindingRule, InspectionFinding, bounded, finding_at

DETECTED_LINES = 5_000
"""Added lines that detect-secrets looks at (about 1 ms each); more than that get our own patterns only."""
DETECTED_LENGTH = 500
"""Characters of a line that detect-secrets looks at."""
KEYWORDS = 6
"""Words for secrets on one line; the patterns that look behind each take too long for more."""
PATTERN_LENGTH = 20_000
"""Characters of a line that our own patterns look at."""
CANARY = re.compile(r"\bfairwitness-canary-[0-9a-f]{16,64}\b")
"""Canary tokens that Fair Witness plants in protected files; a change that contains one has read such a file."""

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Fair Witness canary", CANARY),
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")),  # on a line alone
    *((form.kind, form.pattern) for form in SECRET_FORMS),
)
"""Kinds of secrets that are known by their form; the group `secret` where only a part of it is one."""

_LOCK_LINE = re.compile(
    r"\bintegrity\b|\bsha(?:1|256|384|512)[-:=]|\bchecksum\b|\bh1:|--hash|\bdigest\b|\brev(?:ision)?\b"
)
_KEYWORD = re.compile(r"key|pass|pwd|secret|contrase", re.IGNORECASE)
_NAMES_ONLY = frozenset({"Secret Keyword", "Basic Auth Credentials", "password in an address"})
_ALWAYS = frozenset({"Fair Witness canary", "private key"})
"""Kinds that are no placeholder whatever they look like."""
_RANDOM = frozenset({"Base64 High Entropy String", "Hex High Entropy String"})
_FORMS_ONLY = frozenset({PathKind.TEST, PathKind.DOCS, PathKind.LOCK})
"""Kinds of paths where only known forms count."""
_RANDOM_LENGTH = 20


class SecretMatch(NamedTuple):
    """One secret on a line."""

    kind: str
    secret: str
    blocks: bool


Detector = Callable[[str, str], Iterator[SecretMatch]]


def secrets(changes: Iterable[ChangedText]) -> tuple[InspectionFinding, ...]:
    """Return findings about the added lines of every changed file."""
    files = tuple(change for change in changes if change.after is not None)
    total = sum(len(change.added) for change in files)
    detect = _detector() if total <= DETECTED_LINES else None
    findings = [finding for change in files for finding in _of_file(change, detect)]
    if detect is None:
        text = f"{total} added lines are too many for detect-secrets; only Fair Witness' own patterns were applied"
        findings.append(finding_at(FindingRule.SCAN_LIMITED, ".", None, text, blocks=False))
    return bounded(findings)


def _of_file(change: ChangedText, detect: Detector | None) -> Iterator[InspectionFinding]:
    kind = kind_of_path(change.path)
    lines = lines_of(change.after or "")
    known = set(lines_of(change.before or ""))
    for number in change.added:
        line = lines[number - 1] if number <= len(lines) else ""
        if line in known or not line.strip():
            continue
        if kind is PathKind.LOCK and _LOCK_LINE.search(line[:PATTERN_LENGTH]):
            continue
        seen = _worth_saying(_by_pattern(line[:PATTERN_LENGTH]), line, kind)
        if not seen and detect is not None:
            seen = _worth_saying(detect(change.path, " ".join(line[:DETECTED_LENGTH].split())), line, kind)
        for kind_of_secret, secret, blocks in _distinct(seen):
            text = f"{kind_of_secret}: {masked(secret)}"
            yield finding_at(FindingRule.SECRET, change.path, number, text, blocks=blocks)


def masked(secret: str) -> str:
    """Return the first characters of a secret, at most four and never a third of it."""
    shown = min(4, len(secret) // 3)
    return f"{secret[:shown]}… ({len(secret)} characters)"


def _by_pattern(line: str) -> Iterator[SecretMatch]:
    for kind, pattern in PATTERNS:
        for match in pattern.finditer(line):
            yield SecretMatch(kind, match.groupdict().get("secret") or match.group(), blocks=True)


def _worth_saying(seen: Iterator[SecretMatch], line: str, kind: PathKind) -> list[SecretMatch]:
    kept = []
    for each in seen:
        vague = each.kind in _NAMES_ONLY | _RANDOM
        if vague and kind in _FORMS_ONLY:
            continue
        if (each.kind not in _ALWAYS and is_placeholder(each.secret, may_be_word=True)) or (
            vague and _is_reference(each.secret, line)
        ):
            continue
        if each.kind in _RANDOM and (len(each.secret) < _RANDOM_LENGTH or _LOCK_LINE.search(line)):
            continue
        kept.append(each)
    return kept


def _is_reference(secret: str, line: str) -> bool:
    """Return whether what looks like a secret is a name, a path or a message rather than a value."""
    words = secret.split()
    return (
        len(words) > 1
        or secret.isalpha()
        or secret.replace("_", "").replace("-", "").replace(".", "").isalpha()
        or secret.startswith(("/", "./", "$", "%", "{", "(", "["))
        or secret.endswith(("(", ")"))
        or "environ" in line
        or "getenv" in line
    )


def _distinct(seen: Iterable[SecretMatch]) -> list[SecretMatch]:
    """Return one finding per secret; the surest kind comes first."""
    kept: list[SecretMatch] = []
    for each in sorted(seen, key=lambda each: (not each.blocks, each.kind)):
        if not any(each.secret in other.secret or other.secret in each.secret for other in kept):
            kept.append(each)
    return kept


def _detector() -> Detector:
    """Return a detector with the plug-ins of detect-secrets, called directly: so nothing is verified over a network."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import BasePlugin
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
    from detect_secrets.plugins.keyword import (
        QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP,
        REGEX_BY_FILETYPE,
        KeywordDetector,
    )
    from detect_secrets.util.filetype import determine_file_type

    unwanted = {"Public IP (ipv4)"}
    classes: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    detectors = [classes[kind]() for kind in sorted(classes) if kind not in unwanted]

    def detect(path: str, line: str) -> Iterator[SecretMatch]:
        patterns = REGEX_BY_FILETYPE.get(
            determine_file_type(PurePosixPath(path).name), QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP
        )
        for detector in detectors:
            if isinstance(detector, KeywordDetector):
                if len(_KEYWORD.findall(line)) > KEYWORDS:
                    continue
                values = detector.analyze_string(line, patterns)
            else:
                values = detector.analyze_string(line)
            for value in values:
                if isinstance(detector, HighEntropyStringsPlugin) and (
                    detector.calculate_shannon_entropy(value) <= detector.entropy_limit
                ):
                    continue
                if value:
                    yield SecretMatch(detector.secret_type, value, detector.secret_type not in _RANDOM)

    return detect
