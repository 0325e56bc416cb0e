"""The cluster key: created at founding, private, never printed, and needed by a node that has peers."""

import os
import stat

import pytest

from headrace.log.cluster_key import ClusterKey, new_cluster_key, read_cluster_key, write_cluster_key
from headrace.log.errors import WrongDirectory
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy

from .nodes import KEY, PeerWorld


def test_the_file_is_private_and_read_back(tmp_path):
    home = str(tmp_path / "data")
    key = new_cluster_key(RealEntropy(), "water")
    write_cluster_key(RealDisk(), home, key)
    found = read_cluster_key(RealDisk(), home)
    assert (found.cluster_id, found.secret) == ("water", key.secret)
    assert stat.S_IMODE(os.stat(f"{home}/cluster.key").st_mode) == 0o600


def test_the_secret_is_not_printed():
    key = ClusterKey("water", b"s" * 32)
    assert "sss" not in f"{key} {key!r}"
    assert "water" in repr(key)


@pytest.mark.parametrize(
    "content",
    [b"", b"cluster.id=water\n", b"cluster.id=water\ncluster.key=c2hvcnQ=\n", b"cluster.key=%%\ncluster.id=w\n"],
)
def test_a_damaged_file_is_refused_with_advice(tmp_path, content):
    (tmp_path / "cluster.key").write_bytes(content)
    with pytest.raises(WrongDirectory, match="copy it from another node"):
        read_cluster_key(RealDisk(), str(tmp_path))


def test_a_founding_node_creates_a_key_and_keeps_it():
    world = PeerWorld()
    node = world.node(1, key=None)
    key = read_cluster_key(node.machine.disk, "data")
    assert key.cluster_id == node.node.cluster_id
    node.machine.kill()
    node.boot()
    assert read_cluster_key(node.machine.disk, "data").secret == key.secret
    assert not node.said(key.secret.hex())


def test_a_founding_node_uses_the_key_that_is_there():
    node = PeerWorld().node(1, key=KEY)
    assert node.node.cluster_id == "water"


def test_a_node_with_peers_and_no_key_learns_what_to_do():
    with pytest.raises(WrongDirectory, match="--join TOKEN"):
        PeerWorld().node(2, peers=[1], key=None)


def test_a_key_of_another_cluster_is_refused():
    world = PeerWorld()
    node = world.node(1, key=KEY)
    node.machine.kill()
    write_cluster_key(node.machine.disk, "data", ClusterKey("fire", bytes(32)))
    with pytest.raises(WrongDirectory, match="belongs to cluster 'water'"):
        node.boot()
