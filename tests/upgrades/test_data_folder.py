"""The broker reads the data folder of a development version, whose metadata log has the old name of batch commits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Consumer
from headrace.client.batch_commits import FEATURE, FEATURE_BEFORE, BatchOutcome
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.core.controller.records import BATCH_VERSION, RENAMED_FEATURES
from headrace.testing import EmbeddedBroker
from tests.upgrades.earlier_release import owner, unpack
from tests.upgrades.make_earlier_release import BATCHES, BROKER_CONFIG, ROWS, TOPIC

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture
def broker(folder: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(data_dir=str(folder / "data"), config=BROKER_CONFIG) as started:
        yield started


def test_the_archive_has_the_old_name(folder: Path) -> None:
    written = b"".join(path.read_bytes() for path in (folder / "data").rglob("*.log"))
    assert FEATURE_BEFORE.encode() in written
    assert FEATURE.encode() not in written


def test_batches_of_the_earlier_release_are_known(folder: Path, broker: EmbeddedBroker) -> None:
    name = owner(folder, "headrace")
    with BatchCommits(broker.bootstrap_servers) as commits:
        assert commits.supported()
        assert commits.describe(name).committed_batch_id == BATCHES - 1
        repeated = commits.begin_batch_writer(name, run="next", batch_id=BATCHES - 1, task_attempt_id=1)
        assert repeated is None
        outcome = commits.commit_batch(name, run="next", batch_id=BATCHES - 1, writers=[], write_id="w")
        assert outcome is BatchOutcome.ALREADY_COMMITTED
        assert commits.begin_batch_writer(name, run="next", batch_id=BATCHES, task_attempt_id=2) is not None


def test_the_feature_has_its_new_name_alone(broker: EmbeddedBroker) -> None:
    with BatchCommits(broker.bootstrap_servers) as commits:
        commits.supported()
        features = commits._session.cluster
        assert (features.feature(FEATURE), features.feature(FEATURE_BEFORE)) == (1, 0)


def test_rows_of_the_earlier_release_are_read(broker: EmbeddedBroker) -> None:
    settings: Any = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(TOPIC, bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
        values: list[int] = []
        while len(values) < ROWS * BATCHES:
            values += [int(record.value) for record in consumer.poll(timeout_ms=60_000) if record.value is not None]
    assert sorted(values) == list(range(ROWS * BATCHES))


def test_the_names_are_mapped_to_present_ones() -> None:
    assert RENAMED_FEATURES == {FEATURE_BEFORE: BATCH_VERSION}
    assert BATCH_VERSION == FEATURE
