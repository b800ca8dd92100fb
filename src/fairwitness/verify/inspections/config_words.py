"""Names of settings by their effect on a check: it lets more pass, it lets less pass, or neither."""

import re

MORE_IS_LOOSER = re.compile(
    r"(extend[-_])?(ignore|exclude|per[-_]file[-_]ignores)|force-exclude|disabled?|disable_error_code|ignores|"
    r"ignore-?patterns|ignore-?paths|ignored-modules|omit|exclude_(lines|also|dirs)|exclude-rules|norecursedirs|"
    r"collect_ignore(_glob)?|(test|coverage|module)pathignorepatterns|skips?|deselect|unfixable|allowlist|"
    r"(paths|branches|tags)-ignore",
    re.IGNORECASE,
)
"""Lists of what is excluded."""
LESS_IS_LOOSER = re.compile(
    r"(extend[-_])?select|enable|enable_error_codes?|include|files|packages|roots|projects|required_plugins|plugins|"
    r"extends|extend|tests|spec|hooks|types_or|lib|checks|warningsaserrors|python-version|node-version|os",
    re.IGNORECASE,
)
"""Lists of what is checked."""
TEST_SCOPE = re.compile(
    r"testpaths|python_(files|functions|classes)|usefixtures|testmatch|testregex|passwithnotests|setupfiles|"
    r"setupfilesafterenv|globalsetup|globalteardown|modulenamemapper|testnamepattern|runner|testenvironment|harness|"
    r"test|doctest|autotests|pythonpath|transform|resolver|automock|preset|grep|require",
    re.IGNORECASE,
)
"""Settings of test tools that decide which tests run, or on what."""
STRICT_IF_TRUE = re.compile(
    r"strict\w*|disallow_\w+|check_untyped_defs|warn_\w+|no_implicit_\w+|xfail_strict|no[A-Z]\w+|alwaysStrict|branch|"
    r"fail_on_\w+|failOn\w+|forbid\w*|exactOptional\w+|useUnknownInCatchVariables|report[A-Z]\w+|enabled|"
    r"debug-assertions|overflow-checks|always_run"
)
LOOSE_IF_TRUE = re.compile(
    r"ignore_\w+|allow_\w+|allow[A-Z]\w+|skipLibCheck|skip\w+|suppress\w*|continue-on-error|continueOnError|"
    r"exit-zero|passWithNoTests|allow_failure|optional|testFailureIgnore|ignoreFailures|implicit_reexport"
)
LOWER_IS_LOOSER = re.compile(r"fail[_-]under|branches|functions|lines|statements|min\w*|threshold\w*", re.IGNORECASE)
HIGHER_IS_LOOSER = re.compile(r"max[\w-]*|line[_-]length|retries|reruns|retry", re.IGNORECASE)
NEUTRAL = re.compile(
    r"target(-version)?|python_?version|src|indent-width|cache[-_]dir|output[-_]format|preview|fix|unsafe-fixes|"
    r"required-version|quote-style|known[-_][\w-]+|combine-as-imports|markers|log_\w+|console_output_style|asyncio_\w+|"
    r"mypy_path|show_error_\w+|pretty|color\w*|reporters?|verbose|source_?map|outdir|rootdir|declaration\w*|jsx\w*|"
    r"module|moduleresolution|esmoduleinterop|resolvejsonmodule|baseurl|paths|name|description|source|parallel|"
    r"concurrency|data_file|show_missing|skip_covered|precision|version|\$schema|rev|types|typeroots|indent|junit_\w+|"
    r"convention|minversion|timeout",
    re.IGNORECASE,
)
"""Settings that say how a tool works, not what it lets pass."""

SEVERITY = {
    **dict.fromkeys(("off", "allow", "0", "none", "false"), 0),
    **dict.fromkeys(("info", "warn", "warning", "1"), 1),
    **dict.fromkeys(("error", "deny", "2", "true", "on"), 2),
    "forbid": 3,
}

LOOSE_TEXT = re.compile(
    r"\|\|\s*(?:true|:|exit\s+0|echo)|;\s*(?:true|:|exit\s+0)\s*(?:$|[\"'\n])|\bexit\s+0\b|\bset\s+\+e\b|--exit-zero\b|"
    r"(?:^|\s)-k(?:[\s=\"']|$)|--deselect\b|--ignore(?:-glob|-missing-imports)?\b|--co\b|--collect-only|"
    r"--continue-on-collection-errors|--passWithNoTests|--no-verify|--testPathIgnorePatterns|--testNamePattern|"
    r"(?:^|\s)-t\s|--skip\b|--exclude\b|-DskipTests|-Dmaven\.test\.skip|-x\s+test\b|--lf\b|--last-failed|--sw\b|"
    r"--stepwise\b|-p\s*no:(?!cacheprovider|randomly)|--no-run\b|--max-warnings|eslint.{0,200}?--quiet\b|-DNDEBUG\b|"
    r"(?:^|\s)-w(?:\s|$)|-Wno-\w+|--cap-lints|^\s*@?(?:true|:|echo\b[^|&;]*)\s*$|--disable-warnings|-W\s*ignore|"
    r"--follow-imports=skip|\|\s*(?:cat|tee)\b|-m\s*[\"']?not\b|--noconftest|/dev/null|--reruns\b|--retries|"
    r"\.IGNORE\b|MAKEFLAGS\b.{0,200}?(?:-i|-k)|^\s*SHELL\b|WILL_FAIL|\bDISABLED\b|skipTests|<skip>\s*true|"
    r"testFailureIgnore|ignoreFailures|PYTEST_ADDOPTS|NODE_OPTIONS|LD_PRELOAD|PYTHONPATH",
    re.MULTILINE,
)
"""Parts of commands that make a check pass more often or check less."""
HARMLESS_OPTION = re.compile(
    r"--strict(?:-\w+)?|-r\w*|-v+|-q+|--verbose|--tb=\w+|--durations(?:=\d+)?|--color=\w+|--cov(?:=\S*)?|--cov-branch|"
    r"--cov-report(?:=\S*)?|--doctest-modules|--showlocals|-W|error(?:::\S*)?|--import-mode=importlib|-n|auto|"
    r"--numprocesses=\w+|--junitxml=\S*|-p|no:cacheprovider|--coverage|--ci|--all|--workspace|--all-targets|--locked|"
    r"-W(?!no-)[a-z]\S*|-std=\S+|-g|-fsanitize=\S+|-I\S+|-L\S+|-l\w+|\$[({][\w@<^]+[)}]|\$[@<^]|"
    r"[\w./-]+\.(?:c|cc|cpp|cxx|o|h|hpp|a)"
)
"""Words that may be added to a command: they check more, or name what to compile."""
CHECKING = re.compile(
    r"test|lint|check|verify|pytest|tox|nox|ruff|mypy|flake8|pyright|black|eslint|tsc|jest|vitest|mocha|cargo|clippy|"
    r"\bgo\s+vet|mvn|gradle|ctest|\bci\b|coverage|audit|pre-commit|fairwitness",
    re.IGNORECASE,
)
"""Words in names and commands that indicate a check."""
