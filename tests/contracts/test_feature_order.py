"""What a feature run is begun with, and what a person may set about it: closed, strict, with the seeds' numbers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.order import Dirty, FeatureOrder, FeatureSettings, FinishSettings, KeepArtifacts

ORDER: dict[str, Any] = {
    "request": "Add a receipt.",
    "slug": "receipt",
    "mode": "autonomous",
    "base_commit": "a" * 40,
    "baseline_tag": "pipeline-baseline-2026-02-26T14-30-00Z",
    "target": "fairwitness/2026-02-26T14-30-00Z/target",
    "verify": {},
    "settings_hash": "sha256:" + "0" * 64,
    "started_by": "Ada <ada@localhost>",
}


@pytest.mark.req("P16")
def test_an_order_is_the_same_when_it_is_read_again() -> None:
    order = FeatureOrder.model_validate(
        ORDER | {"policy": {"researchers": 3}, "finish": {"artifacts": "separate-commit"}, "cassettes": "/x"}
    )
    assert FeatureOrder.model_validate(json.loads(json.dumps(order.plain()))) == order
    assert (order.policy.researchers, order.finish.artifacts) == (3, KeepArtifacts.SEPARATE_COMMIT)
    assert (order.base_branch, order.snapshot, order.agents) == (None, None, None)


@pytest.mark.req("P16")
@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("slug", "Not A Slug"),
        ("slug", "../up"),
        ("mode", "sometimes"),
        ("base_commit", "HEAD"),
        ("target", "a..b"),
        ("target", "-x"),
        ("settings_hash", "0" * 64),
        ("policy", {"max_concurrent": 0}),
        ("finish", {"checkout": "yes"}),
        ("finish", {"push": True}),
        ("surprise", 1),
    ],
)
def test_what_an_order_does_not_know_it_refuses(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError):
        FeatureOrder.model_validate(ORDER | {field: bad})


@pytest.mark.parametrize("field", [*ORDER])
def test_what_an_order_cannot_do_without_has_no_default(field: str) -> None:
    with pytest.raises(ValidationError):
        FeatureOrder.model_validate({key: value for key, value in ORDER.items() if key != field})


@pytest.mark.req("P12")
def test_whoever_sets_nothing_has_the_seeds_numbers() -> None:
    settings = FeatureSettings()
    assert (settings.policy, settings.feature.dirty) == (Policy(), Dirty.SNAPSHOT)
    assert (
        settings.ends == FinishSettings() == FinishSettings(checkout=True, artifacts=KeepArtifacts.NO, co_author=True)
    )
    caps = settings.budget.model_dump(exclude={"ask_above_dollars", "ask_above_tokens"})
    assert set(caps.values()) <= {None}


@given(checkout=st.booleans(), co_author=st.booleans(), keep=st.sampled_from(KeepArtifacts))
def test_how_a_run_ends_is_read_from_two_tables(checkout: bool, co_author: bool, keep: KeepArtifacts) -> None:
    settings = FeatureSettings.model_validate(
        {"finish": {"checkout": checkout, "co_author": co_author}, "artifacts": {"commit": keep.value}}
    )
    assert settings.ends == FinishSettings(checkout=checkout, artifacts=keep, co_author=co_author)


@pytest.mark.parametrize(
    "bad",
    [
        {"budget": {"tokens": 0}},
        {"budget": {"tokens": 1.5}},
        {"budget": {"dollars": 0}},
        {"budget": {"dollars": -1.0}},
        {"budget": {"dollars": "1"}},
        {"budget": {"dollars": float("nan")}},
        {"budget": {"minutes": True}},
        {"feature": {"dirty": "maybe"}},
        {"artifacts": {"commit": True}},
        {"policy": {"retry": {"dispatch": 4}}},
        {"policy": {"review": {"approvals": 1}}},
        {"features": {}},
    ],
)
def test_settings_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FeatureSettings.model_validate(bad)
