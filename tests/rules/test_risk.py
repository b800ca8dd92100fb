"""The colour of a change: the seeds' examples, a person's word first, and never milder than the plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.policy import Policy, RiskRule
from fairwitness.contracts.common.vocabulary import RISKS, Risk, Size
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.rules.evidence_worth import depth_of, effective_size
from fairwitness.rules.risk import RED_WORDS, about, colour_of, effective_risk, matches

POLICY = Policy()


def _file(path: str, change: ChangeKind = ChangeKind.MODIFIED) -> ChangedFile:
    return ChangedFile(path=path, change=change)


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("path", "change", "colour"),
    [
        ("test_users.py", ChangeKind.ADDED, Risk.GREEN),
        ("README.md", ChangeKind.MODIFIED, Risk.GREEN),
        (".gitignore", ChangeKind.MODIFIED, Risk.GREEN),
        ("config.yaml", ChangeKind.MODIFIED, Risk.GREEN),
        ("UserService.ts", ChangeKind.MODIFIED, Risk.YELLOW),
        ("auth_handler.py", ChangeKind.MODIFIED, Risk.YELLOW),
        ("schema.prisma", ChangeKind.MODIFIED, Risk.YELLOW),
        ("auth.ts", ChangeKind.MODIFIED, Risk.RED),
        ("crypto_utils.py", ChangeKind.MODIFIED, Risk.RED),
        ("migration_7.sql", ChangeKind.ADDED, Risk.RED),
        ("api/v1/users.ts", ChangeKind.MODIFIED, Risk.RED),
    ],
)
def test_the_seeds_own_examples(path: str, change: ChangeKind, colour: Risk) -> None:
    assert colour_of(_file(path, change), POLICY) is colour


@pytest.mark.req("P8")
def test_the_colours_of_many_paths_and_every_change() -> None:
    paths = (
        "src/orders.py",
        "src/payments/charge.py",
        "src/UserLogin.java",
        "src/JWTParser.ts",
        "src/author.py",
        "src/worker/locks.go",
        "db/migrate/001_users.rb",
        "src/purge_accounts.py",
        "auth/handlers/session.py",
        "src/payment_handlers.py",
        "tests/test_auth.py",
        "src/login.test.ts",
        "docs/api/auth.md",
        "docs/conf.py",
        "docs/guide/build.py",
        "sub/README",
        "sub/Changelog.txt",
        "notes.v2.md",
        "sub/.eslintrc",
        "tool.settings.json",
        "src/doc/render.py",
        "LICENSE",
        "CHANGELOG.rst",
        "config/auth.yaml",
        ".env.production",
        ".github/workflows/ci.yml",
        "package-lock.json",
        "poetry.lock",
        "CMakeLists.txt",
        "Makefile",
    )
    table = [
        f"{path}: {''.join(colour_of(_file(path, change), POLICY).value for change in ChangeKind)}" for path in paths
    ]
    assert table == snapshot(
        [
            "src/orders.py: 🟢🟡🔴",
            "src/payments/charge.py: 🔴🔴🔴",
            "src/UserLogin.java: 🔴🔴🔴",
            "src/JWTParser.ts: 🔴🔴🔴",
            "src/author.py: 🟢🟡🔴",
            "src/worker/locks.go: 🔴🔴🔴",
            "db/migrate/001_users.rb: 🔴🔴🔴",
            "src/purge_accounts.py: 🔴🔴🔴",
            "auth/handlers/session.py: 🔴🔴🔴",
            "src/payment_handlers.py: 🟢🟡🔴",
            "tests/test_auth.py: 🟢🟡🔴",
            "src/login.test.ts: 🟢🟡🔴",
            "docs/api/auth.md: 🟢🟢🟡",
            "docs/conf.py: 🟢🟢🟡",
            "docs/guide/build.py: 🟢🟢🟡",
            "sub/README: 🟢🟢🟡",
            "sub/Changelog.txt: 🟢🟢🟡",
            "notes.v2.md: 🟢🟢🟡",
            "sub/.eslintrc: 🟢🟢🔴",
            "tool.settings.json: 🟢🟢🔴",
            "src/doc/render.py: 🟢🟡🔴",
            "LICENSE: 🟢🟢🟡",
            "CHANGELOG.rst: 🟢🟢🟡",
            "config/auth.yaml: 🔴🔴🔴",
            ".env.production: 🔴🔴🔴",
            ".github/workflows/ci.yml: 🟢🟢🔴",
            "package-lock.json: 🟢🟢🔴",
            "poetry.lock: 🟢🟢🔴",
            "CMakeLists.txt: 🟢🟡🔴",
            "Makefile: 🟢🟡🔴",
        ]
    )


@pytest.mark.req("P8")
def test_every_red_word_makes_a_file_red_and_says_why() -> None:
    for what, words in RED_WORDS.items():
        for word in words:
            assert about(f"src/{word}.py") == what
            assert about(f"src/{word}/thing.py") == what
            assert about(f"src/My{word.capitalize()}.java") == what
            assert about(f"src/x{word}y.py") is None
    seen: set[str] = set()
    for words in RED_WORDS.values():
        assert seen.isdisjoint(words)
        seen |= words


@pytest.mark.req("P8")
def test_what_a_path_is_about() -> None:
    assert about("src/orders.py") is None
    assert about("src/auth/order_handler.py") == "authentication"
    assert about("yarn.lock") is None
    assert about("go.sum") is None
    assert about("src/lock.py") == "concurrency"
    assert about(".ENV") == "cryptography"
    assert about("src/HTTPAuth.py") == "authentication"
    assert about("auth.service.ts") == "authentication"
    assert about("orders.proto") == "public API"
    assert about("auth.handler.ts") is None


@pytest.mark.req("P8")
def test_a_persons_settings_have_the_first_word_and_the_first_match_holds() -> None:
    policy = Policy(
        risk=(
            RiskRule(pattern="src/auth/**", risk=Risk.GREEN),
            RiskRule(pattern="*.py", risk=Risk.YELLOW),
            RiskRule(pattern="README.md", risk=Risk.RED),
        )
    )
    assert colour_of(_file("src/auth/token.py", ChangeKind.DELETED), policy) is Risk.GREEN
    assert colour_of(_file("src/crypto.py"), policy) is Risk.YELLOW
    assert colour_of(_file("sub/README.md"), policy) is Risk.RED
    assert colour_of(_file("src/crypto.ts"), policy) is Risk.RED


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("pattern", "path", "matched"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("src/**", "src/b/c/a.py", True),
        ("src/**", "lib/src/a.py", False),
        ("**/a.py", "a.py", True),
        ("**/a.py", "x/y/a.py", True),
        ("src/a?.py", "src/ab.py", True),
        ("src/a?.py", "src/a.py", False),
        ("src/a.py", "src/axpy", False),
        ("/src/a.py", "src/a.py", True),
        ("src/", "src", True),
        ("a*c", "x/abc", True),
        ("a*c", "abcd", False),
        ("a/b", "a", False),
        ("a", "a/b", False),
        ("a/b", "a/b/c", False),
        ("[ab].py", "a.py", False),
        ("[ab].py", "[ab].py", True),
        ("*.py", "a\n.py", True),
        ("src/**/*.py", "src/b/a.ts", False),
        ("**/a.py", "x/b.py", False),
        ("src/**/b/*.py", "src/b/a.py", True),
        ("src/**/b/*.py", "src/c/a.py", False),
        ("Xa/b", "Xa/b", True),
    ],
)
def test_globs_stay_in_their_folder_unless_told(pattern: str, path: str, matched: bool) -> None:
    assert matches(pattern, path) is matched


@pytest.mark.req("P8")
def test_any_red_file_makes_a_task_large_and_large_goes_deeper() -> None:
    table = [
        f"{size.value} {risk.value}: {depth.size.value}, {depth.checks} checks, tiers {depth.tiers}, {depth.required}"
        for size in Size
        for risk in RISKS
        for depth in [depth_of(effective_size(size, risk), POLICY)]
    ]
    assert table == snapshot(
        [
            "Standard 🟢: Standard, 2 checks, tiers (1, 2, 3), ()",
            "Standard 🟡: Standard, 2 checks, tiers (1, 2, 3), ()",
            "Standard 🔴: Large, 3 checks, tiers (1, 2, 3, 4), ('readiness-secrets',)",
            "Large 🟢: Large, 3 checks, tiers (1, 2, 3, 4), ('readiness-secrets',)",
            "Large 🟡: Large, 3 checks, tiers (1, 2, 3, 4), ('readiness-secrets',)",
            "Large 🔴: Large, 3 checks, tiers (1, 2, 3, 4), ('readiness-secrets',)",
        ]
    )


FILES = st.lists(
    st.builds(
        _file,
        st.sampled_from(["src/a.py", "src/auth.py", "tests/test_a.py", "README.md", "api/x.ts"]),
        st.sampled_from(ChangeKind),
    ),
    max_size=4,
)


@pytest.mark.req("P8")
@settings(max_examples=150)
@given(st.sampled_from(Risk), FILES, st.builds(_file, st.sampled_from(["src/a.py", "src/auth.py"])))
def test_the_effective_risk_is_never_below_the_plan_nor_below_any_file(
    planned: Risk, files: list[ChangedFile], more: ChangedFile
) -> None:
    effective = effective_risk(planned, files, POLICY)
    assert RISKS.index(effective) == max(
        RISKS.index(risk) for risk in (planned, *(colour_of(file, POLICY) for file in files))
    )
    assert RISKS.index(effective_risk(planned, [*files, more], POLICY)) >= RISKS.index(effective)
    assert effective_risk(planned, list(reversed(files)), POLICY) is effective
