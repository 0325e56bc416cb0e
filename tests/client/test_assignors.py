from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.groups.assignors import ASSIGNORS, assign_cooperatively, assign_round_robin
from headrace.client.core.groups.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from headrace.model.ids import TopicPartition

TOPICS = ("a", "b", "c")
counts = st.fixed_dictionaries({topic: st.integers(1, 9) for topic in TOPICS})
names = st.sampled_from([f"m{number}" for number in range(6)])
subscriptions = st.dictionaries(names, st.sets(st.sampled_from((*TOPICS, "missing")), min_size=1), min_size=1)
places = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))


def partitions_read(members: dict[str, ConsumerProtocolSubscription], sizes: dict[str, int]) -> set[TopicPartition]:
    topics = {topic for member in members.values() for topic in member.topics if topic in sizes}
    return {TopicPartition(topic, index) for topic in topics for index in range(sizes[topic])}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(topics=subscriptions, sizes=counts)
def test_every_partition_has_one_reader_that_wants_it(
    name: str, topics: dict[str, set[str]], sizes: dict[str, int]
) -> None:
    members = {member: ConsumerProtocolSubscription(tuple(sorted(wanted))) for member, wanted in topics.items()}
    found = ASSIGNORS[name](members, sizes)
    assert set(found) == set(members)
    given_out = Counter(partition for partitions in found.values() for partition in partitions)
    assert set(given_out) == partitions_read(members, sizes)
    assert set(given_out.values()) <= {1}
    assert all(partition.topic in topics[member] for member, partitions in found.items() for partition in partitions)


@given(before=st.sets(names, min_size=1), after=st.sets(names, min_size=1), sizes=counts)
def test_cooperation_takes_two_rounds(before: set[str], after: set[str], sizes: dict[str, int]) -> None:
    first = assign_cooperatively({name: ConsumerProtocolSubscription(TOPICS) for name in before}, sizes)
    owned = {name: first.get(name, ()) for name in after}
    for generation in range(1, 3):
        members = {name: ConsumerProtocolSubscription(TOPICS, owned[name], generation) for name in after}
        found = assign_cooperatively(members, sizes)
        holders = {partition: name for name, partitions in owned.items() for partition in partitions}
        # No member is given what another has not given up.
        assert all(holders.get(each, name) == name for name, partitions in found.items() for each in partitions)
        owned = found
    total = sum(sizes.values())
    assert sum(map(len, owned.values())) == total
    assert max(map(len, owned.values())) - min(map(len, owned.values())) <= 1
    if before <= after:
        kept = sum(len(set(first[name]) & set(owned[name])) for name in before)
        assert kept >= min(total, len(before) * (total // len(after)))


def test_two_that_claim_the_same_partition() -> None:
    claimed = (TopicPartition("a", 0),)
    members = {
        "old": ConsumerProtocolSubscription(("a",), claimed, 1),
        "new": ConsumerProtocolSubscription(("a",), claimed, 2),
    }
    assert assign_cooperatively(members, {"a": 1}) == {"old": (), "new": claimed}


def test_round_robin_goes_in_order() -> None:
    members = {"m1": ConsumerProtocolSubscription(("a", "b")), "m2": ConsumerProtocolSubscription(("a",))}
    assert assign_round_robin(members, {"a": 3, "b": 1}) == {
        "m1": (TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 0)),
        "m2": (TopicPartition("a", 1),),
    }


@given(
    topics=st.lists(st.text(max_size=20)),
    owned=st.sets(places),
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.text(max_size=5),
)
def test_subscriptions_survive_the_wire(
    topics: list[str], owned: set[TopicPartition], generation: int, rack: str | None
) -> None:
    subscription = ConsumerProtocolSubscription(tuple(topics), tuple(sorted(owned)), generation, rack)
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(st.sets(places))
def test_assignments_survive_the_wire(partitions: set[TopicPartition]) -> None:
    assert set(decode_assignment(encode_assignment(partitions))) == partitions


@given(st.binary(max_size=200))
def test_bytes_that_are_neither_do_no_harm(encoded: bytes) -> None:
    decode_subscription(encoded)
    decode_assignment(encoded)


def test_an_older_and_a_newer_subscription() -> None:
    oldest = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
    assert decode_subscription(oldest) == ConsumerProtocolSubscription(("t",))
    newer = b"\x00\x09" + encode_subscription(ConsumerProtocolSubscription(("t",), (), 4, "r"))[2:] + b"more"
    assert decode_subscription(newer) == ConsumerProtocolSubscription(("t",), (), 4, "r")
