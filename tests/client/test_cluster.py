from headrace.client.core.cluster import Cluster
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.messages import metadata

BROKERS = tuple(metadata.MetadataResponseBroker(node_id=n, host="here", port=9000 + n) for n in (1, 2))
TOPIC_ID = bytes(range(16))


def response(
    *, leader: int = 1, epoch: int = 0, topic_id: bytes = TOPIC_ID, error: int = 0, name: str = "t"
) -> metadata.MetadataResponse:
    partition = metadata.MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=(1, 2), isr_nodes=(1,)
    )
    topic = metadata.MetadataResponseTopic(
        name=name, topic_id=topic_id, error_code=error, partitions=() if error else (partition,)
    )
    return metadata.MetadataResponse(brokers=BROKERS, topics=(topic,), controller_id=2, cluster_id="c")


def test_what_is_learned() -> None:
    cluster = Cluster()
    cluster.learn(response(leader=2, epoch=4))
    place = TopicPartition("t", 0)
    assert (cluster.leader(place), cluster.leader_epoch(place)) == (2, 4)
    assert (cluster.topic_id("t"), cluster.topic_name(TOPIC_ID)) == (TOPIC_ID, "t")
    assert (cluster.partition_count("t"), cluster.controller_id, cluster.cluster_id) == (1, 2, "c")
    assert cluster.brokers[1].port == 9001


def test_what_is_not_known() -> None:
    cluster = Cluster()
    cluster.learn(response(leader=7))
    assert cluster.leader(TopicPartition("t", 0)) is None, "the leader's address is not known"
    assert cluster.leader(TopicPartition("t", 1)) is None
    assert cluster.partition_count("u") is None
    assert cluster.topic_id("u") == NO_TOPIC_ID
    assert cluster.topic_name(bytes(16)) is None


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    cluster = Cluster()
    cluster.learn(response(leader=2, epoch=5))
    cluster.learn(response(leader=1, epoch=4))
    assert cluster.leader(TopicPartition("t", 0)) == 2
    cluster.learn(response(leader=1, epoch=6))
    assert cluster.leader(TopicPartition("t", 0)) == 1


def test_a_topic_that_was_created_again_is_read_from_its_beginning() -> None:
    cluster = Cluster()
    cluster.learn(response(leader=2, epoch=5))
    cluster.learn(response(leader=1, epoch=0, topic_id=bytes(15) + b"\x01"))
    assert cluster.leader(TopicPartition("t", 0)) == 1
    assert cluster.topic_name(TOPIC_ID) is None


def test_a_topic_that_is_gone_is_forgotten_with_its_error() -> None:
    cluster = Cluster()
    cluster.learn(response())
    cluster.learn(response(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert cluster.partition_count("t") is None
    assert cluster.topic_errors == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    cluster.learn(response())
    assert cluster.topic_errors == {}


def test_an_error_from_a_newer_broker() -> None:
    cluster = Cluster()
    cluster.learn(response(error=9999))
    assert cluster.topic_errors == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}


def test_when_to_ask() -> None:
    cluster = Cluster(age_ms_max=1000, backoff_ms=10)
    cluster.want(["t"])
    call = cluster.refresh(0.0)
    assert call is not None
    assert [topic.name for topic in call.message.topics] == ["t"]
    assert cluster.refresh(500.0) is None, "one is on its way"
    cluster.refreshed(response(), 20.0)
    assert cluster.next_refresh_ms() == 1020.0
    cluster.mark_wrong()
    assert cluster.refresh(5.0) is None, "not more often than the back-off"
    assert cluster.refresh(21.0) is not None
    cluster.refresh_failed()
    assert cluster.next_refresh_ms() == 31.0


def test_a_topic_wanted_and_not_there_is_asked_for_again() -> None:
    cluster = Cluster(age_ms_max=1000, backoff_ms=10)
    cluster.want(["t", "u"])
    cluster.refresh(0.0)
    cluster.refreshed(response(), 1.0)
    assert cluster.next_refresh_ms() == 10.0
    cluster.want(["t"])
    assert cluster.next_refresh_ms() == 10.0


def test_a_topic_that_does_not_exist_is_asked_for_less_and_less_often() -> None:
    cluster = Cluster(backoff_ms=100)
    cluster.want(["t"])
    absent = response(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    pauses = []
    for _ in range(12):
        now_ms = cluster.next_refresh_ms()
        assert cluster.refresh(now_ms) is not None
        cluster.refreshed(absent, now_ms)
        pauses.append(cluster.next_refresh_ms() - now_ms)
    assert pauses == [100.0] * 5 + [200.0, 400.0, 800.0] + [1000.0] * 4
    cluster.mark_wrong()
    assert cluster.next_refresh_ms() == now_ms + 100.0, "an error about another topic is looked into at once"
    assert cluster.refresh(now_ms + 100.0) is not None
    cluster.refreshed(response(), now_ms + 100.0)
    assert cluster.next_refresh_ms() == now_ms + 100.0 + 300_000
