"""Leftovers of clients in this process, distinguished from what brokers and Spark do in it at the same time."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

BROKERS_THREADS = ("headrace-spawner-", "headrace-job")
CLIENTS_DESCRIPTORS = ("socket:", "anon_inode:")
LISTENING = "0A"
"""The state of such a socket in Linux's lists."""


def client_threads() -> set[threading.Thread]:
    return {
        thread
        for thread in threading.enumerate()
        if not thread.name.startswith(BROKERS_THREADS) and not _is_sparks(thread)
    }


def _is_sparks(thread: threading.Thread) -> bool:
    """Its Java calls this process whenever it likes to, and each time Py4J may begin a thread for it."""
    modules = (type(thread).__module__, getattr(getattr(thread, "_target", None), "__module__", None))
    return any(str(module).startswith("py4j.") for module in modules)


def client_descriptors() -> set[tuple[str, str]]:
    """Each with what it is open on; a number that was closed and reused counts as another."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own, or one that was closed in between
            target = str(descriptor.readlink())
            if target.startswith(CLIENTS_DESCRIPTORS):
                found.add((descriptor.name, target))
    accepted = accepted_sockets()
    return {each for each in found if each[1] not in accepted}


def accepted_sockets() -> set[str]:
    """Of all processes: they have the port of a listener, which those of clients never have."""
    sockets = list(_sockets())
    listening = {port for port, state, _ in sockets if state == LISTENING}
    return {target for port, state, target in sockets if port in listening and state != LISTENING}


def _sockets() -> Iterator[tuple[str, str, str]]:
    """Port, state, and what a descriptor of it is open on."""
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a machine without IPv6
            for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                yield fields[1].rpartition(":")[2], fields[3], f"socket:[{fields[9]}]"
