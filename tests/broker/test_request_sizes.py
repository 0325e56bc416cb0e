"""How large a request may be: what is passed on unread may be large, what is read in full may not."""

from struct import Struct

from headrace.model.limits import REQUEST_BYTES_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.virtual import VirtualBroker

SIZE, HEADER = Struct(">i"), Struct(">hhih")


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


def test_a_request_that_will_not_be_read_is_refused_at_its_first_bytes():
    broker = VirtualBroker()
    client = broker.client()
    pool = broker.node.loop._receiver._pool
    client.send_bytes(SIZE.pack(REQUEST_BYTES_MAX + 1) + HEADER.pack(ApiKey.METADATA, 9, 1, -1))
    client.wait_closed()
    assert broker.metrics.protocol_errors == 1
    assert (pool.lent_bytes, pool.returns) == (0, 0), "no buffer was given to it"
    patient = broker.client()
    patient.send_bytes(SIZE.pack(REQUEST_BYTES_MAX + 1) + HEADER.pack(ApiKey.PRODUCE, 9, 1, -1))
    broker.steps()
    assert not patient.is_closed()
