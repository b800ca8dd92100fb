"""A request in any language becomes a run: its short name, branch, folder and commit message are usable."""

import subprocess
from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.roadmap import SLUG_LIMIT, phase_slug
from fairwitness.contracts.common.ids import run_ref
from fairwitness.kit.text import cells
from fairwitness.runs.feature.commit import SUBJECT_LIMIT, subject_of
from fairwitness.runs.feature.setup import LIMIT, slug_of
from fairwitness.store.layout.feature import FeatureLayout

REQUESTS = {
    "Chinese": "添加礼品券\n\n顾客可以在结账时使用礼品券。",
    "Arabic": "أضف قسائم الهدايا\n\nيمكن للعملاء الدفع بها.",
    "Hebrew": "הוסף שוברי מתנה",
    "German": "Größenänderung der Übersicht für Gutscheine\n\nKundinnen können Gutscheine kaufen.",
    "Hindi": "उपहार वाउचर जोड़ें",
    "Thai": "เพิ่มบัตรของขวัญ",
    "Korean": "상품권 추가",
    "emoji": "🎁✨",
    "mixed": "CSV-导出 🎉 بالعربية",
    "marks": "# \n\n**Añadir vales** — ¡ya!",
    "Persian": "می‌خواهم پرداخت کنم",
}


@pytest.mark.req("P11")
@pytest.mark.parametrize("language", REQUESTS)
def test_a_request_in_any_language_names_its_branch_folder_and_commit(language: str, tmp_path: Path) -> None:
    request = REQUESTS[language]
    slug = slug_of(request)
    assert 0 < len(slug) <= LIMIT + 16
    assert slug.isascii()
    branch = f"feature/{slug}"
    subprocess.run(["git", "check-ref-format", "--branch", branch], check=True, capture_output=True)
    (tmp_path / FeatureLayout(slug).folder).mkdir(parents=True)
    assert slug_of(request) == slug
    subject = subject_of(request)
    assert subject.startswith("feat: ")
    assert cells(subject) <= SUBJECT_LIMIT
    assert "\\u" not in subject
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", subject], cwd=tmp_path, check=True)
    shown = subprocess.run(["git", "log", "-1", "--format=%s"], cwd=tmp_path, check=True, capture_output=True)
    assert shown.stdout.decode().strip() == subject


@pytest.mark.req("P11")
def test_different_requests_have_different_names() -> None:
    names = [slug_of(request) for request in REQUESTS.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("language", REQUESTS)
def test_a_phase_of_any_language_has_a_name_that_ends_with_a_whole_word(language: str) -> None:
    title = REQUESTS[language].splitlines()[-1]
    slug = phase_slug("3.1", title)
    assert slug.isascii()
    assert 0 < len(slug) <= SLUG_LIMIT
    assert run_ref(slug) == slug


def test_a_long_name_of_a_phase_ends_with_a_whole_word() -> None:
    slug = phase_slug("3", "Customers can pay with vouchers and cash together at the till")
    assert slug == "customers-can-pay-with-vouchers-and-cash"
    assert len(phase_slug("3", "x" * 90)) == SLUG_LIMIT
