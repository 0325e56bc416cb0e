"""Make a reused Python process of Spark cheaper.

Spark's daemon collects garbage in a process after every task and every plan, through everything that was ever imported:
some 20 ms of a core, which is much of a small task. Objects that the first uses leave behind are permanent, and are
excluded from collection.
"""

import gc
import sys

DAEMON = "pyspark.daemon"
FIRST_USES = 4
"""Uses after which everything is imported."""

_first_uses = iter(range(FIRST_USES))


def freeze_imports() -> None:
    """Called at each use; does nothing in processes that Spark's daemon did not start, such as the user's own."""
    if getattr(sys.modules["__main__"].__spec__, "name", "") == DAEMON and next(_first_uses, None) is not None:
        gc.freeze()
