"""A command that has started processes or made folders ends them when it is told to end, not only by Ctrl-C."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import click

TOLD_TO_END = (signal.SIGTERM, signal.SIGHUP)
EXIT_BY_SIGNAL = 128
"""Plus the number of the signal, as shells have it."""


def end_in_order(ctx: click.Context, told_by: Sequence[signal.Signals] = TOLD_TO_END) -> None:
    """Until the command is over, a signal to end leaves every `with` and `finally` on its way out."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may take signals
    before = {number: signal.getsignal(number) for number in told_by}
    handled = [number for number, handler in before.items() if handler is signal.SIG_DFL]  # nohup's stays ignored

    def end(number: int, _frame: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)  # a second one must not break off the tidying up
        raise SystemExit(EXIT_BY_SIGNAL + number)

    def restore() -> None:
        for each in handled:
            signal.signal(each, before[each])

    for each in handled:
        signal.signal(each, end)
    ctx.call_on_close(restore)


@contextmanager
def held_back(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """While a pool may start a worker: nobody would end one that is not known yet, and the pool could wait for ever."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
