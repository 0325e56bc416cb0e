"""The files that `headrace pipeline init` writes: a small pipeline that works without changes, with test records."""

from collections.abc import Mapping
from pathlib import Path

from headrace.spark.pipelines.definition import PIPELINE_FILE
from headrace.spark.pipelines.projects import PROJECT_FILES

FIXTURES_FOLDER = "fixtures"
EXPECTED_FOLDER = "expected"

_PIPELINE = """\
# One pipeline: records of a topic, through SQL, into another topic. Try it:
#   headrace pipeline validate .
#   headrace pipeline test .
#   headrace pipeline run . --once
name: {name}

source:
  topic: orders
  format: json
  schema: id STRING NOT NULL, country STRING, amount DOUBLE, at TIMESTAMP

transform:
  sql: |
    SELECT id, upper(country) AS country, amount, at
    FROM input
    WHERE country IS NOT NULL

expectations:
  - name: amount-is-positive
    check: amount > 0
    action: drop
    quarantine: orders-quarantine

# Records that do not fit the schema go here, with the reason in their headers.
bad_records:
  topic: orders-dead

sink:
  topic: orders-clean
  key: id

trigger: 1 second
"""
_ORDERS = """\
{"key": "1", "value": {"id": "1", "country": "de", "amount": 12.5, "at": "2026-05-31T12:00:00Z"}}
{"key": "2", "value": {"id": "2", "country": "fr", "amount": 99.0, "at": "2026-05-31T12:00:01Z"}}
{"key": "3", "value": {"id": "3", "country": "de", "amount": -1.0, "at": "2026-05-31T12:00:02Z"}}
{"key": "4", "value": {"country": "it", "amount": 3.0}}
{"key": "5", "value": "this is not JSON"}
{"key": "6", "value": {"id": "6", "amount": 7.0}}
"""
_CLEAN = """\
{"key": "1", "value": {"id": "1", "country": "DE", "amount": 12.5, "at": "2026-05-31T12:00:00.000Z"}}
{"key": "2", "value": {"id": "2", "country": "FR", "amount": 99.0, "at": "2026-05-31T12:00:01.000Z"}}
"""
_QUARANTINE = """\
{"value": {"id": "3", "country": "DE", "amount": -1.0, "at": "2026-05-31T12:00:02.000Z"}}
"""
_DEAD = """\
{"key": "4", "value": {"country": "it", "amount": 3.0}}
{"key": "5", "value": "this is not JSON"}
"""
_PROJECT = """\
# A project of Spark's declarative pipelines, with a topic at its beginning and one at its end. Try it:
#   headrace pipeline validate .
#   headrace topics create orders
#   headrace topics create orders-clean
#   headrace pipeline run .
name: {name}
# Where Spark keeps its checkpoints. It wants a whole address here.
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
_TABLES = """\
import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()
# `headrace pipeline run --bootstrap HOST:PORT` sets it.
BROKER = {"kafka.bootstrap.servers": os.environ.get("HEADRACE_BOOTSTRAP", "127.0.0.1:9092")}
SCHEMA = "id STRING, country STRING, amount DOUBLE"


@dp.table
def orders() -> DataFrame:
    records = spark.readStream.format("headrace").options(**BROKER, subscribe="orders", startingOffsets="earliest")
    parsed = sql.from_json(sql.col("value").cast("string"), SCHEMA).alias("order")
    return records.load().select(parsed).select("order.*")


dp.create_sink("clean", "headrace", {**BROKER, "topic": "orders-clean"})


@dp.append_flow(target="clean")
def to_clean() -> DataFrame:
    good = spark.readStream.table("orders").where("amount > 0")
    return good.select(sql.col("id").alias("key"), sql.to_json(sql.struct("*")).alias("value"))
"""
_BY_COUNTRY = """\
CREATE MATERIALIZED VIEW by_country AS
SELECT country, count(*) AS orders, sum(amount) AS amount
FROM orders
GROUP BY country;
"""


def example_files(name: str) -> dict[str, str]:
    """Return the text of each file, by its path within the folder."""
    return {
        PIPELINE_FILE: _PIPELINE.format(name=name),
        f"{FIXTURES_FOLDER}/orders.jsonl": _ORDERS,
        f"{EXPECTED_FOLDER}/orders-clean.jsonl": _CLEAN,
        f"{EXPECTED_FOLDER}/orders-quarantine.jsonl": _QUARANTINE,
        f"{EXPECTED_FOLDER}/orders-dead.jsonl": _DEAD,
    }


def project_files(folder: Path, name: str) -> dict[str, str]:
    """Return the same example as a project of Spark's declarative pipelines."""
    storage = f"file://{(folder / 'storage').resolve()}"
    return {
        PROJECT_FILES[0]: _PROJECT.format(name=name, storage=storage),
        "transformations/orders.py": _TABLES,
        "transformations/by_country.sql": _BY_COUNTRY,
    }


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files; raises FileExistsError, and writes nothing, if one of them exists."""
    files = {folder / path: text for path, text in texts.items()}
    for path in files:
        if path.exists():
            raise FileExistsError(str(path))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
