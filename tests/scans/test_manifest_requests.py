"""Requests for files: partitions whose files are being exchanged are asked for again, the others are kept."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.client.core import scans
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError
from headrace.client.scans import ScanManifest
from headrace.client.types import IsolationLevel
from headrace.model.errors import ErrorCode
from headrace.wire.messages import scan_manifest, scan_release
from tests.client.test_admin_operations import T0, T1, Script, described

LEASE, DIRECTORY = b"l" * 16, b"d" * 16
EXCHANGED = ErrorCode.REPLICA_NOT_AVAILABLE


def told(
    *errors: tuple[int, int], segments: tuple[int, ...] = (), next_offset: int = -1
) -> scan_manifest.ScanManifestResponse:
    """Of (partition, error) each; all with segments of these base offsets."""
    pages = tuple(
        scan_manifest.ScanManifestResponsePartition(
            partition_index=index,
            error_code=error,
            directory_id=DIRECTORY,
            end_offset=10 + index,
            segments=tuple(scan_manifest.ScanManifestResponseSegment(base_offset=each) for each in segments),
            next_offset=next_offset,
        )
        for index, error in errors
    )
    return scan_manifest.ScanManifestResponse(
        cluster_id="c",
        node_id=1,
        lease_id=LEASE,
        lease_ms=5_000,
        directories=(scan_manifest.ScanManifestResponseDirectory(directory_id=DIRECTORY, path="/data"),),
        topics=(scan_manifest.ScanManifestResponseTopic(name="t", topic_id=b"t" * 16, partitions=pages),),
    )


def asking() -> Operation[ScanManifest]:
    return scans.manifest(Cluster(), [T0, T1], isolation_level=IsolationLevel.READ_COMMITTED, lease_ms=5_000)


def asked(script: Script) -> list[list[int]]:
    """The partitions of each request for files."""
    requests: list[Any] = [call.message for call in script.calls if call.api is scan_manifest]
    return [[each.partition_index for topic in request.topics for each in topic.partitions] for request in requests]


def test_files_that_are_being_exchanged_are_asked_for_again() -> None:
    script = Script(described(1, 1), told((0, EXCHANGED), (1, 0)), told((0, EXCHANGED)), told((0, 0)))
    manifest = script.run(asking())
    assert [(each.partition, each.end_offset) for each in manifest.partitions] == [(0, 10), (1, 11)]
    assert asked(script) == [[0, 1], [0], [0]]
    assert script.pauses == 2
    assert [call.message.lease_id for call in script.calls[1:]] == [bytes(16), LEASE, LEASE]


def test_pages_of_files_that_were_exchanged_later_are_forgotten() -> None:
    script = Script(
        described(1, 1),
        told((0, 0), (1, 0), segments=(0, 2), next_offset=4),
        told((0, EXCHANGED), (1, 0), segments=(4,)),
        told((0, 0), segments=(0, 3)),
    )
    first, second = script.run(asking()).partitions
    assert [each.base_offset for each in first.segments] == [0, 3]
    assert [each.base_offset for each in second.segments] == [0, 2, 4]


def test_exchanges_without_an_end_are_reported_and_nothing_stays_held() -> None:
    released = scan_release.ScanReleaseResponse()
    script = Script(described(1, 1), *[told((0, EXCHANGED), (1, 0))] * (scans.EXCHANGES_MAX + 1), released)
    with pytest.raises(BrokerError, match="no files of t-0: REPLICA_NOT_AVAILABLE"):
        script.run(asking())
    assert script.pauses == scans.EXCHANGES_MAX
    assert script.calls[-1].message.lease_id == LEASE
    assert not script.answers


def test_a_damaged_log_is_reported_at_once() -> None:
    damaged = told((0, ErrorCode.KAFKA_STORAGE_ERROR), (1, 0))
    script = Script(described(1, 1), damaged, scan_release.ScanReleaseResponse())
    with pytest.raises(BrokerError, match="no files of t-0: KAFKA_STORAGE_ERROR"):
        script.run(asking())
    assert (script.pauses, script.answers) == (0, [])


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    there = replace(told((1, 0)), node_id=2, lease_id=b"m" * 16)
    script = Script(described(1, 2), told((0, 0)), there)
    manifest = script.run(asking())
    assert [call.target for call in script.calls[1:]] == [1, 2]
    assert asked(script) == [[0], [1]]
    assert [(lease.node, lease.lease_id) for lease in manifest.leases] == [(1, LEASE), (2, b"m" * 16)]
    assert [(each.partition, each.node) for each in manifest.partitions] == [(0, 1), (1, 2)]


def test_a_partition_that_has_moved_is_asked_for_at_its_new_leader() -> None:
    moved = told((0, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, 0))
    script = Script(described(1, 1), moved, scan_release.ScanReleaseResponse(), described(2, 2), told((0, 0), (1, 0)))
    assert len(script.run(asking()).partitions) == 2
    assert [call.target for call in script.calls if call.api is scan_manifest] == [1, 2]
    assert script.pauses == 1
