"""A project of Spark's declarative pipelines with our source and sink: run after run, and after a mistake in it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.commands import running
from tests.spark.pipelines.helpers import read_records, send, values

SECONDS_MAX = 400
MASTER = "local[2]"
RUN_LINE = re.compile(r"run \d+: (\d+) records read")


@pytest.fixture
def project(broker: EmbeddedBroker, tmp_path: Path) -> Path:
    """As `init` writes it, with topics of its own."""
    name = broker.unused_topic_name("project")
    broker.create_topic(name, partitions=2)
    broker.create_topic(f"{name}-clean")
    folder = tmp_path / name
    written = CliRunner().invoke(cli, ["pipeline", "init", "--declarative", str(folder)], catch_exceptions=False)
    assert written.exit_code == 0, written.output
    tables = folder / "transformations" / "orders.py"
    tables.write_text(
        tables.read_text().replace('"orders-clean"', f'"{name}-clean"').replace('="orders"', f'="{name}"')
    )
    return folder


def records_read(lines: list[str]) -> int:
    """Of all runs that are reported."""
    return sum(int(found[1]) for line in lines if (found := RUN_LINE.match(line)))


@pytest.mark.timeout(2 * SECONDS_MAX)
@pytest.mark.spark
def test_runs_of_a_project_continue_where_the_last_one_ended(broker: EmbeddedBroker, project: Path) -> None:
    bootstrap, name = broker.bootstrap_servers, project.name
    call = ("--bootstrap", bootstrap)
    order = [{"id": str(number), "country": "de", "amount": number - 2.0} for number in range(30)]
    send(bootstrap, name, order[:10])
    view = project / "transformations" / "by_country.sql"
    right = view.read_text()
    with running("run", str(project), "--continuous", "--master", MASTER, *call) as continuous:
        continuous.wait_for(lambda: records_read(continuous.lines) == 10)
        send(bootstrap, name, order[10:20])
        told = CliRunner().invoke(cli, ["pipeline", "status", name, *call])
        assert "running" in told.output, told.output
        again = CliRunner().invoke(cli, ["pipeline", "run", str(project), *call])
        assert (again.exit_code, "in use by another run" in again.output) == (3, True)
        continuous.wait_for(lambda: records_read(continuous.lines) == 20)
        # At once: a run that finds nothing new takes as long as another.
        view.write_text(right.replace("sum(amount)", "sum(nothing)"))
        assert continuous.end() == 1
    assert f'{view}:2: "by_country": A column' in continuous.lines[-1], continuous.lines[-1]
    assert "`nothing` cannot be resolved" in continuous.lines[-1]
    view.write_text(right)
    send(bootstrap, name, order[20:])
    with running("run", str(project), "--once", "--master", MASTER, *call) as once:
        assert once.end() == 0, once.lines
    assert records_read(once.lines) == 10, once.lines
    found = sorted(int(row["id"]) for row in values(read_records(bootstrap, f"{name}-clean")))
    assert found == list(range(3, 30))
    lag = CliRunner().invoke(cli, ["pipeline", "lag", name, *call])
    assert (lag.exit_code, name in lag.output) == (0, True), lag.output
    assert {file.name for file in project.iterdir()} >= {"spark-warehouse", "storage", ".headrace"}
