"""A run says when its broker goes away and when it is back, in its output and in run.log."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.pipeline_log import RunLog
from headrace.client.errors import DeadlineExceeded
from headrace.spark.pipelines import claims
from headrace.spark.pipelines.claims import Claim, new_run

WAIT_S_MAX = 60


class Flaky:
    """A bulletin whose broker answers or not, as `answers` says in turn, and then always."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self.is_over = threading.Event()

    def publish(self, _message: object) -> "Flaky":
        return self

    def result(self, *, timeout_ms: float) -> None:
        if not self.answers:
            self.is_over.set()
        elif not self.answers.pop(0):
            raise DeadlineExceeded(f"nothing in {timeout_ms} ms")


def test_an_outage_is_reported_once_and_so_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT_MS", 1)
    bulletin: Any = Flaky([True, False, False, True, True, False, True])
    told: list[str] = []
    claim = Claim(bulletin=bulletin, record=new_run("p"), on_outage=told.append)
    keeper = threading.Thread(target=claim._give_signs)
    keeper.start()
    assert bulletin.is_over.wait(WAIT_S_MAX)
    claim.leave()
    keeper.join()
    away, back = (
        "the broker has not responded for 5 s; the run waits for it",
        "the broker responds again, after about 5 s",
    )
    assert told == [away, back] * 2


def test_run_log_has_lines_once(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.add("the broker responds again")
    (line,) = (tmp_path / "run.log").read_text().splitlines()
    assert line.endswith("Z the broker responds again")
    kept = os.dup(2)
    try:
        with (tmp_path / "run.log").open("a") as file:
            os.dup2(file.fileno(), 2)
        log.add("of a run in the background")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert (tmp_path / "run.log").read_text().splitlines() == [line]
    RunLog(tmp_path / "none").add("x")
    assert not (tmp_path / "none").exists()
