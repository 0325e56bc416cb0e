"""Snapshots of the committed metadata: when one is due, and the removal of the segments that it replaces."""

from collections.abc import Callable

from headrace.broker.cluster.quorum import MetadataQuorum
from headrace.core.controller.image import MetadataImage
from headrace.log.errors import is_full, is_transient
from headrace.ports.clock import Clock
from headrace.ports.spawner import Spawner


class SnapshotSchedule:
    def __init__(
        self,
        quorum: MetadataQuorum,
        image: MetadataImage,
        *,
        spawner: Spawner,
        clock: Clock,
        notice: Callable[[str], None],
    ) -> None:
        self._quorum = quorum
        self._image = image
        self._spawner = spawner
        self._clock = clock
        self._notice = notice

    def take_if_due(self) -> None:
        """Begin a snapshot of the committed image if enough was appended since the last one."""
        quorum, end_offset = self._quorum, self._image.version
        if not quorum.log.snapshot_due:
            return

        def ended(error: BaseException | None) -> None:
            if error is None:
                quorum.snapshot_taken(end_offset)
                self._tidy()
            else:
                self._notice(f"the metadata snapshot could not be written; the log is kept instead: {error}")
                self._look_at(error)

        work = quorum.log.snapshot_work(
            self._image,
            term=quorum.term_at(end_offset),
            voters=quorum.voters_at(end_offset),
            wall_ms=self._clock.wall_ms(),
            ended=ended,
        )
        self._spawner.submit(work.run, work.done)

    def _look_at(self, error: BaseException) -> None:
        """Handle an error of work other than a sync: the disk is full, or it failed and is not used again."""
        if is_full(error):
            self._quorum.disk.on_no_room()
        elif isinstance(error, OSError) and not is_transient(error):
            self._quorum.stop(f"the metadata directory failed: {error}")

    def _tidy(self) -> None:
        """Delete old segments in two steps, renaming and then unlinking."""
        work = self._quorum.log.tidy_work(self._clock.wall_ms())
        if work is None:
            return

        def completed(result: object, error: BaseException | None) -> None:
            work.done(result, error)
            if error is None:
                self._tidy()
            else:
                self._notice(f"old metadata segments could not be removed: {error}")
                self._look_at(error)

        self._spawner.submit(work.run, completed)
