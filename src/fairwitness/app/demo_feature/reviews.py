"""What the three reviewers find: a code on paper in the first design, and in the code something to disagree about."""

from fairwitness.app.demo_feature.scripts import Document, Said, Session, rated, read
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Severity
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope

_SEC_1: Document = {
    "id": "SEC-1",
    "category": Category.SECURITY.value,
    "severity": Severity.MAJOR.value,
    "title": "The receipt prints voucher codes in full",
    "description": (
        "D-4 puts the code beside what is left. The code is all that is needed to spend it, and receipts are left on "
        "counters and thrown into bins."
    ),
    "artifacts": ["design-output.yaml D-4"],
    "recommendation": "Print the last characters only, in refusals too.",
    "evidence": ["design-output.yaml D-4: one for each voucher with its code and what is left"],
}
_ARC_1: Document = {
    "id": "ARC-1",
    "category": Category.ARCHITECTURE.value,
    "severity": Severity.MAJOR.value,
    "title": "A Payment is not a value any more",
    "description": (
        "by_voucher is a dict: whoever holds a Payment can change it, and hash(payment), which worked before, raises "
        "TypeError now."
    ),
    "artifacts": ["till/payment.py"],
    "recommendation": "Hold the parts as a tuple of (rate, part).",
    "evidence": ["till/payment.py: by_voucher: dict[int, int] = field(default_factory=dict)"],
}
_COR_1: Document = {
    "id": "COR-1",
    "category": Category.CORRECTNESS.value,
    "severity": Severity.MINOR.value,
    "title": "No test pays a basket that costs nothing with a voucher",
    "description": "The voucher is left alone then, which is right; only no test says so.",
    "artifacts": ["tests/test_voucher_payment.py"],
    "recommendation": "Add one.",
    "evidence": ["tests/test_voucher_payment.py: every basket in it costs something"],
}
_NO_RECEIPT: Document = {
    "id": "COR-2",
    "category": Category.CORRECTNESS.value,
    "severity": Severity.MINOR.value,
    "title": "Nothing here prints vouchers",
    "description": (
        "The receipt's task was put back for want of evidence. What is here is sound; that FR-4 is not met is told by "
        "its gate, and is no fault of this code."
    ),
    "artifacts": ["till/receipt.py"],
    "recommendation": "Carry out the receipt's task anew.",
    "evidence": ["till/receipt.py: render() does not look at payment.vouchers"],
}


def _review(
    perspective: Perspective,
    scope: ReviewScope,
    round: int,
    summary: str,
    *,
    found: tuple[Document, ...] = (),
    earlier: tuple[Document, ...] = (),
) -> Document:
    touched = {finding["category"] for finding in found}
    document: Document = {
        "schema_version": "1.0",
        "reviewer_perspective": perspective.value,
        "scope": scope.value,
        "round": round,
        "findings": list(found),
        "clean_categories": [category.value for category in Category if category.value not in touched],
        "summary": summary,
        "artifact_evaluations": [rated("design-output.yaml", 8, 9)],
    }
    return {**document, "earlier_findings": list(earlier)} if earlier else document


def _session(number: int, answer: Document, *files: str) -> Session:
    looked = (Said("I open what I judge.", read(*files)),) if files else ()
    instance = answer["reviewer_perspective"]
    return Session(Role.REVIEWER, instance, number, answer, answer["summary"], looked)


_DESIGN, _CODE = ReviewScope.DESIGN, ReviewScope.CODE
_SECURITY, _ARCHITECTURE, _PRAGMATIC = Perspective.SECURITY, Perspective.ARCHITECTURE, Perspective.PRAGMATIC
_SOUND = "Values in, values out; old calls are untouched; failure changes nothing. I could not break it."
_EXACT = "Largest remainders are exact for every amount I tried by hand, and every corner of the specification is met."

DESIGN_FIRST: tuple[Session, ...] = (
    _session(1, _review(_SECURITY, _DESIGN, 1, "A code on paper is money on paper.", found=(_SEC_1,))),
    _session(1, _review(_ARCHITECTURE, _DESIGN, 1, _SOUND)),
    _session(1, _review(_PRAGMATIC, _DESIGN, 1, _EXACT)),
)
_ADDRESSED = {"id": "SEC-1", "resolution": "addressed", "note": "D-5 masks codes on receipts and in refusals."}
DESIGN_AGAIN: tuple[Session, ...] = (
    _session(2, _review(_SECURITY, _DESIGN, 2, "Codes are masked wherever they are shown.", earlier=(_ADDRESSED,))),
    _session(2, _review(_ARCHITECTURE, _DESIGN, 2, _SOUND)),
    _session(2, _review(_PRAGMATIC, _DESIGN, 2, _EXACT)),
)


def code(*, without_receipt: bool) -> tuple[Session, ...]:
    """The review of the merged code; two approve, one does not, and that is a known issue and no veto."""
    pragmatic = _NO_RECEIPT if without_receipt else _COR_1
    told = (
        "What is here does what its tests say." if without_receipt else "It does what was asked; one test is missing."
    )
    return (
        _session(
            3,
            _review(_SECURITY, _CODE, 1, "No code is shown in full, and no voucher pays twice."),
            "till/vouchers.py",
            "till/payment.py",
        ),
        _session(
            3,
            _review(
                _ARCHITECTURE, _CODE, 1, "Modules are right, but a Payment is not a value any more.", found=(_ARC_1,)
            ),
            "till/payment.py",
        ),
        _session(
            3,
            _review(_PRAGMATIC, _CODE, 1, told, found=(pragmatic,)),
            "till/receipt.py",
            "tests/test_voucher_payment.py",
        ),
    )
