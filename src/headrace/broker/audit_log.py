"""The audit log of a node: one line of JSON per event, written by a helper outside the loop.

A change is answered when its line is written, so that none is missing; while writing fails, up to AUDIT_LINES_MAX lines
are kept and written later. Lines of other kinds are dropped and counted beyond that.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from headrace.broker.audit_file import AuditFile
from headrace.broker.logs import NodeLogger, timestamp_text
from headrace.broker.metrics import Family
from headrace.broker.timers import Timer, Timers
from headrace.core.access.audit import NO_REQUEST_ID, AuditEvent, AuditKind, AuditTrail
from headrace.model.configs.audit import AuditConfig
from headrace.model.limits import (
    AUDIT_LINES_MAX,
    AUDIT_RETRY_MS,
    AUDIT_TEXT_LENGTH_MAX,
    AUDIT_WRITE_LINES_MAX,
)
from headrace.ports.clock import Clock
from headrace.ports.disk import Disk
from headrace.ports.spawner import Lane, Spawner


class AuditLog:
    def __init__(
        self,
        config: AuditConfig,
        *,
        node_id: int,
        disk: Disk,
        spawner: Spawner,
        timers: Timers,
        clock: Clock,
        logger: NodeLogger,
    ) -> None:
        path = f"{config.folder.rstrip('/')}/audit-{node_id}.jsonl"
        self._file = AuditFile(disk, path, bytes_max=config.file_bytes_max, files_max=config.files_max)
        self._node_id = node_id
        self._spawner = spawner
        self._timers = timers
        self._clock = clock
        self._logger = logger
        self._trail = AuditTrail(config.window_ms)
        self._lines: deque[bytes] = deque()
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()
        """Calls that wait, each with the number of the last line before it."""
        self._written = 0
        """Lines written since the start."""
        self._has_changes = False
        self._is_writing = False
        self._is_failing = False
        self._lost = 0
        """Lines dropped since the last one that was kept."""
        self._lost_total = 0
        self._failures = 0
        self._timer: Timer | None = None

    def note(self, event: AuditEvent) -> None:
        for told in self._trail.note(event, self._clock.monotonic_ms()):
            self._add(told)
        if self._timer is None:
            self._await_window()

    def when_written(self, call: Callable[[], object]) -> None:
        """Call back when all lines so far are written; at once while writing fails and there is room for more."""
        if not self._lines or (self._is_failing and len(self._lines) < AUDIT_LINES_MAX):
            call()
        else:
            self._waiting.append((self._written + len(self._lines), call))

    def close(self) -> None:
        """Write everything, after the helpers have ended."""
        for told in self._trail.rest():
            self._add(told, begin=False)
        # The last write may have ended without its completion, which runs in a turn.
        left = tuple(islice(self._lines, self._file.lines - self._written, None))
        try:
            if left:
                self._file.append(left, sync=True)
            self._file.close()
        except OSError as error:
            self._logger.error("the audit log cannot be written", lines=len(left), cause=error)

    def families(self) -> Iterator[Family]:
        yield Family("headrace_audit_lines_total", "counter", "Lines written to the audit log.", (((), self._written),))
        yield Family(
            "headrace_audit_lines_lost_total",
            "counter",
            "Lines about logins and refusals that were dropped because too many waited to be written.",
            (((), self._lost_total),),
        )
        yield Family(
            "headrace_audit_write_failures_total", "counter", "Failed writes of the audit log.", (((), self._failures),)
        )

    # Windows

    def _await_window(self) -> None:
        next_ms = self._trail.next_ms
        self._timer = None if next_ms is None else self._timers.at(next_ms, self._end_windows)

    def _end_windows(self) -> None:
        for told in self._trail.due(self._clock.monotonic_ms()):
            self._add(told)
        self._await_window()

    # Writing

    def _add(self, event: AuditEvent, *, begin: bool = True) -> None:
        if event.kind is not AuditKind.CHANGE and len(self._lines) >= AUDIT_LINES_MAX:
            self._lost += 1
            self._lost_total += 1
            return
        self._lines.append(line_of(event, node_id=self._node_id, lost=self._lost))
        self._lost = 0
        self._has_changes |= event.kind is AuditKind.CHANGE
        if begin and not self._is_writing:
            self._is_writing = True
            self._timers.next_turn(self._write)

    def _write(self) -> None:
        file = self._file
        lines = tuple(islice(self._lines, AUDIT_WRITE_LINES_MAX))
        sync, self._has_changes = self._has_changes, False

        def written(_result: None, error: BaseException | None) -> None:
            if error is None:
                self._note_written(len(lines))
            elif isinstance(error, OSError):
                self._has_changes |= sync
                self._note_failure(error)
            else:
                raise error

        self._spawner.submit(lambda: file.append(lines, sync=sync), written, Lane.AUDIT)

    def _note_written(self, count: int) -> None:
        for _ in range(count):
            self._lines.popleft()
        self._written += count
        if self._is_failing:
            self._is_failing = False
            self._logger.info("the audit log is written again", file=self._file.path)
        self._is_writing = bool(self._lines)
        if self._lines:
            self._write()
        while self._waiting and self._waiting[0][0] <= self._written:
            self._waiting.popleft()[1]()

    def _note_failure(self, error: OSError) -> None:
        self._failures += 1
        self._is_failing = True
        self._logger.error(
            "the audit log cannot be written: free space, or set headrace.audit.dir to a folder that the broker may "
            "write; lines are kept and written later",
            file=self._file.path,
            lines=len(self._lines),
            reason=error.strerror or str(error),
        )
        self._timers.after(AUDIT_RETRY_MS, self._write)
        if len(self._lines) < AUDIT_LINES_MAX:
            waiting, self._waiting = self._waiting, deque()
            for _, call in waiting:
                call()


def line_of(event: AuditEvent, *, node_id: int, lost: int = 0) -> bytes:
    """Return the line of an event. Its names come from clients: JSON escapes them, and they are cut off."""
    fields: dict[str, object] = {
        "time": timestamp_text(event.wall_ms),
        "node": node_id,
        "kind": event.kind,
        "action": event.action,
        "outcome": event.outcome,
        "principal": event.principal,
        "address": event.address,
        "listener": event.listener,
        "client_id": event.client_id,
        "request_id": None if event.request_id == NO_REQUEST_ID else event.request_id,
        "resources": [_shortened(name) for name in event.resources],
        "errors": [_shortened(text) for text in event.errors],
        "count": event.times,
        "since": None if event.since_ms is None else timestamp_text(event.since_ms),
        "lost": lost,
    }
    kept = {
        name: _shortened(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if value not in (None, "", [], 0) or name in ("principal", "request_id")
    }
    return msgspec.json.encode(kept) + b"\n"


def _shortened(text: str) -> str:
    if len(text) > AUDIT_TEXT_LENGTH_MAX:
        text = f"{text[:AUDIT_TEXT_LENGTH_MAX]}..."
    return text.encode("utf-8", "backslashreplace").decode()
