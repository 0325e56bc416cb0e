"""Rounds and what is said of them."""

import pytest

from headrace.bench.figures import FIGURES, Measurement, as_json, median_text, spread

MEASURED = Measurement(
    load="32 x 1, 100 B",
    subject="headrace",
    client="C replay",
    rounds=({"cpu_us_per_request": 12.0, "p99_us": 900.0}, {"cpu_us_per_request": 10.0}, {"cpu_us_per_request": 11.0}),
)


def test_a_measurement_is_its_median() -> None:
    assert MEASURED.median("cpu_us_per_request") == 11.0
    assert MEASURED.spread("cpu_us_per_request") == pytest.approx(2 / 11)
    assert MEASURED.figures() == ["cpu_us_per_request", "p99_us"]


def test_the_text_shows_the_spread_of_several_rounds() -> None:
    assert median_text(MEASURED, "cpu_us_per_request") == "11.0 ±9%"
    assert median_text(MEASURED, "p99_us") == "900"


def test_json_has_every_round() -> None:
    found = as_json(MEASURED)
    assert found["rounds"] == [dict(one) for one in MEASURED.rounds]
    assert found["median"] == {"cpu_us_per_request": 11.0, "p99_us": 900.0}
    assert set(found) == {"load", "subject", "client", "rounds", "median", "spread"}


def test_nothing_spreads_around_zero() -> None:
    assert spread([0.0, 0.0]) == 0.0


def test_every_figure_can_be_shown() -> None:
    assert all(figure.text(1234.5) for figure in FIGURES.values())
