"""The parent of shards: starts them, starts one again that has died, and stops them together."""

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from types import FrameType

from headrace.broker.logs import NodeLogger
from headrace.log import names
from headrace.model.configs.values import BrokerConfig
from headrace.ports.real.clock import RealClock
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.held_ports import held_port
from headrace.shards import layout
from headrace.shards.metrics_page import MetricsServer
from headrace.shards.settings import shard_settings
from headrace.shards.shard_process import ShardProcess

STOP_EXTRA_MS = 30_000
"""Time beyond headrace.shutdown.timeout.ms in which a stopping shard syncs its logs; after it, the shard is killed."""
LOOK_MS_MAX = 1_000
"""Longest wait of the parent between two looks at its shards."""
WAKE_BYTES = 4096

Announce = Callable[[Sequence[str]], None]
"""Receives the addresses of all shards once all of them serve clients."""


def run(config: BrokerConfig, count: int, arguments: Sequence[str], *, on_ready: Announce) -> int:
    """Run `count` shards until a signal stops them, and return the exit status.

    `arguments` are options of `headrace broker` that every shard gets before its own.
    """
    disk = RealDisk()
    home = config.log_dirs[0]
    disk.make_directory(home)
    lock = disk.lock(f"{home}/{names.LOCK}")
    try:
        layout.prepare(config.log_dirs, count)
        with ExitStack() as stack:

            def free_port() -> int:
                # Held until the parent ends, so that a shard that is started again gets its port again.
                return int(stack.enter_context(held_port()).getsockname()[1])

            settings = shard_settings(config, count, free_port)
            shards = [ShardProcess(each, arguments) for each in settings]
            if config.metrics_address is not None:
                stack.enter_context(closing(MetricsServer(config.metrics_address, shards)))
            return Parent(config, shards, on_ready).run()
    finally:
        disk.close(lock)


class Parent:
    def __init__(self, config: BrokerConfig, shards: Sequence[ShardProcess], on_ready: Announce) -> None:
        self._shards = shards
        self._on_ready = on_ready
        self._stop_ms_max = config.shutdown_timeout_ms + STOP_EXTRA_MS
        self._logger = NodeLogger(
            clock=RealClock(),
            write=sys.stderr.write,
            format=config.log_format,
            level=config.log_level,
            parent=os.getpid(),
        )
        self._selector = selectors.DefaultSelector()
        self._signals = 0
        self._announced = False
        self._failed = False

    def run(self) -> int:
        with closing(self._selector), _woken_by_signals(self._selector, self._note_signal):
            while not self._signals and not self._failed:
                self._start_due()
                self._wait(self._wait_ms())
                self._restart_ended()
                self._announce_if_ready()
            return self._stop()

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1

    # Starting

    def _start_due(self) -> None:
        now_ms = _now_ms()
        for shard in self._shards:
            if shard.start_at_ms is not None and shard.start_at_ms <= now_ms and self._may_start(shard):
                shard.start(now_ms)
                self._selector.register(shard.output, selectors.EVENT_READ, shard)

    def _may_start(self, shard: ShardProcess) -> bool:
        """Tell whether a shard has the key of the cluster, which shard 0 founds or joins."""
        first = self._shards[0]
        if shard is first or layout.has_key(shard.settings.home):
            return True
        if not first.is_ready:
            return False
        layout.copy_key(first.settings.home, shard.settings.home)
        return True

    def _announce_if_ready(self) -> None:
        if not self._announced and all(shard.is_ready for shard in self._shards):
            self._announced = True
            self._on_ready([address for shard in self._shards for address in shard.addresses])

    # Watching

    def _wait_ms(self) -> float:
        now_ms = _now_ms()
        due = [shard.start_at_ms - now_ms for shard in self._shards if shard.start_at_ms is not None]
        waits = [wait_ms for wait_ms in due if wait_ms > 0]  # others wait for shard 0, whose output wakes the parent
        return min([LOOK_MS_MAX, *waits])

    def _wait(self, wait_ms: float) -> None:
        for key, _ in self._selector.select(wait_ms / 1000):
            shard = key.data
            if shard is None:
                os.read(key.fd, WAKE_BYTES)
            elif not shard.read_output():
                self._selector.unregister(key.fd)

    def _reap(self, shard: ShardProcess) -> int | None:
        """Return the exit status of a shard that has ended."""
        status = shard.exit_status
        if status is not None:
            if shard.output in self._selector.get_map():
                self._selector.unregister(shard.output)
            shard.release()
        return status

    def _restart_ended(self) -> None:
        now_ms = _now_ms()
        for shard in self._shards:
            status = self._reap(shard)
            if status is None:
                continue
            if not self._announced:
                self._failed = True
                self._logger.error(
                    "a shard could not start; its reason is above", shard=shard.settings.shard, status=status
                )
                return
            wait_ms = shard.restart_later(now_ms)
            self._logger.error(
                "a shard has ended and is started again",
                shard=shard.settings.shard,
                shard_node=shard.settings.node_id,
                status=status,
                wait_ms=wait_ms,
            )

    # Stopping

    def _stop(self) -> int:
        """Stop all shards together and return the exit status; a second signal, or the time limit, kills them."""
        for shard in self._shards:
            shard.signal(signal.SIGTERM)
        signals = self._signals
        deadline_ms = _now_ms() + self._stop_ms_max
        failed = self._failed
        killed = False
        while any(shard.is_running for shard in self._shards):
            if not killed and (self._signals > signals or _now_ms() > deadline_ms):
                killed = True
                for shard in self._shards:
                    shard.signal(signal.SIGKILL)
            self._wait(LOOK_MS_MAX)
            failed |= any(self._reap(shard) for shard in self._shards)
        return 1 if failed else 0


def _now_ms() -> float:
    return time.monotonic() * 1000


@contextmanager
def _woken_by_signals(
    selector: selectors.BaseSelector, note: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Call `note` for each signal, and make a waiting selector return."""
    readable, writable = os.pipe()
    for descriptor in (readable, writable):
        os.set_blocking(descriptor, False)
    selector.register(readable, selectors.EVENT_READ, None)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    before = {number: signal.signal(number, note) for number in numbers}
    previous = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(readable)
        os.close(writable)
