"""The two designs: the first prints voucher codes in full, the second answers the reviewer who saw that."""

from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import Document, Session, signed
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Risk

_ARCHITECTURE = """\
A new module, till/vouchers.py, stands below payment and beside basket. It knows what a voucher is and what it pays of
an amount; it stores nothing and asks for no time. till/money.py learns to split an amount by weights. pay() takes
vouchers and the day as further arguments with defaults, so that calls of before are unchanged; it redeems one voucher
after the other, takes cash for the rest, and returns everything in the Payment: each voucher as it is handed back, and
the part of each rate of VAT. The receipt only prints what the Payment holds.

Data lives with the caller: vouchers go in as values and come back as values. If anything is wrong, an exception is
raised before a Payment exists, so there is nothing to undo. Empty input is the ordinary case: without vouchers, every
path is the one of before. A call that is repeated gives the same answer, since nothing was changed by the first.
"""


def _decision(number: int, title: str, risk: Risk, rationale: str, rejected: tuple[str, str]) -> Document:
    name, reason = rejected
    return {
        "id": f"D-{number}",
        "title": title,
        "risk": risk.value,
        "rationale": rationale,
        "alternatives_rejected": [{"name": name, "reason": reason, "confidence": "High"}],
        "confidence": "High",
    }


_STANDING = [
    _decision(
        1,
        "A voucher is a frozen value in a module of its own",
        Risk.GREEN,
        "Values are how the library does everything. redeem(voucher, due, today) gives what was taken and the voucher "
        "with its rest, or raises Unusable.",
        ("Balances in a store of the library", "It would bring a database and locks into a library that has neither."),
    ),
    _decision(
        2,
        "An amount is split by largest remainders, in whole numbers",
        Risk.YELLOW,
        "Rounding each part by itself loses cents. Rounding down and giving what is left to the parts that lost most "
        "is exact, and the first of equals wins, so that the answer is always the same.",
        ("Round every part and correct the last", "The last rate would be off by several cents in a long basket."),
    ),
    _decision(
        3,
        "pay() takes vouchers and the day, and is all or nothing",
        Risk.RED,
        "Arguments with defaults keep old calls as they are. A voucher is recognised by its code, so that the same one "
        "cannot pay twice. Vouchers that are not needed are not touched.",
        ("A second function for vouchers", "Two ways to pay would have to be kept alike, for money of all things."),
    ),
]
_FULL_CODES = _decision(
    4,
    "The receipt prints the vouchers of the payment",
    Risk.YELLOW,
    "One row for the sum, one for each voucher with its code and what is left, and one for each rate of VAT.",
    ("A separate slip for vouchers", "Customers lose it, and accounting would have to join two papers."),
)
_MASKED = [
    _decision(
        4,
        "The receipt prints the vouchers of the payment, if there are any",
        Risk.YELLOW,
        "One row for the sum, one for each voucher with its masked code (D-5) and what is left, and one for each rate "
        "of VAT. Without vouchers not a single row is added: accounting compares receipts to the last space.",
        ("A separate slip for vouchers", "Customers lose it, and accounting would have to join two papers."),
    ),
    _decision(
        5,
        "A code is never shown in full",
        Risk.GREEN,
        "Answers SEC-1: the code is all that is needed to spend what is left. A voucher has a masked form with its "
        "last four characters, and nothing of codes shorter than eight; receipts and refusals use that form only.",
        ("No code on the receipt at all", "With two vouchers a customer could not tell which of them has money left."),
    ),
]


def _design(decisions: list[Document], summary: str) -> Document:
    payload = {"architecture": _ARCHITECTURE, "decisions": decisions, "deviation_records": []}
    return signed(Agent.DESIGNER, "step-3", payload, summary, output=LAYOUT.design)


FIRST = _design([*_STANDING, _FULL_CODES], "4 decisions, one of them red")
DESIGN = _design([*_STANDING, *_MASKED], "5 decisions; codes are masked everywhere (SEC-1)")
"""The design that is carried out."""
SESSIONS: tuple[Session, ...] = (
    Session(Role.DESIGNER, "designer", 1, FIRST, "Values in, values out."),
    Session(Role.DESIGNER, "designer", 2, DESIGN, "The reviewer is right: a printed code is money on paper."),
)
