"""Leave out test modules that are marked as a whole as slow or for processes or Spark, as a pytest plugin.

Their tests would be deselected anyway, but only after the import of the module.
"""

import re
from pathlib import Path

MARKS = "not process and not spark and not slow"
MODULE_MARK = re.compile(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.(process|spark|slow)", re.MULTILINE)


def is_left_out(module: Path) -> bool:
    return bool(MODULE_MARK.search(module.read_text()))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_module and is_left_out(collection_path) else None
