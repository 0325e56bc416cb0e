"""Opening of partition logs: at the start, when topics are created, and again after a transient failure.

A damaged partition affects only itself: it stays closed, its clients get an error, and all others are served. A new log
is created only if the partition cannot have one in any log directory.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.timers import Timers
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import LogError, is_transient
from headrace.log.partition_log import PartitionLog
from headrace.model.configs.values import TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.spawner import Lane, Spawner, raise_failures

PARTITIONS_PER_TURN = 50
"""The most partitions that one change of metadata adds or deletes in one turn."""

LEAVING_LOOK_MS = 10
"""The interval of checks whether helpers still work on a deleted partition of the same name."""

REOPEN_INTERVAL_MS = 1_000
"""The pause before another attempt to open a partition that found no disk space or no file descriptors."""


class _Closed(NamedTuple):
    local: LocalTopic
    number: int
    home: LogDirectory | None
    """The directory of its folder; None when it is unknown because directories are missing."""
    passing: bool
    """True if it found no disk space or no descriptors, and is opened again."""


T = TypeVar("T")
Outcome = PartitionLog | Exception


class Opener:
    def __init__(
        self,
        *,
        directories: list[LogDirectory],
        some_missing: Callable[[], bool],
        topic_config: Callable[[str], TopicConfig],
        log_config: Callable[[TopicConfig], LogConfig],
        opened: Callable[[LocalTopic, int, PartitionLog, LogDirectory, TopicConfig], None],
        on_error: Callable[[LogDirectory, str, BaseException], None],
        on_state_changed: Callable[[], None],
        discard: Callable[[TopicPartition, LogDirectory], None],
        clock: Clock,
        spawner: Spawner,
        timers: Timers,
        logger: NodeLogger,
    ) -> None:
        self._directories = directories
        self._some_missing = some_missing
        self._topic_config = topic_config
        self._log_config = log_config
        self._opened = opened
        self._on_error = on_error
        self._on_state_changed = on_state_changed
        self._discard = discard
        self._clock = clock
        self._spawner = spawner
        self._timers = timers
        self._logger = logger
        self._held: dict[str, int] = {directory.path: 0 for directory in directories}
        self._found: dict[TopicPartition, list[LogDirectory]] = {}
        """The directories with a folder of this name; two if one was offline when the partition was created again."""
        self._closed: dict[tuple[bytes, int], _Closed] = {}
        self._retrying: set[tuple[bytes, int]] = set()
        self._tries_again = False
        self._leaving: dict[TopicPartition, PartitionLog] = {}
        """Logs of deleted topics that helpers still work on, by the paths of their folders."""
        self._busy = False
        self._going_on = False
        self._left_of_turn = PARTITIONS_PER_TURN
        self._turn = 0
        """Counts the turns in which slices of partitions continued."""
        self._waiting: deque[Callable[[], None]] = deque()
        """Openings, and the calls that wait for them, in order. One runs at a time, so that a folder has one user."""

    @property
    def closed_count(self) -> int:
        """The number of partitions that could not be opened."""
        return len(self._closed)

    def given_up(self, local: LocalTopic) -> int:
        """Return the number of partitions of a topic that could not be opened and stay closed until the next start."""
        closed = (self._closed.get((local.topic_id, index)) for index in local.unopened)
        return sum(each is not None and not each.passing for each in closed)

    def released(self, home: LogDirectory) -> None:
        """Count one partition less in the directory."""
        self._held[home.path] -= 1

    def leaves(self, log: PartitionLog) -> None:
        """Keep the path of a deleted topic's log reserved until the last helper has finished its work on it."""
        if log.has_work:
            self._leaving[log.topic_partition] = log

    def _is_left(self, topic_partition: TopicPartition) -> bool:
        log = self._leaving.get(topic_partition)
        if log is None or log.has_work:
            return log is None
        del self._leaving[topic_partition]
        return True

    # At the start

    def open_all(self, topics: Sequence[tuple[LocalTopic, Sequence[int]]]) -> None:
        """Open and recover these partitions before clients are served. Folders of all others are put aside."""
        for directory in tuple(self._directories):
            self._guarded(directory, partial(self._find_folders, directory))
        for local, indexes in topics:
            config = self._topic_config(local.name)
            for index in indexes:
                self._open_now(local, index, config)
        for topic_partition, directories in self._found.items():
            for directory in directories:
                if topic_partition.topic != CLUSTER_METADATA_TOPIC and directory in self._directories:
                    self._guarded(directory, partial(directory.set_aside, topic_partition))
        for directory in tuple(self._directories):
            self._guarded(directory, directory.sync_names)
        self._found.clear()

    def _find_folders(self, directory: LogDirectory) -> None:
        for topic_partition in directory.partitions():
            self._found.setdefault(topic_partition, []).append(directory)
        for work in directory.leftover_removals():
            self._spawner.submit(*work)

    def _guarded(self, directory: LogDirectory, call: Callable[[], None]) -> None:
        try:
            call()
        except OSError as error:
            if is_transient(error):
                raise  # a node without disk space or descriptors does not start
            self._on_error(directory, directory.path, error)

    def _open_now(self, local: LocalTopic, index: int, config: TopicConfig) -> None:
        topic_partition = TopicPartition(local.name, index)
        home = self._take_found(topic_partition, local)
        if home is None and self._some_missing():
            self._keep_closed(_Closed(local, index, None, False), "its log directory is missing")
            return
        home = home or self._roomiest()
        self._held[home.path] += 1
        outcome = self._try_to_open(local, index, home, self._log_config(config))
        self._end(local, index, home, config, outcome)
        if isinstance(outcome, PartitionLog):
            outcome.close_excess_files()

    def _take_found(self, topic_partition: TopicPartition, local: LocalTopic) -> LogDirectory | None:
        """Return the directory with the folder of this topic. Other folders of the same name are put aside."""
        found = self._found.pop(topic_partition, [])
        if len(found) < 2:
            return found[0] if found else None
        ours = [home for home in found if self._holds(home, topic_partition, local)]
        home = ours[0] if ours else found[0]
        self._found[topic_partition] = [other for other in found if other is not home]
        return home

    def _holds(self, home: LogDirectory, topic_partition: TopicPartition, local: LocalTopic) -> bool:
        try:
            return home.holds(topic_partition, local.topic_id)
        except OSError:
            return False  # opening it fails too and reports the error

    # Later

    def open_later(self, local: LocalTopic, indexes: Sequence[int]) -> None:
        """Have a helper create and sync the folders. Until then clients get a retriable error."""
        homes = []
        for index in indexes:
            local.unopened[index] = ErrorCode.LEADER_NOT_AVAILABLE
            if not self._directories:
                self._keep_closed(_Closed(local, index, None, False), "no log directory is left")
                continue
            homes.append(self._roomiest())
            self._held[homes[-1].path] += 1
        if homes:
            self._open_later(local, indexes, homes)

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call back when every partition that waits to be opened is open, or is known to stay closed."""
        self._waiting.append(call)
        self._continue()

    def _continue(self) -> None:
        if self._going_on:
            return  # the outer call continues with the rest, so thousands of topics do not nest
        self._going_on = True
        try:
            while self._waiting and not self._busy:
                self._waiting.popleft()()
        except Exception:
            self._timers.next_turn(self._continue)  # one failure must not block the others
            raise
        finally:
            self._going_on = False

    def _roomiest(self) -> LogDirectory:
        """Return the directory for a new partition: one that is not full, with the fewest partitions."""
        return min(self._directories, key=lambda directory: (directory.space.full, self._held[directory.path]))

    def _open_later(self, local: LocalTopic, indexes: Sequence[int], homes: Sequence[LogDirectory]) -> None:
        config = self._log_config(self._topic_config(local.name))

        def open_logs() -> tuple[list[Outcome], dict[str, OSError | None]]:
            outcomes = [
                self._try_to_open(local, index, home, config) for index, home in zip(indexes, homes, strict=True)
            ]
            return outcomes, {home.path: names_synced(home) for home in dict.fromkeys(homes)}

        def done(ends: tuple[list[Outcome], dict[str, OSError | None]] | None, error: BaseException | None) -> None:
            outcomes, unsynced = ends if ends is not None else ([_failure(error)] * len(homes), {})
            self._work_off(self._end_each(local, zip(indexes, homes, outcomes, strict=True), unsynced))

        def begin() -> None:
            if all(self._is_left(TopicPartition(local.name, index)) for index in indexes):
                self._spawner.submit(open_logs, done, Lane.CREATION)
            else:
                self._timers.after(LEAVING_LOOK_MS, begin_again)
            self._busy = True

        def begin_again() -> None:
            self._busy = False
            self._waiting.appendleft(begin)
            self._continue()

        self.when_ready(begin)

    def _end_each(
        self,
        local: LocalTopic,
        opened: Iterable[tuple[int, LogDirectory, Outcome]],
        unsynced: Mapping[str, OSError | None],
    ) -> Iterator[None]:
        config, turn = self._topic_config(local.name), self._turn
        failures: list[Exception] = []
        for index, home, outcome in opened:
            if turn != self._turn:  # the config may have changed since the last turn
                config, turn = self._topic_config(local.name), self._turn
            failure = unsynced.get(home.path)
            if failure is not None and isinstance(outcome, PartitionLog):
                outcome.close(clean=False)
            try:
                self._end(local, index, home, config, failure or outcome)
            except Exception as error:  # the topic's other partitions are still opened
                failures.append(error)
            yield
        self._on_state_changed()
        raise_failures(failures)

    def in_slices(self, partitions: Iterator[None]) -> None:
        """Run one step per partition, a limited number per turn, after all earlier requests."""

        def begin() -> None:
            self._busy = True
            self._work_off(partitions)

        self.when_ready(begin)

    def in_background(
        self, operation: Callable[[], T], ended: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Have a helper run an operation after all earlier requests; later ones wait for its end."""

        def completed(result: T | None, error: BaseException | None) -> None:
            self._busy = False
            self._timers.next_turn(self._continue)
            ended(result, error)

        def begin() -> None:
            self._spawner.submit(operation, completed, Lane.CREATION)
            self._busy = True

        self.when_ready(begin)

    def _work_off(self, partitions: Iterator[None]) -> None:
        """Run as many steps as this turn has left; all topics share them."""
        try:
            done = sum(1 for _ in islice(partitions, self._left_of_turn))
        except Exception:
            self._busy = False
            self._timers.next_turn(self._continue)  # one failure must not block the others
            raise
        self._left_of_turn -= max(done, 1)
        if self._left_of_turn <= 0:
            self._timers.next_turn(lambda: self._work_off_more(partitions))
        else:
            self._busy = False
            self._continue()

    def _work_off_more(self, partitions: Iterator[None]) -> None:
        self._left_of_turn = PARTITIONS_PER_TURN
        self._turn += 1
        self._work_off(partitions)

    # Ends

    def _try_to_open(self, local: LocalTopic, index: int, home: LogDirectory, config: LogConfig) -> Outcome:
        try:
            return home.open_log(
                TopicPartition(local.name, index),
                local.topic_id,
                config,
                wall_ms=self._clock.wall_ms(),
                sync_name=False,
            )
        except Exception as error:  # any error concerns only this partition
            return error

    def _end(
        self,
        local: LocalTopic,
        index: int,
        home: LogDirectory,
        config: TopicConfig,
        outcome: Outcome,
    ) -> None:
        topic_partition = TopicPartition(local.name, index)
        self._retrying.discard((local.topic_id, index))
        if local.deleted:
            if isinstance(outcome, PartitionLog):
                outcome.close(clean=False)
            self._closed.pop((local.topic_id, index), None)
            self.released(home)
            self._discard(topic_partition, home)
        elif isinstance(outcome, PartitionLog):
            self._closed.pop((local.topic_id, index), None)
            local.unopened.pop(index, None)
            outcome.configure(self._log_config(config))
            self._opened(local, index, outcome, home, config)
        else:
            self._keep_closed(_Closed(local, index, home, is_transient(outcome)), outcome)
            if isinstance(outcome, OSError):
                self._on_error(home, f"{home.path}/{topic_partition}", outcome)

    def _keep_closed(self, closed: _Closed, reason: str | Exception) -> None:
        local, index = closed.local, closed.number
        is_news = (local.topic_id, index) not in self._closed
        self._closed[local.topic_id, index] = closed
        local.unopened[index] = ErrorCode.KAFKA_STORAGE_ERROR
        if closed.passing and not self._tries_again:
            self._tries_again = True
            self._timers.after(REOPEN_INTERVAL_MS, self._try_again)
        if is_news:
            ours = reason if isinstance(reason, Exception) and not isinstance(reason, OSError | LogError) else None
            self._logger.error(
                "a partition stays closed",
                partition=str(TopicPartition(local.name, index)),
                reason=str(reason),
                cause=ours,
            )

    def _try_again(self) -> None:
        """Open partitions again that found no disk space or no descriptors."""
        self._tries_again = False
        for key, closed in tuple(self._closed.items()):
            home = closed.home
            if not closed.passing or home is None or home not in self._directories or key in self._retrying:
                continue
            if home.space.full:
                self._keep_closed(closed, "")  # wait until the directory has space
            else:
                self._retrying.add(key)
                self._open_later(closed.local, [closed.number], [home])

    def closed(self) -> list[_Closed]:
        """Return the partitions that could not be opened."""
        return list(self._closed.values())

    def begin_again(self, topic_id: TopicId, index: int) -> None:
        """Open a partition with an empty log, because its records will be copied; its folder is kept aside."""
        key = (topic_id, index)
        closed = self._closed.get(key)
        if closed is None or closed.passing or key in self._retrying:
            return
        home, local = closed.home, closed.local
        if home is None or home not in self._directories or home.space.full:
            return
        topic_partition = TopicPartition(local.name, index)
        try:
            home.begin_again(topic_partition)
        except OSError as error:
            self._on_error(home, f"{home.path}/{topic_partition}", error)
            return
        self._retrying.add(key)
        self._open_later(local, [index], [home])

    def forget(self, local: LocalTopic) -> list[tuple[TopicPartition, LogDirectory]]:
        """Forget a deleted topic; return the folders of its closed partitions. One being opened is discarded later."""
        local.deleted = True
        found = []
        for index in local.unopened:
            if (local.topic_id, index) in self._retrying:
                continue
            closed = self._closed.pop((local.topic_id, index), None)
            if closed is not None and closed.home is not None:
                self.released(closed.home)
                found.append((TopicPartition(local.name, index), closed.home))
        return found


def _failure(error: BaseException | None) -> Exception:
    """Return the error for partitions whose helper failed as a whole."""
    return error if isinstance(error, Exception) else RuntimeError(f"the helper did not open it: {error!r}")


def names_synced(home: LogDirectory) -> OSError | None:
    """Sync the names of a directory's folders; return the error if that failed."""
    try:
        home.sync_names()
    except OSError as error:
        return error
    return None
