"""Production code that asks whether it is being tested."""

import ast
import re
from collections.abc import Iterator

from fairwitness.verify.inspections.lexing import Lexed
from fairwitness.verify.inspections.line_test_changes import rust_test_lines
from fairwitness.verify.inspections.model import clipped
from fairwitness.verify.inspections.places import Lang
from fairwitness.verify.inspections.python_source import Unreadable, is_docstring, parse, span

_TOOL = r"['\"](?:_?pytest|unittest|nose2?|doctest|jest|mocha|vitest)['\"]"
ANYWHERE = re.compile(
    r"PYTEST_(?:CURRENT_TEST|VERSION|XDIST\w*)|JEST_WORKER_ID|env\.VITEST\b|[\"\']VITEST(?:_\w+)?[\"\']|RUST_TEST_THREADS|MOCHA_WORKER_ID"
    r"|(?:NODE_ENV|APP_ENV|\bENV|ENVIRONMENT|RAILS_ENV|FLASK_ENV|DJANGO_ENV)\W{1,12}?[=!]==?\s*['\"]test(?:ing)?['\"]"
    r"|['\"]test(?:ing)?['\"]\s*[=!]==?\s*[\w.]{0,40}(?:NODE_ENV|APP_ENV|ENVIRONMENT)"
)
BY_LANGUAGE = {
    Lang.PYTHON: re.compile(
        rf"{_TOOL}\s*(?:not\s+)?in\s+(?:list\()?sys\.modules|sys\.modules\s*(?:\.get\(|\[)\s*{_TOOL}|find_spec\(\s*{_TOOL}"
        r"|sys\.argv.{0,80}(?:pytest|unittest|py\.test)|(?:pytest|unittest|py\.test).{0,80}sys\.argv"
        r"|sys\._called_from_test|['\"]\w{0,20}tests?\w{0,20}['\"]\s+in\s+\w{0,30}(?:__file__|getcwd\(\)|filename)"
    ),
    Lang.SCRIPT: re.compile(
        r"import\.meta\.vitest|typeof\s+(?:jest|vi|describe|it|expect|test)\b|globalThis\.(?:jest|vi|describe|it|expect)\b"
        r"|process\.argv.{0,80}(?:jest|mocha|vitest|--test)|process\.env\.(?:JEST|MOCHA|VITEST)\w*"
        r"|\.stack\b.{0,80}['\"/.]\w{0,10}(?:test|spec|jest)"
    ),
    Lang.RUST: re.compile(
        r"\bcfg!\s*\(\s*(?:not\s*\(\s*)?test\b|#\s*\[\s*cfg\s*\(\s*not\s*\(\s*test\b|thread::current\(\).{0,20}\.name\(\)"
    ),
    Lang.GO: re.compile(
        r"\btesting\.Testing\s*\(|flag\.Lookup\(\s*\"test\.|os\.Args\[0\].{0,40}\.test\"|HasSuffix\(\s*os\.Args\[0\]"
    ),
    Lang.NATIVE: re.compile(
        r"#\s*(?:if|ifdef|ifndef|elif)\b.{0,80}\b(?:UNIT_?TEST\w*|UNIT_TESTING|TESTING|GTEST\w*|RUNNING_TESTS?|TEST_BUILD)\b"
        r"|program_invocation_\w{0,20}name.{0,60}test|__progname.{0,60}test"
    ),
    Lang.JAVA: re.compile(r"['\"]org\.(?:junit|testng|mockito)|getStackTrace\(\).{0,80}(?:junit|Test)"),
}
_ENVIRONMENT = re.compile(
    r"(?:getenv|environ(?:\.get)?|env::var(?:_os)?|process\.env|Getenv|LookupEnv|import\.meta\.env)\W{0,4}([A-Z0-9_]{2,60})"
)
_TEST_NAME = re.compile(r"(?:^|_)(?:UNIT)?TEST(?:S|ING|MODE|RUN)?(?:_|$)")
_DATA_NAME = re.compile(
    r"TEST_\w*?(?:URL|URI|DSN|HOST|PORT|DIR|PATH|FILE|USER|PASSWORD|TOKEN|KEY|DATABASE|DB|NAME|BUCKET|REGION|ACCOUNT)"
)
_STACK = re.compile(
    r"inspect\.(?:stack|currentframe|getouterframes)|sys\._getframe|traceback\.(?:extract|walk|format)_stack"
)
_TEST_WORD = re.compile(r"['\"][^'\"]{0,40}(?:pytest|unittest|test)[^'\"]{0,40}['\"]", re.IGNORECASE)
_RUST_CFG = re.compile(r"#\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]\s*(.*)")
_RUST_ITEM = re.compile(
    r"(?:pub(?:\([\w\s]{1,30}\))?\s+)?(?:mod|use|fn|impl|struct|enum|const|static|type|trait|macro_rules|extern|async|unsafe|union)\b|#"
)


def detections(source: Lexed, language: Lang, text: str) -> Iterator[tuple[int, str, bool]]:
    """Lines that ask for a test run: the number, the words that ask, and whether it blocks."""
    quiet = _docstring_lines(text) if language is Lang.PYTHON else set()
    if language is Lang.RUST:
        quiet = rust_test_lines(source)
        yield from ((number, words, True) for number, words in _rust_statements(source))
    for number, whole in enumerate(source.code, 1):
        if number in quiet:
            continue
        line = clipped(whole)
        match = ANYWHERE.search(line) or BY_LANGUAGE[language].search(line)
        if match:
            yield number, match.group(), True
            continue
        variable = _ENVIRONMENT.search(line)
        if variable and _TEST_NAME.search(variable.group(1)):
            yield number, variable.group(), _DATA_NAME.fullmatch(variable.group(1)) is None
        elif language is Lang.PYTHON and _STACK.search(line) and _mentions_tests(source, number):
            yield number, line.strip(), True


def _mentions_tests(source: Lexed, number: int) -> bool:
    """Whether code near a look at the stack has a word for tests in a string."""
    return any(_TEST_WORD.search(clipped(line)) for line in source.code[max(0, number - 4) : number + 6])


def _rust_statements(source: Lexed) -> Iterator[tuple[int, str]]:
    """`#[cfg(test)]` on a statement: an item may be there for tests only, a statement makes code behave otherwise."""
    for number, whole in enumerate(source.bare, 1):
        match = _RUST_CFG.search(clipped(whole))
        if not match:
            continue
        following = [match.group(1), *source.bare[number : number + 3]]
        item = next((line.strip() for line in following if line.strip()), "")
        if item and not _RUST_ITEM.match(item):
            yield number, whole.strip()


def _docstring_lines(text: str) -> set[int]:
    try:
        tree = parse(text)
    except Unreadable:
        return set()
    return {line for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_docstring(node) for line in span(node)}
