"""The short name of a feature, made from what a person asked for: its folder and its branch are called by it."""

import hashlib
import re
import unicodedata

LIMIT = 48
_LETTERS = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i",
        "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "е": "e", "ж": "zh", "з": "z", "и": "i", "к": "k",
        "л": "l", "м": "m", "н": "n", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "у": "u", "ф": "f",
        "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ы": "y", "ь": "", "э": "e", "ю": "yu",
        "я": "ya", "і": "i", "є": "ye", "ґ": "g",
        "α": "a", "β": "b", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "i", "θ": "th", "ι": "i", "κ": "k",
        "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "ο": "o", "π": "p", "ρ": "r", "σ": "s", "ς": "s", "τ": "t",
        "υ": "y", "φ": "f", "χ": "ch", "ψ": "ps", "ω": "o",
    }
)  # fmt: skip
"""Letters that are no Latin letter with an accent, as they are commonly spelled with some."""


def slug_of(request: str) -> str:
    """A name from the first line that says something; one that no Latin letters can spell is named by its hash.

    >>> slug_of("Gift vouchers\\n\\nCustomers can buy them.")
    'gift-vouchers'
    >>> slug_of("Größere Übersicht")
    'grossere-ubersicht'
    """
    line = next((text for text in map(str.strip, request.splitlines()) if any(map(str.isalnum, text))), "")
    plain = unicodedata.normalize("NFKD", line.casefold().replace("'", "").replace("’", ""))
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign)).translate(_LETTERS)
    lost = sum(sign.isalnum() and not sign.isascii() for sign in plain)
    words = re.findall(r"[a-z0-9]+", plain)
    name = _whole_words(words)
    if name and lost == 0:
        return name
    digest = hashlib.sha256(line.encode(errors="replace") or request.encode(errors="replace")).hexdigest()[:12]
    # what could not be spelled may be all that tells two requests apart
    return f"{_whole_words(words, LIMIT - 13)}-{digest}".lstrip("-") if words else f"feature-{digest}"


def _whole_words(words: list[str], limit: int = LIMIT) -> str:
    """As many words as fit; a first one that is too long is cut."""
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:limit]
        if len(longer) > limit:
            break
        name = longer
    return name
