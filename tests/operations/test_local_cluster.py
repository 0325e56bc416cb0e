"""The plan of a cluster on this machine: brokers are added, never removed, and each keeps its ports."""

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.operations import local_cluster
from headrace.operations.errors import OperationError
from headrace.operations.local_cluster import LocalCluster, hold_ports
from headrace.operations.local_nodes import LocalNode, NodeProcess, node_command


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nodes that would be started; none is."""
    found: list[int] = []

    class Started(NodeProcess):
        def __init__(self, node: LocalNode, command: object, *, stops_with_starter: bool) -> None:
            found.append(node.node_id)

        def release(self) -> None:
            pass

    monkeypatch.setattr(local_cluster, "NodeProcess", Started)
    monkeypatch.setattr(local_cluster, "wait_until_ready", lambda *_, **__: None)
    monkeypatch.setattr(local_cluster, "wait_until_formed", lambda *_, **__: None)
    monkeypatch.setattr(local_cluster, "_running", lambda nodes: nodes)
    return found


def plan(folder: Path) -> dict[str, object]:
    return json.loads((folder / "cluster.json").read_text())


def test_brokers_are_added_and_keep_their_ports(tmp_path: Path, started: list[int]) -> None:
    LocalCluster(tmp_path).up(brokers=None, controllers=None, shards=None)
    first = plan(tmp_path)
    assert [node for node, *_ in first["brokers"]] == [1, 2, 3]  # type: ignore[attr-defined]
    assert first["controllers"] == 3
    LocalCluster(tmp_path).up(brokers=5, controllers=None, shards=None)
    grown = plan(tmp_path)
    assert grown["brokers"][:3] == first["brokers"]  # type: ignore[index]
    assert len({port for _, *ports in grown["brokers"] for port in ports}) == 10  # type: ignore[attr-defined]
    assert started == [1, 2, 3, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("brokers", "controllers", "shards", "message"),
    [
        (2, None, None, "has 3 brokers, asked for 2: brokers are not removed"),
        (None, None, 2, "has --shards 1, asked for 2"),
        (3, 5, None, "5 controllers need as many brokers, asked for 3: give --brokers 5"),
    ],
)
def test_what_the_cluster_cannot_become_is_refused(
    tmp_path: Path, started: list[int], brokers: int | None, controllers: int | None, shards: int | None, message: str
) -> None:
    LocalCluster(tmp_path).up(brokers=3, controllers=None, shards=None)
    before = plan(tmp_path)
    with pytest.raises(OperationError, match=message):
        LocalCluster(tmp_path).up(brokers=brokers, controllers=controllers, shards=shards)
    assert plan(tmp_path) == before


def test_a_damaged_plan_and_a_folder_without_one_are_reported(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="there is no cluster in"):
        LocalCluster(tmp_path).down()
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(OperationError, match="is damaged: restore it"):
        LocalCluster(tmp_path).down()


def test_ports_in_use_are_passed_over() -> None:
    with ExitStack() as held, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        found = hold_ports(port, 1, taken=set(), held=held)
        assert found > port
        with ExitStack() as other:
            assert hold_ports(found, 1, taken=set(), held=other) > found  # another command does not choose it
        broker = held.enter_context(socket.socket())
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        broker.bind(("127.0.0.1", found))
        broker.listen()


def test_only_the_first_node_of_new_folders_founds_the_cluster(tmp_path: Path) -> None:
    nodes = [LocalNode(node_id, 10 + node_id, 20 + node_id, str(tmp_path / str(node_id))) for node_id in (1, 2)]
    assert "--peers" not in node_command(nodes[0], nodes, controllers=1)
    assert "127.0.0.1:21" in node_command(nodes[1], nodes, controllers=1)
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "meta.properties").write_text("node.id=2")
    assert "127.0.0.1:22" in node_command(nodes[0], nodes, controllers=1)
