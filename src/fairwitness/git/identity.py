"""The identity for commits: read once from the user's own configuration and passed explicitly to git from then on."""

import re
from typing import NamedTuple

from fairwitness.git.call import text_of
from fairwitness.git.repository import Repository

FALLBACK_NAME = "Fair Witness"
FALLBACK_EMAIL = "fairwitness@localhost"
_IDENT = re.compile(r"(.*) <(.*)> [0-9]+ [+-][0-9]{4}", re.DOTALL)


class Identity(NamedTuple):
    """The author and committer of the commits that Fair Witness makes."""

    author_name: str
    author_email: str
    committer_name: str
    committer_email: str
    is_fallback: bool
    """Whether the user has set no name or no address, so that Fair Witness's own is used; this deserves a warning."""
    signing_key: str = ""
    """The user's signing key; if empty, git chooses."""

    @property
    def author(self) -> str:
        """Return the author as rows and events name a person.

        >>> FALLBACK.author
        'Fair Witness <fairwitness@localhost>'
        """
        return f"{self.author_name} <{self.author_email}>"

    @property
    def env(self) -> dict[str, str]:
        """Return the environment variables that give git this identity."""
        return {
            "GIT_AUTHOR_NAME": self.author_name,
            "GIT_AUTHOR_EMAIL": self.author_email,
            "GIT_COMMITTER_NAME": self.committer_name,
            "GIT_COMMITTER_EMAIL": self.committer_email,
        }


FALLBACK = Identity(FALLBACK_NAME, FALLBACK_EMAIL, FALLBACK_NAME, FALLBACK_EMAIL, is_fallback=True)


def read_identity(repository: Repository) -> Identity:
    """Return the user's name and address as git would use them here; git's guesses from the machine are not used."""
    author, committer = _ident(repository, "GIT_AUTHOR_IDENT"), _ident(repository, "GIT_COMMITTER_IDENT")
    if author is None or committer is None:
        return FALLBACK
    key = repository.git.ask("config", "--get", "user.signingKey", as_person=True)
    return Identity(*author, *committer, is_fallback=False, signing_key=text_of(key.out.strip()))


def _ident(repository: Repository, name: str) -> tuple[str, str] | None:
    git = repository.git.given(settings={"user.useConfigOnly": "true"})
    answer = git.ask("var", name, as_person=True)
    found = _IDENT.fullmatch(text_of(answer.out.strip())) if answer.code == 0 else None
    return (found[1], found[2]) if found and found[1] and found[2] else None
