"""Policies of a pipeline for trouble, as its file says: it tries again, keeps strange records out, or only prints."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.client import Admin, ConfigResource, ResourceType
from headrace.spark.pipelines.records import TOPIC, TOPIC_CONFIGS, RunState
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import headers, read_records, rows, run_once, runner_of, send, values, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAGILE = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL"}}
transform: {{python: "code.py:change"}}
sink: {{topic: {name}-out}}
restart: {{attempts: 2, backoff: 100 ms}}
"""
CODE = """\
from pathlib import Path

from pyspark.sql.functions import udf

FLAG = Path({flag!r})


@udf("int")
def fragile(number):
    if not FLAG.exists():
        FLAG.touch()
        raise OSError("the service is away")
    return number + 1


def change(rows):
    return rows.select(fragile("id").alias("id"))
"""
STRICT = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL", unknown_fields: reject}}
sinks:
  - {{console: true, rows: 5}}
bad_records: {{topic: {name}-dead}}
"""
TYPED = """\
name: {name}
source:
  topic: {name}
  format: json
  schema: "id STRING NOT NULL, amount DOUBLE, number INT, customer STRUCT<age: INT>,
    items ARRAY<STRUCT<price: DOUBLE, sizes: ARRAY<INT>>>, places MAP<STRING, STRUCT<home: STRUCT<zip: INT>>>"
sink: {{topic: {name}-out}}
bad_records: {{topic: {name}-dead}}
"""
LENIENT = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id STRING NOT NULL"}}
sink: {{topic: {name}-out}}
bad_records: {{topic: {name}-dead}}
"""


@pytest.fixture
def name(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name[:40]), partitions=2)


def test_a_transform_that_raises_is_tried_again(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, FRAGILE.format(name=name))
    (folder / "code.py").write_text(CODE.format(flag=str(tmp_path / "flag")))
    send(broker.bootstrap_servers, name, ({"id": number} for number in range(10)))
    told: list[str] = []
    runner = runner_of(folder, spark, broker.bootstrap_servers)
    runner.on_state = told.append
    assert runner.run().state is RunState.DONE
    assert f"restart 1 of 2 in 0.1 s after: {folder}/code.py:12: OSError: the service is away" in told, told
    found = sorted(row["id"] for row in values(read_records(broker.bootstrap_servers, f"{name}-out")))
    assert found == list(range(1, 11))
    with Admin(broker.bootstrap_servers) as admin:
        resource = ConfigResource(ResourceType.TOPIC, TOPIC)
        configs = {entry.name: entry.value for entry in admin.describe_configs([resource])[resource]}
    assert {key: configs[key] for key in TOPIC_CONFIGS} == TOPIC_CONFIGS


def test_records_with_new_fields_are_letters_and_the_rest_is_printed(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_pipeline(tmp_path, STRICT.format(name=name))
    send(broker.bootstrap_servers, name, [{"id": 4711}, {"id": 2, "coupon": "x", "colour": "red"}])
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert (outcome.state, rows(outcome, "drifted")) == (RunState.DONE, 1), outcome.message
    assert outcome.batches[-1]["totals"]["drifted_fields"] == {"coupon": 1, "colour": 1}
    (letter,) = read_records(broker.bootstrap_servers, f"{name}-dead")
    assert headers(letter)["hr-dead-reason"] == "fields that the schema does not have: coupon, colour"
    printed = capfd.readouterr().out
    assert "|4711|" in printed
    assert "coupon" not in printed


def test_what_is_more_or_less_than_one_object_is_a_letter(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    """Spark's own reading of JSON stops behind the first object, and replaces what is not UTF-8."""
    folder = write_pipeline(tmp_path, LENIENT.format(name=name))
    bad = [
        b'{"id": "1"} {"id": "lost"}',
        b'{"id": "2"}, {"id": "lost"}',
        b'{"id": "3"}}',
        b'{"id": "4"} x',
        b'{"id": "5"',
        b'{"id": "7"}, "x": 2',
        b'{"id": "8"}], "x": [{}',
        b'{"id": "9"}, {"end": true}], "x": [{}',
    ]
    bad += [b'[{"id": "6"}]', b"null", b"{}", b"", b'{"id": "\xff"}']
    good = [
        b'{"id": "good"}',
        b' {"id": "spaces"}\r\n',
        b"{'id': 'quotes'}",
        b'{"id": "}\\u007d", "more": [{"id": 1}]}',
    ]
    send(broker.bootstrap_servers, name, [*bad, *good], keys=["one partition, so one order"] * len(bad + good))
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    found = [row["id"] for row in values(read_records(broker.bootstrap_servers, f"{name}-out"))]
    assert found == ["good", "spaces", "quotes", "}}"]
    letters = read_records(broker.bootstrap_servers, f"{name}-dead")
    assert [letter.value for letter in letters] == bad
    reasons = [headers(letter)["hr-dead-reason"] for letter in letters]
    assert set(reasons[:10]) == {"the value is not JSON that fits the schema"}
    assert reasons[-1] == "the value is not UTF-8"


def test_fields_that_do_not_fit_are_named(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, TYPED.format(name=name))
    reasons = {
        b'{"id": "1", "amount": "much", "customer": null}': "fields that do not fit the schema: amount",
        b'{"number": 1.5, "id": "2", "amount": {}, "x": 3}': "fields that do not fit the schema: amount, number",
        b'{"amount": "a", "amount": "b", "id": "3"}': "fields that do not fit the schema: amount",
        b'{"id": "4", "customer": "none"}': "fields that do not fit the schema: customer",
        b'{"id": "5", "customer": {"age": "old"}}': "fields that do not fit the schema: customer.age",
        b'{"id": "7", "items": [{"price": 1}, {"price": "free"}, {"price": "more"}], "number": "n"}': (
            "fields that do not fit the schema: number, items[].price"
        ),
        b'{"id": "8", "items": [null, {"sizes": [1, "large"]}], "places": {"a": null, "b": {"home": {"zip": ""}}}}': (
            "fields that do not fit the schema: items[].sizes, places[].home.zip"
        ),
        b'{"id": "9", "items": [{"price": 1}, 2]}': "fields that do not fit the schema: items",
        b'{"id": "10", "customer": {"age": 1, "age": "old"}}': "the value is not JSON that fits the schema",
        b'{"amount": 1}': 'field "id" is missing or null',
    }
    send(broker.bootstrap_servers, name, [*reasons, b'{"id": "6", "amount": 7}'])
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    letters = read_records(broker.bootstrap_servers, f"{name}-dead")
    assert {letter.value: headers(letter)["hr-dead-reason"] for letter in letters} == reasons
    (row,) = values(read_records(broker.bootstrap_servers, f"{name}-out"))
    assert row == {"id": "6", "amount": 7.0}
