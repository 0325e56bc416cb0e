"""All brokers restarted, one after the other, while clients of every kind write: no error reaches an application."""

import pytest

from headrace.testing import EmbeddedCluster
from tests.cluster_process.steady_clients import CLIENTS, steady_clients
from tests.cluster_process.test_failover import wait_until_in_sync

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]


def test_a_rolling_restart_gives_clients_no_error(cluster: EmbeddedCluster) -> None:
    topic = cluster.create_topic("rolling", partitions=len(CLIENTS), replicas=3, configs={"min.insync.replicas": "2"})
    with steady_clients(cluster.bootstrap_servers, topic) as clients:
        for node_id in cluster.node_ids:
            cluster.shut_down(node_id)
            cluster.restart(node_id)
            wait_until_in_sync(cluster, topic)
            for client in clients:
                client.wait_for_more()
