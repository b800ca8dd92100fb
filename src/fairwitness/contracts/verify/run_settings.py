"""The settings that every run has, whatever its workflow."""

from fairwitness.contracts.common.base import Contract, Maybe, Text
from fairwitness.contracts.common.ids import Sha256
from fairwitness.contracts.verify.checks import VerifySettings


class RunSettings(Contract):
    """Checks and agents of a run, as they were set when it began; they do not change afterwards."""

    verify: VerifySettings
    settings_hash: Sha256
    trusted_file: Maybe[Sha256] = None
    """The hash of the repository's fairwitness.toml, if settings are in force because a person trusts it."""
    agents: Maybe[Text] = None
    """The agent named on the command line; null to use each role's settings."""
    cassettes: Maybe[Text] = None
