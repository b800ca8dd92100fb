"""Trust in the settings of a test's repository, as `fairwitness trust --yes` records it."""

from pathlib import Path

from fairwitness.app.settings.trust import record_trust
from fairwitness.app.settings.verify import checkout_file


def trust(top: Path) -> None:
    """Trusts the `fairwitness.toml` of a checkout with its present content, valid or not."""
    file = checkout_file(top)
    assert file is not None, top
    record_trust(file)
