"""What clients may leave behind in this process, told apart from what brokers in it do in the background meanwhile."""

import threading
from contextlib import suppress
from pathlib import Path

BROKERS_THREADS = ("headrace-spawner-", "headrace-job")
CLIENTS_DESCRIPTORS = ("socket:", "anon_inode:")


def client_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith(BROKERS_THREADS)}


def client_descriptors() -> set[tuple[str, str]]:
    """Each with what it is open on; a number that was closed and given anew counts as another."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own, or one that was closed in between
            target = str(descriptor.readlink())
            if target.startswith(CLIENTS_DESCRIPTORS):
                found.add((descriptor.name, target))
    return found
