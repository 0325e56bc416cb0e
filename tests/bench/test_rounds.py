"""Rounds in turns, and the warm-up until a figure settles."""

import pytest

from headrace.bench import rounds
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from tools.bench import warm_up


def test_subjects_take_turns() -> None:
    seen: list[str] = []

    def subject(name: str) -> rounds.Measured:
        def measured() -> Round:
            seen.append(name)
            return {"seconds": float(len(seen))}

        return measured

    told: list[str] = []
    found = rounds.in_turns("load", {"a": subject("a"), "b": subject("b")}, rounds=2, client="none", report=told.append)
    assert seen == ["a", "b", "a", "b"]
    assert [(one.subject, one.values("seconds")) for one in found] == [("a", [1.0, 3.0]), ("b", [2.0, 4.0])]
    assert told[-1] == "load: b, round 2 of 2"


def test_a_rejected_round_has_no_measurement() -> None:
    def refused() -> Round:
        raise RunRejected("one answer was wrong")

    with pytest.raises(RunRejected):
        rounds.in_turns("load", {"a": refused}, rounds=1, client="none", report=lambda text: None)


def test_warming_up_ends_when_the_figure_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "WARM_SECONDS_MIN", 0.0)
    monkeypatch.setattr(warm_up, "WARM_SECONDS_MAX", 60.0)
    values = [400.0, 100.0, 50.0, 32.0, 30.0, 30.5, 29.0]
    left = iter(values)
    warm_up.warm_up("load", "jvm", lambda: {"seconds": next(left)}, figure="seconds", report=lambda text: None)
    assert list(left) == [29.0]


def test_warming_up_ends_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "WARM_SECONDS_MAX", 0.0)
    warm_up.warm_up("load", "jvm", lambda: pytest.fail("no round is due"), figure="seconds", report=lambda text: None)
