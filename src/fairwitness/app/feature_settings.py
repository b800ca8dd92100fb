"""Settings of feature runs: the tables `[feature]`, `[policy]`, `[finish]`, `[artifacts]` and `[budget]`."""

from pathlib import Path

from fairwitness.app.tables import read_tables
from fairwitness.contracts.feature.settings import FeatureSettings


def feature_settings(top: Path | None, *, user: Path | None = None) -> FeatureSettings:
    """What is in force."""
    return read_tables(FeatureSettings, top, user=user)
