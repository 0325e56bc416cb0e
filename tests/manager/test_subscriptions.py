"""WebSocket subscriptions: credit, acknowledgements, several on one connection, bad frames, foreign pages."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from headrace.manager.limits import CREDIT_MAX, SOCKET_FRAME_BYTES_MAX, SUBSCRIPTIONS_PER_SOCKET_MAX
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers
from tests.manager.test_streams import produce

pytestmark = pytest.mark.process
WAIT_S_MAX = 60


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, **frame: Any) -> None:
        self.connection.send(json.dumps(frame))

    def receive(self, type: str) -> Any:
        """The next frame, which must be of this type."""
        frame = json.loads(self.connection.recv(timeout=WAIT_S_MAX))
        assert frame["type"] == type, frame
        return frame

    def values(self, count: int, id: str = "a") -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            frame = self.receive("records")
            assert frame["id"] == id
            found += [record["value"] for record in frame["records"]]
        return found


@contextmanager
def opened(manager: ManagerProcess, **options: Any) -> Iterator[Socket]:
    url = manager.url.replace("http://", "ws://") + "/v1/subscriptions"
    with connect(url, open_timeout=WAIT_S_MAX, **options) as connection:
        yield Socket(connection)


@pytest.mark.record_integrity
def test_records_come_as_far_as_there_is_credit(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *map(str, range(700)))
    with opened(manager) as socket:
        socket.send(type="subscribe", id="a", topic=topic, partition=0, credit=3, **{"from": "earliest"})
        assert socket.receive("subscribed")["positions"] == "0:0"
        assert socket.values(3) == ["0", "1", "2"]
        socket.send(type="credit", id="a", credit=2)
        assert socket.values(2) == ["3", "4"]
        socket.send(type="ack", id="a", positions="0:4")  # four of five, which gives four back
        assert socket.values(4) == ["5", "6", "7", "8"]
        socket.send(type="credit", id="a", credit=1_000)
        produce(manager, topic, *map(str, range(700, 900)))
        assert socket.values(891) == [str(number) for number in range(9, 900)]


@pytest.mark.record_integrity
def test_a_subscription_continues_at_its_positions(manager: ManagerProcess, topic: str) -> None:
    for partition in range(3):
        produce(manager, topic, *(f"{partition}-{number}" for number in range(5)), partition=partition)
    found: list[str] = []
    start: dict[str, Any] = {"from": "earliest"}
    for _ in range(15):
        with opened(manager) as socket:
            socket.send(type="subscribe", id="a", topic=topic, credit=1, **start)
            socket.receive("subscribed")
            frame = socket.receive("records")
        found += [record["value"] for record in frame["records"]]
        start = {"positions": frame["positions"]}
    assert sorted(found) == sorted(f"{part}-{number}" for part in range(3) for number in range(5))


def test_subscriptions_share_a_connection(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    other = broker.create_topic("shared-connection")
    with opened(manager) as socket:
        for id, name in (("a", topic), ("b", other)):
            socket.send(type="subscribe", id=id, topic=name, credit=100, **{"as": "json", "filter": "value.n > 1"})
            assert socket.receive("subscribed")["id"] == id
        produce(manager, other, {"n": 1}, {"n": 2})
        assert socket.values(1, "b") == [{"n": 2}]
        socket.send(type="unsubscribe", id="b")
        assert socket.receive("unsubscribed")["id"] == "b"
        produce(manager, other, {"n": 3})
        produce(manager, topic, {"n": 4})
        assert socket.values(1, "a") == [{"n": 4}]
        socket.send(type="subscribe", id="b", topic=other, credit=1)
        assert socket.receive("subscribed")["id"] == "b"


def test_a_bad_frame_is_answered_and_the_connection_continues(manager: ManagerProcess, topic: str) -> None:
    good = {"type": "subscribe", "id": "a", "topic": topic}
    with opened(manager) as socket:
        for text, status, detail in (
            ("{", 400, "not valid"),
            ("[1]", 400, "not valid"),
            ("", 400, "not valid"),
            ('{"type": "nonsense", "id": "a"}', 400, "nonsense"),
            (json.dumps({**good, "extra": 1}), 400, "extra"),
            (json.dumps({**good, "positions": "0"}), 400, "positions"),
            (json.dumps({**good, "topic": "missing"}), 404, "does not exist"),
            (json.dumps({**good, "partition": 9}), 404, "no partition 9"),
            (json.dumps({**good, "filter": "value >"}), 400, "filter"),
            (json.dumps({**good, "credit": CREDIT_MAX + 1}), 400, "credit"),
            ('{"type": "credit", "id": "z", "credit": 1}', 404, "no subscription"),
            ('{"type": "ack", "id": "z", "positions": "0:1"}', 404, "no subscription"),
            ("[" * 60_000, 400, "not valid"),
        ):
            socket.connection.send(text)
            problem = socket.receive("problem")
            assert (problem["status"], detail in problem["detail"]) == (status, True), (text[:80], problem)
        socket.send(**good, credit=1)
        socket.receive("subscribed")
        socket.send(**good)
        assert socket.receive("problem")["status"] == 409
        socket.send(type="credit", id="a", credit=CREDIT_MAX)
        assert "at most" in socket.receive("problem")["detail"]
        for number in range(SUBSCRIPTIONS_PER_SOCKET_MAX - 1):
            socket.send(**{**good, "id": str(number)})
            socket.receive("subscribed")
        socket.send(**{**good, "id": "too many"})
        assert socket.receive("problem")["status"] == 429
        produce(manager, topic, "still here")
        assert socket.values(1) == ["still here"]


def test_a_frame_that_is_too_long_ends_its_connection_alone(manager: ManagerProcess) -> None:
    with opened(manager) as socket, opened(manager) as other:
        socket.connection.send("x" * (SOCKET_FRAME_BYTES_MAX + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            socket.connection.recv(timeout=WAIT_S_MAX)
        other.send(type="unsubscribe", id="a")
        other.receive("problem")


def test_a_page_of_another_site_gets_no_socket(manager: ManagerProcess) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        with pytest.raises(InvalidStatus) as refused, opened(manager, additional_headers=headers):
            pass
        assert refused.value.response.status_code in (403, 400)
    with opened(manager, origin=manager.url) as socket:
        socket.send(type="unsubscribe", id="a")
        socket.receive("problem")


def test_a_socket_needs_a_user_and_ends_with_its_right(team: TeamOfUsers) -> None:
    with pytest.raises(InvalidStatus) as refused, opened(team.manager):
        pass
    assert refused.value.response.status_code == 401
    team.add("socket-user", "viewer")
    with opened(team.manager, additional_headers=team.bearer("socket-user")) as socket:
        socket.send(type="unsubscribe", id="a")
        socket.receive("problem")
        path = "/v1/access/users/socket-user"
        team.manager.call("DELETE", path, headers=team.bearer("admin"), status=204)
        with pytest.raises(ConnectionClosed, match="4401"):
            socket.connection.recv(timeout=WAIT_S_MAX)


def test_sockets_end_when_the_manager_stops(broker: EmbeddedBroker, topic: str) -> None:
    with ManagerProcess(broker.bootstrap_servers) as manager, opened(manager) as socket:
        socket.send(type="subscribe", id="a", topic=topic, credit=1)
        socket.receive("subscribed")
        manager.process.terminate()
        assert socket.receive("ended")["id"] == "a"
        assert manager.stop() == 0
