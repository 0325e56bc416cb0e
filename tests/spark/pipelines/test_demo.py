"""The second half of the demo, in small: every order is aggregated, late or dead, and nothing is left behind."""

import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from headrace.testing.embedded import EmbeddedBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
EVENTS = 3_000


def test_the_orders_of_the_demo_add_up(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import demo_brokers  # type: ignore[import-not-found]
    import demo_pipeline  # type: ignore[import-not-found]

    text = StringIO()
    console = Console(file=text, width=120)
    with EmbeddedBroker(process=True) as broker:
        brokers = demo_brokers.Brokers(broker.bootstrap_servers, [])
        total, outcome = demo_pipeline.run_pipeline(console, tmp_path, brokers, EVENTS, lambda: spark)
    demo_pipeline.show_results(console, total, outcome, 1.0)
    assert total.sent == EVENTS == total.aggregated + total.late + total.dead
    assert total.in_files == total.aggregated > 0
    assert total.dead > 0
    assert "every order is somewhere" in text.getvalue()
    assert "de" in total.by_country
    for module in ("demo", "demo_brokers", "demo_group", "demo_pipeline"):
        sys.modules.pop(module, None)
