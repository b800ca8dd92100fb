"""Settings of feature runs: every key can be said in fairwitness.toml, and what is not understood is refused in one line."""  # noqa: E501

from pathlib import Path

import pytest

from fairwitness.app.settings.tables import feature_settings
from fairwitness.app.settings.verify import TABLES, verify_settings
from fairwitness.contracts.common.policy import OnExhausted
from fairwitness.contracts.common.vocabulary import Risk
from fairwitness.contracts.feature.order import Dirty, FeatureSettings, KeepArtifacts
from fairwitness.errors import UsageError
from support.trust import trust

EVERYTHING = """
[feature]
dirty = "refuse"
[policy]
researchers = 3
max_concurrent = 2
human_loops = 0
risk = [{ pattern = "secrets/**", risk = "🔴" }]
[policy.retry]
dispatch = 2
[policy.review]
on_exhausted = "error"
[policy.verification]
standard_checks = 3
[finish]
checkout = false
co_author = false
[artifacts]
commit = "separate-commit"
[budget]
tokens = 1000
dollars = 2.5
minutes = 30
"""


def read(folder: Path, project: str | None = None, user: str | None = None) -> FeatureSettings:
    """The settings of a checkout and a user's file with these texts."""
    theirs, top = folder / "user" / "fairwitness.toml", folder / "checkout"
    for path, text in ((theirs, user), (top / "fairwitness.toml", project)):
        path.parent.mkdir(exist_ok=True)
        if text is not None:
            path.write_text(text)
    if project is not None:
        trust(top)
    return feature_settings(top, user=theirs)


def refusal(folder: Path, project: str, user: str | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(folder, project, user)
    return caught.value


@pytest.mark.req("P12")
def test_a_plain_clone_needs_no_settings(tmp_path: Path) -> None:
    assert read(tmp_path) == FeatureSettings()
    assert feature_settings(None, user=tmp_path / "nowhere") == FeatureSettings()


@pytest.mark.req("P12")
def test_every_setting_can_be_said(tmp_path: Path) -> None:
    settings = read(tmp_path, EVERYTHING)
    policy = settings.policy
    assert settings.feature.dirty is Dirty.REFUSE
    assert (policy.researchers, policy.max_concurrent, policy.human_loops) == (3, 2, 0)
    assert [(rule.pattern, rule.risk) for rule in policy.risk] == [("secrets/**", Risk.RED)]
    assert (policy.retry.dispatch, policy.verification.standard_checks) == (2, 3)
    assert policy.review.on_exhausted is OnExhausted.ERROR
    assert (settings.ends.checkout, settings.ends.co_author) == (False, False)
    assert settings.ends.artifacts is KeepArtifacts.SEPARATE_COMMIT
    assert (settings.budget.tokens, settings.budget.dollars, settings.budget.minutes) == (1000, 2.5, 30)


def test_the_tables_stand_beside_those_of_verify(tmp_path: Path) -> None:
    assert set(FeatureSettings.model_fields) < set(TABLES)
    assert read(tmp_path, f"[verify]\nmutants = 5\n{EVERYTHING}").policy.researchers == 3
    assert verify_settings(tmp_path / "checkout", user=tmp_path / "nowhere")[0].mutants == 5


def test_the_project_has_the_last_word_key_by_key(tmp_path: Path) -> None:
    user = "[policy]\nresearchers = 4\n[policy.retry]\ndispatch = 0\nchecks = 0\n[budget]\ntokens = 5\n"
    settings = read(tmp_path, "[policy.retry]\ndispatch = 3\n[budget]\nminutes = 7\n", user)
    assert (settings.policy.researchers, settings.policy.retry.dispatch, settings.policy.retry.checks) == (4, 3, 0)
    assert (settings.budget.tokens, settings.budget.minutes) == (5, 7)


def test_whole_dollars_are_dollars(tmp_path: Path) -> None:
    assert read(tmp_path, "[budget]\ndollars = 5\n").budget.dollars == 5


REFUSED = [
    ("[feature]\ndirty = 'maybe'\n", "feature.dirty", "'snapshot' or 'refuse'"),
    ("[feature]\nmode = 'x'\n", "feature.mode", "no such field"),
    ("[policy]\nresearcher = 2\n", "policy.researcher", "no such field"),
    ("[policy]\nresearchers = 1\n", "policy.researchers", "2"),
    ("[policy]\nresearchers = '3'\n", "policy.researchers", "a whole number"),
    ("[policy]\nresearchers = true\n", "policy.researchers", "a whole number"),
    ("[policy.retry]\ndispatch = 9\n", "policy.retry.dispatch", "3"),
    ("[policy.retry]\ndispatchs = 1\n", "policy.retry.dispatchs", "no such field"),
    ("[policy]\nrisk = [{ pattern = 'x' }]\n", "policy.risk[0].risk", "this field"),
    ("[finish]\ncheckout = 'no'\n", "finish.checkout", "true or false"),
    ("[finish]\npush = true\n", "finish.push", "no such field"),
    ("[artifacts]\ncommit = true\n", "artifacts.commit", "separate-commit"),
    ("[budget]\ntokens = 0\n", "budget.tokens", "1"),
    ("[budget]\ndollars = -1.0\n", "budget.dollars", "0"),
    ("[budget]\nminutes = 1.5\n", "budget.minutes", "a whole number"),
    ("[budget]\nhours = 1\n", "budget.hours", "no such field"),
]


@pytest.mark.req("P12")
@pytest.mark.parametrize(("text", "where", "expected"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_not_understood_is_refused_where_it_stands(
    tmp_path: Path, text: str, where: str, expected: str
) -> None:
    error = refusal(tmp_path, text)
    assert f"fairwitness.toml: {where}: " in error.what
    assert expected in error.what
    assert "\n" not in error.what
    assert error.next_step


@pytest.mark.parametrize(
    "text",
    [
        "[feature]\nwhen = 2026-01-01\n",
        "[budget]\ndollars = nan\n",
        "[budget]\ndollars = inf\n",
        "[features]\n",
        "feature = 3\n",
        "policy = 'strict'\n",
        "[budget\n",
    ],
)
def test_what_is_no_table_of_plain_values_is_refused(tmp_path: Path, text: str) -> None:
    error = refusal(tmp_path, text)
    assert "fairwitness.toml" in error.what
    assert "\n" not in error.what


def test_a_refusal_names_the_file_that_is_to_be_corrected(tmp_path: Path) -> None:
    user = "[policy]\nresearchers = 1\n"
    error = refusal(tmp_path, "[budget]\ntokens = 5\n", user)
    assert str(tmp_path / "user" / "fairwitness.toml") in error.what
