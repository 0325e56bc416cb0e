"""Named points of a run at which a test kills the process, to prove that nothing is lost or written twice.

`HEADRACE_PIPELINE_FAILPOINT=sinks-written:2` kills the runner when it reaches that point for the second time. The file
that `HEADRACE_PIPELINE_FAILPOINT_FILE` names is created first, so that a test knows that the point was reached.
"""

import os
import signal
from enum import StrEnum
from pathlib import Path

VARIABLE = "HEADRACE_PIPELINE_FAILPOINT"
FILE_VARIABLE = "HEADRACE_PIPELINE_FAILPOINT_FILE"


class Failpoint(StrEnum):
    CLAIMED = "claimed"
    """The run holds its pipeline; Spark is not started yet."""
    BATCH_PLANNED = "batch-planned"
    """Spark has logged which offsets the batch reads; nothing of it is written."""
    BETWEEN_SINKS = "between-sinks"
    """The first sink has the batch, the next does not."""
    SINKS_WRITTEN = "sinks-written"
    """Every sink has the batch; Spark has not logged that it is complete."""
    BATCH_DONE = "batch-done"
    """Spark has logged that the batch is complete; its progress is not published yet."""
    CHUNK_WRITTEN = "chunk-written"
    """Every sink has a chunk of a backfill; the list of chunks does not include it yet."""
    HANDING_OVER = "handing-over"
    """A backfill has determined where the stream begins; that is not noted yet."""
    LETTERS_SENT = "letters-sent"
    """Dead letters were replayed in a transaction that is still open."""


_reached: dict[str, int] = {}


def reach(place: Failpoint) -> None:
    wanted, _, count = os.environ.get(VARIABLE, "").partition(":")
    if wanted != place:
        return
    _reached[place] = _reached.get(place, 0) + 1
    if _reached[place] == int(count or 1):
        Path(os.environ[FILE_VARIABLE]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
