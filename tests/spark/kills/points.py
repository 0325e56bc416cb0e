"""The named points of a batch commit, and what happens to a process that reaches one.

A plan belongs to one micro-batch. The process that comes to its point first creates the plan's file, so each plan is
carried out once, and a plan without its file at the end was not met.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from headrace.client.blocking.batch_commits import BatchCommits
from headrace.client.blocking.producer import Producer
from headrace.client.blocking.transaction import Transaction

TASK_POINTS = ("before begin", "after begin", "while writing", "before flush", "after flush")
COMMIT_POINTS = ("before commit", "after commit")
MARKERS = "between record and markers"
"""In the broker: the batch is committed, and no partition has its marker."""

WORKER, DRIVER, BROKER, SHUFFLE, PAUSE, RAISE = "worker", "driver", "broker", "shuffle files", "pause", "raise"
EVERY_KILL = (
    *((WORKER, point) for point in TASK_POINTS),
    *((DRIVER, point) for point in (*TASK_POINTS, *COMMIT_POINTS)),
    *((BROKER, point) for point in (*TASK_POINTS, *COMMIT_POINTS)),
    (BROKER, MARKERS),
)

PAUSE_S_MAX = 900.0
PAUSE_STEP_S = 0.05
GONE_S_MAX = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The process to be killed, the point, and the micro-batch."""

    victim: str
    point: str
    batch: int


class Points:
    """The plans of a run, in a folder that all of its processes see."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def write(self, plans: list[Plan]) -> None:
        (self._folder / "plans.json").write_text(json.dumps([asdict(plan) for plan in plans]))

    def plans(self) -> list[Plan]:
        return [Plan(**fields) for fields in json.loads((self._folder / "plans.json").read_text())]

    def not_met(self) -> list[Plan]:
        return [plan for plan in self.plans() if not self._met(plan).exists()]

    def process(self, name: str, pid: int) -> None:
        """Note who runs under this name now."""
        part = self._folder / f"{name}.part"
        part.write_text(str(pid))
        os.replace(part, self._folder / f"{name}.pid")

    def process_id(self, name: str) -> int:
        return int((self._folder / f"{name}.pid").read_text())

    def resume(self) -> None:
        (self._folder / "resume").touch()

    def is_paused(self) -> bool:
        return any(plan.victim == PAUSE and self._met(plan).exists() for plan in self.plans())

    def note(self, what: str) -> None:
        (self._folder / f"seen {what}").touch()

    def has_seen(self, what: str) -> bool:
        return (self._folder / f"seen {what}").exists()

    def _met(self, plan: Plan) -> Path:
        return self._folder / f"met {plan.batch} {plan.victim} {plan.point}"

    def reach(self, point: str, batch: int) -> bool:
        """Carry out the plan for this point, if there is one; True if that was the broker's end."""
        for plan in self.plans():
            if (plan.point, plan.batch) == (point, batch) and self._take(plan):
                self._carry_out(plan)
                return plan.victim == BROKER
        return False

    def _take(self, plan: Plan) -> bool:
        try:
            os.close(os.open(self._met(plan), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _carry_out(self, plan: Plan) -> None:
        if plan.victim == WORKER:
            os.kill(os.getpid(), signal.SIGKILL)
        elif plan.victim == DRIVER:
            for name in ("jvm", "driver"):
                os.kill(self.process_id(name), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        elif plan.victim == BROKER:
            kill_and_wait(self.process_id("broker"))
        elif plan.victim == RAISE:
            raise RuntimeError(f"planned {plan.point}")
        elif plan.victim == SHUFFLE:
            for path in (self._folder / "local").glob("blockmgr-*/*/shuffle_*"):
                path.unlink()
        else:
            deadline_s = time.monotonic() + PAUSE_S_MAX
            while not (self._folder / "resume").exists():
                assert time.monotonic() < deadline_s, "the driver was not resumed"
                time.sleep(PAUSE_STEP_S)

    def arm_markers(self, batch: int) -> None:
        """Have the broker end itself at its next commit marker, if that is planned for this micro-batch."""
        for plan in self.plans():
            if (plan.point, plan.batch) == (MARKERS, batch) and not self._met(plan).exists():
                (self._folder / "markers").write_text(str(batch))

    def reach_markers(self) -> None:
        """In the broker."""
        try:
            batch = int((self._folder / "markers").read_text())
            os.unlink(self._folder / "markers")
        except FileNotFoundError:
            return
        self._take(Plan(victim=BROKER, point=MARKERS, batch=batch))
        os.kill(os.getpid(), signal.SIGKILL)


def kill_and_wait(pid: int) -> None:
    """The one who started it takes it from the list of processes."""
    os.kill(pid, signal.SIGKILL)
    deadline_s = time.monotonic() + GONE_S_MAX
    while _runs(pid) and time.monotonic() < deadline_s:
        time.sleep(PAUSE_STEP_S)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def in_task(points: Points, batch: int) -> Iterator[None]:
    """While a task writes, its points are where these calls are."""
    begin, send, hand_over = BatchCommits.begin_batch_writer, Producer.send_batch, Transaction.hand_over

    def begin_batch_writer(*arguments: Any, **named: Any) -> Any:
        points.reach("before begin", batch)
        member = begin(*arguments, **named)
        points.reach("after begin", batch)
        return member

    def send_batch(*arguments: Any, **named: Any) -> Any:
        delivery = send(*arguments, **named)
        points.reach("while writing", batch)
        return delivery

    def handing_over(*arguments: Any, **named: Any) -> Any:
        points.reach("before flush", batch)
        prepared = hand_over(*arguments, **named)
        points.reach("after flush", batch)
        return prepared

    with (
        patch.object(BatchCommits, "begin_batch_writer", begin_batch_writer),
        patch.object(Producer, "send_batch", send_batch),
        patch.object(Transaction, "hand_over", handing_over),
    ):
        yield
