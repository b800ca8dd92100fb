"""Parse TOML that others wrote: what would exhaust the stack or the processor is refused like any other mistake."""

import re
import tomllib
from typing import Any

_LONG_KEY = re.compile(r"^[ \t]*\[{0,2}[ \t]*(?:[\"']?[\w-]{1,64}[\"']?[ \t]{0,4}\.[ \t]{0,4}){100}", re.MULTILINE)
"""A key of more than a hundred parts; reading one takes a time that grows with the square of their number."""


def parse(text: str) -> dict[str, Any]:
    """Return the tables of a text; raise `tomllib.TOMLDecodeError` for everything that is refused.

    >>> parse("[verify]\\nstrict = true")
    {'verify': {'strict': True}}
    """
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError("a key has more than 100 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # a number with too many digits
        raise tomllib.TOMLDecodeError(str(error)) from None
