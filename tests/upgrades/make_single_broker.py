"""Makes single_broker.tar.xz: a data folder that the code of commit 69ee186 has written, the last one without a quorum.

Run `python -m tests.upgrades.make_single_broker` in a clone that has the commit. The metadata log of that version has
batches with several records, terms that grow at every start, and no voters. The folder has a snapshot and a log after
it.
"""

from pathlib import Path

from tests.upgrades.archive_writer import main

COMMIT = "69ee186"
ARCHIVE = Path(__file__).with_name("single_broker.tar.xz")
STARTS = 3
TOPICS_PER_START = 10
PARTITIONS = 2
RECORDS = 5
"""Of each topic."""
SNAPSHOT_INTERVAL_BYTES = 2_000
BROKER_CONFIG = {"log.retention.ms": "-1"}
"""The archive grows older than the default retention."""
LEFT_OUT = (".lock", ".headrace-reserve")
SECONDS_MAX = 120


def topic(start: int, number: int) -> str:
    return f"topic-{start}-{number}"


TOPICS = [topic(start, number) for start in range(STARTS) for number in range(1, TOPICS_PER_START)]
"""The first topic of each start is deleted again."""


def write(folder: Path) -> None:
    """Write the folder; this runs with the code of the earlier version."""
    from headrace.broker.cluster.metadata_log import MetadataLog
    from headrace.client import Admin, Producer
    from headrace.testing import EmbeddedBroker

    MetadataLog.open.__func__.__kwdefaults__["snapshot_interval_bytes"] = SNAPSHOT_INTERVAL_BYTES  # type: ignore[attr-defined]
    for start in range(STARTS):
        with EmbeddedBroker(data_dir=str(folder / "data"), config=BROKER_CONFIG) as broker:
            for number in range(TOPICS_PER_START):
                broker.create_topic(topic(start, number), partitions=PARTITIONS)
            with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
                for number in range(TOPICS_PER_START):
                    for value in range(RECORDS):
                        producer.send(topic(start, number), str(value).encode(), partition=value % PARTITIONS)
            with Admin(broker.bootstrap_servers) as admin:
                admin.delete_topics([topic(start, 0)])


if __name__ == "__main__":
    main(__file__, write, commit=COMMIT, archive=ARCHIVE, left_out=LEFT_OUT, seconds_max=SECONDS_MAX)
