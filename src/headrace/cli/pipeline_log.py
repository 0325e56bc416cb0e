"""The log of a pipeline's runs: what `headrace pipeline run` says beside the lines of its batches, with the time."""

import os
import time
from contextlib import suppress
from pathlib import Path

_STDERR = 2


class RunLog:
    """Adds lines to run.log of a checkpoint; a run in the background has its output there already."""

    def __init__(self, checkpoint: Path) -> None:
        from headrace.spark.pipelines.checkpoints import Checkpoint

        self._file = Checkpoint(checkpoint).log_file

    def add(self, line: str) -> None:
        with suppress(OSError):  # the terminal has the line too
            if self._file.parent.exists() and not self._is_stderr():
                with self._file.open("a", encoding="utf-8") as log:
                    log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def _is_stderr(self) -> bool:
        try:
            return os.path.samestat(os.fstat(_STDERR), self._file.stat())
        except OSError:
            return False
