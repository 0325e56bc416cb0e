"""Every recipe of the cookbook, on its own fixtures; those of replay and backfill with the commands they are about."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.cli.pipeline_test import compare
from headrace.client import Producer
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.records import RunState
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import read_records, rows, run_once, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "pipelines"
RECIPES = sorted(file.parent.name for file in EXAMPLES.glob("*/pipeline.yml"))
COOKBOOK = ROOT / "docs" / "guide" / "cookbook.md"


def test_there_are_ten_and_the_cookbook_has_them_as_they_are() -> None:
    assert len(RECIPES) == 11
    text = COOKBOOK.read_text()
    for recipe in RECIPES:
        assert f"examples/pipelines/{recipe}" in text
        for file in (*EXAMPLES.joinpath(recipe).glob("*.yml"), *EXAMPLES.joinpath(recipe).glob("*.py")):
            assert file.read_text().strip() in text, file


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_gives_what_it_says(spark: "SparkSession", recipe: str) -> None:
    pipeline = read_pipeline(EXAMPLES / recipe)
    found = compare(pipeline, lambda: spark)
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert found


@pytest.fixture
def own_broker() -> Iterator[EmbeddedBroker]:
    """The recipes name their topics."""
    with EmbeddedBroker() as started:
        yield started


def copied(recipe: str, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / recipe, folder / recipe))


def send(bootstrap: str, topic: str, texts: list[str]) -> None:
    with Producer(bootstrap) as producer:
        for number, text in enumerate(texts):
            producer.send(topic, text.encode(), key=str(number).encode(), headers=[("trace", str(number).encode())])


def test_letters_of_the_recipe_are_sent_again_when_its_schema_is_mended(
    spark: "SparkSession", own_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    servers, folder = own_broker.bootstrap_servers, copied("dead-letter-and-replay", tmp_path)
    own_broker.create_topic("payments", partitions=2)
    sent = [{"id": str(n), "amount": "many" if n % 5 == 0 else n * 1.5} for n in range(40)]
    send(servers, "payments", [json.dumps(payment) for payment in sent])
    first = run_once(folder, spark, servers)
    assert (first.state, rows(first, "dead"), rows(first, "written")) == (RunState.DONE, 8, 32), first.message
    file = folder / "pipeline.yml"
    file.write_text(file.read_text().replace("amount DOUBLE", "amount STRING"))
    replayed = CliRunner().invoke(cli, ["pipeline", "replay-dlq", str(folder), "--json", "--bootstrap", servers])
    assert json.loads(replayed.output) == {"sent": 8, "passed_over": 0, "before_rewind": 0}
    second = run_once(folder, spark, servers)
    assert (second.state, rows(second, "read"), rows(second, "dead")) == (RunState.DONE, 8, 0), second.message
    found = values(read_records(servers, "payments-clean"))
    assert sorted(found, key=lambda row: int(row["id"])) == sent


def test_the_backfill_of_the_recipe_ends_where_its_stream_begins(
    spark: "SparkSession", own_broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, folder = own_broker.bootstrap_servers, copied("backfill-then-live", tmp_path)
    monkeypatch.setattr("headrace.cli.pipeline_rewind.spark_session", lambda *_: spark)
    own_broker.create_topic("readings", partitions=2)
    history = [
        "broken" if n % 10 == 3 else json.dumps({"sensor": str(n), "celsius": 9999 if n % 10 == 7 else n})
        for n in range(100)
    ]
    send(servers, "readings", history)
    filled = CliRunner().invoke(cli, ["pipeline", "backfill", str(folder), "--bootstrap", servers])
    assert filled.exit_code == 0, (filled.output, filled.exception)
    assert len(read_records(servers, "readings-fahrenheit")) == 80
    send(servers, "readings", [json.dumps({"sensor": str(n), "celsius": n}) for n in range(100, 120)])
    live = run_once(folder, spark, servers)
    assert (live.state, rows(live, "read")) == (RunState.DONE, 20), live.message
    found = sorted(values(read_records(servers, "readings-fahrenheit")), key=lambda row: int(row["sensor"]))
    good = [n for n in range(120) if n >= 100 or n % 10 not in (3, 7)]
    assert found == [{"sensor": str(n), "fahrenheit": n * 9 / 5 + 32} for n in good]
    assert len(read_records(servers, "readings-odd")) == 10
    assert [record.value for record in read_records(servers, "readings-dead")] == [b"broken"] * 10
