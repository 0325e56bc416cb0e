"""One compaction pass over one partition: a job that cleans segments, and the swap of the cleaned ones.

The job runs outside the loop and reports each group of segments as soon as it is written; the groups are swapped in
here one after the other. If the log changes meanwhile, the worst outcome is that the pass achieved nothing. An error
in one of its completions ends the pass too, so that its slot is free for the next.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from headrace.broker.partitions.replica import Replica
from headrace.log.compaction.cleaner import CleanedGroup, CleaningProgress, clean
from headrace.log.compaction.plan import CleaningPlan, source_segments
from headrace.log.compaction.swap import discard_work, swap_work
from headrace.log.errors import is_transient
from headrace.log.work import NotStarted
from headrace.ports.clock import Clock
from headrace.ports.spawner import RunningJob, Spawner

SWAP_RETRY_MS = 1_000
"""Wait before a swap is retried that found the disk full or no file descriptor."""


class CompactionPass:
    def __init__(
        self,
        partition: Replica,
        plan: CleaningPlan,
        *,
        spawner: Spawner,
        clock: Clock,
        later: Callable[[float, Callable[[], None]], object],
        ended: "Callable[[CompactionPass], None]",
    ) -> None:
        self.partition = partition
        self.plan = plan
        self.cleaned_to = plan.dirty_from
        self.failure: BaseException | None = None
        self.without_result = False
        """The log changed during the pass, or the pass was cancelled."""
        self.bytes_before = 0
        self.bytes_after = 0
        self.records_removed = 0
        self.unreadable_batches = 0
        self.progressed_ms = clock.monotonic_ms()
        """Time at which the pass began, or a helper last reported."""
        self._spawner = spawner
        self._clock = clock
        self._later = later
        self._ended = ended
        self._job: RunningJob | None = None
        self._job_ended = False
        self._groups: deque[CleanedGroup] = deque()
        self._swapping = False
        self._over = False

    @property
    def log_changed(self) -> bool:
        """True if the pass achieved nothing because the log changed since it was planned."""
        if self.failure is None:
            return self.without_result
        is_gone = source_segments(self.partition.log, self.plan.segments) is None
        return isinstance(self.failure, FileNotFoundError) and is_gone

    def start(self, bytes_per_second: float) -> None:
        job = functools.partial(clean, self.partition.log.disk, self.plan)
        self._job = self._spawner.start_job(job, self._cleaned, self._completed, bytes_per_second=bytes_per_second)

    def cancel(self) -> None:
        """Cancel the pass: the partition is gone, or need not be compacted any more."""
        self._stop_job()
        self._continue()

    def _stop_job(self) -> None:
        self.without_result = True
        if self._job is not None and not self._job_ended:
            self._job.cancel()
        self._job_ended = True

    def _cleaned(self, result: CleaningProgress) -> None:
        with self._event():
            if isinstance(result, CleanedGroup):
                self._groups.append(result)
                self._continue()

    def _completed(self, failure: BaseException | None) -> None:
        self._job_ended = True
        self.failure = failure
        with self._event():
            self._continue()

    @contextmanager
    def _event(self) -> Iterator[None]:
        """Handle the report of a helper. If handling it fails, the pass fails, and the loop logs the reason."""
        try:
            self.progressed_ms = self._clock.monotonic_ms()
            yield
        except Exception as error:
            self.failure = self.failure or error
            self._stop_job()
            while self._groups:
                with suppress(Exception):  # their files are removed at the next start at the latest
                    self._discard(self._groups.popleft())
            self._end_if_over()
            raise

    def _continue(self) -> None:
        """Begin the next swap unless one is in progress; end the pass when there is none left."""
        while self._groups and not self._swapping:
            group = self._groups.popleft()
            if self.without_result:
                self._discard(group)
            elif group.files is None:
                self._count(group, group.counts.bytes_read)
            else:
                self._swap(group)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._job_ended and not self._groups and not self._swapping and not self._over:
            self._over = True
            self._ended(self)

    def _swap(self, group: CleanedGroup) -> None:
        assert group.files is not None
        log, size = self.partition.log, group.files.size
        try:
            work = swap_work(log, group, wall_ms=self._clock.wall_ms())
        except OSError as error:
            if not is_transient(error):
                log.work_failed(error)
            work = None
        if work is None:
            self._discard(group)
            self.cancel()
            return
        run, exchanged = work

        def done(result: object, error: BaseException | None) -> None:
            if is_transient(error) and not log.closed and not log.failed:
                # Some files may have their new names already, so the swap is finished as soon as possible.
                self._later(SWAP_RETRY_MS, begin_again)
                return
            self._swapping = False
            with self._event():
                exchanged(result, error)
                if error is not None:
                    self.cancel()
                    return
                self._count(group, size)
                self._continue()

        def begin() -> None:
            try:
                self._spawner.submit(run, done)
            except Exception:
                self._swapping = False
                exchanged(None, NotStarted())
                raise

        def begin_again() -> None:
            with self._event():
                begin()

        self._swapping = True
        begin()

    def _discard(self, group: CleanedGroup) -> None:
        work = discard_work(self.partition.log, group)
        if work is not None:
            self._spawner.submit(*work)

    def _count(self, group: CleanedGroup, bytes_after: int) -> None:
        self.cleaned_to = group.cleaned_to
        self.bytes_before += group.counts.bytes_read
        self.bytes_after += bytes_after
        self.records_removed += group.counts.records_read - group.counts.records_kept
        self.unreadable_batches += group.counts.unreadable_batches
