"""The self-audit after the verdict: every requirement of the completed phases, with the line that meets it."""

from fairwitness.app.demo_autopilot import shopping, slip, stock
from fairwitness.app.demo_autopilot.roadmap import PHASES
from fairwitness.app.demo_autopilot.scripts import shown
from fairwitness.app.demo_feature.scripts import Document, Said, Session, read
from fairwitness.contracts.common.tools import Role

_FILES = {
    "larder/stock.py": stock.STOCK,
    "larder/days.py": stock.DAYS,
    "larder/shopping.py": shopping.MENDED,
    "larder/slip.py": slip.SLIP,
}
_MET = {
    "LAR-01": ("larder/stock.py", "if amount < 1 or left < 0", "put, take and amount, all by tidied name"),
    "LAR-02": ("larder/days.py", "return sorted", "by_age sorts by the last good day"),
    "LAR-03": ("larder/shopping.py", "whole[tidy(name)] =", "all spellings of an item are added up"),
    "LAR-06": ("larder/slip.py", "COLUMNS = 24", "slip gives lines of that width"),
}
"""By requirement the file, the line and what was found there."""


def _checked(requirement: str, text: str) -> Document:
    path, line, found = _MET[requirement]
    return {
        "requirement_id": requirement,
        "expected": text,
        "actual_found": found,
        "file_line_evidence": shown(path, _FILES[path], line),
        "status": "pass",
        "gap_description": None,
        "fix_complexity": None,
    }


def _results() -> list[Document]:
    completed = [phase for phase in PHASES if _MET.keys() >= phase.requirements.keys()]
    return [
        {
            "phase_id": str(phase.number),
            "requirements_checked": [_checked(name, text) for name, text in phase.requirements.items()],
        }
        for phase in completed
    ]


SESSIONS = (
    Session(
        Role.SELF_AUDIT,
        "self-audit-1",
        1,
        {
            "audit_results": _results(),
            "aggregate": {
                "total_requirements_checked": len(_MET),
                "passed_on_first_check": len(_MET),
                "gaps_found": 0,
                "gap_details": [],
            },
        },
        "Every requirement of the completed phases is met.",
        (Said("Each place is opened.", read(*_FILES)),),
    ),
)
