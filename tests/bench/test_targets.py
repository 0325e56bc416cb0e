"""Targets count as reached by the rule of the page."""

import pytest

from headrace.bench.brokers import HEADRACE, PURE_PYTHON
from headrace.bench.figures import FIGURES, Measurement
from tools.bench import cluster
from tools.bench.commands import cluster as cluster_command
from tools.bench.commands.compare import PART_NAMES
from tools.bench.comparison import PARTS
from tools.bench.floor import BARE
from tools.bench.performance_page import verdict_row
from tools.bench.targets import KAFKA, TARGETS, Target, Verdict, verdicts

LOAD = "32 x 1, 100 B"


def measured(subject: str, **figures: float) -> Measurement:
    return Measurement(load=LOAD, subject=subject, client="", rounds=(figures,))


def judged(target: Target, *measurements: Measurement) -> Verdict:
    (verdict,) = verdicts(measurements, [target])
    return verdict


@pytest.mark.parametrize(("ours", "word"), [(14.9, "reached"), (15.0, "reached"), (15.1, "MISSED")])
def test_at_most_a_part_of_what_kafka_takes(ours: float, word: str) -> None:
    target = Target(LOAD, "cpu_us_per_request", True, 0.5, KAFKA)
    verdict = judged(
        target, measured(HEADRACE, cpu_us_per_request=ours), measured("kafka 4.3.1", cpu_us_per_request=30.0)
    )
    assert verdict.word == word
    assert verdict.ratio == pytest.approx(ours / 30)
    assert verdict_row(verdict)[-2:] == ("<= 0.5 x kafka", word)


@pytest.mark.parametrize(("ours", "word"), [(1400.0, "reached"), (1399.0, "MISSED")])
def test_at_least_a_multiple_of_what_kafka_does(ours: float, word: str) -> None:
    target = Target(LOAD, "requests_per_second", False, 1.4, KAFKA)
    found = judged(
        target, measured(HEADRACE, requests_per_second=ours), measured("kafka 4", requests_per_second=1000.0)
    )
    assert found.word == word


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    target = Target(LOAD, "cpu_us_per_request", True, 0.5, KAFKA)
    verdict = judged(target, measured(HEADRACE, cpu_us_per_request=1.0))
    assert verdict.reached is None
    assert verdict_row(verdict)[-1] == "not measured"
    assert judged(target, measured("kafka 4", cpu_us_per_request=1.0)).word == "not measured"


def test_an_absolute_bound_and_one_of_our_own_figures() -> None:
    absolute = Target(LOAD, "idle_megabytes", True, 45.0)
    assert judged(absolute, measured(HEADRACE, idle_megabytes=45.1)).word == "MISSED"
    own = Target(LOAD, "seconds", True, 1.0, "allowed_seconds")
    assert judged(own, measured(HEADRACE, seconds=1.9, allowed_seconds=2.0)).word == "reached"
    assert own.text() == "<= 1 x allowed s"


def test_every_target_names_figures_and_subjects_that_exist() -> None:
    for target in TARGETS:
        assert target.figure in FIGURES
        assert target.against in ("", KAFKA, BARE, PURE_PYTHON) or target.against in FIGURES


def test_the_command_offers_every_part() -> None:
    assert PART_NAMES == PARTS
    assert tuple(cluster.PARTS) == cluster_command.PART_NAMES


def test_targets_of_clusters_name_figures_and_parts_that_exist() -> None:
    for target in cluster.cluster_targets():
        assert target.figure in FIGURES
        assert target.against in ("", "1 shard", cluster.BEFORE)


@pytest.mark.parametrize(("cores", "times"), [(2, 1.25), (3, 1.25), (4, 1.6), (16, 1.6)])
def test_shards_must_gain_more_where_load_generators_have_cores_of_their_own(
    monkeypatch: pytest.MonkeyPatch, cores: int, times: float
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert {each.bound for each in cluster.cluster_targets() if each.against == "1 shard"} == {times}
