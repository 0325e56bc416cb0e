"""How large a request may be: what is passed on unread may be large, what is read in full may not."""

from headrace.model.limits import REQUEST_BYTES_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.virtual import VirtualBroker


def test_the_assignments_of_a_large_group_are_read():
    request = SyncGroupRequest(
        group_id="large",
        generation_id=1,
        member_id="leader",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=f"member {number}", assignment=bytes(1024)) for number in range(2000)
        ),
    )
    response = VirtualBroker().client().ask(ApiKey.SYNC_GROUP, 3, request)
    assert response.error_code != 0, "there is no such group, which is told rather than a closed connection"


def test_a_request_of_very_many_names_closes_the_connection():
    names = tuple(MetadataRequestTopic(name=f"topic-{number:09d}") for number in range(REQUEST_BYTES_MAX // 15))
    client = VirtualBroker().client()
    client.send(ApiKey.METADATA, 1, MetadataRequest(topics=names))
    client.wait_closed()
