"""A Python process of Spark, cheap to use again.

Spark's daemon collects garbage in a process after every task and every plan, through all that was ever imported: some
20 ms of a core, which is much of a small task. What the first uses leave behind is there to stay, and is not looked at
again.
"""

import gc
import sys

DAEMON = "pyspark.daemon"
FIRST_USES = 4
"""By then all is imported."""

_first_uses = iter(range(FIRST_USES))


def freeze_imports() -> None:
    """Told at each use; in processes that Spark's daemon did not start, such as the user's own, nothing is done."""
    if getattr(sys.modules["__main__"].__spec__, "name", "") == DAEMON and next(_first_uses, None) is not None:
        gc.freeze()
