"""An unknown name is answered with the one that was meant, in its right case, and not with any that is unlike."""

from itertools import count

import pytest

from headrace.model.nearest_names import LIKE_A_NAME, aside, guess, meant, nearest_of

TOPICS = ["orders", "Payments", "orders-by-day"]


@pytest.mark.parametrize(
    ("asked", "likeness", "found"),
    [
        ("order", 0.6, "orders"),
        ("PAYMENT", 0.6, "Payments"),
        ("orders-by-week", 0.6, "orders-by-day"),
        ("orders-by-week", LIKE_A_NAME, None),
        ("invoices", 0.6, None),
        ("", 0.6, None),
    ],
)
def test_the_nearest(asked: str, likeness: float, found: str | None) -> None:
    assert nearest_of(asked, TOPICS, likeness=likeness) == found
    assert nearest_of(asked, []) is None


def test_it_is_part_of_a_message() -> None:
    assert guess("paymens", TOPICS) == 'did you mean "Payments"?'
    assert guess("x", TOPICS) == "there are Payments, orders, orders-by-day"
    assert meant("paymens", TOPICS) == ', did you mean "Payments"?'
    assert meant("x", TOPICS) == ""
    assert aside("paymens", TOPICS) == ' (did you mean "Payments"?)'
    assert aside("x", TOPICS) == ""


def test_neither_many_names_nor_long_ones_take_long() -> None:
    """Names come from a cluster, and what is asked for may be any text."""
    assert nearest_of("orders-17", (f"orders-{number}" for number in count())) == "orders-17"
    assert nearest_of("orders" + "s" * 10_000_000, TOPICS) is None
