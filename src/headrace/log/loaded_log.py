"""The state of a log as its folder holds it: segments, positions, producers and leader epochs."""

from dataclasses import dataclass

from .leader_epochs import LeaderEpochs, read_epochs
from .producers import ProducerStates
from .recovery import Loader, RecoveryReport
from .segment import Segment, unlink_segments
from .truncation_steps import carry_out, read_mark, remove_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """State that a partition log continues with; `snapshot` is the offset of the producer snapshot, -1 without one."""

    segments: list[Segment]
    start_offset: int
    recovery_point: int
    producers: ProducerStates
    epochs: LeaderEpochs
    snapshot: int
    gaps: bool
    report: RecoveryReport


def load(loader: Loader) -> LoadedLog:
    """Recover the segments, then restore producers from the newest snapshot and leader epochs from their file, and
    replay later batches into both.
    """
    _finish_truncation(loader)
    stopped_cleanly = loader.clean  # what loading finds may change it
    segments = _segments_from(loader, loader.start_offset)
    start_offset, end_offset = max(loader.start_offset, segments[0].base_offset), segments[-1].next_offset
    # Not up to the log start offset, which may lie inside a segment: the part before it need not be synced.
    recovery_point = min(max(loader.recovery_point, segments[0].base_offset), end_offset)
    if stopped_cleanly:
        recovery_point = end_offset
    producers, snapshot = loader.load_producers(segments)
    stored_epochs = read_epochs(loader.disk, loader.folder)
    begin = 0 if stored_epochs is None else min(max(snapshot, 0), recovery_point)
    epochs = stored_epochs if stored_epochs is not None else LeaderEpochs()
    epochs.truncate_from(end_offset)
    loader.replay(segments, producers, epochs, snapshot=snapshot, begin=begin, recovery_point=recovery_point)
    epochs.truncate_before(start_offset)
    return LoadedLog(
        segments=segments,
        start_offset=start_offset,
        recovery_point=recovery_point,
        producers=producers,
        epochs=epochs,
        snapshot=snapshot,
        gaps=loader.gaps,
        report=loader.report,
    )


def _finish_truncation(loader: Loader) -> None:
    """Finish a truncation that a crash interrupted, and ignore a recovery point from before the last one."""
    disk, folder = loader.disk, loader.folder
    mark = read_mark(disk, folder)
    if mark is None:
        return
    if not mark.finished:
        carry_out(disk, folder, loader.config, mark, loader.wall_ms)
        loader.clean = False
    elif loader.recovery_point > mark.superseded:
        remove_mark(disk, folder)
    loader.recovery_point = mark.valid_point(loader.recovery_point)


def _segments_from(loader: Loader, start_offset: int) -> list[Segment]:
    """Return the segments of the folder; a log that ends below its start offset gets one new segment."""
    segments = loader.load_segments()
    if segments and segments[-1].next_offset < start_offset:
        unlink_segments(segments, loader.files, loader.folder)
        segments = []
    if not segments:
        segments = [Segment.create(loader.files, loader.folder, start_offset, loader.config, loader.wall_ms)]
        # This name must not be lost while the name of a later segment survives: the log would seem to begin there.
        loader.disk.sync_directory(loader.folder)
    return segments
