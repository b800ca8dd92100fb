"""Names of things, as people write them and as they are kept."""


def tidy(name: str) -> str:
    """One spelling of a name: small letters, and one space between words."""
    return " ".join(name.lower().split())
