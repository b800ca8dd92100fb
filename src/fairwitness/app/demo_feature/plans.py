"""The plan of four tasks, and the second one that tells the receipt's implementer what the first left out."""

from dataclasses import dataclass, replace
from typing import Any

from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import Call, Document, Said, Session, create, signed
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Risk, Size
from fairwitness.kit.documents import Format, render


@dataclass(frozen=True, slots=True)
class Criterion:
    """What has to be true, and the tests that fail if it is not."""

    text: str
    tests: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that a verifier names for it."""
        return " ".join(("python3", "-m", "unittest", *self.tests))


@dataclass(frozen=True, slots=True)
class Task:
    """One task as the planner sees it; files come with their colours, tests included."""

    id: str
    title: str
    description: str
    risk: Risk
    after: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    decisions: tuple[str, ...]
    requirements: tuple[str, ...]
    files: tuple[tuple[str, Risk], ...]

    @property
    def size(self) -> Size:
        """Red is always large."""
        return Size.LARGE if self.risk is Risk.RED else Size.STANDARD

    def document(self) -> Document:
        """`tasks/<id>.yaml`."""
        listed = {"FR": "functional_requirements", "AC": "acceptance_criteria", "CR": "common_requirements"}
        return {
            "task": {
                "id": self.id,
                "title": self.title,
                "description": self.description,
                "agent": Agent.IMPLEMENTER.value,
                "size": self.size.value,
                "risk": self.risk.value,
                "depends_on": list(self.after),
                "acceptance_criteria": [criterion.text for criterion in self.criteria],
                "relevant_context": {
                    "design_sections": [f"design-output.yaml#payload.decisions[id='{one}']" for one in self.decisions],
                    "spec_requirements": [
                        f"spec-output.yaml#payload.{listed[one[:2]]}[id='{one}']" for one in self.requirements
                    ],
                    "files_to_modify": [{"path": path, "risk": risk.value} for path, risk in self.files],
                },
            }
        }


def _tests(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests.{module}.{name}" for name in names)


_RECEIPT = Task(
    id="task-04",
    title="The receipt shows vouchers",
    description=(
        "render() shows the vouchers of a payment above the cash: one row with what they paid together, one for each "
        "with its masked code and what is left, and below the VAT one row for each rate with its part. The README says "
        "how to pay with vouchers."
    ),
    risk=Risk.YELLOW,
    after=("task-03",),
    criteria=(
        Criterion(
            "A receipt for a voucher and cash has the rows of AC-6, to the last space.",
            _tests("test_voucher_receipt", "Vouchers.test_a_receipt_for_a_voucher_and_cash"),
        ),
        Criterion(
            "No receipt shows the code of a voucher in full.",
            _tests("test_voucher_receipt", "Vouchers.test_no_receipt_tells_a_code"),
        ),
    ),
    decisions=("D-4", "D-5"),
    requirements=("FR-4", "AC-6"),
    files=(
        ("till/receipt.py", Risk.YELLOW),
        ("tests/test_voucher_receipt.py", Risk.GREEN),
        ("README.md", Risk.GREEN),
    ),
)
TASKS: tuple[Task, ...] = (
    Task(
        id="task-01",
        title="Vouchers as values",
        description=(
            "A module till/vouchers.py with the frozen Voucher (code, balance, last_day, masked), redeem(voucher, due, "
            "today) and the refusal Unusable, whose text shows masked codes only."
        ),
        risk=Risk.GREEN,
        after=(),
        criteria=(
            Criterion(
                "A voucher of 25.00 pays 16.90 and keeps 8.10; one of 5.00 pays no more than that.",
                _tests(
                    "test_vouchers",
                    "Redeeming.test_a_voucher_keeps_its_rest",
                    "Redeeming.test_a_voucher_pays_no_more_than_it_has",
                ),
            ),
            Criterion(
                "A voucher is good on its last day, refused on the next, and refused when it is empty.",
                _tests(
                    "test_vouchers",
                    "Redeeming.test_the_last_day_counts_and_the_next_does_not",
                    "Redeeming.test_an_empty_voucher_is_refused",
                ),
            ),
            Criterion("Neither masked nor a refusal tells a code.", _tests("test_vouchers", "Codes")),
        ),
        decisions=("D-1", "D-5"),
        requirements=("FR-1", "AC-1", "AC-2"),
        files=(("till/vouchers.py", Risk.GREEN), ("tests/test_vouchers.py", Risk.GREEN)),
    ),
    Task(
        id="task-02",
        title="Amounts are split without losing a cent",
        description="split(amount, weights) in till/money.py: parts by weight, by largest remainders, in whole cents.",
        risk=Risk.YELLOW,
        after=(),
        criteria=(
            Criterion("The parts add up to the amount.", _tests("test_split", "Splitting.test_no_cent_is_lost")),
            Criterion(
                "Cents that are left over go to the largest remainders, to the first among equals.",
                _tests("test_split", "Splitting.test_what_is_left_over_goes_where_most_was_rounded_away"),
            ),
        ),
        decisions=("D-2",),
        requirements=("FR-2", "AC-3"),
        files=(("till/money.py", Risk.YELLOW), ("tests/test_split.py", Risk.GREEN)),
    ),
    Task(
        id="task-03",
        title="pay() takes vouchers",
        description=(
            "pay(basket, cash, vouchers, today) redeems vouchers in their order and takes cash for the rest, all or "
            "nothing. The Payment holds each used voucher with its rest, and the part of each rate of VAT (split)."
        ),
        risk=Risk.RED,
        after=("task-01", "task-02"),
        criteria=(
            Criterion(
                "A voucher of 5.00 and 12.00 in cash pay 16.90 with 0.10 back.",
                _tests("test_voucher_payment", "Vouchers.test_cash_pays_what_vouchers_leave"),
            ),
            Criterion(
                "The same voucher handed over twice is refused, and so is an expired one.",
                _tests(
                    "test_voucher_payment",
                    "Vouchers.test_the_same_voucher_does_not_pay_twice",
                    "Vouchers.test_an_expired_voucher_is_refused",
                ),
            ),
            Criterion(
                "What vouchers paid is spread over the rates of VAT and adds up.",
                _tests("test_voucher_payment", "Vouchers.test_each_rate_has_its_part_of_the_vouchers"),
            ),
        ),
        decisions=("D-3",),
        requirements=("FR-3", "AC-4", "AC-5"),
        files=(("till/payment.py", Risk.RED), ("tests/test_voucher_payment.py", Risk.GREEN)),
    ),
    _RECEIPT,
)
RECEIPT_AGAIN = replace(
    _RECEIPT,
    description=(
        f"{_RECEIPT.description} Only a payment with vouchers has any of these rows: the first attempt printed them "
        "always, and tests/test_receipt.py, which accounting relies on, failed. Run all tests, not only the new ones."
    ),
    criteria=(
        *_RECEIPT.criteria,
        Criterion(
            "A receipt without vouchers is the same as before, to the last space.",
            (
                "tests.test_receipt",
                *_tests("test_voucher_receipt", "Vouchers.test_a_receipt_without_vouchers_does_not_speak_of_them"),
            ),
        ),
    ),
    requirements=("FR-4", "AC-6", "AC-7", "CR-2"),
)
TASKS_AGAIN: tuple[Task, ...] = (*TASKS[:-1], RECEIPT_AGAIN)
_WAVES = (("task-01", "task-02"), ("task-03",), ("task-04",))


def _plan(tasks: tuple[Task, ...], summary: str, pre_mortem: list[dict[str, Any]]) -> Document:
    payload = {
        "overall_risk_summary": Risk.RED.value,
        "total_tasks": len(tasks),
        "waves": [
            {"id": f"wave-{number}", "tasks": list(wave), "max_concurrent": 4}
            for number, wave in enumerate(_WAVES, start=1)
        ],
        "tasks": [
            {
                "id": task.id,
                "title": task.title,
                "size": task.size.value,
                "risk": task.risk.value,
                "depends_on": list(task.after),
                "agent": Agent.IMPLEMENTER.value,
            }
            for task in tasks
        ],
        "dependency_graph": {task.id: list(task.after) for task in tasks},
        "pre_mortem": pre_mortem,
        "key_assumptions": ["Whoever calls the library stores the vouchers that it hands back."],
    }
    return signed(Agent.PLANNER, "step-4", payload, summary, output=LAYOUT.plan, risk=Risk.RED)


def _written(tasks: tuple[Task, ...]) -> tuple[Call, ...]:
    """The task documents, which the planner writes as files."""
    return tuple(create(LAYOUT.task(task.id), render(task.document(), Format.YAML)) for task in tasks)


_TWICE = {
    "task": "task-03",
    "scenario": "A voucher pays twice in one basket, or is changed although the payment is refused.",
    "likelihood": "M",
    "impact": "H",
    "mitigation": "Vouchers are told apart by their code, and pay() changes nothing before it is sure.",
}
_OLD_RECEIPTS = {
    "task": "task-04",
    "scenario": "Receipts without vouchers change again.",
    "likelihood": "M",
    "impact": "H",
    "mitigation": "The old receipt's test is part of a criterion now.",
}
FIRST = _plan(TASKS, "4 tasks in 3 waves, one red", [_TWICE])
SECOND = _plan(TASKS_AGAIN, "task-04 again, with the criterion it lacked; the others stand", [_TWICE, _OLD_RECEIPTS])


def replanned(number: int) -> Session:
    """The planner's n-th session, in which it replaces the receipt's task; the other documents are as they were."""
    words = "The task did not say what must stay. Now it does."
    turn = Said("One task failed; it needs another document.", _written(TASKS_AGAIN))
    return Session(Role.PLANNER, "planner", number, SECOND, words, (turn,))


PLANNED = Session(
    Role.PLANNER,
    "planner",
    1,
    FIRST,
    "Two beginnings side by side, then the money, then the paper.",
    (Said("Each task gets its own document.", _written(TASKS)),),
)
