"""A feature is named by what was asked for, in letters that every file system and git take."""

import pytest
from pydantic import TypeAdapter

from fairwitness.contracts.common.ids import Slug
from fairwitness.runs.feature.setup import LIMIT, slug_of


@pytest.mark.parametrize(
    ("request_", "slug"),
    [
        ("Gift vouchers", "gift-vouchers"),
        ("\n  \n# Gift vouchers!\nmore", "gift-vouchers"),
        ("Don't log the user's e-mail", "dont-log-the-users-e-mail"),
        ("Größe & Maß ändern", "grosse-mass-andern"),
        ("Подарочные ваучеры", "podarochnye-vauchery"),
        ("../../etc/passwd", "etc-passwd"),
        (
            "Let every customer buy as many gift vouchers as they like on the web",
            "let-every-customer-buy-as-many-gift-vouchers-as",
        ),
        ("x" * 100, "x" * LIMIT),
    ],
)
def test_the_first_line_names_the_feature(request_: str, slug: str) -> None:
    assert slug_of(request_) == slug


def test_what_cannot_be_spelled_is_told_apart_by_a_hash() -> None:
    one, other = slug_of("礼品券"), slug_of("退款")
    assert one != other
    assert one.startswith("feature-")
    assert slug_of("API 礼品券") != slug_of("API 退款")
    assert slug_of("API 礼品券").startswith("api-")


@pytest.mark.parametrize(
    "request_", ["", "---", "🎁", "礼品券", "ﬁ ½ Ⅷ", "\udcff", "-a-", "é" * 80, "a " * 80, "ẞ" * 60, "x" * 60 + " 礼"]
)
def test_every_request_has_a_valid_slug(request_: str) -> None:
    slug = slug_of(request_)
    TypeAdapter(Slug).validate_python(slug)
    assert len(slug) <= LIMIT
    assert slug_of(request_) == slug
