"""Loads on three replicas: the check of every replica's files, and where the leaders are."""

from pathlib import Path

import pytest

from headrace.bench.brokers import BrokerProcess
from headrace.bench.errors import RunRejected
from headrace.bench.figures import FIGURES
from headrace.wire.records.builder import BatchBuilder
from tools.bench import replicas, replicated_loads
from tools.bench.commands import replicas as replicas_command
from tools.bench.measured_clusters import MeasuredCluster
from tools.bench.replicated_loads import check_replicas, log_end
from tools.bench.targets import KAFKA


def batch(base_offset: int, records: int) -> bytearray:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(0, None, b"value")
    built = builder.build()
    built[:8] = base_offset.to_bytes(8, "big")
    built[12:16] = bytes(4)  # the leader epoch
    return built


def partition(folder: Path, *batches: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches) + bytes(4096))
    return folder


def test_a_log_ends_behind_its_batches_and_not_behind_reserved_space(tmp_path: Path) -> None:
    first = partition(tmp_path / "a-0", batch(0, 3), batch(3, 2))
    assert log_end(first) == 5
    (first / "00000000000000000005.log").write_bytes(batch(5, 4))
    (first / "00000000000000000009.log").touch()
    assert log_end(first) == 9


def test_a_log_ends_before_a_damaged_batch_and_before_a_gap(tmp_path: Path) -> None:
    damaged = batch(3, 2)
    damaged[-1] ^= 1
    assert log_end(partition(tmp_path / "a-0", batch(0, 3), damaged)) == 3
    assert log_end(partition(tmp_path / "a-1", batch(0, 3), batch(4, 2))) == 3


def test_every_replica_must_have_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated_loads, "REPLICAS_SECONDS_MAX", 0)
    cluster = MeasuredCluster(
        "three", {node_id: BrokerProcess("one", tmp_path / str(node_id)) for node_id in (1, 2, 3)}
    )
    for node_id in (1, 2, 3):
        for index in (0, 1):
            partition(tmp_path / str(node_id) / "data" / f"orders-{index}", batch(0, 3))
    check_replicas(cluster, "orders", 2, records=6)
    (tmp_path / "3" / "data" / "orders-1" / "00000000000000000000.log").write_bytes(b"")
    with pytest.raises(RunRejected, match=r"6 records were acknowledged, but the brokers have {1: 6, 2: 6, 3: 3}"):
        check_replicas(cluster, "orders", 2, records=6)


def test_targets_name_figures_and_loads_that_exist() -> None:
    loads = {replicas.MESSAGES, replicas.MEDIUM, replicas.LARGE, replicas.SINGLE, replicas.COMMITS}
    for target in replicas.replica_targets():
        assert target.figure in FIGURES
        assert target.against in ("", KAFKA)
        assert target.load in {*loads, *replicas.PACED.values()}


def test_the_command_offers_every_part() -> None:
    assert tuple(replicas.PARTS) == replicas_command.PART_NAMES
