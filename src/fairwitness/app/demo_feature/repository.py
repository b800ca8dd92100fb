"""The repository of the demo with its one commit, and the request that is made of it."""

from pathlib import Path

from fairwitness.app.demo_feature import house_tools, library
from fairwitness.app.demo_repository import lay_out_files
from fairwitness.store.layout.feature import FeatureLayout

FILES = {**house_tools.FILES, **library.FILES}
SLUG = "gift-vouchers"
"""The feature's name; the planner's recording writes its tasks beneath the folder of that name."""
LAYOUT = FeatureLayout(SLUG)
FOLDER = LAYOUT.folder
REQUEST = """\
Gift vouchers

Customers want to pay with gift vouchers. A voucher has a code, a balance and a last day. Several vouchers and cash may
be used together, and a voucher keeps what is left on it. Expired vouchers are refused. The receipt shows each voucher
that was used with what is left on it, and for each rate of VAT how much was paid by voucher.
"""
CHECKS = (
    ("python3", "-m", "unittest"),
    ("python3", "tools/lint.py", "till", "tests", "tools"),
    ("python3", "tools/check_types.py", "till"),
)
"""The checks of the repository as a person runs them; `fairwitness.toml` declares the last two, the first is found."""
MOMENT = "2026-02-26T14:30:00Z"


def lay_out(folder: Path) -> Path:
    """The repository in a new folder."""
    return lay_out_files(folder, FILES, subject="feat: a small till", moment=MOMENT)
