"""Metadata changes that other brokers of a cluster cause, committed on a node that runs alone."""

from headrace.core.controller.commands import ControllerDecision
from headrace.core.controller.records import Endpoint, PartitionChangeRecord, RegisterBrokerRecord
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_topics
from tests.broker.virtual import LONG_MS

THIS, OTHER = NodeId(1), NodeId(2)
NO_LEADER = NodeId(-1)
OTHER_HOST, OTHER_PORT = "other", 9192


def commit(node, *records):
    """Have the controller of the node commit these records; call the result until it returns an outcome."""
    proposal = node.broker.controller.propose(lambda controller: ControllerDecision(records, "committed"))
    return lambda: proposal.outcome


def commit_and_wait(broker, *records):
    outcome = commit(broker.node, *records)
    broker.run_until(lambda: outcome() is not None)
    assert outcome() == "committed"


def registration(node_id=OTHER, host=OTHER_HOST, port=OTHER_PORT, rack=None, listener="PLAINTEXT"):
    endpoint = Endpoint(listener, host, port, "PLAINTEXT")
    return RegisterBrokerRecord(node_id, b"i" * 16, 1, (endpoint,), rack, host)


def create_elsewhere(client, name, *replicas):
    """Create a topic with one partition for each of these brokers."""
    chosen = create_topics.CreateTopicsRequestAssignment
    topic = create_topics.CreateTopicsRequestTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=tuple(chosen(partition_index=index, broker_ids=(node,)) for index, node in enumerate(replicas)),
    )
    request = create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=LONG_MS)
    assert client.ask(ApiKey.CREATE_TOPICS, 7, request).topics[0].error_code == 0


def election(broker, topic, index, leader, *, replicas=None):
    """The record that gives a partition another leader; the leader is the only replica in sync."""
    topic_id = broker.node.broker.image.topics[topic].topic_id
    isr = None if leader == NO_LEADER else (leader,)
    return PartitionChangeRecord(topic_id, index, isr=isr, leader=leader, replicas=replicas)


def elect(broker, topic, index, leader, *, replicas=None):
    commit_and_wait(broker, election(broker, topic, index, leader, replicas=replicas))
