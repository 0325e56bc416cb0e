"""fdatasync without a thread, by Linux's asynchronous I/O, io_submit(2); an eventfd notifies the loop.

A helper thread takes the interpreter lock from the loop and returns it several times for each sync, which costs more
than the requests that wait for it. And syncs of several files that run together share the work of the file system's
journal. Where this is not available, helper threads do the same.
"""

import ctypes
import os
import struct
from collections.abc import Callable
from functools import partial
from time import monotonic

IN_FLIGHT_MAX = 128
"""Syncs in flight; more of them go to threads."""

_CALLS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
"""The numbers of io_setup, io_destroy, io_submit and io_getevents, for which the C library has no functions."""
_CONTROL_BLOCK = struct.Struct("<QIIHhIQQqQII")
"""struct iocb: data, key, flags, opcode, priority, file, buffer, bytes, offset, reserved, flags, eventfd."""
_EVENT = struct.Struct("<QQqq")
"""struct io_event: data, control block, result, second result."""
_FDSYNC = 3
_TELLS_EVENTFD = 1

Completed = Callable[[None, BaseException | None], None]


class KernelSyncs:
    def __init__(self) -> None:
        """Raises OSError if the system does not support or permit it."""
        if not hasattr(os, "eventfd") or struct.calcsize("P") != 8 or os.uname().machine not in _CALLS:
            raise OSError("this system has no asynchronous syncs")
        # None of the calls waits, so the interpreter lock need not be released for them.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        setup, self._destroy, submit, take = (ctypes.c_long(number) for number in _CALLS[os.uname().machine])
        self._context = ctypes.c_ulong(0)
        if self._call(setup, ctypes.c_long(IN_FLIGHT_MAX), ctypes.byref(self._context)) < 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        self.token = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable when a sync has ended since it was last read."""
        self._blocks = ctypes.create_string_buffer(IN_FLIGHT_MAX * _CONTROL_BLOCK.size)
        self._submits = [self._submit_of(submit, slot) for slot in range(IN_FLIGHT_MAX)]
        self._events = ctypes.create_string_buffer(IN_FLIGHT_MAX * _EVENT.size)
        self._take = partial(self._call, take, self._context)
        self._free = list(range(IN_FLIGHT_MAX))
        self._under_way: dict[int, tuple[Completed, Callable[[], None], float]] = {}
        """By slot, the oldest first: the callback, and the start time."""

    def _submit_of(self, submit: ctypes.c_long, slot: int) -> Callable[[], int]:
        block = ctypes.c_void_p(ctypes.addressof(self._blocks) + slot * _CONTROL_BLOCK.size)
        return partial(self._call, submit, self._context, ctypes.c_long(1), (ctypes.c_void_p * 1)(block))

    def __len__(self) -> int:
        return len(self._under_way)

    def oldest_began(self) -> float:
        """Return when the oldest sync in flight began, on the clock of `time.monotonic`; there must be one."""
        return next(iter(self._under_way.values()))[2]

    def begin(self, file: int, on_failure: Callable[[], None], completed: Completed) -> bool:
        """HOT when acknowledgements wait for a sync. Return False if there is no slot, or this kind of file is not
        supported.
        """
        if not self._free:
            return False
        slot = self._free.pop()
        _CONTROL_BLOCK.pack_into(
            self._blocks,
            slot * _CONTROL_BLOCK.size,
            slot,
            0,
            0,
            _FDSYNC,
            0,
            file,
            0,
            0,
            0,
            0,
            _TELLS_EVENTFD,
            self.token,
        )
        if self._submits[slot]() != 1:
            self._free.append(slot)
            return False
        self._under_way[slot] = completed, on_failure, monotonic()
        return True

    def ended(self) -> list[tuple[Completed, None, BaseException | None]]:
        """Return the syncs that have ended since the last call: the callback, and its result."""
        return self._taken(wait_for=0)

    def close(self) -> None:
        """Wait for the syncs in flight, without calling back."""
        while self._under_way:
            self._taken(wait_for=len(self._under_way))
        self._call(self._destroy, self._context)
        os.close(self.token)

    def _taken(self, *, wait_for: int) -> list[tuple[Completed, None, BaseException | None]]:
        count = self._take(ctypes.c_long(wait_for), ctypes.c_long(IN_FLIGHT_MAX), self._events, None)
        if count < 0:
            raise OSError(ctypes.get_errno(), "io_getevents")
        taken: list[tuple[Completed, None, BaseException | None]] = []
        for at in range(0, count * _EVENT.size, _EVENT.size):
            slot, _block, result, _second = _EVENT.unpack_from(self._events, at)
            self._free.append(slot)
            completed, on_failure, _began = self._under_way.pop(slot)
            error = None
            if result < 0:
                on_failure()
                error = OSError(-result, os.strerror(-result))
            taken.append((completed, None, error))
        return taken
