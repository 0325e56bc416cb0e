"""Pipelines in a test's folder: written, run with the session and the broker of all tests, and read back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client import ConsumerRecord, Producer
from headrace.client.blocking.whole_topics import read_topic
from headrace.spark.pipelines.claims import RunOutcome
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_pipeline(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.yml").write_text(text)
    return folder


def runner_of(folder: Path, spark: "SparkSession", bootstrap: str, *, once: bool = True) -> Runner:
    return Runner(pipeline=read_pipeline(folder), bootstrap=bootstrap, make_session=lambda: spark, is_once=once)


def run_once(folder: Path, spark: "SparkSession", bootstrap: str) -> RunOutcome:
    return runner_of(folder, spark, bootstrap).run()


def forget_end_of_last_batch(folder: Path) -> None:
    """Leave the checkpoint as a kill does after the sinks have the batch and before Spark has logged its end."""
    commits = folder / "checkpoint" / "spark-0" / "commits"
    last = max(int(file.name) for file in commits.glob("[0-9]*"))
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()


def send(
    bootstrap: str, topic: str, values: Iterable[Any], *, keys: Sequence[str] = (), partitions: int | None = None
) -> None:
    """Send objects as JSON and bytes as they are.

    With `partitions`, record n goes to partition n modulo that number, so that the end of each batch of Spark does not
    depend on how the producer filled its batches.
    """
    with Producer(bootstrap) as producer:
        for number, value in enumerate(values):
            encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
            key = keys[number].encode() if keys else None
            producer.send(topic, encoded, key=key, partition=None if partitions is None else number % partitions)


def read_records(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """All committed records of a topic."""
    return list(read_topic({"bootstrap.servers": bootstrap}, topic))


def values(records: Iterable[ConsumerRecord]) -> list[Any]:
    return [json.loads(record.value) for record in records]


def headers(record: ConsumerRecord) -> dict[str, str]:
    return {name: (text or b"").decode() for name, text in record.headers}


def rows(outcome: RunOutcome, name: str) -> int:
    return sum(batch["rows"][name] for batch in outcome.batches)


def counted(found: Iterable[Mapping[str, Any]], column: str) -> int:
    return sum(int(each[column]) for each in found)
