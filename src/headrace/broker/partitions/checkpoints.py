"""The checkpoints of the log directories: recovery points, log starts, high watermarks and uptimes.

They spare the next start a search of the logs. At a clean stop the directories are marked as closed too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.replica import Replica
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.work import Work
from headrace.model.ids import TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.spawner import Spawner


class Checkpoints:
    def __init__(
        self,
        directories: Sequence[LogDirectory],
        homes: Mapping[Replica, LogDirectory],
        *,
        clock: Clock,
        spawner: Spawner,
        logger: NodeLogger,
    ) -> None:
        """`directories` are those in use, and `homes` has the directory of each replica: both change with the time."""
        self._directories = directories
        self._homes = homes
        self._clock = clock
        self._spawner = spawner
        self._logger = logger

    def follow_uptime(self) -> None:
        for directory in self._directories:
            directory.uptime.advance(self._clock.monotonic_ms())

    def write_uptime(self) -> None:
        self._submit_all(directory.uptime_work() for directory in self._directories)

    def write(self) -> None:
        """Write the checkpoints of directories in which a recovery point, log start or high watermark has moved."""
        self._submit_all(
            directory.checkpoint_work(logs, high_watermarks, again=self.write)
            for directory, logs, high_watermarks in self._by_home()
        )

    def close(self, *, unclean: LogDirectory | None = None) -> None:
        """Write and sync everything, and mark every directory except `unclean` as cleanly closed."""
        for directory, logs, high_watermarks in self._by_home():
            try:
                for log in logs:
                    log.close()
                    log.files.close_idle()
                directory.checkpoint(logs, high_watermarks)
                if directory is not unclean:
                    directory.mark_clean()
            except OSError as error:
                self._logger.error("a log directory was not closed cleanly", directory=directory.path, cause=error)

    def _by_home(self) -> Iterator[tuple[LogDirectory, list[PartitionLog], dict[TopicPartition, int]]]:
        for directory in self._directories:
            held = [replica for replica, home in self._homes.items() if home is directory and not replica.offline]
            high_watermarks = {replica.log.topic_partition: int(replica.role.high_watermark) for replica in held}
            yield directory, [replica.log for replica in held], high_watermarks

    def _submit_all(self, works: Iterable[Work | None]) -> None:
        for work in works:
            if work is not None:
                self._spawner.submit(*work)
