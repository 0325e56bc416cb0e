"""The planner of a stream as Spark calls it, without Spark around it: what is asked twice, and what is replayed."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMinRows
from pyspark.sql.types import LongType, StructField, StructType

from headrace.client import Admin, Producer, TopicPartition
from headrace.client.types import TopicDescription
from headrace.model.errors import ErrorCode
from headrace.spark import log_once, stream_planner
from headrace.spark.broker_wait import BrokersAway
from headrace.spark.data_loss import DataLost
from headrace.spark.offset_vectors import CheckpointOffsetError
from headrace.spark.option_names import OptionError
from headrace.spark.range_planner import OffsetRange
from headrace.spark.range_reader import RangePartition, read_range
from headrace.spark.source_options import parse_source_options
from headrace.spark.stream_reader import StreamReader
from headrace.spark.topic_view import TopicView
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import produce

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

ALL = ReadAllAvailable()
LIMITED = ReadMinRows(20)
"""By the query's own options; only that Spark wants no more than these counts."""


class Planning:
    """The process that plans a query: a restart is another of them."""

    def __init__(self, servers: str, topic: str, **options: str) -> None:
        chosen = {} if "subscribePattern" in options else {"subscribe": topic}
        given = {"kafka.bootstrap.servers": servers, "startingOffsets": "earliest", **chosen, **options}
        self._reader = StreamReader(parse_source_options(given), StructType())

    def fix_ends(self) -> None:
        self._reader.prepareForTriggerAvailableNow()

    def end(self, start: dict[str, Any] | None = None, limit: ReadLimit = ALL) -> dict[str, Any]:
        """Of the next batch; as text in between, as Spark keeps it."""
        begin = self._reader.initialOffset() if start is None else start
        return json.loads(json.dumps(self._reader.latestOffset(begin, limit)))

    def ranges(self, start: dict[str, Any] | None, end: dict[str, Any]) -> list[tuple[int, int, int]]:
        begin = self._reader.initialOffset() if start is None else start
        found = []
        for each in self._reader.partitions(begin, end):
            assert isinstance(each, RangePartition)
            found.append((each.wanted.partition.partition, each.wanted.begin, each.wanted.end))
        return found

    def close(self) -> None:
        self._reader.stop()


@pytest.fixture
def planning(broker: EmbeddedBroker, topic: str) -> Iterator[Any]:
    made: list[Planning] = []

    def make(**options: str) -> Planning:
        made.append(Planning(broker.bootstrap_servers, options.pop("subscribe", topic), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": "latest"},
        {"startingTimestamp": str(2**45), "startingOffsetsByTimestampStrategy": "latest"},
    ],
)
def test_a_start_that_moves_is_resolved_once(
    broker: EmbeddedBroker, topic: str, planning: Any, start: dict[str, str]
) -> None:
    produce(broker, topic, [b"before"] * 3, partition=0)
    first = planning(**start)
    end = first.end()
    produce(broker, topic, [b"between"] * 4, partition=0)
    assert first.ranges(None, end) == []
    assert planning(**start).ranges(None, end) == []
    assert planning(**start).ranges(end, planning(**start).end(end)) == [(0, 3, 7)]


def test_the_same_two_offsets_have_nothing_between_them(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    produce(broker, topic, [b"v"] * 3, partition=0)
    end = planning().end()
    again = planning()
    assert again.ranges(end, end) == []
    assert again.end(end) == end


def test_progress_is_published_on_idle_triggers_too(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    """`start` is in Spark's log of finished batches; the last batch of a query is followed by an idle trigger."""
    produce(broker, topic, [b"v"] * 3, partition=0)
    query = planning(**{"kafka.group.id": f"of-{topic}", "commitGroup": "another"})
    end = query.end()
    with Admin(broker.bootstrap_servers) as admin:
        assert not admin.group_offsets(f"of-{topic}")
        assert query.end(end) == end
        published = admin.group_offsets(f"of-{topic}")
        assert {each.partition: at.offset for each, at in published.items()} == {0: 3, 1: 0}
        assert not admin.group_offsets("another")


def test_a_query_without_a_group_says_so_once(
    planning: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_once, "_said", {})
    for _ in range(2):
        planning().end()
    line = (
        "headrace: the progress is not published to a group: "
        'set option "commitGroup" or "kafka.group.id" to publish it\n'
    )
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("policy", ["fail", "skip-and-report", "earliest"])
@pytest.mark.parametrize("is_there_again", [True, False])
def test_a_replay_does_not_read_another_topic_of_the_same_name(
    broker: EmbeddedBroker, topic: str, planning: Any, policy: str, is_there_again: bool
) -> None:
    other = broker.create_topic(broker.unused_topic_name("stays"), partitions=1)
    both = {"subscribe": f"{topic},{other}", "dataLossPolicy": policy}
    produce(broker, topic, [b"old"] * 5, partition=1)
    produce(broker, other, [b"old"] * 2)
    end = planning(**both).end()
    broker.delete_topic(topic)
    if is_there_again:
        broker.create_topic(topic, partitions=2)
        produce(broker, topic, [b"new"] * 5, partition=1)
    if policy == "fail":
        with pytest.raises(
            DataLost, match=rf'{topic}-1 offset 4 cannot be read again, because "{topic}" was deleted or'
        ):
            planning(**both).ranges(None, end)
    else:
        assert planning(**both).ranges(None, end) == [(0, 0, 2)]
    broker.delete_topic(other)


@pytest.mark.parametrize("policy", ["fail", "skip-and-report", "earliest"])
@pytest.mark.parametrize("is_available_now", [True, False])
def test_a_topic_that_was_deleted_is_a_matter_of_the_policy(
    broker: EmbeddedBroker,
    topic: str,
    planning: Any,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    is_available_now: bool,
) -> None:
    produce(broker, topic, [b"old"] * 5, partition=1)
    end = planning().end()
    broker.delete_topic(topic)
    query = planning(dataLossPolicy=policy)
    if is_available_now:
        query.fix_ends()
    lost = (
        f"{topic}-0 from offset 0 on, {topic}-1 from offset 5 on cannot be read any more, "
        "because the topic or partition was"
    )
    if policy == "fail":
        with pytest.raises(DataLost, match=f"{lost} deleted; set option"):
            query.end(end)
        return
    without = query.end(end)
    assert (
        f'{lost} deleted; the query continues, because option "dataLossPolicy" is {policy}' in capsys.readouterr().err
    )
    assert query.ranges(end, without) == []
    broker.create_topic(topic, partitions=2)
    produce(broker, topic, [b"new"] * 3, partition=1)
    again = planning(dataLossPolicy=policy)
    assert again.ranges(without, again.end(without)) == [(1, 0, 3)]


def test_a_topic_created_again_is_passed_over_with_its_ranges(
    broker: EmbeddedBroker, topic: str, planning: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    produce(broker, topic, [b"old"] * 5, partition=1)
    end = planning().end()
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=2)
    produce(broker, topic, [b"new"] * 3, partition=1)
    query = planning(dataLossPolicy="skip-and-report")
    assert query.ranges(end, query.end(end)) == []
    reported = capsys.readouterr().err
    assert f'topic "{topic}" was deleted and created again, so {topic}-0 from offset 0 on, {topic}-1 from' in reported
    assert f"records are skipped to continue after them: {topic}-1 offsets 0 to 2; the query continues" in reported


@pytest.mark.parametrize("policy", ["skip-and-report", "earliest"])
def test_ranges_that_are_gone_are_reported_exactly(
    broker: EmbeddedBroker, topic: str, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    produce(broker, topic, [b"v"] * 20, partition=0)
    place = TopicPartition(topic, 0)
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({place: 12})
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "columns": "offset"}
    options = parse_source_options({**given, "dataLossPolicy": policy})
    schema = StructType([StructField("offset", LongType())])
    for begin, end, reported, left in ((5, 20, "5 to 11", range(12, 20)), (2, 7, "2 to 6", range(0))):
        batches = read_range(RangePartition(OffsetRange(place, begin, end)), options, schema)
        assert [each for batch in batches for each in batch.column("offset").to_pylist()] == [*left]
        assert capsys.readouterr().err == (
            f"headrace: records were lost before they were read: {topic}-0 offsets {reported} (retention or a deletion "
            f'removed them); the query continues, because option "dataLossPolicy" is {policy}\n'
        )


@pytest.mark.parametrize(("policy", "begin"), [("fail", None), ("skip-and-report", 3), ("earliest", 0)])
def test_a_log_that_became_shorter(
    broker: EmbeddedBroker,
    topic: str,
    planning: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    begin: int | None,
) -> None:
    monkeypatch.setattr(stream_planner, "BACKWARDS_PAUSE_MS", 0)
    produce(broker, topic, [b"v"] * 3, partition=0)
    read = planning().end()
    read[topic]["0"] = 9
    query = planning(dataLossPolicy=policy)
    if begin is None:
        with pytest.raises(DataLost, match=f"{topic}-0 ends at offset 3, but was read up to 9"):
            query.end(read)
        return
    end = query.end(read)
    reported = capsys.readouterr().err
    assert f"{topic}-0 ends at offset 3, but was read up to 9; the query continues, because option" in reported
    assert (f"records are skipped to continue after them: {topic}-0 offsets 0 to 2;" in reported) == (begin == 3)
    assert query.ranges(read, end) == ([(0, begin, 3)] if begin < 3 else [])
    produce(broker, topic, [b"w"] * 2, partition=0)
    assert query.ranges(end, query.end(end)) == [(0, 3, 5)]


def test_a_new_leader_has_until_the_last_try_to_know_the_end(
    broker: EmbeddedBroker, topic: str, planning: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_planner, "BACKWARDS_PAUSE_MS", 0)
    produce(broker, topic, [b"v"] * 3, partition=0)
    query = planning()
    end = query.end()
    ends = [3, *[1] * stream_planner.BACKWARDS_TRIES_MAX]

    def told(_view: TopicView, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: ends.pop() if each.partition == 0 else 0 for each in places}

    monkeypatch.setattr(TopicView, "latest", told)
    monkeypatch.setattr(TopicView, "high_watermarks", told)
    assert query.end(end) == end
    assert not ends


@pytest.mark.parametrize("is_available_now", [True, False])
def test_a_start_behind_the_end_is_named(topic: str, planning: Any, is_available_now: bool) -> None:
    query = planning(startingOffsets=json.dumps({topic: {"0": 0, "1": 99}}))
    if is_available_now:
        query.fix_ends()
    with pytest.raises(OptionError, match=f'option "startingOffsets" starts {topic}-1 at offset 99, but it ends at'):
        query.end()


def test_a_start_may_be_behind_an_open_transaction(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic) as producer:
        transaction = producer.transaction()
        for _ in range(5):
            producer.send(topic, b"v", partition=0)
        producer.flush()
        query = planning(startingOffsets=json.dumps({topic: {"0": 4, "1": 0}}))
        end = query.end()
        assert query.ranges(None, end) == []
        transaction.commit()
    while (later := query.end(end)) == end:
        pass  # the marker is on its way
    assert query.ranges(end, later) == [(0, 4, 6)]


def test_a_checkpoint_of_a_query_of_other_topics_is_reported(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    produce(broker, topic, [b"v"] * 3, partition=0)
    end = planning().end()
    other = broker.create_topic(broker.unused_topic_name("other"))
    with pytest.raises(
        DataLost, match=f"{topic}-0 from offset 3 on, .* it may be the checkpoint of another query"
    ) as told:
        planning(subscribe=other).end(end)
    assert str(told.value).endswith('; give this one its own "checkpointLocation"')
    with pytest.raises(CheckpointOffsetError, match="it may be the checkpoint of another query"):
        planning().end({"logOffset": 3})
    broker.delete_topic(other)


def test_another_cluster_at_the_address_is_named_as_such(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    produce(broker, topic, [b"v"] * 3, partition=0)
    end = planning().end()
    with EmbeddedBroker() as second:
        for is_there in (False, True):
            if is_there:
                second.create_topic(topic, partitions=2)
            address = {"kafka.bootstrap.servers": second.bootstrap_servers}
            with pytest.raises(
                DataLost, match=f"the brokers at {second.bootstrap_servers} belong to another cluster"
            ) as told:
                planning(**address).end(end)
            assert str(told.value).endswith(
                '; set option "kafka.bootstrap.servers" to that cluster, or use a new checkpoint'
            )
            with pytest.raises(DataLost, match="set `bootstrap`"):
                planning(**address, sourceName="input").end(end)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", 'set option "dataLossPolicy" to skip-and-report (or "failOnDataLoss" to false)'),
        ("input", "set `source.options.dataLossPolicy` of pipeline.yml to skip-and-report to"),
        ("left", "set `sources.left.options.dataLossPolicy` of pipeline.yml to skip-and-report to"),
    ],
)
def test_the_advice_names_what_the_user_can_set(
    broker: EmbeddedBroker, topic: str, planning: Any, source: str, said: str
) -> None:
    produce(broker, topic, [b"v"] * 3, partition=0)
    named = {"sourceName": source} if source else {}
    end = planning(**named).end()
    broker.delete_topic(topic)
    with pytest.raises(DataLost) as told:
        planning(**named).end(end)
    assert said in str(told.value)


def test_brokers_that_stay_away_are_reported_with_the_option(planning: Any) -> None:
    query = planning(**{"kafka.bootstrap.servers": "127.0.0.1:9", "kafkaConsumer.pollTimeoutMs": "300"})
    with pytest.raises(BrokersAway, match=r'127\.0\.0\.1:9.*"kafkaConsumer\.pollTimeoutMs" \(300 ms\): cannot reach'):
        query.end()


class Clock:
    """Of the planner, in milliseconds; moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1_000.0
        monkeypatch.setattr(stream_planner, "_now_ms", lambda: self.now_ms)


def test_a_batch_that_is_too_small_waits_until_the_delay_is_over(
    broker: EmbeddedBroker, topic: str, planning: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    few = {"minOffsetsPerTrigger": "20", "maxTriggerDelay": "10m"}
    query = planning(**few)
    end = query.end(limit=LIMITED)
    produce(broker, topic, [b"v"] * 5, partition=0)
    assert query.end(end, limit=LIMITED) == end
    clock.now_ms += 599_000
    assert query.end(end, limit=LIMITED) == end
    clock.now_ms += 1_000
    later = query.end(end, limit=LIMITED)
    assert query.ranges(end, later) == [(0, 0, 5)]
    produce(broker, topic, [b"v"], partition=0)
    assert query.end(later, limit=LIMITED) == later, "the delay counts from the last batch"
    assert planning(**few).end(later, limit=LIMITED) != later, "a query that is started again does not wait at first"
    assert query.end(later) != later, "who asks for everything gets it"


def test_a_pattern_that_nothing_matches_yet_is_a_query_that_waits(
    broker: EmbeddedBroker, planning: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = broker.unused_topic_name("comes-later")
    query = planning(subscribePattern=name)
    end = query.end()
    assert f'option "subscribePattern" ({name}) matches no topic now' in capsys.readouterr().err
    assert query.ranges(None, end) == []
    assert query.end(end) == end
    broker.create_topic(name)
    produce(broker, name, [b"v"] * 3)
    assert query.ranges(end, query.end(end)) == [(0, 0, 3)]
    broker.delete_topic(name)


def test_only_topics_that_match_a_pattern_are_waited_for(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, errors = Admin.topics, [ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE]

    def topics(admin: Admin, names: Sequence[str] | None = None) -> tuple[TopicDescription, ...]:
        """The one that matches is without a leader at first, another one for ever."""
        own = next(each for each in answered(admin, names) if each.name == topic)
        other = replace(own, name=f"{topic}-other", error=ErrorCode.LEADER_NOT_AVAILABLE)
        return (other, replace(own, error=errors.pop()))

    monkeypatch.setattr(Admin, "topics", topics)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribePattern": topic}
    view = TopicView(parse_source_options({**given, "kafkaConsumer.pollTimeoutMs": "60000"}))
    assert {each.topic for each in view.topics().partitions} == {topic}
    assert not errors
    view.close()


def test_committed_offsets_are_never_ahead_of_sparks_own_log(broker: EmbeddedBroker, topic: str, planning: Any) -> None:
    """The end of a batch that is only planned is not published."""
    produce(broker, topic, [b"v"] * 3, partition=0)
    query = planning(commitGroup=f"of-{topic}")
    first = query.end()
    produce(broker, topic, [b"v"] * 4, partition=0)
    query.end(first)
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.group_offsets(f"of-{topic}")[TopicPartition(topic, 0)].offset == 3
