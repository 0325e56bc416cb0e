"""Byte equality with kio and kafka-python, in both directions, for every API and version they know."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.schemas.notation import Message
from tests.wire import kafka_python_oracle, kio_oracle, samples

EVERY_MESSAGE = [pytest.param(message, id=name) for name, message in samples.MESSAGES.items()]
FEW_EXAMPLES = settings(max_examples=8)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("message", EVERY_MESSAGE)
@FEW_EXAMPLES
@given(seed=SEEDS)
def test_what_is_written_is_read_again(message: Message, seed: int) -> None:
    for version in samples.versions_of(message):
        value = samples.sample(message, version, Random(seed))
        body = samples.encode(message, value, version)
        assert samples.decode(message, body, version) == value
        assert samples.decode(message, memoryview(body), version) == value


@pytest.mark.parametrize("message", [param for param in EVERY_MESSAGE if kio_oracle.versions_of(param.values[0])])
@FEW_EXAMPLES
@given(seed=SEEDS)
def test_bytes_are_those_of_kio(message: Message, seed: int) -> None:
    message = samples.kafkas(message)
    for version in kio_oracle.versions_of(message):
        if not message.versions.covers(version):
            continue
        value = samples.sample(message, version, Random(seed))
        body = samples.encode(message, value, version)
        assert body == kio_oracle.encode(message, value, version)
        assert kio_oracle.decode(message, body, version) == kio_oracle.entity(message, value, version)


@pytest.mark.parametrize(
    "message", [param for param in EVERY_MESSAGE if kafka_python_oracle.versions_of(param.values[0])]
)
@FEW_EXAMPLES
@given(seed=SEEDS)
def test_bytes_are_those_of_kafka_python(message: Message, seed: int) -> None:
    message = samples.kafkas(message)
    for version in kafka_python_oracle.versions_of(message):
        if not message.versions.covers(version):
            continue
        value = samples.sample(message, version, Random(seed))
        body = samples.encode(message, value, version)
        assert body == kafka_python_oracle.encode(message, value, version)
        assert kafka_python_oracle.equal(message, value, kafka_python_oracle.decode(message, body, version), version)
