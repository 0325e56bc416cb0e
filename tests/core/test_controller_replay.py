"""Records: their bytes, their versions, and that replaying them gives the live state."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.core.controller.client_quotas import QuotaAlteration, QuotaChange
from headrace.core.controller.commands import (
    AlterableConfig,
    ConfigAlteration,
    CreatableTopic,
    PartitionGrowth,
    TopicToDelete,
)
from headrace.core.controller.credentials import CredentialToRemove, NewCredential
from headrace.core.controller.delta import MetadataDelta, apply_with_delta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    BATCH_VERSION,
    METADATA_VERSION_MIN,
    RECORD_TYPES,
    AccessRuleRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    FeatureRange,
    LoginSecretRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RecordCodec,
    RecordError,
    RecordType,
    RecordVersion,
    RegisterBrokerRecord,
    RemoveAccessRuleRecord,
    RemoveScramCredentialRecord,
    RemoveTopicRecord,
    ScramCredentialRecord,
    SnapshotHeaderRecord,
    TopicPartitionsRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    decode_record,
    encode_record,
)
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId, TopicPartition
from tests.core.controllers import TestedController, one_broker, replayed

topic_ids = st.binary(min_size=16, max_size=16).map(TopicId)
counts = st.integers(0, 2**31 - 1)
nodes = st.lists(st.integers(-1, 2**31 - 1).map(NodeId), max_size=4).map(tuple)
directories = st.lists(st.binary(min_size=16, max_size=16), max_size=4).map(tuple)
endpoints = st.lists(st.builds(Endpoint, st.text(), st.text(), st.integers(0, 65535), st.text()), max_size=3).map(tuple)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(TopicRecord, st.text(), topic_ids),
    st.builds(PartitionRecord, topic_ids, counts, nodes, nodes, counts, counts, counts, directories),
    st.builds(PartitionChangeRecord, topic_ids, counts, st.none() | nodes, st.none() | counts, st.none() | nodes),
    st.builds(RemoveTopicRecord, topic_ids),
    st.builds(ConfigRecord, st.integers(0, 64), st.text(), st.text(), st.none() | st.text()),
    st.builds(ProducerIdsRecord, counts, counts),
    st.builds(RegisterBrokerRecord, counts, st.binary(), counts, endpoints, st.none() | st.text(), st.text()),
    st.builds(
        RegisterBrokerRecord,
        counts,
        st.binary(),
        counts,
        endpoints,
        st.none() | st.text(),
        st.text(),
        st.booleans(),
        st.lists(st.builds(FeatureRange, st.text(), counts, counts), max_size=3).map(tuple),
        directories,
        st.booleans(),
        st.binary(),
        st.booleans(),
    ),
    st.builds(UnregisterBrokerRecord, counts, counts),
    st.builds(BrokerRegistrationChangeRecord, counts, counts, st.none() | st.booleans(), st.none() | st.booleans()),
    st.builds(FeatureLevelRecord, st.text(), st.integers(0, 100)),
    st.builds(SnapshotHeaderRecord, counts, counts, counts, counts),
    st.builds(ScramCredentialRecord, st.text(), counts, st.binary(), st.binary(), st.binary(), counts),
    st.builds(RemoveScramCredentialRecord, st.text(), counts),
    st.builds(
        AccessRuleRecord, st.binary(), counts, st.text(), counts, st.text(), st.text(), counts, st.integers(0, 127)
    ),
    st.builds(RemoveAccessRuleRecord, st.binary()),
    st.builds(
        ClientQuotaRecord,
        st.lists(st.tuples(st.text(), st.none() | st.text()), max_size=3).map(tuple),
        st.text(),
        st.none() | st.floats(allow_nan=False),
    ),
    st.builds(LoginSecretRecord, st.binary()),
    st.builds(TopicPartitionsRecord, topic_ids, counts, st.tuples(nodes, nodes), st.tuples(directories), st.binary()),
)


class TestBytes:
    @given(records)
    def test_a_record_comes_back_as_it_was(self, record: Record) -> None:
        assert decode_record(encode_record(record)) == record

    def test_the_name_of_an_earlier_release_becomes_the_present_one(self) -> None:
        stored = encode_record(FeatureLevelRecord("headrace.epoch.version", 1))
        assert decode_record(stored) == FeatureLevelRecord(BATCH_VERSION, 1)

    @given(st.binary(max_size=200))
    def test_hostile_bytes_end_in_one_kind_of_error(self, encoded: bytes) -> None:
        try:
            decode_record(encoded)
        except RecordError:
            pass

    @given(records, st.data())
    def test_damaged_records_end_in_one_kind_of_error(self, record: Record, data: st.DataObject) -> None:
        encoded = bytearray(encode_record(record))
        at = data.draw(st.integers(0, len(encoded) - 1))
        encoded[at] ^= data.draw(st.integers(1, 255))
        try:
            decode_record(bytes(encoded))
        except RecordError:
            pass
        for end in range(at):
            with pytest.raises(RecordError):
                decode_record(bytes(encode_record(record)[:end]))

    @pytest.mark.parametrize(
        ("encoded", "told"),
        [
            (b"", "0 bytes"),
            (b"\x02", "1 bytes"),
            (b"\xfa\x00\x90", "type 250 is unknown"),
            (b"\x02\x07\x92", "TopicRecord version 7 is unknown"),
            (b"\x02\x00" + b"\x91" * 100_000, "TopicRecord cannot be decoded"),
            (b"\x02\x00\xdd\xff\xff\xff\xff", "TopicRecord cannot be decoded"),
            (b"\x02\x00" + bytes(2 << 20), "bytes: expected"),
            (b"\x02\x00\x92\xa1a\xc4\x02ab", "length >= 16"),
        ],
    )
    def test_what_is_wrong_is_said(self, encoded: bytes, told: str) -> None:
        with pytest.raises(RecordError, match=told):
            decode_record(encoded)

    def test_numbers_are_those_of_kafka_and_never_change(self) -> None:
        assert {entry.structure.__name__: entry.number for entry in RECORD_TYPES} == {
            "RegisterBrokerRecord": 0,
            "UnregisterBrokerRecord": 1,
            "TopicRecord": 2,
            "PartitionRecord": 3,
            "ConfigRecord": 4,
            "PartitionChangeRecord": 5,
            "RemoveTopicRecord": 9,
            "DelegationTokenRecord": 10,
            "ScramCredentialRecord": 11,
            "FeatureLevelRecord": 12,
            "ClientQuotaRecord": 14,
            "ProducerIdsRecord": 15,
            "BrokerRegistrationChangeRecord": 17,
            "AccessRuleRecord": 18,
            "RemoveAccessRuleRecord": 19,
            "RemoveScramCredentialRecord": 22,
            "RemoveDelegationTokenRecord": 26,
            "SnapshotHeaderRecord": 100,
            "TopicPartitionsRecord": 101,
            "LoginSecretRecord": 102,
        }


class Grown(msgspec.Struct, frozen=True, array_like=True):
    """A record type that got a field in its second version."""

    name: str
    colour: str = "none"


class TestVersions:
    old = RecordCodec([RecordType(number=7, structure=Grown, versions=(RecordVersion(10, 1),))])
    new = RecordCodec([RecordType(number=7, structure=Grown, versions=(RecordVersion(10, 1), RecordVersion(12, 2)))])

    def test_the_newest_allowed_version_is_written(self) -> None:
        assert self.new.encode(Grown("a", "red"), 12)[:2] == b"\x07\x01"
        assert self.new.encode(Grown("a"), 11)[:2] == b"\x07\x00"

    def test_an_older_node_reads_what_is_written_before_the_upgrade_is_finalized(self) -> None:
        assert self.old.decode(self.new.encode(Grown("a"), 11)) == Grown("a")
        with pytest.raises(RecordError, match="version 1 is unknown"):
            self.old.decode(self.new.encode(Grown("a"), 12))

    def test_what_the_older_version_cannot_say_is_not_dropped(self) -> None:
        with pytest.raises(RecordError, match=r"Grown\.colour cannot be written"):
            self.new.encode(Grown("a", "red"), 11)

    def test_a_record_newer_than_the_cluster_is_not_written(self) -> None:
        with pytest.raises(RecordError, match=r"needs metadata\.version 10"):
            self.new.encode(Grown("a"), 9)
        with pytest.raises(RecordError):
            encode_record(TopicRecord("a", TopicId(bytes(16))), METADATA_VERSION_MIN - 1)


class TestImage:
    @pytest.mark.parametrize(
        "broken",
        [
            [TopicRecord("a", TopicId(b"1" * 16)), TopicRecord("a", TopicId(b"2" * 16))],
            [TopicRecord("a", TopicId(b"1" * 16)), TopicRecord("b", TopicId(b"1" * 16))],
            [RemoveTopicRecord(TopicId(b"1" * 16))],
            [PartitionChangeRecord(TopicId(b"1" * 16), 0)],
            [TopicRecord("a", TopicId(b"1" * 16)), PartitionChangeRecord(TopicId(b"1" * 16), 0)],
            [
                TopicRecord("a", TopicId(b"1" * 16)),
                PartitionRecord(TopicId(b"1" * 16), 1, (), (), NodeId(1), LeaderEpoch(0), 0, ()),
            ],
            [SnapshotHeaderRecord(0, 0, 0, 0)],
        ],
    )
    def test_records_that_contradict_what_is_there_are_not_applied(self, broken: list[Record]) -> None:
        image = replayed(broken[:-1])
        before = image.copy()
        with pytest.raises(RecordError):
            image.apply(broken[-1])
        assert image == before
        assert image.version == before.version

    def test_a_partition_change_counts_up_the_epochs(self) -> None:
        controller = one_broker()
        topic_id = controller.create_one("a").topic_id
        controller.image.apply(PartitionChangeRecord(topic_id, 0, isr=()))
        state = controller.image.topics["a"].partitions[0]
        assert (state.isr, state.leader_epoch, state.partition_epoch) == ((), 0, 1)
        controller.image.apply(PartitionChangeRecord(topic_id, 0, leader=NodeId(1)))
        state = controller.image.topics["a"].partitions[0]
        assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 1, 2)

    def test_endpoints_by_listener(self) -> None:
        controller = TestedController()
        controller.start_broker(2)
        controller.start_broker(1)
        assert [(node, endpoint.port) for node, endpoint in controller.image.endpoints("PLAINTEXT")] == [
            (2, 9094),
            (1, 9093),
        ]
        assert controller.image.endpoints("OTHER") == []


class TestProducerIds:
    def test_producer_ids_are_given_in_blocks_that_never_overlap(self) -> None:
        controller = one_broker()
        blocks = [controller.carry_out(controller.allocate_producer_ids(NodeId(1))) for _ in range(3)]
        assert [tuple(block) for block in blocks] == [(0, 1000), (1000, 2000), (2000, 3000)]


names = st.sampled_from(["a", "b", "c.d", "c_d"])
commands = st.lists(
    st.one_of(
        st.tuples(st.just("create"), names, st.integers(-1, 4)),
        st.tuples(st.just("delete"), names, st.just(0)),
        st.tuples(st.just("grow"), names, st.integers(1, 6)),
        st.tuples(st.just("set"), names, st.integers(1, 5)),
        st.tuples(st.just("unset"), names, st.just(0)),
        st.tuples(st.just("start"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("register"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("fence"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("shut down"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("unregister"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("ids"), st.just(""), st.just(0)),
        st.tuples(st.just("add user"), names, st.integers(0, 2)),
        st.tuples(st.just("remove user"), names, st.integers(1, 2)),
        st.tuples(st.just("add rule"), names, st.integers(2, 4)),
        st.tuples(st.just("delete rules"), names, st.just(0)),
        st.tuples(st.just("set quota"), names, st.integers(0, 2)),
    ),
    max_size=30,
)


def run(controller: TestedController, verb: str, name: str, number: int) -> None:
    match verb:
        case "create":
            controller.create(CreatableTopic(name=name, partition_count=number, configs=[("segment.ms", "5")]))
        case "delete":
            controller.carry_out(controller.delete_topics([TopicToDelete(name=name)]))
        case "grow":
            controller.carry_out(controller.create_partitions([PartitionGrowth(name=name, partition_count=number)]))
        case "set" | "unset":
            change = AlterableConfig("retention.ms", 0 if verb == "set" else 1, str(number))
            alteration = ConfigAlteration(resource_kind=2, resource_name=name, changes=[change])
            controller.carry_out(controller.alter_configs([alteration]))
        case "start":
            controller.start_broker(number)
        case "register":
            controller.register(number)
        case "fence" | "shut down":
            broker = controller.image.brokers.get(NodeId(number))
            if broker is not None:
                fence = verb == "fence"
                controller.beat(number, broker.broker_epoch, wants_fence=fence, wants_shut_down=not fence)
        case "unregister":
            controller.carry_out(controller.unregister_broker(NodeId(number)))
        case "add user":
            new = NewCredential(name, number, 4_096, b"some salt", bytes(32 * number))
            controller.carry_out(controller.alter_credentials([new], [], new_secret=b"secret"))
        case "add rule":
            rule = AccessRule(2, name, number, "User:x", "*", 3, 3)
            rule_id = f"{name:16}{number}".encode()
            controller.carry_out(controller.create_rules([rule], [rule_id]))
        case "delete rules":
            controller.carry_out(controller.delete_rules([RuleFilter(1, name, 1, None, None, 1, 1)]))
        case "set quota":
            changes = (
                QuotaChange("producer_byte_rate", float(number) or None),
                QuotaChange("request_percentage", 2.0 - number or None),
            )
            controller.carry_out(controller.alter_quotas([QuotaAlteration((("user", name),), changes)]))
        case "remove user":
            gone = CredentialToRemove(name, number)
            controller.carry_out(controller.alter_credentials([], [gone], new_secret=b"secret"))
        case "ids":
            controller.carry_out(controller.allocate_producer_ids(NodeId(1)))


@given(commands, st.integers(0, 30))
def test_replaying_the_log_or_a_snapshot_and_its_tail_gives_the_live_state(
    script: list[tuple[str, str, int]], snapshot_after: int
) -> None:
    controller = one_broker()
    for verb, name, number in script:
        run(controller, verb, name, number)
    log = [decode_record(encode_record(record)) for record in controller.log]
    image = controller.image
    assert replayed(log) == image
    assert replayed(list(image.snapshot_records())) == image
    assert image.copy() == image
    early = replayed(log[:snapshot_after])
    resumed = replayed(list(early.snapshot_records()))
    for record in log[snapshot_after:]:
        resumed.apply(record)
    assert resumed == image
    assert resumed.partition_count == image.partition_count == sum(len(t.partitions) for t in image.topics.values())
    assert_only_unfenced_brokers_lead(image)


def assert_only_unfenced_brokers_lead(image: MetadataImage) -> None:
    """Assert that each partition is led by an in-sync replica on an unfenced broker, and by none if no such broker has
    every committed record. A broker that shuts down may lead until it is fenced, and is not elected.
    """
    unfenced = {node_id for node_id, broker in image.brokers.items() if not broker.fenced}
    electable = {node_id for node_id in unfenced if not image.brokers[node_id].in_controlled_shutdown}
    for topic in image.topics.values():
        for state in topic.partitions:
            if state.leader == NO_NODE:
                assert not electable & {*state.isr, *state.elr}
            else:
                assert state.leader in unfenced & set(state.isr) & set(state.replicas)


@given(commands)
def test_a_delta_says_what_became_of_every_topic(script: list[tuple[str, str, int]]) -> None:
    controller = one_broker()
    before_count = len(controller.log)
    image = controller.image.copy()
    for verb, name, number in script:
        run(controller, verb, name, number)
    # Carried out on a plain map of names to ids and counts, the delta must lead to the same map.
    half = before_count + (len(controller.log) - before_count) // 2
    kept: dict[str, tuple[TopicId, int]] = {}
    for part in (controller.log[before_count:half], controller.log[half:]):
        delta = apply_with_delta(image, part)
        for topic in delta.topics_deleted:
            assert kept.pop(topic.name)[0] == topic.topic_id
        for topic in delta.topics_created:
            assert topic.name not in kept
            kept[topic.name] = (topic.topic_id, len(topic.partitions))
        for partition in delta.partitions_added:
            topic_id, count = kept[partition.topic]
            assert partition.partition == count
            kept[partition.topic] = (topic_id, count + 1)
        assert kept == {name: (topic.topic_id, len(topic.partitions)) for name, topic in image.topics.items()}
        assert not set(delta.partitions_changed) & set(delta.partitions_added)
    assert image == controller.image


def test_a_delta_names_each_change() -> None:
    controller = one_broker()
    controller.create_one("kept", 1)
    controller.create_one("gone")
    image = controller.image.copy()
    begin = len(controller.log)
    controller.carry_out(controller.delete_topics([TopicToDelete(name="gone")]))
    controller.create_one("new", 2, configs=[("retention.ms", "1")])
    controller.create_one("brief")
    controller.carry_out(controller.delete_topics([TopicToDelete(name="brief")]))
    run(controller, "grow", "kept", 2)
    run(controller, "set", "kept", 1)
    controller.start_broker(1)
    delta = apply_with_delta(image, controller.log[begin:])
    assert [topic.name for topic in delta.topics_deleted] == ["gone"]
    assert [topic.name for topic in delta.topics_created] == ["new"]
    assert delta.partitions_added == (TopicPartition("kept", 1),)
    assert delta.partitions_changed == (TopicPartition("kept", 0),)
    assert delta.topic_configs_changed == ("kept",)
    assert delta.broker_configs_changed == ()
    assert delta.brokers_changed
    assert apply_with_delta(MetadataImage(), []) == MetadataDelta()
