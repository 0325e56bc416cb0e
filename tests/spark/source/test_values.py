"""Values as text and as JSON, and what becomes of those that are neither."""

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import load, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    "id BIGINT, small TINYINT, name STRING, price DECIMAL(10, 2), day DATE, ratio DOUBLE, is_new BOOLEAN, "
    "tags ARRAY<STRING>, inner STRUCT<a: INT, b: MAP<STRING, INT>>"
)
WHOLE = {
    "id": 2**40,
    "small": -128,
    "name": "ä",
    "price": "12.50",
    "day": "2026-01-31",
    "ratio": 0.5,
    "is_new": True,
    "tags": ["x", None],
    "inner": {"a": 1, "b": {"k": 2}},
    "unknown": [1, 2],
}


def test_text(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, ["grün".encode(), None, b""], partition=0)
    rows = load(spark, broker, topic, valueFormat="string").sort("offset").collect()
    assert [row.value for row in rows] == ["grün", None, ""]


def test_json(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [json.dumps(WHOLE).encode(), b"{}", None, b'{"id": null}'], partition=0)
    rows = load(spark, broker, topic, valueFormat="json", schema=SCHEMA).sort("offset").collect()
    assert rows[0].value.asDict(recursive=True) == {
        **{name: value for name, value in WHOLE.items() if name != "unknown"},
        "price": Decimal("12.50"),
        "day": date(2026, 1, 31),
    }
    assert set(rows[1].value.asDict().values()) == {None}
    assert rows[2].value is None
    assert rows[3].value.id is None


DEEP = b'{"unknown": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD_OF_JSON = [b"\xff", DEEP, b"[1]", b"{", b'{"id": "text"}', b'{"small": 128}', b'{"price": "123456789.001"}']


@pytest.mark.parametrize(("format_", "bad"), [("string", [b"\xff", b"\xc3"]), ("json", BAD_OF_JSON)])
def test_bad_values(spark: "SparkSession", broker: EmbeddedBroker, topic: str, format_: str, bad: list[bytes]) -> None:
    good = b'{"id": 7}'
    produce(broker, topic, [good, *bad, good], partition=1)
    options = {"valueFormat": format_, **({"schema": SCHEMA} if format_ == "json" else {})}
    last = len(bad) + 1
    dropped = load(spark, broker, topic, onBadRecord="drop", **options).collect()
    assert sorted(row.offset for row in dropped) == [0, last]
    marked = load(spark, broker, topic, onBadRecord="column", **options).sort("offset").collect()
    assert [row.offset for row in marked] == list(range(last + 1))
    assert [row._error is None for row in marked] == [True, *[False] * len(bad), True]
    assert [bytes(row._error.value) for row in marked[1:-1]] == bad
    assert all(row._error.message and row.value is None for row in marked[1:-1])
    with pytest.raises(Exception, match=f"the value of {topic}-1 at offset 1 is not {format_}.*onBadRecord"):
        load(spark, broker, topic, **options).collect()


def test_values_are_not_looked_at_where_they_are_not_asked_for(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str
) -> None:
    produce(broker, topic, [b"\xff"], partition=0)
    assert load(spark, broker, topic, valueFormat="string", columns="offset").collect() == [(0,)]


def test_a_type_that_json_has_not_is_named(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, [b"{}"], partition=0)
    with pytest.raises(Exception, match='option "schema" has the type variant'):
        load(spark, broker, topic, valueFormat="json", schema="a VARIANT").collect()
    with pytest.raises(AnalysisException, match=r'option "schema" \(a NUMBER\).*: unknown type "number"'):
        load(spark, broker, topic, valueFormat="json", schema="a NUMBER")
