"""Removes what differs between machines and days from a text, so that a replay can be compared with a recording.

Replaced everywhere: the worktree (`{root}`), temporary folders, folders of installed packages, memory addresses,
the versions in pytest's heading, percentages of progress.
Replaced except in lines that state a fact about values (assertions, and files as `read_file` shows them): durations,
points in time, process ids, ephemeral ports, seeds, ids of git objects.
Sorted: neighbouring lines in which a test runner reports one test or one file each, since pytest with a random order
and cargo's threads report them in any; and the signs of one pytest line (`.F.s`).
Trimmed: the frames of pytest's headings.
Left alone: counts, exit codes, names of files and tests, and what an assertion says.
"""

import hashlib
import re
from collections.abc import Callable, Iterable

_NUMBER = r"\d+(?:[.,]\d+)?"
_PATH_END = r"(?![\w-]|\.\w)"

_ADDRESSES = re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b|\b0x[0-9a-fA-F]{9,16}\b")
_TEMPORARY = re.compile(
    r"(?:/private)?(?:/tmp|/var/tmp|/dev/shm|/var/folders/[^/\s]{1,40}/[^/\s]{1,60}/T)/"
    r"(?:pytest-of-[^/\s]{1,64}/pytest-(?:\d{1,9}|current)"
    r"|tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10}|fairwitness-[a-z-]{1,30}-[a-z0-9_]{8}|pip-[a-z-]{1,30}-[a-z0-9_]{8}"
    r"|go-build\d{1,20}|rustc[A-Za-z0-9]{6}|cc[A-Za-z0-9]{6})"
    rf"{_PATH_END}"
)
"""Random names of Python, mktemp, pytest, pip, go, rustc, gcc and Fair Witness; other names are kept."""
_PACKAGES = re.compile(r"(?<![\w.-])/[^\s:'\"()<>]{0,400}?/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"(?<![\w.-])/[^\s:'\"()<>]{0,400}?/lib/python3\.\d{1,2}/")

_EVERYWHERE: tuple[tuple[re.Pattern[str], str], ...] = (
    (_ADDRESSES, "{address}"),
    (_TEMPORARY, "{tmp}"),
    (_PACKAGES, "{packages}/"),
    (_LIBRARY, "{python}/"),
    (re.compile(r"\[\s{0,3}\d{1,3}%\]"), "[{percent}]"),
    (re.compile(r"^\[gw\d{1,4}\]\s", re.MULTILINE), ""),
    (re.compile(r"^(platform \S+ --|plugins:|cachedir:) .*$", re.MULTILINE), r"\1 {versions}"),
)

_STATED = re.compile(
    r"^\d+\t|^E\s|^>\s|^\s*[-+?](?![-+])|\bassert(?!ions?\b)|\bexpect|\b(?:actual|received|want|got)\b|\b(?:left|right):"
    r"|\S\s[!=]==?\s\S",
    re.IGNORECASE,
)
"""Lines that state what a value is or was: `read_file`'s, pytest's, diffs, and those of other runners' assertions."""

_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_MOMENTS = re.compile(
    rf"\b\d{{4}}[-/]\d\d[-/]\d\d[T ](?:{_CLOCK}|\d\d:\d\d)(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?(?![\w:])"
    rf"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s+(?:{_MONTH}\s+\d{{1,2}}|\d{{1,2}}\s+{_MONTH}),?"
    rf"(?:\s+\d{{4}})?\s+{_CLOCK}(?:\s+(?:UTC|GMT|[+-]\d{{4}}))?(?:\s+\d{{4}})?(?:\s+[+-]\d{{4}})?"
    rf"|\b\d{{1,2}}/{_MONTH}/\d{{4}}:{_CLOCK}(?:\s[+-]\d{{4}})?"
    rf"|(?<![\w:.]){_CLOCK}(?![\w:])"
)
"""Points in time with a time of day; a date alone may be what a test is about."""
_PARTS = r"(?:ns|µs|μs|us|ms|milliseconds?|microseconds?|nanoseconds?)"
_SECONDS = r"(?:s|secs?|seconds?)"
_LONGER = rf"(?:{_SECONDS}|m|mins?|minutes?|h|hours?)"
_DURATIONS = re.compile(
    rf"(?<![\w.-]){_NUMBER}\s?{_PARTS}\b"
    rf"|(?<![\w.-])\d+[.,]\d+\s?{_SECONDS}\b"
    rf"|(?<![\w.-])\d+m\s?{_NUMBER}s\b"
    rf"|(?<=\(){_NUMBER}\s?{_LONGER}(?=\))"
    rf"|(?:(?<=\bin )|(?<=\btook )|(?<=\bafter )){_NUMBER}\s?{_LONGER}\b"
)
"""Fractions of seconds anywhere; whole seconds only where the text says that something took them."""
_AFTER_NAMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            rf"(?P<head>\b(?:duration(?:_ms|_s)?[\"']?\s{{0,9}}[:=]?|(?:elapsed|time)[\"']?\s{{0,9}}[:=])\s{{0,9}})"
            rf"{_NUMBER}(?:\s?(?:{_PARTS}|{_LONGER})\b)?(?![\w:])",
            re.IGNORECASE,
        ),
        "{duration}",
    ),
    (
        re.compile(r"(?P<head>\b(?:p?pid|tid|process id)\b\s?[:=#]?\s?)\d{1,7}\b|(?P<asan>^==)\d{1,7}(?===)", re.I),
        "{pid}",
    ),
    (
        re.compile(
            r"(?P<head>(?:\blocalhost|\b127\.0\.0\.1|\b0\.0\.0\.0|\[::1?\]):|\bport\s?[:=]?\s?)[1-6]\d{4}\b", re.I
        ),
        "{port}",
    ),
    (re.compile(r"(?P<head>\b(?:randomly[-_ ])?(?:seed|test\.shuffle)\b\s?[:=]?\s?)\d{1,20}\b", re.I), "{seed}"),
    (re.compile(r"(?P<head>\b(?:commit|index|merge|tree|parent|object|blob)\s)[0-9a-f]{7,64}\b"), "{id}"),
    (re.compile(r"(?P<head>\bindex \{id\}\.\.)[0-9a-f]{7,64}\b"), "{id}"),
)
_IDS = re.compile(r"(?<![\w./:-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w/:-]|\.\w)")

_BANNER = re.compile(r"^([=_-])\1* (\S.*\S) \1+$")
"""Headings padded to the width of a terminal: a longer duration makes the padding shorter."""

_VERDICT = r"(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
_REPORTS: tuple[re.Pattern[str], ...] = (
    re.compile(rf"\S+::\S.*\s{_VERDICT}\b.*|(?:\[\{{percent\}}\]\s)?{_VERDICT}\s(?:\[\d+\]\s)?\S+(?:::|\.py)\S*.*"),
    re.compile(r"test \S+ \.\.\. (?:ok|FAILED|ignored).*"),
    re.compile(r"\S+\.py [.FEsxXRr]+(?:\s+\[.*\])?"),
)
"""Lines of pytest (`-v`, and its summary), of cargo, and of pytest without `-v`."""
_REPORT_LENGTH = 1_000
_SIGNS = re.compile(r"(?P<head>(?<!\S)\S+\.py )(?P<signs>[.FEsxXRr]+)(?P<tail>(?:\s+\[.*\])?)")


def normalize(text: str, *, root: str) -> str:
    """Return the text without what differs between machines or days.

    >>> normalize("1 passed in 0.02s", root="/w") == normalize("1 passed in 1.30s", root="/w")
    True
    """
    place = root.rstrip("/")
    if place:
        text = re.sub(re.escape(place) + _PATH_END, "{root}", text)
    for pattern, stands_for in _EVERYWHERE:
        text = pattern.sub(stands_for, text)
    lines = [line if _STATED.search(line) else _timeless(line) for line in text.split("\n")]
    return "\n".join(_ordered(lines))


def digest(parts: Iterable[str]) -> str:
    """Return one digest of several texts; the boundaries between them count."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(f"{len(data)}:".encode())
        hashed.update(data)
    return f"sha256:{hashed.hexdigest()}"


def _timeless(line: str) -> str:
    line = _MOMENTS.sub("{moment}", line)
    for pattern, stands_for in _AFTER_NAMES:
        line = pattern.sub(_after_name(stands_for), line)
    line = _DURATIONS.sub("{duration}", line).replace("{duration} ({moment})", "{duration}")
    return _BANNER.sub(r"\1\1\1 \2 \1\1\1", _IDS.sub("{id}", line))


def _after_name(stands_for: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[found.lastgroup or 0]}{stands_for}"


def _ordered(lines: list[str]) -> list[str]:
    """Return the lines with neighbouring reports of one kind sorted."""
    ordered: list[str] = []
    block: list[str] = []
    kind: re.Pattern[str] | None = None
    for line in lines:
        found = _report(line.rstrip())
        if found is not kind:
            ordered += sorted(block)
            block, kind = [], found
        if found is None:
            ordered.append(line)
        else:
            block.append(_SIGNS.sub(_sorted_signs, line) if found is _REPORTS[-1] else line)
    return ordered + sorted(block)


def _report(line: str) -> re.Pattern[str] | None:
    if len(line) > _REPORT_LENGTH:
        return None
    return next((report for report in _REPORTS if report.fullmatch(line)), None)


def _sorted_signs(found: re.Match[str]) -> str:
    return f"{found['head']}{''.join(sorted(found['signs']))}{found['tail']}"
