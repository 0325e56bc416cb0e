"""Damaged and hostile bytes: always a ProtocolError, and never an allocation beyond what was received."""

from contextlib import suppress
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import TAGGED_FIELD_BYTES_MAX, TAGGED_FIELDS_MAX
from headrace.wire.primitives.writers import unsigned_varint
from headrace.wire.schemas.notation import Message
from tests.peak_memory import allocates_less_than, allocations_traced
from tests.wire import samples

EVERY_MESSAGE = [pytest.param(message, id=name) for name, message in samples.MESSAGES.items()]
FLEXIBLE = [param for param in EVERY_MESSAGE if param.values[0].flexible.last >= 0]
HOSTILE = [
    bytes.fromhex(text)
    for text in ("7fffffff", "ffffffff", "80000000", "fffffffe", "ffffffff07", "ffffffff0f", "ffffffffff", "7fff")
]
"""Lengths and counts as fixed numbers and as varints: huge, negative, null, and longer than a varint may be."""

BYTES_ALLOCATED_MAX = 64 * 1024
"""Room for the objects of a message of a few hundred bytes; a believed count of 2**31 would need gigabytes."""


def small_sample(message: Message, version: int) -> bytes:
    """The longest of a few small messages, so that no part of it is always empty."""
    bodies = [
        samples.encode(message, samples.sample(message, version, Random(seed), width=1), version) for seed in range(6)
    ]
    return max(bodies, key=len)


def decoded_or_refused(message: Message, body: bytes, version: int) -> None:
    with suppress(ProtocolError):
        samples.decode(message, body, version)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_a_message_cut_anywhere_is_refused(message: Message) -> None:
    decode = getattr(samples.codec_of(message), f"decode_{message.kind.lower()}")
    for version in samples.versions_of(message):
        body = small_sample(message, version)
        for end in range(len(body)):
            with pytest.raises(ProtocolError):
                decode(body, 0, end, version)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_bytes_left_over_are_passed_over_as_kafka_does(message: Message) -> None:
    for version in samples.versions_of(message):
        body = small_sample(message, version)
        assert samples.decode(message, body + b"\1\0\0", version) == samples.decode(message, body, version)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_hostile_lengths_are_refused_or_harmless(message: Message) -> None:
    for version in samples.versions_of(message):
        body = small_sample(message, version)
        for position in range(len(body)):
            for hostile in HOSTILE:
                damaged = body[:position] + hostile + body[position + len(hostile) :]
                decoded_or_refused(message, damaged, version)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_nothing_is_allocated_for_bytes_that_are_not_there(message: Message) -> None:
    for version in {message.versions.first, message.versions.last}:
        body = small_sample(message, version)
        with allocations_traced():
            for position in range(len(body)):
                for hostile in HOSTILE[:2] + HOSTILE[4:6]:
                    damaged = body[:position] + hostile + body[position + len(hostile) :]
                    read = partial(decoded_or_refused, message, damaged, version)
                    assert allocates_less_than(BYTES_ALLOCATED_MAX, read)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
@settings(max_examples=25)
@given(body=st.binary(max_size=200))
def test_noise_is_refused_or_harmless(message: Message, body: bytes) -> None:
    for version in samples.versions_of(message):
        decoded_or_refused(message, body, version)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_versions_that_do_not_exist_are_refused(message: Message) -> None:
    value = samples.sample(message, message.versions.last, Random(0))
    for version in (-1, message.versions.last + 1, 32_767):
        with pytest.raises(ProtocolError, match="version"):
            samples.decode(message, b"\0" * 64, version)
        with pytest.raises(ProtocolError, match="version"):
            samples.encode(message, value, version)


@pytest.mark.parametrize(("position", "end"), [(-1, 4), (3, 2), (0, 5), (5, 5)])
def test_a_range_outside_the_buffer_is_refused(position: int, end: int) -> None:
    for name in ("MetadataRequest", "ProduceRequest"):
        message = samples.MESSAGES[name]
        decode = samples.codec_of(message).decode_request
        with pytest.raises(ProtocolError):
            decode(b"\0\0\0\0", position, end, 0)


def with_tags(message: Message, tags: bytes) -> bytes:
    """A message that ends with these tagged fields."""
    version = message.versions.last
    body = samples.encode(message, getattr(samples.codec_of(message), message.name)(), version)
    assert body[-1] == 0
    return body[:-1] + tags


@pytest.mark.parametrize("message", FLEXIBLE)
def test_unknown_tagged_fields_are_skipped(message: Message) -> None:
    tags = b"\x02" + unsigned_varint(900) + b"\x03abc" + unsigned_varint(901) + b"\0"
    plain = samples.decode(message, with_tags(message, b"\0"), message.versions.last)
    assert samples.decode(message, with_tags(message, tags), message.versions.last) == plain


@pytest.mark.parametrize("message", FLEXIBLE)
def test_tagged_fields_have_limits(message: Message) -> None:
    version = message.versions.last
    many = unsigned_varint(TAGGED_FIELDS_MAX + 1) + b"\x64\0" * (TAGGED_FIELDS_MAX + 1)
    large = b"\x01\x64" + unsigned_varint(TAGGED_FIELD_BYTES_MAX + 1) + bytes(TAGGED_FIELD_BYTES_MAX + 1)
    for tags in (many, large):
        with pytest.raises(ProtocolError, match="limit"):
            samples.decode(message, with_tags(message, tags), version)


def test_a_known_tagged_field_must_fill_its_bytes() -> None:
    message = samples.MESSAGES["ApiVersionsResponse"]
    epoch = bytes(8)
    assert samples.decode(message, with_tags(message, b"\x01\x01\x08" + epoch), 4)
    with pytest.raises(ProtocolError, match="declared"):
        samples.decode(message, with_tags(message, b"\x01\x01\x09" + epoch + b"\0"), 4)
