"""Every recipe of the cookbook, on its own fixtures."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.cli.pipeline_test import compare
from headrace.spark.pipelines.reading import read_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
RECIPES = sorted(file.parent.name for file in ROOT.glob("examples/pipelines/*/pipeline.yml"))
COOKBOOK = ROOT / "docs" / "guide" / "cookbook.md"


def test_there_are_ten_and_the_cookbook_tells_of_each() -> None:
    assert len(RECIPES) == 10
    text = COOKBOOK.read_text()
    for recipe in RECIPES:
        assert f"examples/pipelines/{recipe}" in text


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_gives_what_it_says(spark: "SparkSession", recipe: str) -> None:
    pipeline = read_pipeline(ROOT / "examples" / "pipelines" / recipe)
    found = compare(pipeline, lambda: spark)
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert found
