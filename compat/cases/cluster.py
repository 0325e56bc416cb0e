"""Cases about the broker's description of itself: the cluster, its log directories, active producers."""

from compat.cases.case import Case, sample
from compat.client import Client, Feature, Sending


def describe_cluster(client: Client, topic: str) -> None:
    cluster = client.describe_cluster()
    ((node_id, host, port),) = cluster.brokers
    assert cluster.controller_id == node_id
    assert host
    assert port > 0
    assert cluster.cluster_id is None or len(cluster.cluster_id) == 22


def log_dirs(client: Client, topic: str) -> None:
    assert client.log_sizes(topic) == {0: 0, 1: 0}
    client.send(topic, sample(10, seed=31))
    sizes = client.log_sizes(topic)
    assert sizes[0] > 10
    assert sizes[1] == 0


def describe_producers(client: Client, topic: str) -> None:
    assert client.last_sequences(topic) == []
    client.send(topic, sample(10, seed=32), Sending(idempotent=True))
    assert client.last_sequences(topic) == [9]


CASES = (
    Case(group="Cluster", name="describe the cluster", run=describe_cluster, needs=frozenset({Feature.CLUSTER})),
    Case(
        group="Cluster",
        name="describe log directories",
        run=log_dirs,
        needs=frozenset({Feature.LOG_DIRS, Feature.KEYS}),
        partitions=2,
    ),
    Case(
        group="Cluster",
        name="describe producers",
        run=describe_producers,
        needs=frozenset({Feature.PRODUCERS, Feature.IDEMPOTENCE, Feature.KEYS}),
    ),
)
