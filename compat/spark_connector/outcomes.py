"""The outcome of each test, kept in outcomes.json, and the part of docs/compatibility.md made from it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tools.bench.spark.connector import CONNECTOR_VERSION

OUTCOMES = Path(__file__).parent / "outcomes.json"
BEGIN = "<!-- Spark's connector -->"
END = "<!-- end of Spark's connector -->"
SIGNS = {True: "yes", False: "**no**"}

_PARAMETER = re.compile(r"^test_(?P<words>\w+)(?:\[(?P<case>.*)\])?$")


def stored() -> dict[str, bool]:
    outcomes: dict[str, bool] = json.loads(OUTCOMES.read_text()) if OUTCOMES.is_file() else {}
    return outcomes


def store(outcomes: Mapping[str, bool]) -> None:
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n")


def outcomes_in(report: str) -> dict[str, bool]:
    """Of a report in JUnit's form: what each test says in words, and whether it passed."""
    found: dict[str, bool] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        found[_words(case.attrib["name"])] = len(case) == 0
    return dict(sorted(found.items()))


def _words(name: str) -> str:
    match = _PARAMETER.match(name)
    assert match is not None, name
    words = match["words"].replace("_", " ")
    return f"{words}: {match['case']}" if match["case"] else words


def section(outcomes: Mapping[str, bool]) -> str:
    lines = [
        BEGIN,
        "",
        "## Spark's connector",
        "",
        f'Spark\'s own connector for Kafka (`format("kafka")`, release {CONNECTOR_VERSION}) with this broker, and',
        'beside `format("headrace")`: the same options must give the same rows.',
        "",
        "| what holds | |",
        "|---|---|",
        *(f"| {words} | {SIGNS[passed]} |" for words, passed in outcomes.items()),
    ]
    return "\n".join([*lines, "", END])
