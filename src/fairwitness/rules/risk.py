"""The risk of a change to a file, from its path and the kind of change; the user's settings take precedence."""

import re
from collections.abc import Iterable, Mapping

from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Risk, highest_risk
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.rules.feature_plan import is_test_file

RED_WORDS: Mapping[str, frozenset[str]] = {
    "authentication": frozenset(
        {"auth", "authn", "authz", "authentication", "authorization", "login", "logout", "oauth", "saml", "sso", "jwt"}
        | {"password", "passwords", "permission", "permissions", "acl", "rbac"}
    ),
    "cryptography": frozenset(
        {"crypto", "cryptography", "cipher", "ciphers", "encrypt", "encryption", "decrypt", "decryption", "signing"}
        | {"secret", "secrets", "credential", "credentials", "keyring", "tls", "ssl"}
    ),
    "payments": frozenset({"payment", "payments", "billing", "checkout", "invoice", "invoices", "refund", "refunds"}),
    "deletion of data": frozenset({"delete", "deletion", "purge", "truncate", "erase", "erasure", "gdpr"}),
    "schema migration": frozenset({"migration", "migrations", "migrate", "alembic", "flyway", "liquibase"}),
    "concurrency": frozenset(
        {"concurrency", "concurrent", "lock", "locks", "locking", "mutex", "semaphore", "thread", "threads"}
        | {"threading", "threadpool", "atomic", "atomics"}
    ),
    "public API": frozenset({"api", "openapi", "swagger", "graphql", "proto", "protobuf"}),
}
"""Words in a path that make a file red, by topic."""

_HANDLER_WORDS = frozenset({"handler", "handlers"})
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOC_SUFFIXES = frozenset({"md", "rst", "adoc"})
_DOC_NAMES = frozenset({"readme", "license", "licence", "notice", "changelog", "authors", "contributing"})
_CONFIG_SUFFIXES = frozenset({"yaml", "yml", "toml", "ini", "cfg", "conf", "json", "properties", "editorconfig"})
_LOCK_FILES = frozenset({"package-lock.json", "go.sum"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def colour_of(file: ChangedFile, policy: Policy) -> Risk:
    """Return the risk of one change: by the settings, otherwise by the most dangerous word of its path.

    >>> file = ChangedFile(path="src/crypto_utils.py", change=ChangeKind.MODIFIED)
    >>> colour_of(file, Policy()).value
    '🔴'
    """
    for rule in policy.risk:
        if matches(rule.pattern, file.path):
            return rule.risk
    if file.change is ChangeKind.DELETED:
        return Risk.YELLOW if is_documentation(file.path) else Risk.RED
    if is_documentation(file.path):
        return Risk.GREEN
    if is_test_file(file.path):
        # a new test adds checks, a changed test may remove some
        return Risk.GREEN if file.change is ChangeKind.ADDED else Risk.YELLOW
    if about(file.path):
        return Risk.RED
    if file.change is ChangeKind.ADDED or is_configuration(file.path):
        return Risk.GREEN
    return Risk.YELLOW


def about(path: str) -> str | None:
    """Return the topic that makes a path red, or None.

    >>> [about(path) for path in ("auth.ts", "auth_handler.py", "author.py", "db/migration_7.sql", "api/v1/users.ts")]
    ['authentication', None, None, 'schema migration', 'public API']
    """
    *folders, name = path.split("/")
    if _is_lock_file(name):
        return None
    if name.lower().startswith(".env"):
        return "cryptography"
    own = set(_words(name))
    # a handler calls what is critical: the seeds' own example `auth_handler.py` is yellow
    spoken = {word for folder in folders for word in _words(folder)} | (
        own if own.isdisjoint(_HANDLER_WORDS) else set()
    )
    for what, words in RED_WORDS.items():
        if words & spoken:
            return what
    return None


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_lock_file(name: str) -> bool:
    return name.endswith(".lock") or name in _LOCK_FILES


def is_documentation(path: str) -> bool:
    """Return True for documentation; a folder `docs` counts only at the top level, where no program keeps its code."""
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    return (
        lowered.partition("/")[0] in _DOC_FOLDERS
        or name.partition(".")[0] in _DOC_NAMES
        or name.rpartition(".")[2] in _DOC_SUFFIXES
    )


def is_configuration(path: str) -> bool:
    """Return True for tool configuration: dot files, lock files and the usual formats."""
    name = path.rpartition("/")[2].lower()
    return name.startswith(".") or _is_lock_file(name) or name.rpartition(".")[2] in _CONFIG_SUFFIXES


def effective_risk(planned: Risk, files: Iterable[ChangedFile], policy: Policy) -> Risk:
    """Return the higher of the planner's risk and the risk of the files actually changed.

    >>> effective_risk(Risk.GREEN, [ChangedFile(path="src/auth.py", change=ChangeKind.MODIFIED)], Policy()).value
    '🔴'
    """
    return highest_risk((planned, *(colour_of(file, policy) for file in files)))


def matches(pattern: str, path: str) -> bool:
    """Return True if a glob matches a path: `*` and `?` match within one name, `**` spans folders.

    >>> [matches("api/**/*.ts", path) for path in ("api/a.ts", "api/v1/x/a.ts", "web/api/a.ts")]
    [True, True, False]
    >>> matches("*.sql", "db/migration_1.sql")
    True
    """
    if "/" not in pattern:
        return _name_matches(pattern, path.rpartition("/")[2])
    return _segments_match(pattern.strip("/").split("/"), path.split("/"))


def _segments_match(patterns: list[str], names: list[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_segments_match(patterns[1:], names[start:]) for start in range(len(names) + 1))
    return bool(names) and _name_matches(patterns[0], names[0]) and _segments_match(patterns[1:], names[1:])


def _name_matches(pattern: str, name: str) -> bool:
    spelled = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return re.fullmatch(spelled, name, re.DOTALL) is not None
