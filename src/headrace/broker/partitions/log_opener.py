"""Opening the logs of partitions: at the start, when topics are created, and again when what prevented it has passed.

One damaged partition prevents nothing but itself: it stays closed, its clients are told so, and everything else is
served. A partition is made anew only where it cannot be anywhere else.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.leader import LedTopic
from headrace.broker.timers import Timers
from headrace.core.controller.image import MetadataImage, PartitionState
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import LogError, passes
from headrace.log.partition_log import PartitionLog
from headrace.model.configs.values import TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.spawner import Lane, Spawner, raise_failures

PARTITIONS_PER_TURN = 50
"""Of those that come or go by one change of metadata."""

LEAVING_LOOK_MS = 10
"""How often a new partition looks whether helpers still work on a deleted one of its name."""

REOPEN_INTERVAL_MS = 1_000
"""How long a partition that found no room or no file descriptors waits before it is tried again."""


class _Closed(NamedTuple):
    led: LedTopic
    number: int
    home: LogDirectory | None
    """Where its folder is; None when that is not known because directories are missing."""
    image: MetadataImage
    passing: bool


T = TypeVar("T")
Added = tuple[int, PartitionState]
Outcome = PartitionLog | Exception


class Opener:
    def __init__(
        self,
        *,
        directories: list[LogDirectory],
        some_missing: Callable[[], bool],
        topic_config: Callable[[str, MetadataImage], TopicConfig],
        log_config: Callable[[TopicConfig], LogConfig],
        opened: Callable[[LedTopic, Added, PartitionLog, LogDirectory, TopicConfig], None],
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
        """Where folders of its name are: in two places, if a directory was offline when the partition was made anew."""
        self._closed: dict[tuple[bytes, int], _Closed] = {}
        self._retrying: set[tuple[bytes, int]] = set()
        self._tries_again = False
        self._leaving: dict[TopicPartition, PartitionLog] = {}
        """Logs of deleted topics that helpers still work on, by the paths of their folders."""
        self._busy = False
        self._going_on = False
        self._left_of_turn = PARTITIONS_PER_TURN
        self._turn = 0
        """Counts those into which the partitions of a topic were carried on."""
        self._waiting: deque[Callable[[], None]] = deque()
        """Openings and what waits for them, in order: one at a time, so that a folder has one user at a time."""

    @property
    def closed_count(self) -> int:
        """Partitions that could not be opened."""
        return len(self._closed)

    def given_up(self, led: LedTopic) -> int:
        """How many of a topic's partitions could not be opened, and are not tried again before the next start."""
        return sum(not self._closed[led.topic_id, index].passing for index in led.closed)

    def released(self, home: LogDirectory) -> None:
        """A partition left that directory."""
        self._held[home.path] -= 1

    def leaves(self, log: PartitionLog) -> None:
        """A log of a deleted topic was closed: no other takes over its path before the last work on it has ended."""
        if log.has_work:
            self._leaving[log.topic_partition] = log

    def _is_left(self, topic_partition: TopicPartition) -> bool:
        log = self._leaving.get(topic_partition)
        if log is None or log.has_work:
            return log is None
        del self._leaving[topic_partition]
        return True

    # At the start

    def open_all(self, topics: Sequence[tuple[LedTopic, Sequence[PartitionState]]], image: MetadataImage) -> None:
        """Here and now, recovered before anyone is let in. Folders that belong to no topic are put aside."""
        for directory in tuple(self._directories):
            self._guarded(directory, partial(self._find_folders, directory))
        for led, states in topics:
            config = self._topic_config(led.name, image)
            for index, state in enumerate(states):
                self._open_now(led, (index, state), config, image)
        for topic_partition, directories in self._found.items():
            for directory in directories:
                if topic_partition.topic != CLUSTER_METADATA_TOPIC and directory in self._directories:
                    self._guarded(directory, partial(directory.put_aside, topic_partition))
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
            if passes(error):
                raise  # a node that finds neither room nor descriptors at its start does not start
            self._on_error(directory, directory.path, error)

    def _open_now(self, led: LedTopic, added: Added, config: TopicConfig, image: MetadataImage) -> None:
        topic_partition = TopicPartition(led.name, added[0])
        home = self._take_found(topic_partition, led)
        if home is None and self._some_missing():
            self._keep_closed(_Closed(led, added[0], None, image, False), "its log directory is missing")
            return
        home = home or self._roomiest()
        self._held[home.path] += 1
        outcome = self._try_to_open(led, added[0], home, self._log_config(config))
        self._end(led, added, home, image, config, outcome)
        if isinstance(outcome, PartitionLog):
            outcome.put_away_files()

    def _take_found(self, topic_partition: TopicPartition, led: LedTopic) -> LogDirectory | None:
        """The directory that has the folder of this topic; what else is found under its name is put aside."""
        found = self._found.pop(topic_partition, [])
        if len(found) < 2:
            return found[0] if found else None
        ours = [home for home in found if self._holds(home, topic_partition, led)]
        home = ours[0] if ours else found[0]
        self._found[topic_partition] = [other for other in found if other is not home]
        return home

    def _holds(self, home: LogDirectory, topic_partition: TopicPartition, led: LedTopic) -> bool:
        try:
            return home.holds(topic_partition, led.topic_id)
        except OSError:
            return False  # opening it would fail too, and says so

    # Later

    def open_later(self, led: LedTopic, added: Sequence[Added], image: MetadataImage) -> None:
        """Folders are made and synced by a helper; until it is done the partitions are None."""
        homes = []
        for index, _ in added:
            if not self._directories:
                self._keep_closed(_Closed(led, index, None, image, False), "no log directory is left")
                continue
            homes.append(self._roomiest())
            self._held[homes[-1].path] += 1
        if homes:
            self._open_later(led, added, homes, image)

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call when every partition that is to be opened by now can be used, or is known to be closed."""
        self._waiting.append(call)
        self._go_on()

    def _go_on(self) -> None:
        if self._going_on:
            return  # whoever does goes on with the rest: thousands of topics do not nest
        self._going_on = True
        try:
            while self._waiting and not self._busy:
                self._waiting.popleft()()
        except Exception:
            self._timers.next_turn(self._go_on)  # what fails for one is not to hold up the others for ever
            raise
        finally:
            self._going_on = False

    def _roomiest(self) -> LogDirectory:
        """The directory for a new partition: one with room, and of those the one that holds the fewest."""
        return min(self._directories, key=lambda directory: (directory.space.full, self._held[directory.path]))

    def _open_later(
        self, led: LedTopic, added: Sequence[Added], homes: Sequence[LogDirectory], image: MetadataImage
    ) -> None:
        config = self._log_config(self._topic_config(led.name, image))

        def open_logs() -> tuple[list[Outcome], dict[str, OSError | None]]:
            outcomes = [
                self._try_to_open(led, index, home, config) for (index, _), home in zip(added, homes, strict=True)
            ]
            return outcomes, {home.path: names_synced(home) for home in dict.fromkeys(homes)}

        def done(ends: tuple[list[Outcome], dict[str, OSError | None]] | None, error: BaseException | None) -> None:
            outcomes, unsynced = ends if ends is not None else ([_failure(error)] * len(homes), {})
            self._work_off(self._end_each(led, image, zip(added, homes, outcomes, strict=True), unsynced))

        def begin() -> None:
            if all(self._is_left(TopicPartition(led.name, index)) for index, _ in added):
                self._spawner.submit(open_logs, done, Lane.CREATION)
            else:
                self._timers.after(LEAVING_LOOK_MS, begin_again)
            self._busy = True

        def begin_again() -> None:
            self._busy = False
            self._waiting.appendleft(begin)
            self._go_on()

        self.when_ready(begin)

    def _end_each(
        self,
        led: LedTopic,
        image: MetadataImage,
        opened: Iterable[tuple[Added, LogDirectory, Outcome]],
        unsynced: Mapping[str, OSError | None],
    ) -> Iterator[None]:
        config, turn = self._topic_config(led.name, image), self._turn
        failures: list[Exception] = []
        for wanted, home, outcome in opened:
            if turn != self._turn:  # it may have changed since the last one
                config, turn = self._topic_config(led.name, image), self._turn
            failure = unsynced.get(home.path)
            if failure is not None and isinstance(outcome, PartitionLog):
                outcome.close(clean=False)
            try:
                self._end(led, wanted, home, image, config, failure or outcome)
            except Exception as error:  # the others of the topic are opened all the same
                failures.append(error)
            yield
        self._on_state_changed()
        raise_failures(failures)

    def in_slices(self, partitions: Iterator[None]) -> None:
        """Something to be done for each of many partitions, some a turn, when it is its turn."""

        def begin() -> None:
            self._busy = True
            self._work_off(partitions)

        self.when_ready(begin)

    def in_background(
        self, operation: Callable[[], T], ended: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Have a helper do something when it is its turn; everything that is asked for later waits for its end."""

        def completed(result: T | None, error: BaseException | None) -> None:
            self._busy = False
            self._timers.next_turn(self._go_on)
            ended(result, error)

        def begin() -> None:
            self._spawner.submit(operation, completed, Lane.CREATION)
            self._busy = True

        self.when_ready(begin)

    def _work_off(self, partitions: Iterator[None]) -> None:
        """As many as are left of this turn, which those of other topics share."""
        try:
            done = sum(1 for _ in islice(partitions, self._left_of_turn))
        except Exception:
            self._busy = False
            self._timers.next_turn(self._go_on)  # what fails for one is not to hold up the others for ever
            raise
        self._left_of_turn -= max(done, 1)
        if self._left_of_turn <= 0:
            self._timers.next_turn(lambda: self._work_off_more(partitions))
        else:
            self._busy = False
            self._go_on()

    def _work_off_more(self, partitions: Iterator[None]) -> None:
        self._left_of_turn = PARTITIONS_PER_TURN
        self._turn += 1
        self._work_off(partitions)

    # Ends

    def _try_to_open(self, led: LedTopic, index: int, home: LogDirectory, config: LogConfig) -> Outcome:
        try:
            return home.open_log(
                TopicPartition(led.name, index), led.topic_id, config, wall_ms=self._clock.wall_ms(), sync_name=False
            )
        except Exception as error:  # whatever the damage does to us, it is this partition's
            return error

    def _end(
        self,
        led: LedTopic,
        added: Added,
        home: LogDirectory,
        image: MetadataImage,
        config: TopicConfig,
        outcome: Outcome,
    ) -> None:
        index = added[0]
        topic_partition = TopicPartition(led.name, index)
        self._retrying.discard((led.topic_id, index))
        if led.deleted:
            if isinstance(outcome, PartitionLog):
                outcome.close(clean=False)
            self._closed.pop((led.topic_id, index), None)
            self.released(home)
            self._discard(topic_partition, home)
        elif isinstance(outcome, PartitionLog):
            self._closed.pop((led.topic_id, index), None)
            led.closed.pop(index, None)
            outcome.configure(self._log_config(config))
            self._opened(led, added, outcome, home, config)
        else:
            self._keep_closed(_Closed(led, index, home, image, passes(outcome)), outcome)
            if isinstance(outcome, OSError):
                self._on_error(home, f"{home.path}/{topic_partition}", outcome)

    def _keep_closed(self, closed: _Closed, reason: str | Exception) -> None:
        led, index = closed.led, closed.number
        is_news = (led.topic_id, index) not in self._closed
        self._closed[led.topic_id, index] = closed
        led.closed[index] = ErrorCode.KAFKA_STORAGE_ERROR
        if closed.passing and not self._tries_again:
            self._tries_again = True
            self._timers.after(REOPEN_INTERVAL_MS, self._try_again)
        if is_news:
            ours = reason if isinstance(reason, Exception) and not isinstance(reason, OSError | LogError) else None
            self._logger.error(
                "a partition stays closed",
                partition=str(TopicPartition(led.name, index)),
                reason=str(reason),
                cause=ours,
            )

    def _try_again(self) -> None:
        """Those that found no room or no descriptors, where there may be some now."""
        self._tries_again = False
        for key, closed in tuple(self._closed.items()):
            home = closed.home
            if not closed.passing or home is None or home not in self._directories or key in self._retrying:
                continue
            if home.space.full:
                self._keep_closed(closed, "")  # until it is not
            else:
                self._retrying.add(key)
                state = closed.image.topics[closed.led.name].partitions[closed.number]
                self._open_later(closed.led, [(closed.number, state)], [home], closed.image)

    def forget(self, led: LedTopic) -> list[tuple[TopicPartition, LogDirectory]]:
        """The topic is deleted: where folders of its closed partitions are. One under way is discarded when it ends."""
        led.deleted = True
        found = []
        for index in led.closed:
            if (led.topic_id, index) in self._retrying:
                continue
            closed = self._closed.pop((led.topic_id, index))
            if closed.home is not None:
                self.released(closed.home)
                found.append((TopicPartition(led.name, index), closed.home))
        return found


def _failure(error: BaseException | None) -> Exception:
    """Why none of the partitions was opened."""
    return error if isinstance(error, Exception) else RuntimeError(f"the helper did not open it: {error!r}")


def names_synced(home: LogDirectory) -> OSError | None:
    """Sync the names of a directory's folders; None, or why it could not be done."""
    try:
        home.sync_names()
    except OSError as error:
        return error
    return None
