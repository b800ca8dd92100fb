"""The findings of a review: which are open, under which id each is answered, and which files they make writable."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from fairwitness.contracts.feature.review import Perspective, Resolution, ReviewFinding, ReviewReturn
from fairwitness.rules.tool_policy import path_problem


class RaisedFinding(NamedTuple):
    """A finding with the reviewer that raised it."""

    perspective: Perspective
    finding: ReviewFinding

    @property
    def id(self) -> str:
        """The id under which it is answered: reviewers number their findings independently."""
        return f"{self.perspective.value}/{self.finding.id}"


def raised(reviews: Iterable[ReviewReturn]) -> tuple[RaisedFinding, ...]:
    """Return every finding of some reviews."""
    return tuple(RaisedFinding(review.reviewer_perspective, each) for review in reviews for each in review.findings)


def still_open(reviews: Iterable[ReviewReturn]) -> tuple[RaisedFinding, ...]:
    """Return the findings of the last round of a review, and those of the round before that it left open.

    A majority settles nothing. The reviewer that raised a finding settles it: by saying that it was addressed, or by
    finding nothing more in its category.
    """
    latest = {(review.round, review.reviewer_perspective): review for review in reviews}
    last = max((number for number, _ in latest), default=0)
    now = {perspective: review for (number, perspective), review in latest.items() if number == last}
    before = raised(review for (number, _), review in latest.items() if number == last - 1)
    found = raised(now.values())
    repeated = {each.id for each in found}
    return (*found, *(each for each in before if each.id not in repeated and _is_left(each, now.get(each.perspective))))


def _is_left(raised: RaisedFinding, review: ReviewReturn | None) -> bool:
    if review is None:
        return True
    names = (raised.finding.id, raised.id)
    said = [each.resolution for each in review.earlier_findings or () if each.id in names]
    if said:
        return said[-1] is not Resolution.ADDRESSED
    return any(finding.category is raised.finding.category for finding in review.findings)


def unanswered(findings: Iterable[RaisedFinding], answered: Collection[str]) -> tuple[str, ...]:
    """Return the ids of findings to which an answer is missing."""
    return tuple(each.id for each in findings if each.id not in answered)


_LINES = re.compile(r":[0-9]+(?:[-:][0-9]+)?$")
_NO_FILE = re.compile(r"[*?\s\[\]{}]")
MOST_FILES = 20


def named_files(findings: Iterable[RaisedFinding]) -> tuple[str, ...]:
    """Return the files that findings name as affected, without line numbers, at most `MOST_FILES`.

    A fixer may write them. An artifact that is no path, such as the id of a decision, is left out.
    """
    named = (_LINES.sub("", name.strip()).removeprefix("./") for each in findings for name in each.finding.artifacts)
    files = (path for path in named if ("/" in path or "." in path) and not _NO_FILE.search(path))
    return tuple(dict.fromkeys(path for path in files if path_problem(path) is None))[:MOST_FILES]
