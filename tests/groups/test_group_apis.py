"""Every group API in every version, against a node on virtual ports."""

import pytest

from headrace.broker.api.registry import SERVED
from headrace.broker.coordinators.topic import java_hash, partition_for
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import find_coordinator
from tests.groups.wire import SUBSCRIPTION, GroupClient, group_broker

NONE = ErrorCode.NONE


def versions(api_key):
    served = next(api for api in SERVED if api.key == api_key)
    return pytest.mark.parametrize("version", range(served.min_version, served.max_version + 1))


@pytest.fixture(scope="module")
def broker():
    return group_broker()


@pytest.fixture
def client(broker):
    client = GroupClient(broker)
    yield client
    client.close()


@pytest.fixture
def group(request):
    """Another group for every test."""
    return f"{request.cls.__name__} {request.node.name}"


class TestCoordinators:
    def test_the_topic_is_created_by_the_first_question_and_is_internal(self):
        broker = group_broker()
        topic = GroupClient(broker).metadata("__consumer_offsets").topics[0]
        assert (topic.is_internal, len(topic.partitions)) == (True, 3)
        configs = broker.partition("__consumer_offsets").config
        assert (configs.cleanup_compact, configs.cleanup_delete) == (True, False)

    @pytest.mark.parametrize("version", [3, 6])
    @pytest.mark.parametrize("key_type", [2, 3, 127])
    def test_other_kinds_of_coordinators_are_refused_for_good(self, client, version, key_type):
        """Share groups among them: a retriable error would make their clients ask for ever."""
        request = find_coordinator.FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=("k",))
        answer = client.ask(ApiKey.FIND_COORDINATOR, version, request)
        found = answer.coordinators[0] if version >= 4 else answer
        assert found.error_code == ErrorCode.INVALID_REQUEST
        assert "share groups are not served" in found.error_message

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("", 0),
            ("a", 97),
            ("group", 98629247),
            ("polygenelubricants", -2147483648),
            ("größe", 98762257),
            ("😀", 1772899),
        ],
    )
    def test_the_hash_of_a_group_is_javas(self, text, number):
        assert java_hash(text) == number
        assert 0 <= partition_for(text, 50) < 50

    def test_clients_cannot_write_into_the_topic(self, client):
        content = client.batch(b"v", key=b"k")
        assert client.produce_error("__consumer_offsets", content=content) == ErrorCode.INVALID_TOPIC_EXCEPTION


class TestExpressions:
    @pytest.mark.parametrize("regex", ["__consumer_.*", ".*", "^__.+$"])
    def test_the_broker_matches_internal_topics_too(self, client, group, regex):
        """As Kafka 4.3 does; clients that match names themselves leave internal topics out."""
        answer = client.consumer_beat("me", group=group, subscribed_topic_names=(), subscribed_topic_regex=regex)
        assert answer.error_code == NONE
        assigned = {each.topic_id: set(each.partitions) for each in answer.assignment.topic_partitions}
        assert assigned[client.topic_id("__consumer_offsets")] == {0, 1, 2}
        assert (client.topic_id("t") in assigned) == (regex == ".*")


class TestOffsets:
    @versions(ApiKey.OFFSET_COMMIT)
    def test_commit(self, client, group, version):
        topic = client.topic_id("t") if version >= 10 else "t"
        assert client.commit({0: 5, 2: 6, 9: 1}, group=group, version=version, topic=topic) == [
            NONE,
            NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert client.committed(group=group) == {0: 5, 1: -1, 2: 6}

    @versions(ApiKey.OFFSET_FETCH)
    def test_fetch(self, client, group, version):
        client.commit({0: 5, 2: 6}, group=group)
        topic = client.topic_id("t") if version >= 10 else "t"
        assert client.committed(group=group, version=version, topic=topic) == {0: 5, 1: -1, 2: 6}
        assert client.committed(group="unknown", version=version, topic=topic) == {0: -1, 1: -1, 2: -1}

    def test_all_offsets_and_notes_and_epochs(self, client, group):
        from headrace.wire.messages import offset_fetch

        client.commit({0: 5, 2: 6}, group=group)
        for version in (2, 5, 7):
            request = offset_fetch.OffsetFetchRequest(group_id=group, topics=None)
            topics = client.ask(ApiKey.OFFSET_FETCH, version, request).topics
            assert [(each.partition_index, each.metadata) for each in topics[0].partitions] == [
                (0, "note"),
                (2, "note"),
            ]
        asked = tuple(offset_fetch.OffsetFetchRequestGroup(group_id=each, topics=None) for each in (group, "unknown"))
        for version in (8, 9, 10):
            answer = client.ask(ApiKey.OFFSET_FETCH, version, offset_fetch.OffsetFetchRequest(groups=asked))
            assert [(each.group_id, each.error_code, len(each.topics)) for each in answer.groups] == [
                (group, NONE, 1),
                ("unknown", NONE, 0),
            ]
            assert answer.groups[0].topics[0].partitions[0].committed_leader_epoch == 0

    def test_topics_that_are_unknown(self, client, group):
        assert client.commit({0: 5}, group=group, topic="nope") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert client.commit({0: 5}, group=group, topic=bytes(15) + b"\x01", version=10) == [ErrorCode.UNKNOWN_TOPIC_ID]
        assert client.commit({0: 5}, group="") == [ErrorCode.INVALID_GROUP_ID]

    def test_a_deleted_topic_takes_its_offsets_along(self, broker, client, group):
        broker.with_topic("doomed")
        client.commit({0: 5}, group=group, topic="doomed")
        assert client.delete_topic("doomed") == NONE
        broker.steps()
        broker.with_topic("doomed")
        assert client.committed([0], group=group, topic="doomed") == {0: -1}


class TestMembership:
    @versions(ApiKey.JOIN_GROUP)
    def test_join_and_sync(self, client, group, version):
        joined = client.join(group, version=version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            joined = client.join(group, joined.member_id, version=version)
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (NONE, 1, "range")
        assert (joined.leader, joined.members[0].metadata) == (joined.member_id, SUBSCRIPTION)
        synced = client.sync(joined, {joined.member_id: b"mine"}, group=group)
        assert (synced.error_code, synced.assignment) == (NONE, b"mine")

    @versions(ApiKey.SYNC_GROUP)
    def test_sync(self, client, group, version):
        joined = client.join(group)
        synced = client.sync(joined, {joined.member_id: b"mine"}, group=group, version=version)
        assert (synced.error_code, synced.assignment) == (NONE, b"mine")

    @versions(ApiKey.HEARTBEAT)
    def test_heartbeat(self, client, group, version):
        joined = client.join(group)
        assert client.beat(joined, group=group, version=version) == NONE
        assert client.beat(joined, group="unknown", version=version) == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.beat(joined, group="", version=version) == ErrorCode.INVALID_GROUP_ID

    @versions(ApiKey.LEAVE_GROUP)
    def test_leave(self, client, group, version):
        joined = client.join(group)
        answer = client.leave(joined.member_id, group=group, version=version)
        assert answer.error_code == NONE
        assert [each.error_code for each in answer.members] == ([NONE] if version >= 3 else [])
        answer = client.leave(joined.member_id, group=group, version=version)
        errors = [each.error_code for each in answer.members] or [answer.error_code]
        assert errors == [ErrorCode.UNKNOWN_MEMBER_ID]

    def test_joins_wait_for_each_other(self, broker, group):
        first, second = GroupClient(broker), GroupClient(broker)
        joined = first.join(group)
        first.sync(joined, group=group)
        waiting = second.send_join(group)
        broker.steps()
        assert not second.has_answer(waiting)
        assert first.beat(joined, group=group) == ErrorCode.REBALANCE_IN_PROGRESS
        again = first.join(group, joined.member_id)
        other = second.wait(waiting)
        assert again.generation_id == other.generation_id == 2
        assert {each.member_id for each in again.members} == {again.member_id, other.member_id}
        waiting = second.send_sync(other, group=group)
        broker.steps()
        assert not second.has_answer(waiting)
        first.sync(again, {again.member_id: b"1", other.member_id: b"2"}, group=group)
        assert second.wait(waiting).assignment == b"2"

    def test_a_dead_member_is_missed(self, broker, group):
        first, second = GroupClient(broker), GroupClient(broker)
        joined = first.join(group, session_ms=6_000)
        first.sync(joined, group=group)
        first.close()
        waiting = second.send_join(group)
        broker.steps()
        broker.pass_time(6_100)
        assert second.wait(waiting).generation_id == 2

    def test_bad_joins(self, client, group):
        assert client.join("", version=9).error_code == ErrorCode.INVALID_GROUP_ID
        assert client.join(group, session_ms=1).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert client.join(group, "unknown").error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.join(group, protocols=()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class TestFirstGeneration:
    """With the configs that `headrace broker` has of itself."""

    def patient_broker(self):
        return group_broker(settings={"group.initial.rebalance.delay.ms": "3000"})

    def test_a_lone_member_waits_for_at_most_six_tenths_of_a_second(self):
        patient = self.patient_broker()
        client = GroupClient(patient)
        client.find("lone")
        begun_ms = patient.world.time.now_ms
        member_id = client.join("lone", version=7).member_id
        joined = client.join("lone", member_id, version=7)
        assert (joined.error_code, joined.generation_id) == (NONE, 1)
        assert 300 <= patient.world.time.now_ms - begun_ms <= 600

    def test_a_hundred_members_within_200_ms_share_one_generation(self):
        patient = self.patient_broker()
        clients = [GroupClient(patient) for _ in range(100)]
        waiting = []
        for client in clients:
            member_id = client.join("many", version=7).member_id
            waiting.append(client.send_join("many", member_id, version=7))
            patient.world.time.advance(2)
        joined = [client.wait(correlation) for client, correlation in zip(clients, waiting, strict=True)]
        assert {(each.error_code, each.generation_id) for each in joined} == {(NONE, 1)}
        assert max(len(each.members) for each in joined) == 100


class TestAdministration:
    @versions(ApiKey.DESCRIBE_GROUPS)
    def test_describe(self, client, group, version):
        joined = client.join(group)
        client.sync(joined, {joined.member_id: b"mine"}, group=group)
        found, missing = client.describe(group, "missing", version=version)
        assert (found.error_code, found.group_state, found.protocol_type, found.protocol_data) == (
            NONE,
            "Stable",
            "consumer",
            "range",
        )
        member = found.members[0]
        assert (member.member_id, member.client_id, member.member_assignment) == (joined.member_id, "test", b"mine")
        assert member.member_metadata == SUBSCRIPTION
        assert missing.group_state == "Dead"
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else NONE)

    @versions(ApiKey.LIST_GROUPS)
    def test_list(self, client, group, version):
        client.commit({0: 1}, group=group)
        found = {each.group_id: each for each in client.groups(version=version).groups}
        assert found[group].protocol_type == ""
        if version >= 4:
            assert found[group].group_state == "Empty"
            assert group in {each.group_id for each in client.groups(states=("empty",), version=version).groups}
            assert group not in {each.group_id for each in client.groups(states=("Stable",), version=version).groups}
        if version >= 5:
            assert found[group].group_type == "classic"
            consumers = client.groups(types=("consumer",), version=version).groups
            assert group not in {each.group_id for each in consumers}

    @versions(ApiKey.DELETE_GROUPS)
    def test_delete(self, client, group, version):
        client.commit({0: 1}, group=group)
        joined = client.join(f"{group} full")
        assert joined.error_code == NONE
        assert client.delete(group, f"{group} full", "missing", "", version=version) == [
            NONE,
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.INVALID_GROUP_ID,
        ]
        assert client.committed(group=group) == {0: -1, 1: -1, 2: -1}

    def test_delete_offsets(self, client, group):
        client.commit({0: 1, 1: 2}, group=group)
        answer = client.delete_offsets(0, 2, group=group)
        assert answer.error_code == NONE
        assert [each.error_code for each in answer.topics[0].partitions] == [NONE, NONE]
        assert client.committed(group=group) == {0: -1, 1: 2, 2: -1}
        answer = client.delete_offsets(0, group=group, topic="nope")
        assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.delete_offsets(0, group="missing").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        joined = client.join(group)
        client.sync(joined, group=group)
        answer = client.delete_offsets(1, group=group)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class TestConsumerGroups:
    @versions(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    def test_join_and_leave(self, client, group, version):
        joined = client.consumer_beat("" if version == 0 else "me", group=group, version=version)
        assert (joined.error_code, joined.member_epoch) == (NONE, 1)
        assert joined.member_id if version == 0 else joined.member_id == "me"
        assert [each.partitions for each in joined.assignment.topic_partitions] == [(0, 1, 2)]
        again = client.consumer_beat(
            joined.member_id, 1, group=group, version=version, owned=None, rebalance_timeout_ms=-1
        )
        assert (again.error_code, again.assignment) == (NONE, None)
        left = client.consumer_beat(joined.member_id, -1, group=group, version=version)
        assert (left.error_code, left.member_epoch) == (NONE, -1)

    @versions(ApiKey.CONSUMER_GROUP_DESCRIBE)
    def test_describe(self, client, group, version):
        client.consumer_beat("me", group=group)
        found, missing = client.describe_consumers(group, "missing", version=version)
        assert (found.error_code, found.group_state, found.group_epoch, found.assignor_name) == (
            NONE,
            "Stable",
            1,
            "uniform",
        )
        member = found.members[0]
        assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("me", 1, ("t",))
        assert member.assignment == member.target_assignment
        assert member.assignment.topic_partitions[0].topic_name == "t"
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        listed = {each.group_id: each for each in client.groups(types=("consumer",)).groups}
        assert (listed[group].group_state, listed[group].group_type) == ("Stable", "consumer")
        assert client.describe(group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND

    @pytest.mark.parametrize(
        ("member_id", "epoch", "fields"),
        [
            ("", 0, {}),
            ("me", -3, {}),
            ("me", -2, {}),
            ("me", 0, {"rebalance_timeout_ms": -1}),
            ("me", 0, {"owned": None}),
            ("me", 0, {"instance_id": ""}),
            ("me", 0, {"subscribed_topic_names": None}),
        ],
    )
    def test_senseless_requests(self, client, group, member_id, epoch, fields):
        assert client.consumer_beat(member_id, epoch, group=group, **fields).error_code == ErrorCode.INVALID_REQUEST

    def test_offsets_by_epoch(self, client, group):
        client.consumer_beat("me", group=group)
        assert client.commit({0: 5}, group=group, member_id="me", generation=1, version=9) == [NONE]
        assert client.commit({0: 5}, group=group, member_id="me", generation=0, version=9) == [
            ErrorCode.STALE_MEMBER_EPOCH
        ]
        assert client.commit({0: 5}, group=group, member_id="you", generation=1, version=9) == [
            ErrorCode.UNKNOWN_MEMBER_ID
        ]
        assert client.committed([0], group=group, version=9) == {0: 5}

    def test_it_survives(self):
        broker = group_broker()
        client = GroupClient(broker)
        joined = client.consumer_beat("me")
        broker.machine.kill()
        broker.boot()
        client = GroupClient(broker)
        broker.run_until(lambda: client.committed() != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        again = client.consumer_beat("me", joined.member_epoch, owned=None, rebalance_timeout_ms=-1)
        assert again.error_code == NONE
        broker.pass_time(46_000)
        assert client.consumer_beat("me", again.member_epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
