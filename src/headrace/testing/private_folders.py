"""Temporary folders: in memory if the system supports it, removed at exit, or by a later process."""

import os
import shutil
import tempfile
from pathlib import Path

from headrace.ports.real.processes import is_running

PREFIX = "headrace-embedded-"
MEMORY_FOLDER = "/dev/shm"  # noqa: S108  (a tmpfs; each folder in it is private to its owner)
LEFTOVERS_REMOVED_MAX = 100
"""Folders of dead owners that one start removes."""


def make_private_folder() -> str:
    """Create a new folder for this process only, on tmpfs if there is one."""
    place = _place()
    remove_leftovers(place)
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place)


def remove_private_folder(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(place: str) -> None:
    """Remove folders whose owner died without removing them."""
    removed = 0
    for folder in Path(place).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not is_running(int(owner)):
            remove_private_folder(str(folder))
            removed += 1
            if removed == LEFTOVERS_REMOVED_MAX:
                return


def _place() -> str:
    if os.path.isdir(MEMORY_FOLDER) and os.access(MEMORY_FOLDER, os.W_OK):
        return MEMORY_FOLDER
    return tempfile.gettempdir()
