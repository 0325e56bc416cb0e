"""Requests that are read in steps or cut into slices: the same message comes out, whatever the steps."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.apis import ApiKey, codec
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import response_frame
from headrace.wire.messages import offset_commit, txn_offset_commit
from headrace.wire.offset_slices import OffsetResponses, OffsetSlices
from headrace.wire.primitives.stepped import Paused, SteppedBody
from tests.wire import samples

pytestmark = pytest.mark.slow

MANY = 1_000_000
COMMITS = {ApiKey.OFFSET_COMMIT: offset_commit, ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit}
VERSIONS = [(key, version) for key, module in COMMITS.items() for version in range(module.MAX_VERSION + 1)]
REQUESTS = sorted(name for name, message in samples.MESSAGES.items() if message.kind == "Request")


def read_in_steps(message, body, version, elements):
    """The message, and how many steps it took."""
    stepped = SteppedBody.of(memoryview(body), elements_max=MANY)
    steps = 0
    while True:
        steps += 1
        stepped.allow(elements)
        try:
            return samples.decode(message, stepped, version), steps
        except Paused:
            continue


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_read_in_steps_is_the_same(name):
    message = samples.MESSAGES[name]
    random = Random(name)
    for version in samples.versions_of(message):
        value = samples.sample(message, version, random, width=6)
        body = samples.encode(message, value, version)
        whole = samples.decode(message, body, version)
        for elements in (1, 2, 5, MANY):
            found, _steps = read_in_steps(message, body, version, elements)
            assert found == whole, (version, elements)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_cut_off_fails_in_steps_too(name):
    message = samples.MESSAGES[name]
    random = Random(name)
    version = message.versions.last
    body = samples.encode(message, samples.sample(message, version, random, width=3), version)
    for end in {random.randrange(len(body)) for _ in range(10)} if body else ():
        try:
            whole = samples.decode(message, body[:end], version)
        except ProtocolError:
            with pytest.raises(ProtocolError):
                read_in_steps(message, body[:end], version, 1)
        else:
            assert read_in_steps(message, body[:end], version, 1)[0] == whole


def test_a_step_reads_as_many_elements_as_it_may():
    request = commit_of(offset_commit, 7, [("a", 10), ("b", 0), ("c", 25)])
    body = codec(ApiKey.OFFSET_COMMIT).encode_request(request, 7)
    found, steps = read_in_steps(samples.MESSAGES["OffsetCommitRequest"], body, 7, 5)
    assert found == request
    assert steps == -(-38 // 5)


def test_elements_are_bounded():
    request = commit_of(offset_commit, 7, [("a", 10)])
    body = codec(ApiKey.OFFSET_COMMIT).encode_request(request, 7)
    stepped = SteppedBody.of(memoryview(body), elements_max=9)
    stepped.allow(MANY)
    with pytest.raises(ProtocolError, match="more than 9 elements"):
        codec(ApiKey.OFFSET_COMMIT).decode_request(stepped, 0, len(stepped), 7)


# Offsets


def commit_of(module, version, topics):
    """A commit of topics, given with the number of their partitions."""
    name = "OffsetCommit" if module is offset_commit else "TxnOffsetCommit"
    by_id = module is offset_commit and version >= 10
    return getattr(module, f"{name}Request")(
        group_id="g",
        topics=tuple(
            getattr(module, f"{name}RequestTopic")(
                **({"topic_id": topic.encode().ljust(16, b".")} if by_id else {"name": topic}),
                partitions=tuple(
                    getattr(module, f"{name}RequestPartition")(
                        partition_index=index,
                        committed_offset=index * 3,
                        committed_metadata=[None, "", "m" * index][index % 3],
                    )
                    for index in range(count)
                ),
            )
            for topic, count in topics
        ),
    )


def partitions_of(request):
    """(topic, partition) in the order of the request, and topics without any."""
    found = []
    for topic in request.topics:
        found += [(topic.name, topic.topic_id if hasattr(topic, "topic_id") else b"", one) for one in topic.partitions]
    return found


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@given(
    counts=st.lists(st.integers(0, 40), max_size=6),
    slice_max=st.integers(1, 50),
    bytes_max=st.sampled_from([1, 30, 200, MANY]),
)
def test_the_slices_of_a_commit_are_the_commit(key, version, counts, slice_max, bytes_max):
    request = commit_of(COMMITS[key], version, [(f"topic-{number}", count) for number, count in enumerate(counts)])
    body = codec(key).encode_request(request, version)
    request = codec(key).decode_request(body, 0, len(body), version)
    slices = OffsetSlices(key, version, memoryview(body))
    found, topics = [], set()
    while (part := slices.take(slice_max, bytes_max)) is not None:
        one = codec(key).decode_request(part, 0, len(part), version)
        assert sum(len(topic.partitions) or 1 for topic in one.topics) <= slice_max
        assert one.group_id == request.group_id
        found += partitions_of(one)
        topics |= {(topic.name, getattr(topic, "topic_id", b"")) for topic in one.topics}
    assert found == partitions_of(request)
    assert topics == {(topic.name, getattr(topic, "topic_id", b"")) for topic in request.topics}


def all_slices(key, version, body):
    slices = OffsetSlices(key, version, memoryview(body))
    while slices.take(3, 50) is not None:
        pass


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_what_is_cut_off_has_no_slices(key, version):
    body = codec(key).encode_request(commit_of(COMMITS[key], version, [("a", 5), ("b", 5)]), version)
    for end in range(0, len(body) - 3, 7):
        with pytest.raises(ProtocolError):
            all_slices(key, version, body[:end])


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_the_answers_of_slices_are_one(key, version):
    module = COMMITS[key]
    name = "OffsetCommit" if module is offset_commit else "TxnOffsetCommit"
    by_id = module is offset_commit and version >= 10
    topics = [
        getattr(module, f"{name}ResponseTopic")(
            **({"topic_id": bytes([number]) * 16} if by_id else {"name": f"t{number}"}),
            partitions=tuple(
                getattr(module, f"{name}ResponsePartition")(partition_index=index, error_code=number)
                for index in range(number)
            ),
        )
        for number in range(150)
    ]
    answers = OffsetResponses(key, version)
    for begin in (0, 1, 140):
        part = tuple(topics[begin : {0: 1, 1: 140, 140: 150}[begin]])
        encoded = module.encode_response(getattr(module, f"{name}Response")(topics=part), version)
        answers.add(response_frame(key, version, 9, encoded))
    body = answers.body()
    assert module.decode_response(body, 0, len(body), version).topics == tuple(topics)
