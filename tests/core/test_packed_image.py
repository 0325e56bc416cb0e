"""Packed partition states: equal to plain objects, copied on write, indexed by leader, and loaded from snapshots."""

from array import array
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.controller.broker_index import STALE_ENTRIES_MIN, BrokerIndex
from headrace.core.controller.delta import MetadataDelta, apply_with_delta, delta_between
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_states import (
    PARTITIONS_PER_RECORD_MAX,
    ROW_FIELDS,
    PartitionState,
    PartitionStates,
    Tables,
)
from headrace.core.controller.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RecordError,
    RemoveTopicRecord,
    ResourceKind,
    TopicPartitionsRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from headrace.core.controller.topic_image import TopicImage
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId, TopicPartition

BROKERS = [NodeId(number) for number in range(5)]
TOPICS = [TopicId(bytes(15) + bytes([number])) for number in range(4)]
DIRECTORY = bytes(16)

node_lists = st.permutations(BROKERS).flatmap(lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count])))
creations = st.tuples(st.just("partition"), st.sampled_from(TOPICS), node_lists)
changes = st.tuples(
    st.just("change"),
    st.sampled_from(TOPICS),
    node_lists,
    st.integers(0, 9),
    st.sampled_from(["same", "moved", "none"]),
    st.sampled_from(["nothing", "eligible", "moving", "both"]),
)
removals = st.tuples(st.just("remove"), st.sampled_from(TOPICS))
copies = st.tuples(st.just("copy"), st.booleans())
steps = st.lists(st.one_of(creations, creations, creations, changes, changes, removals, copies), max_size=60)

Plain = dict[TopicId, list[PartitionState]]


def name_of(topic_id: TopicId) -> str:
    return f"topic-{topic_id[-1]}"


def record_for(plain: Plain, step: tuple) -> list[Record]:
    """Return the records of a step, and apply them to plain lists of objects."""
    match step:
        case ("partition", topic_id, nodes):
            records: list[Record] = [] if topic_id in plain else [TopicRecord(name_of(topic_id), topic_id)]
            states = plain.setdefault(topic_id, [])
            directories = (DIRECTORY,) * len(nodes)
            records.append(
                PartitionRecord(topic_id, len(states), nodes, nodes, nodes[0], LeaderEpoch(0), 0, directories)
            )
            states.append(PartitionState(nodes, nodes, nodes[0], LeaderEpoch(0), 0, directories))
            return records
        case ("change", topic_id, nodes, number, leadership, more) if topic_id in plain:
            states = plain[topic_id]
            index = number % len(states)
            old = states[index]
            leader = {"same": None, "moved": nodes[-1], "none": NO_NODE}[leadership]
            states[index] = old._replace(
                isr=nodes,
                leader=old.leader if leader is None else leader,
                leader_epoch=LeaderEpoch(old.leader_epoch + (leader is not None)),
                partition_epoch=old.partition_epoch + 1,
            )
            if number % 3 == 0:  # also assign other replicas
                states[index] = states[index]._replace(replicas=nodes)
            replicas = nodes if number % 3 == 0 else None
            elr, known = ((BROKERS[number % 5],), (BROKERS[4],)) if more in ("eligible", "both") else ((), ())
            adding, removing = (nodes[:1], nodes[1:]) if more in ("moving", "both") else ((), ())
            states[index] = states[index]._replace(elr=elr, last_known_elr=known, adding=adding, removing=removing)
            return [
                PartitionChangeRecord(
                    topic_id,
                    index,
                    isr=nodes,
                    leader=leader,
                    replicas=replicas,
                    elr=elr,
                    last_known_elr=known,
                    adding=adding,
                    removing=removing,
                )
            ]
        case ("remove", topic_id) if topic_id in plain:
            del plain[topic_id]
            return [RemoveTopicRecord(topic_id)]
    return []


def assert_alike(image: MetadataImage, plain: Plain) -> None:
    assert {topic.topic_id: list(topic.partitions) for topic in image.topics.values()} == plain
    assert image.partition_count == sum(map(len, plain.values()))
    preferred = Counter(state.replicas[0] for states in plain.values() for state in states)
    assert +image.preferred_leaders == preferred
    for node in BROKERS:
        members = {
            TopicPartition(name_of(topic_id), index)
            for topic_id, states in plain.items()
            for index, state in enumerate(states)
            if node in state.isr or node in state.elr
        }
        assert found_in(image.partitions_of_member(node)) == members
        for topic_id, states in plain.items():
            held = [index for index, state in enumerate(states) if node in state.replicas]
            assert image.topics_by_id[topic_id].partitions.held_by(node) == held
        waiting = {
            TopicPartition(name_of(topic_id), index)
            for topic_id, states in plain.items()
            for index, state in enumerate(states)
            if state.leader == NO_NODE and node in state.replicas
        }
        assert found_in(image.leaderless_partitions_on(node)) == waiting
    moving = {
        (topic_id, index)
        for topic_id, states in plain.items()
        for index, state in enumerate(states)
        if state.adding or state.removing
    }
    assert set(image.reassignments) == moving


def found_in(indexed: Iterator[tuple[TopicImage, list[int]]]) -> set[TopicPartition]:
    found = [TopicPartition(topic.name, partition) for topic, partitions in indexed for partition in partitions]
    assert len(found) == len(set(found))
    return set(found)


@given(steps)
def test_packed_states_equal_plain_objects_and_copies_do_not_affect_each_other(taken: list[tuple]) -> None:
    image, plain = MetadataImage(), Plain()
    kept: list[tuple[MetadataImage, Plain]] = []
    for step in taken:
        if step[0] == "copy":
            twin, twin_plain = image.copy(), {topic_id: states[:] for topic_id, states in plain.items()}
            if step[1]:  # go on with the copy, and keep the original as it is
                image, twin = twin, image
            kept.append((twin, twin_plain))
        for record in record_for(plain, step):
            image.apply(record)
    assert_alike(image, plain)
    for earlier, earlier_plain in kept:
        assert_alike(earlier, earlier_plain)
    loaded = MetadataImage()
    for record in image.snapshot_records():
        loaded.apply(record)
    assert loaded == image
    assert_alike(loaded, plain)


def test_configs_of_a_copy_are_its_own() -> None:
    image = MetadataImage()
    image.apply(ConfigRecord(ResourceKind.TOPIC, "t", "retention.ms", "1"))
    twin = image.copy()
    image.apply(ConfigRecord(ResourceKind.TOPIC, "t", "retention.ms", "2"))
    twin.apply(ConfigRecord(ResourceKind.TOPIC, "t", "retention.ms", None))
    assert (image.topic_configs("t"), twin.topic_configs("t")) == ({"retention.ms": "2"}, {})


def states_of(count: int) -> PartitionStates:
    states = PartitionStates(Tables())
    for number in range(count):
        nodes = (NodeId(number % 3), NodeId(3))
        states.append(PartitionState(nodes, nodes[:1], nodes[0], LeaderEpoch(number), 0, (DIRECTORY,) * 2))
    return states


def test_a_topic_larger_than_a_record_is_packed_into_several() -> None:
    states = states_of(PARTITIONS_PER_RECORD_MAX + 1)
    records = list(states.snapshot_records(TOPICS[0]))
    assert [record.first for record in records] == [0, PARTITIONS_PER_RECORD_MAX]
    loaded = PartitionStates(Tables())
    assert [loaded.load(record) for record in records] == [PARTITIONS_PER_RECORD_MAX, 1]
    assert loaded == states


def test_many_different_lists_never_make_a_record_that_cannot_be_read() -> None:
    states = PartitionStates(Tables())
    for number in range(PARTITIONS_PER_RECORD_MAX):
        nodes = tuple(NodeId(1_000_000 * step + number) for step in range(20))
        directories = tuple(number.to_bytes(8, "big") + step.to_bytes(8, "big") for step in range(20))
        states.append(PartitionState(nodes, nodes, nodes[0], LeaderEpoch(0), 0, directories))
    records = list(states.snapshot_records(TOPICS[0]))
    loaded = PartitionStates(Tables())
    for record in records:
        found = decode_record(encode_record(record))
        assert isinstance(found, TopicPartitionsRecord)
        loaded.load(found)
    assert len(records) > 1
    assert loaded == states


def test_states_are_a_sequence() -> None:
    states = states_of(5)
    assert states[-1] == states[4] == list(states)[4]
    assert states[1:3] == list(states)[1:3]
    for index in (5, -6):
        with pytest.raises(IndexError):
            states[index]


def rows(*numbers: int) -> bytes:
    return array("i", numbers).tobytes()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (TopicPartitionsRecord(TOPICS[0], 1, (), (), rows(0, 0, 0, 0, 0, 0)), "follow 0 partitions"),
        (TopicPartitionsRecord(TOPICS[0], 0, (), (), b""), "0 bytes of partitions"),
        (TopicPartitionsRecord(TOPICS[0], 0, (), (), bytes(25)), "25 bytes of partitions"),
        (TopicPartitionsRecord(TOPICS[0], 0, (), ((),), rows(0, 0, 0, 0, 0, 0)), "refers to list 0"),
        (TopicPartitionsRecord(TOPICS[0], 0, ((),), ((),), rows(0, 0, 0, 0, 1, 0)), "refers to list 1"),
        (TopicPartitionsRecord(TOPICS[0], 0, ((),), ((),), rows(0, 0, 0, 0, 0, -1)), "refers to list"),
    ],
)
def test_a_damaged_record_is_refused_and_changes_nothing(record: TopicPartitionsRecord, message: str) -> None:
    image = MetadataImage()
    image.apply(TopicRecord("t", TOPICS[0]))
    with pytest.raises(RecordError, match=message):
        image.apply(record)
    assert image.partition_count == len(image.topics["t"].partitions) == 0


@given(st.binary(max_size=24 * 4), st.integers(0, 2))
@settings(max_examples=50)
def test_hostile_rows_end_in_one_kind_of_error(content: bytes, lists: int) -> None:
    states = PartitionStates(Tables())
    record = TopicPartitionsRecord(TOPICS[0], 0, ((NodeId(1),),) * lists, ((DIRECTORY,),) * lists, content)
    try:
        count = states.load(record)
    except RecordError:
        assert len(states) == 0
    else:
        assert len(list(states)) == count == len(content) // (4 * ROW_FIELDS)


def test_an_epoch_beyond_32_bits_is_refused() -> None:
    with pytest.raises(RecordError, match="32 bits"):
        PartitionStates(Tables()).append(PartitionState((), (), NodeId(1), LeaderEpoch(1 << 31), 0, ()))


def test_an_index_of_brokers_does_not_grow_with_repeated_elections() -> None:
    index = BrokerIndex()
    for number in range(20 * STALE_ENTRIES_MIN):
        index.add(NodeId(1), number % 7)
    assert len(index._topics[NodeId(1)]) <= STALE_ENTRIES_MIN
    assert list(index.partitions_of(NodeId(1), lambda number: [0] if number != 3 else [])) == [0, 1, 2, 4, 5, 6]
    assert index.partitions_of(NodeId(1), lambda number: []) == {}
    assert index.partitions_of(NodeId(1), lambda number: [0]) == {}


def test_a_leader_is_not_found_across_two_numbers() -> None:
    states = PartitionStates(Tables())
    for leader in (0x01000000, 0, 0x01, 0x0100, 1):
        states.append(PartitionState((), (), NodeId(leader), LeaderEpoch(0), 0, ()))
    assert states.led_by(NodeId(1)) == [2, 4]
    assert states.led_by(NodeId(0)) == [1]
    assert states.led_by(NodeId(0x0100)) == [3]


class TestDeltaBetween:
    """A snapshot that replaces an image is seen as the changes between the two."""

    def test_it_is_the_delta_of_the_records_between(self) -> None:
        image = MetadataImage()
        first: list[Record] = [
            TopicRecord("kept", TOPICS[0]),
            partition(TOPICS[0], 0),
            TopicRecord("deleted", TOPICS[1]),
            ConfigRecord(ResourceKind.TOPIC, "kept", "retention.ms", "1"),
            ConfigRecord(ResourceKind.BROKER, "", "log.retention.ms", "1"),
        ]
        second: list[Record] = [
            partition(TOPICS[0], 1),
            PartitionChangeRecord(TOPICS[0], 0, leader=NodeId(2)),
            RemoveTopicRecord(TOPICS[1]),
            TopicRecord("created", TOPICS[2]),
            ConfigRecord(ResourceKind.TOPIC, "created", "retention.ms", "1"),
            ConfigRecord(ResourceKind.TOPIC, "kept", "retention.ms", None),
            ConfigRecord(ResourceKind.BROKER, "", "log.retention.ms", "2"),
        ]
        apply_with_delta(image, first)
        before = image.copy()
        expected = apply_with_delta(image, second)
        assert delta_between(before, image) == expected
        assert delta_between(image, image.copy()) == MetadataDelta()


def partition(topic_id: TopicId, index: int) -> PartitionRecord:
    return PartitionRecord(topic_id, index, (NodeId(1),), (NodeId(1),), NodeId(1), LeaderEpoch(0), 0, (bytes(16),))
