"""Commands that start processes, ended in the middle: nothing of them stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import click
import psutil
import pytest
from click.testing import CliRunner

from headrace.cli.termination import end_in_order
from tests.process_groups import WAIT_S_MAX, running, wait_until

pytestmark = pytest.mark.process

ENDED_S_MAX = 40.0
"""Far below the ten minutes that the command was to take, and the two that a message has."""


def headrace(*arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return running(sys.executable, "-m", "headrace", *arguments)


def children(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    return [one for one in psutil.Process(process.pid).children() if word in one.cmdline()]


def blocks_interrupts(process_id: int) -> bool:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    (blocked,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigBlk:"))
    return bool(blocked & 1 << signal.SIGINT - 1)


def check_end(process: subprocess.Popen[str], started: list[psutil.Process], exit_code: int) -> str:
    printed, told = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, told) == (exit_code, "")
    assert psutil.wait_procs(started, timeout=WAIT_S_MAX)[1] == []
    return printed


@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGINT, True)])
def test_a_benchmark_leaves_neither_its_broker_nor_its_data(tmp_path: Path, number: int, to_all: bool) -> None:
    folder = ("--folder", str(tmp_path), "--seconds", "600", "--rounds", "1")
    with headrace("bench", "produce", "--connections", "1", *folder) as process:
        wait_until(lambda: len(psutil.Process(process.pid).children()) == 2, "a broker and a load")
        started = psutil.Process(process.pid).children()
        (os.killpg if to_all else os.kill)(process.pid, number)
        check_end(process, started, 130 if number == signal.SIGINT else 128 + number)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broker_ends", ["with them", "before"])
def test_steady_producers_tell_what_was_acknowledged_when_ctrl_c_ends_them(tmp_path: Path, broker_ends: str) -> None:
    """And no more than that, although a message may be on its way that will never be acknowledged."""
    on = ("--folder", str(tmp_path), "--partitions", "1", "--interval-ms", "5")
    with headrace("bench", "produce", "--producers", "2", "--seconds", "600", *on) as process:
        wait_until(lambda: [path for path in tmp_path.rglob("*.log") if path.parent.name == "bench-0"], "the topic")
        (log,) = (path for path in tmp_path.rglob("*.log") if path.parent.name == "bench-0")
        seconds = [b"producer-0 message-1", b"producer-1 message-1"]  # their first ones are acknowledged by then
        wait_until(lambda: all(map(log.read_bytes().__contains__, seconds)), "two messages of each")
        (broker,) = psutil.Process(process.pid).children()
        if broker_ends == "before":
            broker.kill()
            wait_until(lambda: broker.status() == psutil.STATUS_ZOMBIE, "its end")
        os.killpg(process.pid, signal.SIGINT)
        began = time.monotonic()
        printed = check_end(process, [broker], 130)
    assert time.monotonic() - began < ENDED_S_MAX
    assert [int(line.split()[1]) > 0 for line in printed.splitlines()[1:]] == [True, True]


@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True)])
def test_many_seeds_leave_no_worker(number: int, to_all: bool) -> None:
    with headrace("sim", "--seeds", "0..9999", "--jobs", "2") as process:
        wait_until(lambda: len(children(process, "sim")) == 2, "the workers")
        workers = children(process, "sim")
        assert all(blocks_interrupts(worker.pid) for worker in workers), "one message about Ctrl-C is enough"
        (os.killpg if to_all else os.kill)(process.pid, number)
        check_end(process, workers, 130 if number == signal.SIGINT else 128 + number)


ENDED_AT_ONCE = """
import os, signal, threading
from headrace.cli.main import main

def start_when_told_to_end(thread, start=threading.Thread.start):
    os.kill(os.getpid(), signal.SIGTERM)
    start(thread)

threading.Thread.start = start_when_told_to_end
main()
"""


def test_a_pool_is_started_before_it_is_ended() -> None:
    """Its workers were there, and the thread that looks after them was not: it was waited for, in vain or in error."""
    with running(sys.executable, "-c", ENDED_AT_ONCE, "sim", "--seeds", "0..9999", "--jobs", "2") as process:
        check_end(process, [], 128 + signal.SIGTERM)  # workers would hold the pipes that are read to their ends


def test_signals_are_as_before_when_the_command_is_over() -> None:
    @click.command()
    @click.pass_context
    def command(ctx: click.Context) -> None:
        end_in_order(ctx)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL

    before = signal.getsignal(signal.SIGTERM)
    assert CliRunner().invoke(command).exit_code == 0
    assert signal.getsignal(signal.SIGTERM) is before
    other = threading.Thread(target=lambda: end_in_order(click.Context(command)))
    other.start()
    other.join()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_is_ignored_stays_so() -> None:
    """nohup ignores SIGHUP for what it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        end_in_order(context := click.Context(click.Command("any")))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        context.close()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
