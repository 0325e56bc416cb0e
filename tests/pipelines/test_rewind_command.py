"""`headrace pipeline rewind`: where each way of saying it leads, and what is refused. None of it needs Spark."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import Admin, Producer
from headrace.spark.pipelines.checkpoints import Checkpoint
from headrace.spark.pipelines.records import RunRecord, RunState, run_message
from headrace.spark.pipelines.status_topic import make_topic, opened
from headrace.testing.embedded import EmbeddedBroker

pytestmark = pytest.mark.process

TOPIC = "orders"
MOMENT_MS = 1_780_228_800_000
PER_PARTITION = 4


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Its topic has a record a second, in both partitions."""
    with EmbeddedBroker() as started:
        started.create_topic(TOPIC, partitions=2)
        with Producer(started.bootstrap_servers) as producer:
            for number in range(PER_PARTITION):
                for partition in (0, 1):
                    producer.send(TOPIC, b"x", partition=partition, timestamp=MOMENT_MS + number * 1_000)
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yml").write_text(f"name: {tmp_path.name}\nsource: {{topic: {TOPIC}}}\nsink: {{topic: out}}\n")
    log_batch(tmp_path, 3, {TOPIC: {"0": 1, "1": 3}, "hr:ids": {}})
    return tmp_path


def log_batch(folder: Path, number: int, *ends: Mapping[str, object] | None, is_finished: bool = True) -> None:
    """As Spark does."""
    spark = folder / "checkpoint" / "spark-0"
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}}
    lines = ["v1", json.dumps(metadata), *("-" if end is None else json.dumps(end) for end in ends)]
    for log, text in (("offsets", "\n".join(lines)), ("commits", "v1\n{}")):
        (spark / log).mkdir(parents=True, exist_ok=True)
        if log == "offsets" or is_finished:
            (spark / log / str(number)).write_text(text)


def rewind(folder: Path, broker: EmbeddedBroker, *arguments: str) -> Result:
    call = ["pipeline", "rewind", str(folder), "--bootstrap", broker.bootstrap_servers, *arguments]
    return CliRunner().invoke(cli, call)


@pytest.mark.parametrize(
    ("target", "starts"),
    [
        (("--to-earliest",), {"0": 0, "1": 0}),
        (("--to-latest",), {"0": PER_PARTITION, "1": PER_PARTITION}),
        (("--to-time", "2026-05-31T12:00:02Z"), {"0": 2, "1": 2}),
        (("--to-time", "2100-01-01"), {"0": PER_PARTITION, "1": PER_PARTITION}),
        (("--to-batch", "3"), {"0": 1, "1": 3}),
    ],
)
def test_the_next_run_begins_where_it_should(
    broker: EmbeddedBroker, folder: Path, target: tuple[str, ...], starts: dict[str, int]
) -> None:
    before = Checkpoint(folder / "checkpoint").note()
    shown = rewind(folder, broker, *target, "--dry-run", "--json")
    assert json.loads(shown.output) == {"input": {TOPIC: starts}}
    assert Checkpoint(folder / "checkpoint").note() == before
    done = rewind(folder, broker, *target, "--yes")
    assert (done.exit_code, "starts there (generation 1)" in done.output) == (0, True), done.output
    note = Checkpoint(folder / "checkpoint").note()
    assert (note.generation, note.starts) == (1, {"input": {TOPIC: starts}})


TWO_SOURCES = f"""name: NAME
sources:
  fast: {{topic: {TOPIC}}}
  slow: {{topic: {TOPIC}, rows_per_batch: 2}}
transform: {{sql: SELECT * FROM slow UNION ALL SELECT * FROM fast}}
sink: {{topic: out}}
"""
FAST, SLOW = {TOPIC: {"0": 4, "1": 3}}, {TOPIC: {"0": 1}}


@pytest.mark.parametrize(
    ("ends", "fast"),
    [
        (({**SLOW, "hr:source": "slow"}, {**FAST, "hr:source": "fast"}), {"0": 4, "1": 3}),
        (({**FAST, "hr:source": "fast"}, {**SLOW, "hr:source": "slow"}, {**FAST, "hr:source": "fast"}), FAST[TOPIC]),
        ((SLOW, FAST), {"0": 1, "1": 3}),  # without names, nothing is passed over
        ((FAST, SLOW), {"0": 1, "1": 3}),
    ],
)
def test_each_of_two_sources_on_one_topic_begins_where_it_ended(
    broker: EmbeddedBroker, folder: Path, ends: tuple[Mapping[str, object], ...], fast: dict[str, int]
) -> None:
    (folder / "pipeline.yml").write_text(TWO_SOURCES.replace("NAME", folder.name))
    log_batch(folder, 4, *ends)
    shown = rewind(folder, broker, "--to-batch", "4", "--dry-run", "--json")
    has_names = "hr:source" in ends[0]
    # Where the slow one has not been, it begins with the first record.
    slow = {"0": 1, "1": 0} if has_names else fast
    assert json.loads(shown.output) == {"fast": {TOPIC: fast}, "slow": {TOPIC: slow}}


def test_a_source_that_a_batch_knows_nothing_of_is_not_rewound(broker: EmbeddedBroker, folder: Path) -> None:
    (folder / "pipeline.yml").write_text(TWO_SOURCES.replace("NAME", folder.name))
    log_batch(folder, 4, {**FAST, "hr:source": "fast"}, None)
    refused = rewind(folder, broker, "--to-batch", "4", "--yes")
    assert (refused.exit_code, 'nothing of source "slow": rewind to a time' in refused.output) == (1, True)


def test_the_rows_of_a_batch_that_was_not_finished_are_not_passed_over(broker: EmbeddedBroker, folder: Path) -> None:
    log_batch(folder, 4, {TOPIC: {"0": 2, "1": 4}}, is_finished=False)
    refused = rewind(folder, broker, "--to-batch", "4", "--yes")
    assert refused.exit_code == 1
    assert "batch 4 was begun and not finished" in refused.output
    assert "or rewind to batch 3" in refused.output
    assert Checkpoint(folder / "checkpoint").note().generation == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "give one of --to-earliest"),
        (("--to-earliest", "--to-latest"), 2, "give one of --to-earliest"),
        (("--to-time", "soon"), 2, '"soon" is not a time'),
        (("--to-batch", "9"), 1, "batch 9 is no longer in the checkpoint, which has 3 to 3"),
        (("--to-earliest",), 1, "nothing was changed: confirmation is needed"),
    ],
)
def test_what_says_nothing_useful_changes_nothing(
    broker: EmbeddedBroker, folder: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    refused = rewind(folder, broker, *arguments)
    assert (refused.exit_code, said in refused.output) == (status, True), refused.output
    assert Checkpoint(folder / "checkpoint").note().generation == 0


def test_a_run_on_another_machine_is_not_rewound(broker: EmbeddedBroker, folder: Path) -> None:
    record = RunRecord(
        pipeline=folder.name, run="r", state=RunState.RUNNING, host="elsewhere", process_id=17, started_ms=0
    )
    with Admin(broker.bootstrap_servers) as admin:
        make_topic(admin)
    with opened({"bootstrap.servers": broker.bootstrap_servers}) as bulletin:
        bulletin.publish_and_wait(run_message(record))
    refused = rewind(folder, broker, "--to-earliest", "--yes")
    assert refused.exit_code == 1
    assert "runs on elsewhere as process 17: stop it first" in refused.output
    assert Checkpoint(folder / "checkpoint").note().generation == 0
