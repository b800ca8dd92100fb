"""What the knowledge agent keeps of the run; numbers are left to the ledger, which no recording can know."""

from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import Document, Session, signed
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role

_MACHINE = {
    "type": "convention",
    "key": "receipts-are-read-by-machine",
    "value": "A receipt is compared to the last space; a row is added only where there is something to tell.",
    "stored_via": "store_memory",
}
_ALL_TESTS = {
    "type": "lesson",
    "key": "new-tests-are-not-all-tests",
    "value": "A task whose own tests passed had broken an old one; its criterion named the new behaviour only.",
    "stored_via": "store_memory",
}
_CLAIMED = {
    "type": "lesson",
    "key": "a-report-is-not-a-result",
    "value": "The receipt's task was reported as green in every iteration while its tests were red.",
    "stored_via": "store_memory",
}
_DECISIONS = [
    {
        "id": "DL-001",
        "title": "Vouchers are values that the caller stores",
        "rationale": "The library has no store; what is left on a voucher is handed back with the payment.",
        "confidence": "High",
    },
    {
        "id": "DL-002",
        "title": "A code is never shown in full",
        "rationale": "Whoever finds a receipt could spend what is left.",
        "confidence": "High",
    },
]


def learned(*, from_a_lie: bool) -> Session:
    """The knowledge agent's session."""
    updates = [_MACHINE, _CLAIMED if from_a_lie else _ALL_TESTS]
    payload: Document = {"knowledge_updates": updates, "decision_log_entries": _DECISIONS}
    summary = "2 things to know and 2 decisions"
    answer = signed(Agent.KNOWLEDGE, "step-8", payload, summary, output=LAYOUT.knowledge)
    return Session(Role.KNOWLEDGE, "knowledge-agent", 1, answer, summary)
