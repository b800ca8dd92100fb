"""What is said before anything is decided: the first look at the request, and the four researchers' findings."""

from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import Document, Said, Session, read, signed
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.research import Focus

_INTAKE: Document = {
    "understanding": (
        "Baskets can be paid with gift vouchers, alone or together with cash. A voucher that is not used up keeps its "
        "rest, one that is expired is refused, and the receipt tells what vouchers paid, in total and for each rate of "
        "VAT."
    ),
    "concerns": [
        {
            "severity": "Minor",
            "title": "Who keeps vouchers is not said",
            "description": (
                "The library stores nothing. If two tills take the same voucher at the same moment, both see the old "
                "balance."
            ),
            "recommendation": "Hand the voucher with its rest back to the caller, and leave storing it to the caller.",
        }
    ],
    "infeasible": False,
    "infeasible_because": None,
}

_FINDINGS: dict[Focus, tuple[str, list[str], list[tuple[str, str, str, str, str]]]] = {
    Focus.ARCHITECTURE: (
        "Four modules in a line: money, basket, payment, receipt. Values are frozen, nothing is stored, nothing knows "
        "the time.",
        ["till/money.py", "till/basket.py", "till/payment.py", "till/receipt.py"],
        [
            (
                "Modules build on each other in one direction",
                "structure",
                "receipt imports payment, payment imports basket and money; money imports nothing.",
                "till/receipt.py:3",
                "A voucher is needed by payment and receipt, so it belongs below both.",
            ),
            (
                "A payment is a frozen value that pay() returns",
                "data",
                "Payment has total, cash and change. Nothing is written anywhere.",
                "till/payment.py:13",
                "What vouchers paid has to travel in the same value, or the receipt cannot show it.",
            ),
            (
                "Nothing in the library asks for the date",
                "time",
                "Searched till/ for datetime and time: no hit.",
                "till/payment.py:22",
                "Whether a voucher is expired depends on the day, which nobody hands over so far.",
            ),
        ],
    ),
    Focus.IMPACT: (
        "pay() has one caller in the library's tests and none inside; the text of a receipt is compared to the last "
        "space.",
        ["till/payment.py", "till/receipt.py", "tests/test_payment.py", "tests/test_receipt.py", "README.md"],
        [
            (
                "pay() is called with two positional arguments",
                "callers",
                "Tests and README call pay(basket, cash).",
                "tests/test_payment.py:15",
                "These calls have to go on working as they are.",
            ),
            (
                "Receipts are read by machine",
                "contract",
                "The test compares the whole text and says that accounting reads it.",
                "tests/test_receipt.py:1",
                "A receipt that has nothing to do with vouchers must stay the same to the last space.",
            ),
        ],
    ),
    Focus.DEPENDENCIES: (
        "The standard library and nothing else; checks are unittest and two scripts of the repository.",
        ["README.md", "fairwitness.toml", "tools/lint.py", "tools/check_types.py"],
        [
            (
                "There are no dependencies",
                "dependencies",
                "No manifest, no lock file; the README says that there are none.",
                "README.md:3",
                "Dates come from datetime of the standard library.",
            ),
            (
                "Every function has to say its types",
                "checks",
                "tools/check_types.py refuses functions without annotations, and calls that do not fit.",
                "tools/check_types.py:20",
                "New functions of the package are held to that too.",
            ),
        ],
    ),
    Focus.PATTERNS: (
        "Money is whole cents, refusals are exceptions with one sentence, tests are classes with sentences as names.",
        ["till/money.py", "till/payment.py", "till/receipt.py", "tests/test_basket.py"],
        [
            (
                "Amounts are whole cents",
                "convention",
                "cents() and shown() convert at the edges; VAT is rounded once, in whole numbers.",
                "till/money.py:1",
                "Spreading an amount over rates of VAT must not lose a cent.",
            ),
            (
                "A refusal is an exception of its own",
                "convention",
                "NotEnough says what is missing, in one sentence.",
                "till/payment.py:9",
                "A voucher that cannot be used is refused in the same way.",
            ),
        ],
    ),
}


def _researched(focus: Focus) -> Session:
    summary, files, findings = _FINDINGS[focus]
    names = ("title", "category", "detail", "evidence", "relevance")
    payload = {
        "focus": focus.value,
        "findings": [
            {"id": f"F-{number}", **dict(zip(names, found, strict=True)), "evidence": [found[3]]}
            for number, found in enumerate(findings, start=1)
        ],
        "summary": summary,
        "source_files_examined": files,
    }
    instance = f"researcher-{focus.value}"
    told = f"{len(findings)} findings about {focus.value}"
    answer = signed(
        Agent.RESEARCHER,
        "step-1",
        payload,
        told,
        output=LAYOUT.research(focus.value),
        instance=instance,
        findings=len(findings),
    )
    looked = (Said("I read before I say anything.", read(*files)),)
    return Session(Role.RESEARCHER, instance, 1, answer, told, looked)


SESSIONS: tuple[Session, ...] = (
    Session(
        Role.INTAKE,
        "intake",
        1,
        _INTAKE,
        "It can be done; one small doubt.",
        (Said("I look up what the request takes for granted.", read("README.md", "till/payment.py")),),
    ),
    *(_researched(focus) for focus in Focus),
)
