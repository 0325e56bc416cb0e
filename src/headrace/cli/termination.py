"""Clean termination by signals: a command stops its processes and removes its folders on SIGTERM and SIGHUP."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import click

TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
EXIT_BY_SIGNAL = 128
"""Base of the exit code, to which the signal number is added, as in shells."""


def end_in_order(ctx: click.Context, told_by: Sequence[signal.Signals] = TERMINATION_SIGNALS) -> None:
    """Turn termination signals into SystemExit until the command ends, so that `with` and `finally` blocks run."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread can handle signals
    before = {number: signal.getsignal(number) for number in told_by}
    handled = [
        number for number, handler in before.items() if handler is signal.SIG_DFL
    ]  # a signal that nohup ignores stays ignored

    def end(number: int, _frame: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
        raise SystemExit(EXIT_BY_SIGNAL + number)

    def restore() -> None:
        for each in handled:
            signal.signal(each, before[each])

    for each in handled:
        signal.signal(each, end)
    ctx.call_on_close(restore)


@contextmanager
def held_back(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Block signals while a pool starts workers: an unregistered worker would never end, and the pool would hang."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
