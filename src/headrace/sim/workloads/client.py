"""The common part of simulated clients: connect, send requests, take responses, and reconnect."""

from collections.abc import Callable
from typing import Any

from headrace.sim.context import RunContext
from headrace.sim.node import HOST, PORT
from headrace.sim.workloads.connection import KafkaConnection
from headrace.wire.apis import ApiKey

RECONNECT_MS_MAX = 500
REQUEST_MS_MAX = 35_000
"""Longer than any wait that a request may ask of the node: after this the client closes the connection."""

Handler = Callable[[Any], None]


class Client:
    """A subclass defines what happens on connecting, in every turn, and on disconnecting."""

    def __init__(self, context: RunContext, name: str) -> None:
        self.context = context
        self.name = name
        self.entropy = context.world.entropy.branch(f"client {name}")
        self.connection: KafkaConnection | None = None
        self.silent = False
        """Half-closed: it only takes the remaining responses."""
        self.excused = False
        """True if the disk had faults while this connection was open: then storage errors are valid responses."""
        self.stopped = False
        """Begins nothing new any more, and waits for the requests in progress."""
        self._retry_ms = 0.0

    @property
    def now_ms(self) -> float:
        return self.context.world.time.now_ms

    # For subclasses

    def connected(self) -> None:
        """Called after connecting."""

    def work(self) -> None:
        """Called once per turn while connected."""

    def lost(self) -> None:
        """Called when the connection is lost; its pending requests get no response."""

    def hurry(self) -> None:
        """Do what shows progress, because everything is healed."""

    def has_progressed(self) -> bool:
        """Return whether it made progress since `hurry`."""
        return True

    @property
    def settled(self) -> bool:
        """Return whether no request is in progress."""
        return True

    def ask(self, api_key: ApiKey, version: int, request: object, handle: Handler) -> None:
        """Send a request; `handle` gets the response, unless the connection is lost before."""
        if self.connection is not None and not self.silent:
            try:
                self.connection.send(api_key, version, request, handle)
            except BrokenPipeError:
                self.drop()

    def tell(self, api_key: ApiKey, version: int, request: object) -> None:
        """Send a request that has no response."""
        if self.connection is not None and not self.silent:
            try:
                self.connection.send(api_key, version, request, answered=False)
            except BrokenPipeError:
                self.drop()

    def drop(self) -> None:
        """Close the connection; bytes in flight to the node never arrive."""
        if self.connection is not None:
            self.connection.wire.reset()
            self._forget_connection()

    # The turn

    def step(self) -> None:
        if self.connection is None:
            self._connect()
        connection = self.connection
        if connection is None:
            return
        self.excused = self.excused or self.context.disk_trouble
        for handle, message in connection.poll():
            handle(message)
            if self.connection is not connection:
                return
        waiting_since_ms = connection.waiting_since_ms
        if connection.is_closed():
            self._forget_connection()
        elif waiting_since_ms is not None and self.now_ms - waiting_since_ms > REQUEST_MS_MAX:
            self.drop()
        elif not self.silent:
            self.work()

    def _connect(self) -> None:
        if self.now_ms < self._retry_ms or not self.context.virtual.serves:
            return
        try:
            self.connection = KafkaConnection(self.context.world, HOST, PORT)
        except ConnectionRefusedError:
            self._retry_later()
            return
        self.excused = False
        self.connected()

    def _forget_connection(self) -> None:
        self.connection = None
        self.silent = False
        self._retry_later()
        self.lost()

    def _retry_later(self) -> None:
        self._retry_ms = self.now_ms + self.entropy.below(RECONNECT_MS_MAX)
