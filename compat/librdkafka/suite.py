"""The selection of librdkafka's tests, what each checks, and how it is run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

CLASSIC = "classic"
CONSUMER = "consumer"
DEFAULT_SCENARIO = "default"
WITHOUT_AUTO_CREATION = "noautocreate"

RUN_S_MAX = 240
LONG_RUN_S_MAX = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the test-runner's summary."""

    name: str
    checks: str
    local: bool = False
    """The runner's own mark for what it runs without a broker, against its mock or none."""
    known_issue: bool = False
    """The runner leaves it out unless it is asked for such tests alone."""
    protocol: str = CLASSIC
    scenario: str = DEFAULT_SCENARIO
    run_s_max: int = RUN_S_MAX

    @property
    def choice(self) -> str:
        """The runner's option that lets it through."""
        if self.known_issue:
            return "-k"
        return "-l" if self.local else "-L"

    @property
    def number(self) -> str:
        return self.name[:4]

    @property
    def key(self) -> str:
        return self.name if self.protocol == CLASSIC else f"{self.name} ({self.protocol})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The tests of one start of the runner: it selects by number and by kind, no finer."""

    number: str
    choice: str
    protocol: str
    scenario: str
    run_s_max: int
    entries: tuple[Entry, ...]

    @property
    def title(self) -> str:
        return ", ".join(entry.key for entry in self.entries)


def batches(entries: Sequence[Entry]) -> Iterator[Batch]:
    for (number, choice, protocol, scenario), members in groupby(sorted(entries, key=_together), key=_together):
        found = tuple(members)
        yield Batch(
            number=number,
            choice=choice,
            protocol=protocol,
            scenario=scenario,
            run_s_max=max(entry.run_s_max for entry in found),
            entries=found,
        )


def _together(entry: Entry) -> tuple[str, str, str, str]:
    return entry.number, entry.choice, entry.protocol, entry.scenario


PRODUCE_AND_FETCH = (
    Entry(name="0001_multiobj", checks="producers made, used and closed one after the other"),
    Entry(name="0002_unkpart", checks="a partition that does not exist is refused"),
    Entry(name="0003_msgmaxsize", checks="message.max.bytes of the producer"),
    Entry(name="0005_order", checks="delivery reports come in the order of the messages"),
    Entry(name="0007_autotopic", checks="topics made by being named"),
    Entry(name="0008_reqacks", checks="acks of -1, 0 and 1, and what each reports"),
    Entry(name="0011_produce_batch", checks="messages handed over in batches, partitioned or not"),
    Entry(name="0012_produce_consume", checks="what was produced is consumed, by both interfaces"),
    Entry(name="0013_null_msgs", checks="messages without a value"),
    Entry(name="0016_client_swname", checks="names and versions of client software (KIP-511), legal or not"),
    Entry(name="0017_compression", checks="every compression, there and back"),
    Entry(name="0031_get_offsets", checks="watermarks, asked for and remembered"),
    Entry(name="0031_get_offsets_mock", checks="timeouts of that question", local=True),
    Entry(name="0035_api_version", checks="ApiVersions is answered at once"),
    Entry(name="0036_partial_fetch", checks="fetches that cut a message in the middle"),
    Entry(name="0039_event_dr", checks="delivery reports as events"),
    Entry(name="0039_event_log", checks="log lines as events", local=True),
    Entry(name="0039_event", checks="errors as events", local=True),
    Entry(name="0041_fetch_max_bytes", checks="messages larger than a fetch may be"),
    Entry(name="0044_partition_cnt", checks="a producer meets new partitions"),
    Entry(name="0048_partitioner", checks="every partitioner's choice"),
    Entry(name="0054_offset_time", checks="offsets by time"),
    Entry(name="0059_bsearch", checks="seeks, by a binary search over timestamps"),
    Entry(name="0063_clusterid", checks="the ids of the cluster and its controller"),
    Entry(name="0070_null_empty", checks="null and empty keys and values stay apart"),
    Entry(name="0073_headers", checks="headers, from C"),
    Entry(name="0085_headers", checks="headers, from C++"),
    Entry(name="0086_purge_local", checks="queued messages are purged", local=True),
    Entry(name="0086_purge_remote", checks="messages in flight are purged"),
    Entry(name="0110_batch_size", checks="batch.size is kept"),
    Entry(
        name="0111_delay_create_topics",
        checks="a producer waits for a topic that is made a little later",
        scenario=WITHOUT_AUTO_CREATION,
    ),
    Entry(name="0112_assign_unknown_part", checks="a partition assigned before its metadata is known"),
    Entry(name="0114_sticky_partitioning", checks="sticky partitions of messages without keys"),
)

CONSUMERS = (
    Entry(name="0014_reconsume_191", checks="consuming stopped and started again at stored offsets"),
    Entry(name="0022_consume_batch", checks="consuming in batches"),
    Entry(name="0022_consume_batch_local", checks="the same with callbacks of authentication", local=True),
    Entry(name="0028_long_topicnames", checks="topic names of 255 characters", known_issue=True),
    Entry(name="0029_assign_offset", checks="offsets given with an assignment"),
    Entry(name="0042_many_topics", checks="many topics in one client"),
    Entry(name="0052_msg_timestamps", checks="timestamps of creation and of appending, in every compression"),
    Entry(name="0092_mixed_msgver", checks="batches of different message formats in a partition"),
    Entry(name="0098_consumer_txn", checks="committed, aborted and open transactions", run_s_max=LONG_RUN_S_MAX),
    Entry(
        name="0107_topic_recreate",
        checks="clients continue after a topic is deleted and made again",
        scenario=WITHOUT_AUTO_CREATION,
    ),
    Entry(name="0116_kafkaconsumer_close", checks="closing a consumer in every way", local=True),
    Entry(name="0127_fetch_queue_backoff", checks="how long a full queue delays the next fetch"),
    Entry(name="0129_fetch_aborted_msgs", checks="fetches that hold nothing but aborted messages"),
    Entry(name="0140_commit_metadata", checks="metadata beside a committed offset"),
)

GROUPS = (
    ("0018_cgrp_term", "two members, one of which closes", RUN_S_MAX),
    ("0019_list_groups", "groups are listed", RUN_S_MAX),
    ("0026_consume_pause", "pause and resume lose and repeat nothing", RUN_S_MAX),
    ("0040_io_event", "a file descriptor tells of messages", RUN_S_MAX),
    ("0050_subscribe_adds", "topics added to a subscription", RUN_S_MAX),
    ("0056_balanced_group_mt", "a thread for every partition", RUN_S_MAX),
    ("0061_consumer_lag", "the lag in a client's statistics", RUN_S_MAX),
    ("0083_cb_event", "a callback tells of messages", RUN_S_MAX),
    ("0089_max_poll_interval", "a member that does not poll leaves", LONG_RUN_S_MAX),
    ("0102_static_group_rebalance", "static members", LONG_RUN_S_MAX),
    ("0118_commit_rebalance", "a commit while partitions are revoked", RUN_S_MAX),
    ("0122_buffer_cleaning_after_rebalance", "nothing of the old assignment comes after a rebalance", RUN_S_MAX),
    ("0132_strategy_ordering", "the first strategy that all members know is used", RUN_S_MAX),
    ("0137_barrier_batch_consume", "batches across seek, pause, commit and control records", RUN_S_MAX),
)
"""Run with both protocols of groups, the classic one and KIP-848's."""

LOCAL_GROUPS = (
    ("0102_static_group_rebalance_mock", "static members"),
    ("0153_memberid", "500 members make 500 ids"),
)

SUITE = (
    *PRODUCE_AND_FETCH,
    *CONSUMERS,
    *(
        Entry(name=name, checks=checks, protocol=protocol, run_s_max=run_s_max)
        for name, checks, run_s_max in GROUPS
        for protocol in (CLASSIC, CONSUMER)
    ),
    *(
        Entry(name=name, checks=checks, protocol=protocol, local=True)
        for name, checks in LOCAL_GROUPS
        for protocol in (CLASSIC, CONSUMER)
    ),
)
