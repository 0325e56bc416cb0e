"""Long answers are written step by step; the bytes are those of one step."""

from random import Random
from typing import Any

import pytest

from headrace.wire import codec
from headrace.wire.codec import ITEMS_PER_STEP, Encoding
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import describe_groups, list_groups, offset_fetch
from headrace.wire.primitives import writers
from tests.wire import samples

RESPONSES = [pytest.param(message, id=name) for name, message in samples.MESSAGES.items() if message.kind == "Response"]


def steps_of(begun: bytes | Encoding) -> tuple[int, bytes]:
    """Return how many steps it took, and what was written."""
    if isinstance(begun, bytes):
        return 0, begun
    count = 1
    while (written := begun.step()) is None:
        count += 1
    return count, written


@pytest.mark.parametrize("message", RESPONSES)
def test_every_response_in_every_version(message: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "SHORT_ARRAY_ITEMS_MAX", 1)
    monkeypatch.setattr(codec, "ITEMS_PER_STEP", 2)
    random = Random(message.name)
    for version in samples.versions_of(message):
        for _ in range(5):
            value = samples.sample(message, version, random, width=5)
            begun = samples.codec_of(message).begin_response(value, version)
            assert steps_of(begun)[1] == samples.encode(message, value, version)


def groups(count: int) -> list_groups.ListGroupsResponse:
    return list_groups.ListGroupsResponse(
        groups=tuple(list_groups.ListGroupsResponseGroup(group_id=f"group {number}") for number in range(count))
    )


def test_a_short_answer_needs_no_steps() -> None:
    assert isinstance(list_groups.begin_response(groups(writers.SHORT_ARRAY_ITEMS_MAX), 5), bytes)


def test_a_step_writes_a_limited_number_of_items() -> None:
    answer = groups(10 * ITEMS_PER_STEP + 1)
    count, written = steps_of(list_groups.begin_response(answer, 5))
    assert count == 11
    assert written == list_groups.encode_response(answer, 5)


def test_arrays_within_arrays_count_too() -> None:
    """One group of many members, and many groups of some."""
    member = describe_groups.DescribeGroupsResponseMember(member_id="m", client_id="c", client_host="/h")
    for group_count, member_count in ((1, 1_000), (100, 50)):
        group = describe_groups.DescribeGroupsResponseGroup(group_id="g", members=(member,) * member_count)
        answer = describe_groups.DescribeGroupsResponse(groups=(group,) * group_count)
        count, written = steps_of(describe_groups.begin_response(answer, 5))
        assert count >= group_count * member_count // ITEMS_PER_STEP
        assert written == describe_groups.encode_response(answer, 5)


def test_an_item_that_cannot_be_written() -> None:
    bad = offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=2**15)
    good = offset_fetch.OffsetFetchResponseGroup(group_id="g")
    begun = offset_fetch.begin_response(offset_fetch.OffsetFetchResponse(groups=(*(good,) * 150, bad)), 8)
    assert isinstance(begun, Encoding)
    assert begun.step() is None
    with pytest.raises(ProtocolError, match="OffsetFetchResponse"):
        begun.step()
    with pytest.raises(ProtocolError, match="version"):
        offset_fetch.begin_response(offset_fetch.OffsetFetchResponse(), 99)
