"""List, describe and delete groups, and manage their offsets. Each request goes to the group's coordinator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.client.core.admin.coordinators import ask_all_coordinators, ask_coordinators
from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import VERSION_UNBOUNDED, ApiCodec, Call, Operation
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError, UnsupportedByBroker
from headrace.client.types import GroupDescription, GroupMember, GroupOffset, ListedGroup, Outcome
from headrace.core.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import TopicPartition
from headrace.wire.messages import consumer_group_describe as consumer_groups_api
from headrace.wire.messages import delete_groups as delete_groups_api
from headrace.wire.messages import describe_groups as describe_groups_api
from headrace.wire.messages import leave_group as leave_group_api
from headrace.wire.messages import list_groups as list_groups_api
from headrace.wire.messages import offset_commit as offset_commit_api
from headrace.wire.messages import offset_delete as offset_delete_api
from headrace.wire.messages import offset_fetch as offset_fetch_api

NO_MEMBER_EPOCH = -1
NOT_FOUND_STATE = "Dead"
_ONE_GROUP_MAX = 7
_ALL_TOPICS_MIN = 2
_NAMES_MAX = 9
_SEVERAL_MEMBERS_MIN = 3
_FILTERS_FROM = 4
_TYPES_FROM = 5


def list_groups(cluster: Cluster, *, states: Sequence[str], types: Sequence[str]) -> Operation[tuple[ListedGroup, ...]]:
    """List the groups of all brokers, by name."""
    min_version = _TYPES_FROM if types else _FILTERS_FROM if states else 0
    request = list_groups_api.ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    replies = yield from ask_all_coordinators(cluster, list_groups_api, request, min_version=min_version, what="groups")
    return tuple(
        sorted(
            ListedGroup(group.group_id, group.protocol_type, group.group_state, group.group_type)
            for reply in replies
            for group in reply.groups
        )
    )


def _single(
    api: ApiCodec[Any, Any],
    message: Callable[[str], Any],
    *,
    min_version: int = 0,
    max_version: int = VERSION_UNBOUNDED,
) -> Callable[[str, int], Call]:
    return lambda group, node: Call(api, message(group), node, min_version, max_version)


def describe_groups(cluster: Cluster, groups: Iterable[str]) -> Operation[dict[str, GroupDescription]]:
    responses = yield from ask_coordinators(
        cluster,
        groups,
        call=_single(describe_groups_api, lambda group: describe_groups_api.DescribeGroupsRequest(groups=(group,))),
        codes=lambda reply: (each.error_code for each in reply.groups),
    )
    found = {group: _description(node, reply.groups[0]) for group, (node, reply) in responses.items()}
    missing = [group for group, description in found.items() if description.state == NOT_FOUND_STATE]
    if missing:
        found.update((yield from _describe_consumer_groups(cluster, missing)))
    return found


def _describe_consumer_groups(cluster: Cluster, groups: Iterable[str]) -> Operation[dict[str, GroupDescription]]:
    """Describe those that are KIP-848 groups; none if the brokers do not support them."""
    try:
        responses = yield from ask_coordinators(
            cluster,
            groups,
            call=_single(
                consumer_groups_api, lambda group: consumer_groups_api.ConsumerGroupDescribeRequest(group_ids=(group,))
            ),
            codes=lambda reply: (each.error_code for each in reply.groups),
        )
    except UnsupportedByBroker:
        return {}
    return {
        group: _consumer_description(node, reply.groups[0])
        for group, (node, reply) in responses.items()
        if reply.groups[0].error_code != ErrorCode.GROUP_ID_NOT_FOUND
    }


def _consumer_description(
    node: int, described: consumer_groups_api.ConsumerGroupDescribeResponseGroup
) -> GroupDescription:
    return GroupDescription(
        group=described.group_id,
        error=error_code(described.error_code),
        state=described.group_state,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol=described.assignor_name,
        coordinator=node,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=tuple(
                    TopicPartition(topic.topic_name, partition)
                    for topic in member.assignment.topic_partitions
                    for partition in topic.partitions
                ),
            )
            for member in described.members
        ),
    )


def _description(node: int, described: describe_groups_api.DescribeGroupsResponseGroup) -> GroupDescription:
    consumes = described.protocol_type == CONSUMER_PROTOCOL_TYPE
    return GroupDescription(
        group=described.group_id,
        error=error_code(described.error_code),
        state=described.group_state,
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        coordinator=node,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=(assigned_partitions(bytes(member.member_assignment)) or ()) if consumes else (),
            )
            for member in described.members
        ),
    )


def offsets(cluster: Cluster, group: str) -> Operation[dict[TopicPartition, GroupOffset]]:
    """Return all committed offsets of the group."""
    request = offset_fetch_api.OffsetFetchRequest(group_id=group, topics=None)
    responses = yield from ask_coordinators(
        cluster,
        (group,),
        call=_single(offset_fetch_api, lambda _group: request, min_version=_ALL_TOPICS_MIN, max_version=_ONE_GROUP_MAX),
        codes=lambda reply: (reply.error_code,),
    )
    _node, response = responses[group]
    if response.error_code:
        raise BrokerError(response.error_code, f'the offsets of group "{group}" could not be read')
    return {
        TopicPartition(topic.name, each.partition_index): GroupOffset(
            each.committed_offset, each.committed_leader_epoch, each.metadata or "", error_code(each.error_code)
        )
        for topic in response.topics
        for each in topic.partitions
    }


def commit_offsets(
    cluster: Cluster, group: str, wanted: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, Outcome]]:
    """Set the offsets of a group that has no members."""
    request = offset_commit_api.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=NO_MEMBER_EPOCH,
        topics=tuple(
            offset_commit_api.OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    offset_commit_api.OffsetCommitRequestPartition(
                        partition_index=each,
                        committed_offset=wanted[TopicPartition(topic, each)],
                        committed_metadata="",
                    )
                    for each in partitions
                ),
            )
            for topic, partitions in by_topic(wanted).items()
        ),
    )
    responses = yield from ask_coordinators(
        cluster,
        (group,),
        call=_single(offset_commit_api, lambda _group: request, min_version=1, max_version=_NAMES_MAX),
        codes=lambda reply: (each.error_code for topic in reply.topics for each in topic.partitions),
    )
    return _outcomes(responses[group][1])


def delete_offsets(
    cluster: Cluster, group: str, doomed: Iterable[TopicPartition]
) -> Operation[dict[TopicPartition, Outcome]]:
    request = offset_delete_api.OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            offset_delete_api.OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    offset_delete_api.OffsetDeleteRequestPartition(partition_index=each) for each in partitions
                ),
            )
            for topic, partitions in by_topic(doomed).items()
        ),
    )
    responses = yield from ask_coordinators(
        cluster,
        (group,),
        call=_single(offset_delete_api, lambda _group: request),
        codes=lambda reply: (reply.error_code,),
    )
    _node, response = responses[group]
    if response.error_code:
        raise BrokerError(response.error_code, f'the offsets of group "{group}" could not be deleted')
    return _outcomes(response)


def _outcomes(
    response: offset_commit_api.OffsetCommitResponse | offset_delete_api.OffsetDeleteResponse,
) -> dict[TopicPartition, Outcome]:
    return {
        TopicPartition(topic.name, each.partition_index): Outcome(error_code(each.error_code))
        for topic in response.topics
        for each in topic.partitions
    }


def delete_groups(cluster: Cluster, groups: Iterable[str]) -> Operation[dict[str, Outcome]]:
    responses = yield from ask_coordinators(
        cluster,
        groups,
        call=_single(delete_groups_api, lambda group: delete_groups_api.DeleteGroupsRequest(groups_names=(group,))),
        codes=lambda reply: (each.error_code for each in reply.results),
    )
    return {group: Outcome(error_code(reply.results[0].error_code)) for group, (_node, reply) in responses.items()}


def remove_members(
    cluster: Cluster, group: str, *, member_ids: Sequence[str], instance_ids: Sequence[str]
) -> Operation[dict[str, Outcome]]:
    """Remove these members from a classic group, by member id or, if static, by instance id (KIP-345)."""
    members = (
        *(leave_group_api.LeaveGroupRequestMember(member_id=each) for each in member_ids),
        *(leave_group_api.LeaveGroupRequestMember(member_id="", group_instance_id=each) for each in instance_ids),
    )
    request = leave_group_api.LeaveGroupRequest(group_id=group, members=members)
    responses = yield from ask_coordinators(
        cluster,
        (group,),
        call=_single(leave_group_api, lambda _group: request, min_version=_SEVERAL_MEMBERS_MIN),
        codes=lambda reply: (reply.error_code,),
    )
    _node, response = responses[group]
    if response.error_code:
        raise BrokerError(response.error_code, f'the members of group "{group}" could not be removed')
    return {each.group_instance_id or each.member_id: Outcome(error_code(each.error_code)) for each in response.members}
