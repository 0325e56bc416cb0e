"""The log of a pipeline's runs: messages of `headrace pipeline run` other than batch lines, with timestamps."""

import os
import time
from contextlib import suppress
from pathlib import Path

_STDERR = 2


class RunLog:
    """Appends lines to run.log of a checkpoint; the output of a background run goes there anyway."""

    def __init__(self, checkpoint: Path) -> None:
        from headrace.spark.pipelines.checkpoints import Checkpoint

        self._file = Checkpoint(checkpoint).log_file

    def add(self, line: str) -> None:
        with suppress(OSError):  # the line is on the terminal as well
            if self._file.parent.exists() and not self._is_stderr():
                with self._file.open("a", encoding="utf-8") as log:
                    log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def _is_stderr(self) -> bool:
        try:
            return os.path.samestat(os.fstat(_STDERR), self._file.stat())
        except OSError:
            return False
