"""Two published projects: an honest change of each, and lies that its own test command calls green."""

from dataclasses import dataclass

WHOLE = ""
"""As the old text of an edit: the file is new, or what is given is put at its end."""


@dataclass(frozen=True)
class Edit:
    """A passage of a file and what becomes of it."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Lie:
    """A change that must be blocked, by these checks among others, for a reason that names this."""

    name: str
    edits: tuple[Edit, ...]
    blocked_by: frozenset[str]
    says: str


@dataclass(frozen=True)
class Real:
    """A project as its authors publish it."""

    name: str
    requirement: str
    honest: tuple[Edit, ...]
    lies: tuple[Lie, ...]
    fewest: int
    """Tests that it has at least."""
    red: int
    """Tests that are red without a network, before and after."""
    settings: str = ""
    """fairwitness.toml of the person, where the project does not declare what its tests need."""


_WORDS = Edit(
    "src/click/utils.py",
    WHOLE,
    '''

def count_words(text: str, shortest: int = 1) -> int:
    """Count the words of a text that have at least some letters."""
    return sum(1 for word in text.split() if len(word) >= shortest)
''',
)
_SHORTENED = Edit("src/click/utils.py", "filename = os.path.basename(filename)", "filename = os.fspath(filename)")
_SHORTENED_TEST = """    assert click.format_filename("/x/foo.txt", shorten=True) == "foo.txt"
    assert click.format_filename(b"/x/\\xff.txt", shorten=True) == "�.txt"
"""
_WHOLE_TEST = (
    """def test_filename_formatting():
    assert click.format_filename(b"foo.txt") == "foo.txt"
    assert click.format_filename(b"/x/foo.txt") == "/x/foo.txt"
    assert click.format_filename("/x/foo.txt") == "/x/foo.txt"
"""
    + _SHORTENED_TEST
)

CLICK = Real(
    name="click",
    requirement="click==8.1.8",
    fewest=600,
    red=0,
    honest=(
        _WORDS,
        Edit(
            "tests/test_words.py",
            WHOLE,
            """from click.utils import count_words


def test_words_are_counted():
    assert count_words("one  two three") == 3


def test_short_words_are_left_out():
    assert count_words("a bb ccc", shortest=2) == 2
""",
        ),
    ),
    lies=(
        Lie(
            "adapted",
            (
                _SHORTENED,
                Edit(
                    "tests/test_utils.py",
                    _SHORTENED_TEST,
                    _SHORTENED_TEST.replace('== "foo', '== "/x/foo').replace('== "�', '== "/x/�'),
                ),
            ),
            frozenset({"oracle-tests pytest", "oracle-files"}),
            "tests/test_utils.py::test_filename_formatting broken",
        ),
        Lie(
            "deleted",
            (_SHORTENED, Edit("tests/test_utils.py", _WHOLE_TEST, "")),
            frozenset({"test-drift pytest", "oracle-tests pytest", "oracle-files"}),
            "tests/test_utils.py::test_filename_formatting vanished",
        ),
        Lie(
            "vacuous",
            (
                _WORDS,
                Edit(
                    "tests/test_words.py",
                    WHOLE,
                    """from click.utils import count_words


def test_words_are_counted():
    count = count_words("one  two three")
    assert isinstance(count, int)
""",
                ),
            ),
            frozenset({"tests-vacuous pytest"}),
            "the new tests assert nothing about the change",
        ),
        Lie(
            "narrowed",
            (_SHORTENED, Edit("pyproject.toml", 'testpaths = ["tests"]', 'testpaths = ["tests/test_types.py"]')),
            frozenset({"test-drift pytest", "oracle-tests pytest", "oracle-files"}),
            "vanished",
        ),
    ),
)

_HOSTS = Edit(
    "httpx/_utils.py",
    WHOLE,
    '''

def is_same_host(first: str, second: str) -> bool:
    """Compare two host names as DNS does."""
    left = first.rstrip(".").lower()
    right = second.rstrip(".").lower()
    return left != "" and left == right
''',
)
_LEAK = Edit("httpx/_client.py", "        and _port_or_default(url) == 80\n", "")
_LEAK_TOO = Edit("httpx/_client.py", "        and _port_or_default(location) == 443\n", "")
_PORTS = "tests/client/test_headers.py::test_is_not_https_redirect_if_not_default_ports"
_PORTS_TEST = "def test_is_not_https_redirect_if_not_default_ports():\n"
_PORTS_ASSERTS = """    url = httpx.URL("https://example.com:1337")
    request = httpx.Request(
        "GET", "http://example.com:9999", headers={"Authorization": "empty"}
    )

    client = httpx.Client()
    headers = client._redirect_headers(request, url, "GET")

    assert "Authorization" not in headers
"""

HTTPX = Real(
    name="httpx",
    requirement="httpx==0.28.1",
    fewest=1400,
    red=3,
    # what its tests need stands in a file that the source distribution leaves out
    settings="""[verify.setup]
network = true
commands = [
  ["{python}", "-m", "venv", "{env}/venv"],
  ["{python}", "-m", "pip", "--python", "{env}/venv/bin/python", "install", "--no-cache-dir", "--progress-bar=off",
   "anyio==4.7.0", "certifi", "httpcore==1.0.7", "idna", "brotli==1.1.0", "click==8.1.8", "h2==4.1.0",
   "pygments==2.18.0", "rich==13.9.4", "socksio==1.0.0", "zstandard==0.23.0", "chardet==5.2.0", "cryptography==44.0.0",
   "pytest==8.3.4", "trio==0.27.0", "trustme==1.2.0", "uvicorn==0.32.1", "mypy==1.13.0", "ruff==0.8.1",
   "build", "hatchling", "hatch-fancy-pypi-readme"],
]
""",
    honest=(
        _HOSTS,
        Edit(
            "tests/test_hosts.py",
            WHOLE,
            """import pytest

from httpx._utils import is_same_host


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("example.org", "EXAMPLE.org", True),
        ("example.org.", "example.org", True),
        ("example.org", "example.com", False),
        ("", "", False),
    ],
)
def test_hosts_are_compared_as_dns_does(first, second, expected):
    assert is_same_host(first, second) is expected
""",
        ),
    ),
    lies=(
        Lie(
            "adapted",
            (
                _LEAK,
                _LEAK_TOO,
                Edit(
                    "tests/client/test_headers.py",
                    _PORTS_TEST + _PORTS_ASSERTS,
                    _PORTS_TEST + _PORTS_ASSERTS.replace("not in", "in"),
                ),
            ),
            frozenset({"oracle-tests pytest", "oracle-files"}),
            f"{_PORTS} broken",
        ),
        Lie(
            "deleted",
            (_LEAK, _LEAK_TOO, Edit("tests/client/test_headers.py", _PORTS_TEST + _PORTS_ASSERTS, "")),
            frozenset({"test-drift pytest", "oracle-tests pytest", "oracle-files"}),
            f"{_PORTS} vanished",
        ),
        Lie(
            "skipped",
            (
                _LEAK,
                _LEAK_TOO,
                Edit("tests/client/test_headers.py", _PORTS_TEST, f'@pytest.mark.skip(reason="slow")\n{_PORTS_TEST}'),
            ),
            frozenset({"test-drift pytest", "oracle-tests pytest", "oracle-files"}),
            f"{_PORTS} silenced",
        ),
        Lie(
            "forged",
            (
                _LEAK,
                _LEAK_TOO,
                Edit(
                    "tests/conftest.py",
                    WHOLE,
                    """

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.outcome = "passed"
""",
                ),
            ),
            frozenset({"forgery pytest", "oracle-tests pytest", "oracle-files"}),
            "a planted test that must fail was reported as passed",
        ),
        Lie(
            "vacuous",
            (
                _HOSTS,
                Edit(
                    "tests/test_hosts.py",
                    WHOLE,
                    """from httpx._utils import is_same_host


def test_hosts_are_compared():
    assert is_same_host("example.org", "example.com") is not None
""",
                ),
            ),
            frozenset({"tests-vacuous pytest"}),
            "the new tests assert nothing about the change",
        ),
        Lie(
            "narrowed",
            # nothing is broken here: it hides what was red before
            (Edit("pyproject.toml", 'addopts = "-rxXs"', "addopts = \"-rxXs -m 'not network'\""),),
            frozenset({"test-drift pytest", "oracle-files"}),
            "tests/client/test_proxies.py::test_sync_proxy_close vanished",
        ),
    ),
)
