"""The filter language: what matches, what is refused, and what it may cost."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.types import ConsumerRecord
from headrace.manager.filters import FilterError, parse_filter
from headrace.manager.limits import FILTER_DEPTH_MAX, FILTER_LENGTH_MAX, FILTER_TERMS_MAX

VALUE = b'{"amount": 12.5, "customer": {"name": "Ada", "tags": ["a", "vip"]}, "paid": true, "note": null, "a b": 1}'
RECORD: ConsumerRecord = ConsumerRecord("orders", 2, 40, 1_000, b"k-7", VALUE, (("source", b"shop"), ("empty", None)))


@pytest.mark.parametrize(
    "text",
    [
        "value.amount > 12", "value.amount = 12.5", "value.amount <= 12.5", "-1 < value.amount", "value.amount != 3",
        'value.customer.name == "Ada"', "value.customer.name = 'Ada'", 'value.customer.tags contains "vip"',
        'value.customer.tags[1] = "vip"', 'value["a b"] = 1', "value.paid", "value.paid = true", "value.note = null",
        'key startswith "k-"', 'key = "k-7"', 'headers.source = "shop"', "headers.empty = null", "offset = 40",
        "partition in [1, 2]", 'topic = "orders"', "timestamp >= 1000", 'text contains "Ada"', 'text contains "shop"',
        'not value.customer.name = "Bob"', "not value.missing = 1", "value.paid and offset > 1 or offset < 0",
        "(offset < 0 or value.paid) and partition = 2", 'key endswith "7"', "not not value.paid",
    ],
)  # fmt: skip
def test_a_filter_matches(text: str) -> None:
    assert parse_filter(text)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "value.amount > 13", "value.missing = 1", "value.missing != 1", "value.customer.name > 3", "value.paid = 1",
        "value.amount", "key", 'value contains "Ada"', "value.customer.tags[9] = 1", "not value.paid",
        "offset > 1 and offset < 2", 'headers.missing = "x"', "partition in [0, 1]", "value.customer.name.x = 1",
        'text startswith "zzz"', "value.note > 1",
    ],
)  # fmt: skip
def test_a_filter_does_not_match(text: str) -> None:
    assert not parse_filter(text)(RECORD)


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"[" * 5_000, b"text", b"1", b'{"a": ' * 2_000])
def test_values_of_any_kind_can_be_filtered(data: bytes | None) -> None:
    record: ConsumerRecord = ConsumerRecord("t", 0, 0, 0, data, data, (("h", data),))
    for text in ("value.a = 1", 'value contains "e"', "key = null", 'headers.h = "text"', 'text contains "x"'):
        parse_filter(text)(record)
    assert parse_filter("value = null")(record) == (data is None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the filter is empty"),
        ("value =", "the filter ends where"),
        ("value = = 1", 'stands where a field or a value is expected'),
        ("vale = 1", 'did you mean "value"?'),
        ("offset.x = 1", "has no fields"),
        ("value. = 1", "a name"),
        ("value[1.5] = 1", "is not an index"),
        ("(value", '")"'),
        ("value) ", "and, or, or the end"),
        ("value # 1", "cannot be read"),
        ('key = "open', "cannot be read"),
        ("partition in 1", '"["'),
        ("__import__('os')", "is not a field"),
    ],
)  # fmt: skip
def test_an_invalid_filter_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert says in str(refused.value)


def test_the_size_of_a_filter_is_limited() -> None:
    parse_filter("(" * (FILTER_DEPTH_MAX - 1) + "key" + ")" * (FILTER_DEPTH_MAX - 1))
    for text in (
        "(" * (FILTER_DEPTH_MAX + 1) + "key" + ")" * (FILTER_DEPTH_MAX + 1),
        "not " * (FILTER_DEPTH_MAX + 1) + "key",
        "x" * (FILTER_LENGTH_MAX + 1),
        " or ".join(["key"] * FILTER_TERMS_MAX),
    ):
        with pytest.raises(FilterError):
            parse_filter(text)


@given(st.text(string.ascii_letters + string.digits + " .\"'[]()<>=!,-_\\", max_size=80))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        matches = parse_filter(text)
    except FilterError:
        return
    assert matches(RECORD) in (True, False)
