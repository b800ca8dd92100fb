"""The specification of the demo's request."""

from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import Document, Session, signed
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role

_PAYLOAD: Document = {
    "feature_name": "Gift vouchers",
    "directions": [
        {
            "id": "A",
            "name": "Vouchers as values",
            "summary": "A voucher is handed in and handed back with its rest; whoever calls the library stores it.",
        },
        {
            "id": "B",
            "name": "A store of vouchers",
            "summary": "The library keeps vouchers by their code and books what was used; it would need a database.",
        },
    ],
    "common_requirements": [
        {"id": "CR-1", "text": "Amounts are whole cents, and no cent is lost or made.", "priority": "must"},
        {
            "id": "CR-2",
            "text": "Who pays without vouchers sees no difference, on paper or in code.",
            "priority": "must",
        },
        {"id": "CR-3", "text": "The library has no dependencies.", "priority": "must"},
    ],
    "functional_requirements": [
        {
            "id": "FR-1",
            "text": "A voucher pays as much of an amount as it has, keeps the rest, and is refused when it is no good.",
            "sub_requirements": [
                {"id": "FR-1.1", "text": "A voucher has a code, a balance and a last day, which still counts."},
                {"id": "FR-1.2", "text": "An expired or empty voucher is refused with the reason."},
            ],
        },
        {
            "id": "FR-2",
            "text": "What vouchers paid is spread over the rates of VAT in proportion to what the basket has of each.",
        },
        {
            "id": "FR-3",
            "text": "A basket can be paid with any number of vouchers, in the order given, and cash for the rest.",
        },
        {
            "id": "FR-4",
            "text": "The receipt shows what vouchers paid, what is left on each, and the part of each rate of VAT.",
        },
    ],
    "acceptance_criteria": [
        {"id": "AC-1", "text": "FR-1: of 25.00, a bill of 16.90 leaves 8.10 on the voucher.", "test_method": "test"},
        {"id": "AC-2", "text": "FR-1: on the day after its last day a voucher is refused.", "test_method": "test"},
        {"id": "AC-3", "text": "FR-2: the parts of all rates add up to what vouchers paid.", "test_method": "test"},
        {
            "id": "AC-4",
            "text": "FR-3: a voucher of 5.00 and 12.00 in cash pay 16.90 with 0.10 back.",
            "test_method": "test",
        },
        {"id": "AC-5", "text": "FR-3: the same voucher handed over twice is refused.", "test_method": "test"},
        {"id": "AC-6", "text": "FR-4: the receipt for AC-4 has the rows of FR-4.", "test_method": "test"},
        {"id": "AC-7", "text": "FR-4: a receipt without vouchers is the same as before.", "test_method": "test"},
    ],
    "edge_cases": [
        {
            "id": "EC-1",
            "condition": "Vouchers are worth more than the basket",
            "expected_behavior": "Only as many are used as are needed; nothing is paid out in cash for a voucher.",
            "severity_if_missed": "Critical",
        },
        {
            "id": "EC-2",
            "condition": "Vouchers and cash together are not enough",
            "expected_behavior": "The payment is refused with what is missing, and no voucher is changed.",
            "severity_if_missed": "Critical",
        },
        {
            "id": "EC-3",
            "condition": "The parts of the rates do not come out even",
            "expected_behavior": "Cents that are left over are given out so that the sum is exact.",
            "severity_if_missed": "Major",
        },
    ],
    "constraints": ["Nothing in the library asks for the time: the day is handed in."],
    "pushback_log": {
        "concerns_identified": 0,
        "mode": "autonomous",
        "auto_selected": True,
        "selected_option": "proceed",
        "concerns": [],
    },
}

SPEC: Document = signed(
    Agent.SPEC,
    "step-2",
    _PAYLOAD,
    "4 functional requirements, 7 criteria, 3 corners",
    output=LAYOUT.spec,
)
SESSIONS: tuple[Session, ...] = (
    Session(Role.SPEC, "spec", 1, SPEC, "What has to be true in the end, and how it is shown."),
)
