"""The guard of the virtual world: what reaches for the real one raises."""

import builtins
import io
import os
import random
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

FORBIDDEN = [
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (os, "pread"),
    (os, "preadv"),
    (os, "pwrite"),
    (os, "pwritev"),
    (os, "listdir"),
    (os, "makedirs"),
    (os, "mkdir"),
    (os, "rename"),
    (os, "replace"),
    (os, "unlink"),
    (os, "fsync"),
    (os, "fdatasync"),
    (os, "sendfile"),
    (os, "urandom"),
    (random, "random"),
    (random, "randrange"),
    (secrets, "token_bytes"),
    (secrets, "randbelow"),
    (select, "epoll"),
    (select, "poll"),
    (select, "select"),
    (socket, "socket"),
    (socket, "socketpair"),
    (socket, "create_connection"),
    (socket, "getaddrinfo"),
    (subprocess, "Popen"),
    (threading.Thread, "start"),
    (time, "monotonic"),
    (time, "monotonic_ns"),
    (time, "sleep"),
    (time, "time"),
    (time, "time_ns"),
]


CODE_SUFFIXES = (".py", ".pyc")
"""Modules that are imported at their first use are read by pytest itself, which rewrites their assertions."""


class RealWorldTouched(AssertionError):
    pass


def _refusal(name, real):
    this_thread = threading.get_ident()

    def refuse(*arguments, **options):
        if threading.get_ident() != this_thread:
            return real(*arguments, **options)  # a client's own thread, left over from another test
        if name.endswith(".open") and str(arguments[0]).endswith(CODE_SUFFIXES):
            return real(*arguments, **options)
        raise RealWorldTouched(f"{name} was called inside the virtual world")

    return refuse


@contextmanager
def _only_the_virtual_world():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)  # of modules that are imported at their first use
        for owner, name in FORBIDDEN:
            patch.setattr(owner, name, _refusal(f"{owner.__name__}.{name}", getattr(owner, name)))
        yield


@pytest.fixture
def virtual_world():
    """Within it, real files, sockets, threads, clocks and randomness raise."""
    return _only_the_virtual_world


@pytest.fixture
def virtual_world_only():
    """They raise until the test ends."""
    with _only_the_virtual_world():
        yield
