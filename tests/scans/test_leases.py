"""Leases of a node on virtual ports: pages, limits, permission, and files that vanish while they are given."""

import errno

import pytest

from headrace.broker.api import scan_manifest as handler
from headrace.broker.partitions import held_segments, scan_leases
from headrace.client.core.scans import _joined, _partition
from headrace.log.names import SCANS
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import delete_records, scan_manifest, scan_release
from tests.broker.virtual import VirtualBroker
from tests.scans.manifest_rows import rows
from tests.transactions.wire import TransactionClient, transaction_broker

NEW = bytes(16)
SMALL_SEGMENTS = {"segment_bytes": 300, "file_delete_delay_ms": 0}


@pytest.fixture
def broker():
    return VirtualBroker(settings={"log.retention.check.interval.ms": "100"}).with_topic("t", **SMALL_SEGMENTS)


class ScanClient(TransactionClient):
    def manifest(self, *wanted, lease_id=NEW, lease_ms=60_000, isolation=1):
        """`wanted` are offsets to begin at, of t-0."""
        asked = tuple(
            scan_manifest.ScanManifestRequestPartition(partition_index=0, from_offset=offset) for offset in wanted
        )
        request = scan_manifest.ScanManifestRequest(
            lease_id=lease_id,
            lease_ms=lease_ms,
            isolation_level=isolation,
            topics=(scan_manifest.ScanManifestRequestTopic(name="t", partitions=asked),),
        )
        return self.ask(ApiKey.SCAN_MANIFEST, 0, request)

    def whole(self, **options):
        """Every page: the lease, the partition as a client puts it together, and how many pages there were."""
        answer = self.manifest(-1, **options)
        assert not answer.error_code
        found, pages = self.partition(answer), 1
        page = answer.topics[0].partitions[0]
        while page.next_offset >= 0:
            more = self.manifest(page.next_offset, lease_id=answer.lease_id, **options)
            page, pages = more.topics[0].partitions[0], pages + 1
            found = _joined(found, self.partition(more))
        return answer.lease_id, found, pages

    def partition(self, answer):
        (topic,) = answer.topics
        assert topic.partitions[0].error_code == ErrorCode.NONE
        return _partition(answer.node_id, topic, topic.partitions[0], answer.directories[0].path)

    def release(self, lease_id):
        assert not self.ask(ApiKey.SCAN_RELEASE, 0, scan_release.ScanReleaseRequest(lease_id=lease_id)).error_code

    def delete_records(self, offset):
        partition = delete_records.DeleteRecordsRequestPartition(partition_index=0, offset=offset)
        topic = delete_records.DeleteRecordsRequestTopic(name="t", partitions=(partition,))
        request = delete_records.DeleteRecordsRequest(topics=(topic,), timeout_ms=10_000)
        assert not self.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0].error_code

    def scanned(self, found):
        disk = self._broker.machine.disk
        return [value for _offset, _key, value in rows(found, lambda path: contents(disk, f"data/{path}"))]


def contents(disk, path):
    file = disk.open(path, writable=False)
    try:
        return disk.read(file, disk.size(file), 0)
    finally:
        disk.close(file)


@pytest.fixture
def client(broker):
    client = ScanClient(broker)
    for number in range(30):
        assert not client.produce("t", content=client.batch(b"%d" % number + bytes(60))).error_code
    return client


def expected(count=30):
    return [b"%d" % number + bytes(60) for number in range(count)]


def folders(broker):
    disk = broker.machine.disk
    return disk.list_directory(f"data/{SCANS}") if disk.exists(f"data/{SCANS}") else []


def test_a_manifest_in_pages(broker, client, monkeypatch):
    monkeypatch.setattr(handler, "SEGMENTS_PER_RESPONSE", 2)
    lease_id, found, pages = client.whole()
    assert pages > 3
    assert client.scanned(found) == expected()
    client.produce("t", content=client.batch(b"later"))
    found = client.partition(client.manifest(-1, lease_id=lease_id))
    assert found.end_offset == 30, "a lease stays at the offsets it was given for"
    assert len(folders(broker)) == 1
    client.release(lease_id)
    broker.run_until(lambda: not folders(broker))


def test_pages_tell_of_every_aborted_transaction(monkeypatch):
    monkeypatch.setattr(handler, "SEGMENTS_PER_RESPONSE", 1)
    broker = transaction_broker()
    client = ScanClient(broker)
    client.delete_topic("t")
    broker.with_topic("t", **SMALL_SEGMENTS)
    client.initialized()
    for number in range(12):
        client.write(b"%d" % number + bytes(90))
        client.end(commit=bool(number % 2))
        broker.run_until(lambda: not broker.node.broker.transactions.markers.unwritten)
    _lease, found, pages = client.whole()
    assert pages > 4
    assert len(found.aborted) == 6
    assert client.scanned(found) == [b"%d" % number + bytes(90) for number in range(1, 12, 2)]
    _lease, found, _pages = client.whole(isolation=0)
    assert client.scanned(found) == [b"%d" % number + bytes(90) for number in range(12)]


def test_what_scans_keep_has_a_limit(broker, client):
    _lease, found, _pages = client.whole()
    kept, other = client.scanned(found), client.whole()[1]
    client.delete_records(25)
    broker.run_until(lambda: metric(broker, "headrace_scan_kept_bytes") > 1_000)
    assert client.scanned(found) == kept
    broker.node.broker.config = broker.node.broker.config.with_dynamic(
        cluster={"headrace.scan.held.bytes.max": "5000"}, broker={}
    )
    broker.run_until(lambda: metric(broker, "headrace_scan_leases_broken_total") == 1)
    broker.run_until(lambda: len(folders(broker)) == 1)
    left = [each for each in (found, other) if each.folder.split("/")[1] in folders(broker)]
    assert client.scanned(left[0]) == kept
    with pytest.raises(FileNotFoundError):
        client.scanned(found if left == [other] else other)


def test_a_full_disk_breaks_scans_that_keep_what_is_deleted(broker, client):
    client.whole()
    broker.partition("t").space.full = True
    broker.pass_time(5_000)
    assert metric(broker, "headrace_scan_leases_broken_total") == 0, "nothing would be won by it"
    client.delete_records(25)
    broker.run_until(lambda: metric(broker, "headrace_scan_kept_bytes") > 0)
    broker.partition("t").space.full = True
    broker.run_until(lambda: metric(broker, "headrace_scan_leases_broken_total") == 1)
    broker.run_until(lambda: not folders(broker))


def metric(broker, name):
    (family,) = (each for each in broker.node.broker.scans.families() if each.name == name)
    return sum(value for _labels, value in family.samples)


def test_time_is_up(broker, client):
    lease_id, _found, _pages = client.whole(lease_ms=10_000)
    broker.pass_time(8_000)
    assert client.manifest(lease_id=lease_id, lease_ms=10_000).lease_ms == 10_000
    broker.pass_time(8_000)
    assert metric(broker, "headrace_scan_leases") == 1
    broker.pass_time(8_000)
    broker.run_until(lambda: not folders(broker))
    assert client.manifest(lease_id=lease_id).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_lease_released_while_files_are_given(broker, client):
    lease_id = client.manifest().lease_id
    broker.machine.spawner.hold(name_contains="_hold.<locals>.<lambda>")
    request = client.send(ApiKey.SCAN_MANIFEST, 0, manifest_of(lease_id))
    broker.steps()
    client_two = ScanClient(broker)
    client_two.release(lease_id)
    broker.machine.spawner.release()
    answer = client.wait(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    broker.run_until(lambda: not folders(broker))


def manifest_of(lease_id):
    asked = scan_manifest.ScanManifestRequestPartition(partition_index=0)
    return scan_manifest.ScanManifestRequest(
        lease_id=lease_id,
        lease_ms=60_000,
        topics=(scan_manifest.ScanManifestRequestTopic(name="t", partitions=(asked,)),),
    )


def test_segments_that_vanish_are_looked_at_again(broker, client):
    """Retention renames what the manifest was about to name."""
    broker.machine.spawner.hold(name_contains="_hold.<locals>.<lambda>")
    request = client.send(ApiKey.SCAN_MANIFEST, 0, manifest_of(NEW))
    broker.steps()
    deleting = ScanClient(broker)
    deleting.delete_records(25)
    log = broker.partition("t").log
    broker.run_until(lambda: log.bases[0] > 20)
    broker.pass_time(1_000)
    broker.machine.spawner.release()
    found = client.partition(client.wait(request))
    assert found.start_offset == 25
    assert client.scanned(found) == expected()[25:]


def test_files_that_are_being_exchanged_are_given_when_that_is_over(broker, client):
    log = broker.partition("t").log
    log.names_generation += 1  # as compaction does while a helper renames files
    answer = client.manifest(-1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    log.names_generation += 1
    found = client.partition(client.manifest(-1, lease_id=answer.lease_id))
    assert client.scanned(found) == expected()


def test_a_file_system_without_hard_links(broker, client):
    broker.machine.disk.faults.fail("link", code=errno.EPERM, skip=3)
    answer = client.manifest(-1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
    disk = broker.machine.disk
    broker.run_until(lambda: disk.list_directory(f"data/{SCANS}/{answer.lease_id.hex()}") == [])
    assert client.scanned(client.whole()[1]) == expected()


def test_limits(broker, client, monkeypatch):
    monkeypatch.setattr(held_segments, "ENTRIES_PER_PARTITION_MAX", 3)
    answer = client.manifest(-1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
    monkeypatch.undo()
    monkeypatch.setattr(scan_leases, "ENTRIES_MAX", 3)
    answer = client.manifest(-1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
    assert client.manifest(*range(101)).error_code == ErrorCode.INVALID_REQUEST
    assert client.manifest(isolation=2).error_code == ErrorCode.INVALID_REQUEST


def test_scanning_is_a_permission_of_its_own(broker, client, monkeypatch):
    monkeypatch.setattr(
        broker.node.broker.access,
        "authorize",
        lambda principal, host, operation, resource_type, name: operation is not Operation.CLUSTER_ACTION,
    )
    answer = client.manifest(-1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_power_cut_leaves_no_names(broker, client):
    client.whole()
    broker.machine.disk.sync_directory(f"data/{SCANS}")
    broker.machine.disk.sync_directory("data")
    broker.machine.cut_power()
    broker.boot()
    assert SCANS not in broker.machine.disk.list_directory("data")
