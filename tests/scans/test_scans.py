"""Scans of a real broker: the rows of the files are those of a consumer, whatever the broker does to them meanwhile."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.partitions.scan_leases import LEASES_MAX
from headrace.client import (
    Admin,
    ConfigChange,
    ConfigOperation,
    Consumer,
    IsolationLevel,
    NewTopic,
    Producer,
    ResourceType,
    TopicPartition,
)
from headrace.client.blocking.scans import Scans
from headrace.client.errors import BrokerError
from headrace.client.scans import ScanManifest
from headrace.log.names import SCANS
from headrace.model.errors import ErrorCode
from tests.broker_process.broker_process import BrokerProcess
from tests.reserved_ports import reserved_port
from tests.scans.manifest_rows import Row, checked_rows

pytestmark = pytest.mark.process

WAIT_S_MAX = 60.0
SEGMENT_BYTES = 2_000
SETTINGS = {
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "50",
    "transaction.state.log.num.partitions": "3",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}", **SETTINGS}
    with BrokerProcess(tmp_path_factory.mktemp("broker"), settings=settings) as broker:
        yield broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^a-zA-Z0-9_]+", "-", request.node.name)


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def scans(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scans]:
    """Whatever is asked for is given back."""
    given: list[ScanManifest] = []
    with Scans(broker.bootstrap_servers) as scans:
        ask = scans.scan_manifest

        def remember(*arguments: Any, **options: Any) -> ScanManifest:
            given.append(ask(*arguments, **options))
            return given[-1]

        monkeypatch.setattr(scans, "scan_manifest", remember)
        yield scans
        for manifest in given:
            scans.scan_release(manifest)


def create(admin: Admin, name: str, **configs: object) -> TopicPartition:
    texts = {"segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "0"}
    texts |= {key.replace("_", "."): str(value) for key, value in configs.items()}
    assert not admin.create_topics([NewTopic(name, configs=texts)])[name].error
    return TopicPartition(name, 0)


def fill(broker: BrokerProcess, topic: str, count: int, *, keys: int = 1_000_000) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0) as producer:
        for number in range(count):
            producer.send(topic, b"value-%d" % number + bytes(100), key=b"key-%d" % (number % keys))
            if number % 10 == 9:
                producer.flush()


def fill_in_transactions(broker: BrokerProcess, topic: str) -> None:
    """Committed, aborted, committed, and one that stays open."""
    with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic, linger_ms=0) as producer:
        for number in range(12):
            transaction = producer.transaction()
            with pytest.raises(ZeroDivisionError) if number % 3 == 1 else transaction:
                if number % 3 == 1:
                    with transaction:
                        producer.send(topic, b"aborted-%d" % number + bytes(300))
                        producer.flush()
                        raise ZeroDivisionError
                producer.send(topic, b"committed-%d" % number + bytes(300))


def consumed(broker: BrokerProcess, place: TopicPartition, end: int, *, committed: bool = True) -> list[Row]:
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers,
        isolation_level="read_committed" if committed else "read_uncommitted",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([place])
        found: list[Row] = []
        deadline = time.monotonic() + WAIT_S_MAX
        while consumer.position(place) < end:
            assert time.monotonic() < deadline
            found += [(each.offset, each.key, each.value) for each in consumer.poll(timeout_ms=50)]
        return [row for row in found if row[0] < end]


def scanned(manifest: ScanManifest) -> list[Row]:
    (found,) = manifest.partitions
    return checked_rows(found, manifest.cluster_id)


def wait_until(reached: object) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not reached():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def live_files(broker: BrokerProcess, place: TopicPartition) -> set[str]:
    return {path.name for path in (broker.data_dir / str(place)).glob("*.log")}


def live_inodes(broker: BrokerProcess, place: TopicPartition) -> set[int]:
    with os.scandir(broker.data_dir / str(place)) as entries:
        return {entry.inode() for entry in entries if entry.name.endswith(".log")}


def leased_files(manifest: ScanManifest) -> list[Path]:
    (found,) = manifest.partitions
    return list((Path(found.directory) / found.folder).glob("*.log"))


def test_rows_are_those_of_a_consumer(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str) -> None:
    place = create(admin, topic)
    fill(broker, topic, 200)
    assert scans.supported()
    manifest = scans.scan_manifest([place])
    (found,) = manifest.partitions
    assert (found.start_offset, found.end_offset, found.high_watermark) == (0, 200, 200)
    assert len(found.segments) > 5
    assert [each.is_closed for each in found.segments] == [True] * (len(found.segments) - 1) + [False]
    ends, begins = ([each[place] for each in found.segments] for place in (1, 0))
    assert ends == [*begins[1:], 200]
    fill(broker, topic, 50)  # behind the scan's end
    assert scanned(manifest) == consumed(broker, place, 200)
    scans.scan_release(manifest)
    wait_until(lambda: not leased_files(manifest))
    scans.scan_release(manifest)  # once more does no harm
    with pytest.raises(BrokerError) as over:
        scans.renew(manifest)
    assert over.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("isolation", IsolationLevel)
def test_transactions(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str, isolation: IsolationLevel) -> None:
    place = create(admin, topic)
    fill_in_transactions(broker, topic)
    manifest = scans.scan_manifest([place], isolation_level=isolation)
    (found,) = manifest.partitions
    is_committed = isolation is IsolationLevel.READ_COMMITTED
    assert found.end_offset == (found.last_stable_offset if is_committed else found.high_watermark)
    assert bool(found.aborted) == is_committed
    assert scanned(manifest) == consumed(broker, place, found.end_offset, committed=is_committed)


def test_retention_takes_nothing_from_a_scan(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str) -> None:
    place = create(admin, topic)
    fill(broker, topic, 200)
    expected = consumed(broker, place, 200)
    manifest = scans.scan_manifest([place])
    before = live_files(broker, place)
    admin.delete_records({place: 150})
    wait_until(lambda: len(live_files(broker, place)) < len(before) / 2)
    assert scanned(manifest) == expected
    assert admin.delete_topics([topic])[topic].error is ErrorCode.NONE
    wait_until(lambda: not (broker.data_dir / str(place)).exists())
    assert scanned(manifest) == expected
    scans.scan_release(manifest)
    wait_until(lambda: not leased_files(manifest))


def test_compaction_takes_nothing_from_a_scan(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str) -> None:
    place = create(admin, topic, cleanup_policy="delete")
    fill(broker, topic, 200, keys=5)
    expected = consumed(broker, place, 200)
    manifest = scans.scan_manifest([place])
    before = live_inodes(broker, place)
    set_config(admin, topic, "cleanup.policy", "compact")
    set_config(admin, topic, "min.cleanable.dirty.ratio", "0.01")
    wait_until(lambda: len(consumed(broker, place, 200)) < len(expected) / 2)
    assert before - live_inodes(broker, place), "some were exchanged"
    assert scanned(manifest) == expected
    compacted = consumed(broker, place, 200)
    rows = scanned(scans.scan_manifest([place]))
    while (now := consumed(broker, place, 200)) != compacted:  # the compaction went on meanwhile
        compacted, rows = now, scanned(scans.scan_manifest([place]))
    assert rows == compacted


def set_config(admin: Admin, topic: str, name: str, value: str) -> None:
    change = ConfigChange(name=name, value=value, operation=ConfigOperation.SET)
    (outcome,) = admin.alter_configs({(ResourceType.TOPIC, topic): [change]}).values()
    assert outcome.error is ErrorCode.NONE


def test_a_lease_that_is_not_renewed_is_over(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str) -> None:
    place = create(admin, topic)
    fill(broker, topic, 50)
    held, manifest = scans.scan_manifest([place]), scans.scan_manifest([place], lease_ms=1)
    assert manifest.leases[0].lease_ms == 1_000, "no shorter than that"
    wait_until(lambda: not leased_files(manifest))
    with pytest.raises(FileNotFoundError):
        scanned(manifest)
    scans.renew(held)
    assert leased_files(held)


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_stopped_broker_leaves_no_leases(
    broker: BrokerProcess, admin: Admin, scans: Scans, topic: str, abrupt: bool
) -> None:
    place = create(admin, topic)
    fill(broker, topic, 100)
    manifest = scans.scan_manifest([place])
    admin.delete_records({place: 90})
    assert leased_files(manifest)
    if abrupt:
        broker.kill()
        assert scanned(manifest)[-1][0] == 99
    else:
        broker.stop()
        assert not (broker.data_dir / SCANS).exists()
    broker.start()
    assert not (broker.data_dir / SCANS).exists()
    again = scans.scan_manifest([place])
    assert scanned(again) == consumed(broker, place, 100)


def test_what_is_refused_says_why(broker: BrokerProcess, admin: Admin, scans: Scans, topic: str) -> None:
    place = create(admin, topic)
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        scans.scan_manifest([TopicPartition("missing", 0)])
    found = [scans.scan_manifest([place]) for _ in range(LEASES_MAX)]
    with pytest.raises(BrokerError, match="too many scans hold files"):
        scans.scan_manifest([place])
    scans.scan_release(found[0])
    scans.scan_manifest([place])
