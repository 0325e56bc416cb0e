"""Two streams of a pipeline on one topic, each as far as it may be in a batch, and both rewound to one batch."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import read_records, run_once, send, values, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 4
PIPELINE = """
name: {topic}
sources:
  fast: {{topic: {topic}, format: json, schema: "n INT"}}
  slow: {{topic: {topic}, format: json, schema: "n INT", rows_per_batch: 2}}
transform:
  sql: SELECT 'slow' AS source, n FROM slow UNION ALL SELECT 'fast' AS source, n FROM fast
bad_records: {{topic: {topic}-dead}}
sink: {{topic: {topic}-out}}
"""


def test_a_rewind_gives_each_source_its_own_end(
    spark: "SparkSession", broker: EmbeddedBroker, tmp_path: Path, topic: str
) -> None:
    folder = write_pipeline(tmp_path / "two", PIPELINE.format(topic=topic))
    send(broker.bootstrap_servers, topic, ({"n": number} for number in range(RECORDS)), keys=["k"] * RECORDS)
    run_once(folder, spark, broker.bootstrap_servers)
    call = ["pipeline", "rewind", str(folder), "--to-batch", "0", "--yes", "--json"]
    rewound = CliRunner().invoke(cli, [*call, "--bootstrap", broker.bootstrap_servers])
    assert rewound.exit_code == 0, rewound.output
    starts = {name: sum(vector[topic].values()) for name, vector in json.loads(rewound.output).items()}
    assert starts == {"fast": RECORDS, "slow": 2}
    run_once(folder, spark, broker.bootstrap_servers)
    written = values(read_records(broker.bootstrap_servers, f"{topic}-out"))
    assert Counter(row["source"] for row in written) == {"fast": RECORDS, "slow": RECORDS + RECORDS - 2}
    assert {row["n"] for row in written if row["source"] == "slow"} == set(range(RECORDS))
