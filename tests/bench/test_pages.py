"""Bars, pictures, and a page of which only the measured part is written."""

import json
from pathlib import Path

from headrace.bench.charts import BAR_COLUMNS, bar, bar_lines
from headrace.bench.figures import Measurement, as_json
from tools.bench.performance_page import CLUSTER, COMPARE, PIPELINE, Section, write_page
from tools.bench.pictures import picture
from tools.bench.targets import TARGETS, verdicts

OURS = Measurement(
    load="32 x 1, 100 B",
    subject="headrace",
    client="C replay",
    rounds=({"cpu_us_per_request": 10.0}, {"cpu_us_per_request": 12.0}),
)
BEGIN, END = COMPARE.begin, COMPARE.end
THEIRS = Measurement(
    load="32 x 1, 100 B", subject="kafka 4.3.1", client="C replay", rounds=({"cpu_us_per_request": 22.0},)
)


def test_bars_stand_beside_each_other() -> None:
    heading, ours, theirs = bar_lines([OURS, THEIRS])
    assert heading == "32 x 1, 100 B: CPU us/request"
    assert ours == f"  headrace     {'█' * (BAR_COLUMNS // 2)} 11.0"
    assert theirs == f"  kafka 4.3.1  {'█' * BAR_COLUMNS} 22.0"


def test_one_subject_is_drawn_by_its_loads() -> None:
    other = Measurement(load="8 x 16", subject="headrace", client="", rounds=({"cpu_us_per_request": 5.5},))
    assert [line.split()[0] for line in bar_lines([OURS, other])] == ["CPU", "32", "8"]


def test_a_bar_is_never_empty_and_never_too_long() -> None:
    assert bar(0.0, 10) == "▏"
    assert bar(7.0, 10) == "█" * 10
    assert bar(0.55, 10) == "█████▌"


def test_a_picture_calls_no_server() -> None:
    drawn = picture(bar_lines([OURS, THEIRS]), title="headrace bench")
    assert drawn.startswith("<svg")
    assert "headrace" in drawn
    assert "url(" not in drawn.replace("url(#", "")


def write(
    page: Path, *, failures: dict[str, str], section: Section = COMPARE, others: tuple[Measurement, ...] = ()
) -> str:
    write_page(
        page,
        section,
        command="python -m tools.bench compare",
        day="2026-01-31",
        machine={"cpu": "2 x fast"},
        measurements=[OURS, THEIRS, *others],
        verdicts=verdicts([OURS, THEIRS], TARGETS[:2]),
        failures=failures,
    )
    return page.read_text()


def test_what_people_wrote_around_the_table_stays(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Ours\n\nbefore\n\n{BEGIN}\nold table\n{END}\n\nafter\n")
    text = write(page, failures={})
    assert text.startswith(f"# Ours\n\nbefore\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "old table" not in text
    assert "| 32 x 1, 100 B | CPU us/request | 11.0 | 22.0 (kafka) | 0.50 | <= 0.5 x kafka | reached |" in text
    assert "The same [as bars](images/performance.svg), and [every round](performance/compare.json)." in text
    assert (tmp_path / "images" / "performance.svg").read_text().startswith("<svg")


def test_every_round_is_in_the_file_beside_the_page(tmp_path: Path) -> None:
    write(tmp_path / "performance.md", failures={"consume": "the broker stopped"})
    rounds = json.loads((tmp_path / "performance" / "compare.json").read_text())
    assert rounds["command"] == "python -m tools.bench compare"
    assert rounds["day"] == "2026-01-31"
    assert rounds["machine"] == {"cpu": "2 x fast"}
    assert rounds["failures"] == {"consume": "the broker stopped"}
    ours, theirs = rounds["measurements"]
    assert ours == as_json(OURS)
    assert [one["cpu_us_per_request"] for one in ours["rounds"]] == [10.0, 12.0]
    assert theirs["subject"] == "kafka 4.3.1"
    assert [row["verdict"] for row in rounds["verdicts"]] == ["reached", "not measured"]


def test_a_section_may_show_all_medians(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    write(page, failures={}, section=PIPELINE)
    assert "| 32 x 1, 100 B | headrace | CPU us/request | 11.0 ±9% |" in page.read_text()


def test_a_section_may_show_the_medians_of_loads_without_a_target(tmp_path: Path) -> None:
    other = Measurement(load="metadata", subject="headrace", client="", rounds=({"cpu_us_per_request": 5.5},))
    text = write(tmp_path / "performance.md", failures={}, section=CLUSTER, others=(other,))
    assert "| metadata | headrace | CPU us/request | 5.5 |" in text
    assert "| 32 x 1, 100 B | headrace | CPU us/request |" not in text


def test_a_new_page_is_written_and_failures_are_reported(tmp_path: Path) -> None:
    text = write(tmp_path / "new" / "page.md", failures={"consume": "the broker stopped"})
    assert text.startswith("# Performance\n")
    assert "Not measured: consume. the broker stopped" in text
    assert "| not measured |" in text
    assert write(tmp_path / "new" / "page.md", failures={}).count(BEGIN) == 1


def test_a_page_without_marks_gets_them_at_its_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Ours\n")
    assert write(page, failures={}).startswith(f"# Ours\n\n{BEGIN}\n")
