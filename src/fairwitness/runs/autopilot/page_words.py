"""Words that several pages share: phases, scores, checks, durations, and JSON files."""

import re
from typing import Any

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.vocabulary import CheckWord, FailureCategory, Recommendation
from fairwitness.kit.durations import took
from fairwitness.kit.json_text import render
from fairwitness.kit.markdown import Markdown, code, line

_LONGEST = 1000 * 24 * 3600
_UNREADABLE = re.compile("[\0\ud800-\udfff]")

RECOMMENDS: dict[Recommendation, str] = {
    Recommendation.PROCEED: "the phase does what it should",
    Recommendation.DEBUG: "the named problems can be fixed",
    Recommendation.ROLLBACK: "the change does more harm than good",
    Recommendation.HALT: "a person must decide how to continue",
}
"""What each recommendation means to a first-time reader."""

CATEGORIES: dict[FailureCategory, str] = {
    FailureCategory.EXECUTOR_INCOMPLETE: "a task was called done before its criteria were met",
    FailureCategory.EXECUTOR_WRONG_APPROACH: "the approach cannot work",
    FailureCategory.COMPILATION_FAILURE: "the code does not compile",
    FailureCategory.LINT_FAILURE: "the linter refuses the code",
    FailureCategory.BUILD_FAILURE: "the build fails",
    FailureCategory.ACCEPTANCE_CRITERIA_UNMET: "a criterion is not met",
    FailureCategory.SCOPE_CREEP: "the change does more than was asked for",
    FailureCategory.CONTEXT_EXHAUSTION: "an agent ran out of context before it was done",
    FailureCategory.TOOL_FAILURE: "a tool broke or did not end in time",
    FailureCategory.COORDINATION_FAILURE: "something was lost between two steps",
}
"""What each failure category means."""


def title(what: str, phase: RoadmapPhase) -> Markdown:
    """Return the heading of a page about one phase."""
    return Markdown(f"# {what} of phase {phase.id}: {line(phase.name)}")


def command_code(command: str) -> Markdown:
    """Return a command as inline code; a sign stands for each end of a line in it.

    >>> command_code("cd a\\nmake test\\n")
    '`cd a ⏎ make test`'
    """
    return code(" ⏎ ".join(command.strip().splitlines()))


def of_ten(score: float) -> str:
    """Return a score or a confidence with its scale.

    >>> of_ten(8.2), of_ten(9), of_ten(9.25)
    ('8.2 of 10', '9.0 of 10', '9.25 of 10')
    """
    return f"{score:.1f} of 10" if round(score, 1) == score else f"{score:g} of 10"


def length(seconds: float) -> str:
    """Return a duration in seconds in words; an implausibly long one is not spelled out.

    >>> length(184.5), length(1e300)
    ('3m 4s', 'more than 1000 days')
    """
    return took(seconds) if seconds <= _LONGEST else "more than 1000 days"


def minutes(amount: float) -> str:
    """Return a duration in minutes in words.

    >>> minutes(25), minutes(0.5), minutes(1440)
    ('25m 0s', '30s', '24h 0m')
    """
    return length(amount * 60)


def milliseconds(amount: int) -> str:
    """Return a duration in milliseconds in words.

    >>> milliseconds(12), milliseconds(1234), milliseconds(61_000)
    ('12 ms', '1.2s', '1m 1s')
    """
    return f"{amount} ms" if amount < 1000 else length(min(amount, 10**15) / 1000)


def tokens(count: int) -> str:
    """Return a number of tokens in words.

    >>> tokens(110000), tokens(1)
    ('110,000 tokens', '1 token')
    """
    return f"{count:,} token{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share of one as a percentage.

    >>> percent(0.8), percent(0.6667)
    ('80.0 %', '66.7 %')
    """
    return f"{share * 100:.1f} %"


def check_word(word: CheckWord) -> Markdown:
    """Return the result of a project command; a failure is bold."""
    if word == "n/a":
        return Markdown("n/a (no command or check decides it)")
    return Markdown("pass" if word else "**fail**")


def category(kind: FailureCategory) -> Markdown:
    """Return a failure category with its meaning."""
    return Markdown(f"`{kind.value}` ({CATEGORIES[kind]})")


def recommendation(word: Recommendation) -> Markdown:
    """Return a recommendation with its meaning."""
    return Markdown(f"**{word.value}** ({RECOMMENDS[word]})")


def json_file(plain: Any) -> str:
    """Return a JSON file; characters that our reader refuses are replaced one by one."""
    return render(readable(plain))


def readable(value: Any) -> Any:
    """Return the value without characters that a document may not contain."""
    if isinstance(value, str):
        return _UNREADABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {readable(key): readable(each) for key, each in value.items()}
    return [readable(each) for each in value] if isinstance(value, list) else value
