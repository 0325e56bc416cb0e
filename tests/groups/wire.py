"""Group requests over the wire, to a node on virtual ports."""

from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.broker.virtual import Client, VirtualBroker

SETTINGS = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"


def group_broker(**options):
    settings = {**SETTINGS, **options.pop("settings", {})}
    broker = VirtualBroker(settings=settings, **options)
    broker.with_topic("t", partitions=3)
    GroupClient(broker).find("g")
    return broker


class GroupClient(Client):
    def send_find(self, *groups, version=4):
        request = find_coordinator.FindCoordinatorRequest(key=groups[0], coordinator_keys=groups)
        return self.send(ApiKey.FIND_COORDINATOR, version, request)

    def find(self, *groups, **options):
        return self.wait(self.send_find(*groups, **options))

    def send_join(self, group="g", member_id="", *, version=3, session_ms=10_000, instance=None, protocols=None):
        given = protocols if protocols is not None else (("range", SUBSCRIPTION),)
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=tuple(
                join_group.JoinGroupRequestProtocol(name=name, metadata=content) for name, content in given
            ),
        )
        return self.send(ApiKey.JOIN_GROUP, version, request)

    def join(self, *arguments, **options):
        return self.wait(self.send_join(*arguments, **options))

    def send_sync(self, joined, assignments=None, *, group="g", version=3):
        request = sync_group.SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=content)
                for member_id, content in (assignments or {}).items()
            ),
        )
        return self.send(ApiKey.SYNC_GROUP, version, request)

    def sync(self, *arguments, **options):
        return self.wait(self.send_sync(*arguments, **options))

    def beat(self, joined, *, group="g", version=3):
        request = heartbeat.HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
        )
        return self.ask(ApiKey.HEARTBEAT, version, request).error_code

    def leave(self, *member_ids, group="g", version=3):
        members = tuple(leave_group.LeaveGroupRequestMember(member_id=each) for each in member_ids)
        request = leave_group.LeaveGroupRequest(group_id=group, member_id=member_ids[0], members=members)
        return self.ask(ApiKey.LEAVE_GROUP, version, request)

    def send_commit(self, offsets, *, group="g", member_id="", generation=-1, version=8, metadata="note", topic="t"):
        name = {"topic_id": topic} if version >= 10 else {"name": topic}
        partitions = tuple(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=0,
                committed_metadata=metadata,
            )
            for partition, offset in offsets.items()
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(offset_commit.OffsetCommitRequestTopic(**name, partitions=partitions),),
        )
        return self.send(ApiKey.OFFSET_COMMIT, version, request)

    def commit(self, offsets, **options):
        """One error code for each offset."""
        answer = self.wait(self.send_commit(offsets, **options))
        return [partition.error_code for partition in answer.topics[0].partitions]

    def committed(self, partitions=(0, 1, 2), *, group="g", version=7, topic="t"):
        """{partition: offset} of one topic, or an error code."""
        if version >= 8:
            name = {"topic_id": topic} if version >= 10 else {"name": topic}
            wanted = offset_fetch.OffsetFetchRequestGroupTopic(**name, partition_indexes=tuple(partitions))
            asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=(wanted,))
            answer = self.ask(ApiKey.OFFSET_FETCH, version, offset_fetch.OffsetFetchRequest(groups=(asked,))).groups[0]
        else:
            asked_topic = offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(partitions))
            request = offset_fetch.OffsetFetchRequest(group_id=group, topics=(asked_topic,))
            answer = self.ask(ApiKey.OFFSET_FETCH, version, request)
        if answer.error_code:
            return answer.error_code
        return {each.partition_index: each.committed_offset for each in answer.topics[0].partitions}

    def consumer_beat(self, member_id, epoch=0, *, group="g", version=1, owned=(), **fields):
        """Of one that subscribes to t; a full request."""
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            **{"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("t",), "topic_partitions": owned, **fields},
        )
        return self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)

    def describe_consumers(self, *groups, version=1):
        request = consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=True
        )
        return self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request).groups

    def describe(self, *groups, version=6):
        request = describe_groups.DescribeGroupsRequest(groups=groups, include_authorized_operations=True)
        return self.ask(ApiKey.DESCRIBE_GROUPS, version, request).groups

    def groups(self, *, states=(), types=(), version=5):
        request = list_groups.ListGroupsRequest(states_filter=states, types_filter=types)
        return self.ask(ApiKey.LIST_GROUPS, version, request)

    def delete(self, *groups, version=2):
        request = delete_groups.DeleteGroupsRequest(groups_names=groups)
        return [each.error_code for each in self.ask(ApiKey.DELETE_GROUPS, version, request).results]

    def delete_offsets(self, *partitions, group="g", topic="t"):
        wanted = offset_delete.OffsetDeleteRequestTopic(
            name=topic,
            partitions=tuple(offset_delete.OffsetDeleteRequestPartition(partition_index=each) for each in partitions),
        )
        return self.ask(ApiKey.OFFSET_DELETE, 0, offset_delete.OffsetDeleteRequest(group_id=group, topics=(wanted,)))
