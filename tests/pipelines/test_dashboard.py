"""The Grafana dashboard of pipelines asks for metrics, labels and values that a run really has, and for all of them."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from headrace.spark.pipelines.lag import SourceLag, summary
from headrace.spark.pipelines.metrics import run_page
from headrace.spark.pipelines.totals import no_totals, with_batch
from tests.pipelines.test_metrics import RECORD, report

DASHBOARD = json.loads(Path("examples/grafana/pipelines.json").read_text())
SELECTOR = re.compile(r"(headrace_\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)=~"([^"]*)"')
SAMPLE = re.compile(r"^(headrace_\w+)\{(.*)\} \S+$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
WIDTH = 24


def samples() -> dict[str, dict[str, set[str]]]:
    """The metrics of a run that has something of everything: their labels with the values."""
    batch = report(4, dead=2, fields={"coupon": 3})
    batch["totals"] = with_batch(no_totals(), batch)
    batch["lag"] = summary([SourceLag("t", 0, 5, 9, 1.5)])
    found: dict[str, dict[str, set[str]]] = {}
    for name, labels in SAMPLE.findall(run_page(RECORD, batch, is_alive=True)):
        for label, value in LABEL.findall(labels):
            found.setdefault(name, {}).setdefault(label, set()).add(value)
    return found


def targets() -> list[dict[str, Any]]:
    return [target for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_query_finds_something_in_a_real_page() -> None:
    known = samples()
    for target in targets():
        (selector,) = SELECTOR.findall(target["expr"])
        name, matchers = selector
        assert name in known, target["expr"]
        for label, pattern in MATCHER.findall(matchers):
            assert label in known[name], target["expr"]
            for value in () if pattern == "$pipeline" else pattern.split("|"):
                assert value in known[name][label], (target["expr"], value)
        grouped = re.findall(r"by \(([^)]*)\)", target["expr"])
        shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        labels = {each.strip() for text in grouped for each in text.split(",")} | set(shown)
        assert labels <= known[name].keys(), target["expr"]
        if grouped:
            assert set(shown) <= {each.strip() for each in grouped[0].split(",")}, target["expr"]


def test_counters_are_shown_as_rates_and_gauges_are_not() -> None:
    for target in targets():
        ((name, _),) = SELECTOR.findall(target["expr"])
        assert bool(re.search(r"\b(rate|increase)\(", target["expr"])) is name.endswith("_total"), target["expr"]


def test_every_metric_of_a_run_has_a_panel() -> None:
    assert {name for target in targets() for name, _ in SELECTOR.findall(target["expr"])} == samples().keys()


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= place["x"] + place["w"] <= WIDTH, panel["title"]
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert is_beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_the_variable_is_filled_from_a_metric_that_every_pipeline_has() -> None:
    queries = [each["query"] for each in DASHBOARD["templating"]["list"] if each["name"] == "pipeline"]
    assert [each["query"] for each in queries] == ["label_values(headrace_pipeline_up, pipeline)"]
    assert 'headrace_pipeline_up{pipeline="p"}' in run_page(RECORD, None, is_alive=False)
