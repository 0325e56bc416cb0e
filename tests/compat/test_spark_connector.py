"""Results of Spark's connector that `make compat` keeps, and the part of the page that is made of them."""

from pathlib import Path

import pytest

from compat.sections import replaced
from compat.spark_connector.outcomes import outcomes_in, section, stored

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="c" name="test_rows_are_the_same[some partitions]"/>
<testcase classname="c" name="test_a_stream_ends"><failure message="no">why</failure></testcase>
</testsuite></testsuites>
"""


def test_a_report_is_read_as_sentences() -> None:
    assert outcomes_in(REPORT) == {"a stream ends": False, "rows are the same: some partitions": True}
    assert "| a stream ends | **no** |" in section(outcomes_in(REPORT))


def test_the_page_shows_what_came_out() -> None:
    shown = PAGE.read_text()
    assert all(stored().values())
    assert len(stored()) > 10
    assert replaced(shown, section(stored())) == shown


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(AssertionError, match="no place"):
        replaced("# Compatibility\n", section({}))
