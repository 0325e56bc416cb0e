import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.calls import Call
from headrace.client.core.connection import BrokerConnection
from headrace.client.errors import BadResponse, ClientError, InvalidArgument, UnsupportedByBroker
from headrace.wire.apis import ApiKey
from headrace.wire.frames import read_request_header, response_frame
from headrace.wire.messages import fetch, metadata, produce

from .scripted import ScriptedBroker

ONE_BROKER = metadata.MetadataResponse(
    brokers=(metadata.MetadataResponseBroker(node_id=1, host="here", port=9092),), controller_id=1, cluster_id="c"
)
ASK = Call(metadata, metadata.MetadataRequest(topics=()))


def make_broker(**served: tuple[int, int]) -> ScriptedBroker:
    ranges = {ApiKey[name.upper()]: versions for name, versions in served.items()} or {ApiKey.METADATA: (0, 13)}
    return ScriptedBroker({ApiKey.METADATA: lambda request, version: ONE_BROKER}, ranges)


def make_connection(broker: ScriptedBroker) -> BrokerConnection:
    """A connection that knows the broker's versions."""
    connection = BrokerConnection(address="here:9092", client_id="tester")
    outgoing = connection.first_request()
    while outgoing:
        _answers, outgoing = connection.receive(broker.feed(outgoing))
    assert connection.is_ready
    return connection


def test_a_request_and_its_answer() -> None:
    broker = make_broker()
    connection = make_connection(broker)
    answers, reaction = connection.receive(broker.feed(connection.send(ASK)))
    assert reaction == b""
    assert [(answer.call, answer.message) for answer in answers] == [(ASK, ONE_BROKER)]
    assert broker.seen[0][:2] == (ApiKey.METADATA, 13)
    assert set(broker.client_ids) == {"tester"}


@pytest.mark.parametrize(
    ("served", "call", "version"),
    [
        ((0, 99), ASK, 13),
        ((0, 5), ASK, 5),
        ((3, 9), ASK._replace(max_version=4), 4),
        ((2, 2), ASK, 2),
    ],
)
def test_the_highest_version_that_both_know(served: tuple[int, int], call: Call, version: int) -> None:
    assert make_connection(make_broker(metadata=served)).version_for(call) == version


@pytest.mark.parametrize(
    ("served", "call"),
    [((14, 20), ASK), ((0, 5), ASK._replace(min_version=6)), ((9, 12), ASK._replace(max_version=8))],
)
def test_no_common_version(served: tuple[int, int], call: Call) -> None:
    with pytest.raises(UnsupportedByBroker, match="metadata"):
        make_connection(make_broker(metadata=served)).send(call)


def test_an_api_that_is_not_served() -> None:
    with pytest.raises(UnsupportedByBroker, match="does not serve fetch"):
        make_connection(make_broker()).send(Call(fetch, fetch.FetchRequest()))


@pytest.mark.parametrize("highest", [0, 1, 2, 3])
def test_a_broker_that_does_not_know_our_hello(highest: int) -> None:
    """KIP-511: it answers in version 0, and the second hello is one it knows."""
    connection = make_connection(make_broker(api_versions=(0, highest), metadata=(0, 7)))
    assert connection.versions[ApiKey.API_VERSIONS].max_version == highest
    assert connection.version_for(ASK) == 7


def test_a_broker_that_refuses_every_hello() -> None:
    connection = BrokerConnection(address="here:9092", client_id="tester")

    def refuse(frame: bytes) -> bytes:
        correlation_id = read_request_header(frame[4:], 0, len(frame) - 4).correlation_id
        return connection.receive(response_frame(18, 0, correlation_id, b"\x00\x23\x00\x00\x00\x00"))[1]

    second = refuse(connection.first_request())
    with pytest.raises(BadResponse, match="UNSUPPORTED_VERSION"):
        refuse(second)


@given(st.lists(st.integers(1, 40), min_size=1))
def test_answers_cut_anywhere(sizes: list[int]) -> None:
    broker = make_broker()
    connection = make_connection(broker)
    incoming = broker.feed(connection.send(ASK) + connection.send(ASK) + connection.send(ASK))
    answers = []
    position = 0
    while position < len(incoming):
        size = sizes[position % len(sizes)]
        answers += connection.receive(incoming[position : position + size])[0]
        position += size
    assert [answer.message for answer in answers] == [ONE_BROKER] * 3
    assert connection.in_flight == 0


def test_answers_out_of_order() -> None:
    broker = make_broker()
    connection = make_connection(broker)
    first, second = broker.feed(connection.send(ASK)), broker.feed(connection.send(ASK))
    with pytest.raises(BadResponse, match="in order"):
        connection.receive(second + first)


def test_an_answer_to_nothing() -> None:
    connection = make_connection(make_broker())
    with pytest.raises(BadResponse, match="a response without a request"):
        connection.receive(b"\x00\x00\x00\x04\x00\x00\x00\x07")


@pytest.mark.parametrize("size", [-1, 0, 3, 1001, 2**31 - 1])
def test_sizes_that_cannot_be(size: int) -> None:
    connection = BrokerConnection(address="here:9092", client_id="tester", response_bytes_max=1000)
    connection.first_request()
    with pytest.raises(BadResponse, match="TLS"):
        connection.receive(size.to_bytes(4, "big", signed=True))


def test_something_that_is_not_a_broker() -> None:
    connection = BrokerConnection(address="here:80", client_id="tester")
    connection.first_request()
    with pytest.raises(BadResponse, match="here:80"):
        connection.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@given(st.binary(max_size=60))
def test_any_answer_is_read_or_refused(body: bytes) -> None:
    for ready in (False, True):
        connection = (
            make_connection(make_broker()) if ready else BrokerConnection(address="here:9092", client_id="tester")
        )
        frame = connection.send(ASK) if ready else connection.first_request()
        correlation_id = read_request_header(frame[4:], 0, len(frame) - 4).correlation_id
        answer = correlation_id.to_bytes(4, "big") + body
        with contextlib.suppress(ClientError):
            connection.receive(len(answer).to_bytes(4, "big") + answer)


def test_a_request_that_cannot_be_written() -> None:
    connection = make_connection(make_broker())
    too_long = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=5),))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        connection.send(ASK._replace(message=too_long))
    assert connection.in_flight == 0


def test_acks_0_awaits_nothing() -> None:
    connection = make_connection(make_broker(produce=(0, 13)))
    connection.send(Call(produce, produce.ProduceRequest(acks=0), is_answered=False))
    assert connection.in_flight == 0
