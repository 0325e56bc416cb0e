"""DescribeConnections: what a broker knows of its clients, page by page."""

from typing import Any

import pytest

from headrace.client.core.admin.connections import connections
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BadResponse
from headrace.model.errors import ErrorCode
from headrace.model.limits import CONNECTION_TOPICS_MAX, CONNECTIONS_DESCRIBED_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages import api_versions
from headrace.wire.messages.describe_connections import (
    DescribeConnectionsRequest,
    DescribeConnectionsResponse,
    DescribeConnectionsResponseConnection,
)
from tests.broker.virtual import VirtualBroker
from tests.client.test_admin_operations import Script, described


def asked(client: Any, *, after: int = -1, limit: int = 1_000) -> DescribeConnectionsResponse:
    request = DescribeConnectionsRequest(after_connection_id=after, connections_max=limit)
    response: DescribeConnectionsResponse = client.ask(ApiKey.DESCRIBE_CONNECTIONS, 0, request)
    return response


def test_a_client_is_described_with_its_library_topics_bytes_and_errors() -> None:
    broker = VirtualBroker().with_topic("written").with_topic("read").with_topic("session")
    writer, reader = (broker.client(from_host=f"127.0.0.{number}") for number in (2, 3))
    watcher = broker.client()
    software = api_versions.ApiVersionsRequest(client_software_name="lib-x", client_software_version="1.2")
    writer.ask(ApiKey.API_VERSIONS, 3, software)
    for _ in range(3):  # the second and third take the short path
        writer.produce("written")
    assert writer.produce_error("missing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    reader.fetch("read")
    first = reader.wait(reader.send_fetch(("session", 0, 0), session_epoch=0))
    assert first.session_id
    broker.pass_time(5_000)
    by_host = {each.address.rpartition(":")[0]: each for each in asked(watcher).connections}
    found = by_host["127.0.0.2"]
    assert (found.client_id, found.software_name, found.software_version) == ("test", "lib-x", "1.2")
    assert (found.listener, found.principal) == ("PLAINTEXT", "User:ANONYMOUS")
    assert found.topics_written == ("written",)
    assert found.topics_read == ()
    assert found.errors == 1
    assert found.bytes_in > 200
    assert found.bytes_out > 200
    assert found.connected_ms >= found.idle_ms >= 5_000
    assert by_host["127.0.0.3"].topics_read == ("read", "session")


def test_connections_come_in_pages() -> None:
    broker = VirtualBroker()
    clients = [broker.client() for _ in range(CONNECTIONS_DESCRIBED_MAX + 5)]
    broker.steps()
    first = asked(clients[0])
    assert len(first.connections) == CONNECTIONS_DESCRIBED_MAX
    second = asked(clients[0], after=first.next_connection_id)
    assert second.next_connection_id == -1
    ids = [each.connection_id for each in (*first.connections, *second.connections)]
    assert len(set(ids)) == len(clients)
    assert [each.connection_id for each in asked(clients[0], limit=2).connections] == ids[:2]
    assert asked(clients[0], limit=0).error_code == ErrorCode.INVALID_REQUEST


def test_a_request_about_many_topics_is_remembered_in_part() -> None:
    broker = VirtualBroker()
    client = broker.client()
    for number in range(CONNECTION_TOPICS_MAX + 5):
        assert client.create_topic(f"t{number}").error_code == 0
    client.wait(client.send_fetch(*((f"t{number}", 0, 0) for number in range(CONNECTION_TOPICS_MAX + 5))))
    (found,) = asked(client).connections
    assert found.topics_read == tuple(f"t{number}" for number in range(CONNECTION_TOPICS_MAX))


def page(*ids: int, following: int = -1) -> DescribeConnectionsResponse:
    found = tuple(DescribeConnectionsResponseConnection(connection_id=each) for each in ids)
    return DescribeConnectionsResponse(connections=found, next_connection_id=following)


def test_the_client_asks_every_broker_for_all_pages() -> None:
    script = Script(described(), page(1, 2, following=2), page(5), page(3))
    found = script.run(connections(Cluster()))
    assert [(each.node_id, each.connection_id) for each in found] == [(1, 1), (1, 2), (2, 5), (1, 3)]
    assert [call.message.after_connection_id for call in script.calls[1:]] == [-1, -1, 2]


def test_a_broker_that_repeats_a_page_is_not_asked_forever() -> None:
    script = Script(described(nodes=(1,)), page(1, 2, following=2), page(1, 2, following=2))
    with pytest.raises(BadResponse, match="the same page"):
        script.run(connections(Cluster()))
