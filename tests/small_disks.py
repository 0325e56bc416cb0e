"""A file system of a test's own, small enough to be filled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_file_system(path: Path, size: int) -> Iterator[None]:
    """Mounted there as long as the block runs; only root may do so."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "headrace-test", str(path)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a file system of its own can be mounted by root only")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
