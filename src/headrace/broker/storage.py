"""Monitoring of the log directories: their free space, and whether they still exist.

A helper queries the free space at a named interval, and as soon as a write found none. A directory with too little
space takes no records until it has enough again; everything else continues.
"""

from collections.abc import Callable, Iterator

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.log.directory import LogDirectory
from headrace.log.errors import is_transient
from headrace.ports.spawner import Spawner

SPACE_INTERVAL_MS = 1_000
"""Interval between queries of free space."""


class StorageWatch:
    def __init__(
        self,
        *,
        table: PartitionTable,
        spawner: Spawner,
        timers: Timers,
        logger: NodeLogger,
        on_no_room: Callable[[], None],
    ) -> None:
        """`on_no_room` is called while a directory is full, so that files can be deleted."""
        self._table = table
        self._spawner = spawner
        self._timers = timers
        self._logger = logger
        self._on_no_room = on_no_room
        self._logged_full: dict[str, None] = {}
        table.on_no_room = self.no_room

    def start(self) -> None:
        self._timers.after(SPACE_INTERVAL_MS, self.start)
        for directory in self._table.directories:
            self._query(directory)

    def no_room(self, directory: LogDirectory) -> None:
        """Query the free space now, because a write found less than the last query."""
        directory.space.refused()
        self._log_change(directory)
        self._query(directory)

    def _query(self, directory: LogDirectory) -> None:
        work = directory.space.work(self._table.config.disk_free_bytes_min)
        if work is None:
            return

        def done(result: object, error: BaseException | None) -> None:
            work.done(result, error)
            if error is not None and not is_transient(error):
                self._table.error(directory, directory.path, error)
            elif directory in self._table.directories:
                self._log_change(directory)

        self._spawner.submit(work.run, done)

    def _log_change(self, directory: LogDirectory) -> None:
        """Log a change between full and not full, once."""
        path, space = directory.path, directory.space
        if space.full and path not in self._logged_full:
            self._logged_full[path] = None
            self._logger.error(
                "log directory is full and takes no records for now; delete records or topics, or free space",
                directory=path,
                free_bytes=space.free_bytes,
                free_bytes_min=self._table.config.disk_free_bytes_min,
            )
            self._table.on_fault()
        elif not space.full and path in self._logged_full:
            del self._logged_full[path]
            self._logger.warning("log directory has room again", directory=path, free_bytes=space.free_bytes)
        if space.full:
            self._on_no_room()

    def families(self) -> Iterator[Family]:
        directories = tuple(self._table.directories)
        yield Family(
            "headrace_disk_free_bytes",
            "gauge",
            "Free bytes of the file system a log directory is on, when last asked.",
            tuple(((("directory", one.path),), one.space.free_bytes) for one in directories),
        )
        yield Family(
            "headrace_disk_full",
            "gauge",
            "1 while a log directory refuses records for want of room.",
            tuple(((("directory", one.path),), int(one.space.full)) for one in directories),
        )
        yield Family(
            "headrace_directories_offline",
            "gauge",
            "Log directories that failed or are missing.",
            (((), len(self._table.failed_directories)),),
        )
        yield Family(
            "headrace_partitions_closed",
            "gauge",
            "Partitions that could not be opened, for damage or a missing directory.",
            (((), self._table.opener.closed_count),),
        )
