"""The event loop of a node. Each turn: read every ready socket, do the work that is due, write, then send responses.

`turn` is all of the broker's concurrency: nothing else calls into the node, and any operation that may block is given
to the Spawner and completes as an event of a later turn.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.net.acceptor import ConnectionAcceptor
from headrace.broker.net.buffers import BufferPool
from headrace.broker.net.connection import NO_PARTIAL_FRAME, Connection
from headrace.broker.net.connection_checks import ConnectionChecks
from headrace.broker.net.connection_limits import ClientCounts, ConnectionLimits, PeerAdmission
from headrace.broker.net.handshakes import Handshakes
from headrace.broker.net.open_connections import OpenConnections
from headrace.broker.net.ready import Buffered, Event, Ready
from headrace.broker.net.receiver import CheckLargeFrame, HandleFrame, HandleRepeat, Receiver
from headrace.broker.net.sender import Sender
from headrace.broker.net.throttle import Throttle
from headrace.broker.timers import Timers
from headrace.core.access.sasl import SaslSession, SessionExpired
from headrace.core.quotas.accept_rates import AcceptRates
from headrace.model.limits import (
    BESIDE_OTHERS_MS,
    EVENTS_BETWEEN_LOOKS,
    POOLED_BUFFERS_BYTES_MAX,
    POOLED_BUFFERS_UNUSED_MS,
    SENT_ALONE_BYTES_MAX,
    SENT_BESIDE_OTHERS_BYTES_MAX,
    SENT_ONCE_BYTES_MIN,
    TURN_WORK_MS_MAX,
)
from headrace.ports.clock import Clock
from headrace.ports.disk import Disk, FileHandle
from headrace.ports.network import BROKEN, HANGUP, READABLE, WRITABLE, ListeningSocket, Network, Token
from headrace.ports.spawner import Spawner
from headrace.wire.errors import ProtocolError

if TYPE_CHECKING:
    from headrace.broker.client_quotas import ClientQuotas


class Loop:
    def __init__(
        self,
        *,
        network: Network,
        clock: Clock,
        disk: Disk,
        spawner: Spawner,
        timers: Timers,
        metrics: Metrics,
        logger: NodeLogger,
        limits: ConnectionLimits,
        frame_bytes_max: int,
        large_frames_bytes_max: int,
        held_bytes_max: int,
        handle_frame: HandleFrame,
        handle_repeat: HandleRepeat,
        check_large_frame: CheckLargeFrame,
        begin_turn: Callable[[], None],
        end_turn: Callable[[], None],
    ) -> None:
        self._network = network
        self._clock = clock
        self._spawner = spawner
        self._timers = timers
        self._metrics = metrics
        self._logger = logger
        self._begin_turn = begin_turn
        self._end_turn = end_turn
        pool = BufferPool(lent_bytes_max=large_frames_bytes_max, kept_bytes_max=POOLED_BUFFERS_BYTES_MAX)
        self._held_bytes_max = held_bytes_max
        self.receiver = Receiver(
            frame_bytes_max=frame_bytes_max,
            held_bytes_max=held_bytes_max,
            pool=pool,
            handle_frame=handle_frame,
            handle_repeat=handle_repeat,
            check_large_frame=check_large_frame,
            evict=self._evict,
            monotonic_ms=clock.monotonic_ms,
        )
        self._sender = Sender(disk, more_flag=network.more)
        self._time_clients(None)
        self._admission: PeerAdmission | None = None
        self._first: dict[int, None] = {}
        """Tokens of connections with other nodes, which wait neither behind clients nor for the next turn."""
        self._other_handlers: dict[int, Callable[[int], None]] = {}
        """Handlers of events that belong to no client connection: listeners, the metrics page."""
        self.connections = OpenConnections()
        self.clients = ClientCounts(limits)
        self.strict = False
        """Raise internal errors instead of continuing: for tests, which must not miss them."""
        self.dirty: list[Connection] = []
        """Connections with a response that may be ready; sent to at the end of the turn."""
        rates = AcceptRates()
        self._client_acceptor = ConnectionAcceptor(self, timers=timers, metrics=metrics, logger=logger, rates=rates)
        self._peer_acceptor = ConnectionAcceptor(self, timers=timers, metrics=metrics, logger=logger)
        self._writable: list[Connection] = []
        """Connections with unsent responses whose peer can take more in this turn."""
        self._others_until_ms = 0.0
        """Time until which large responses are sent in pieces, because other clients are served."""
        self._ready = Ready()
        self._unread: list[Connection] = []
        """Connections that may be read and still hold frames received before they were paused or put off."""
        self._buffered = Buffered()
        self._handshakes: Handshakes | None = None
        self.throttle = Throttle(self.connections, rates, self._choose_interest, self._time_clients, clock, timers)
        self._now_ms = clock.monotonic_ms()
        feed_all = partial(self._feed_starved, at_once=True)
        self._checks = ConnectionChecks(self, self.connections, limits, timers=timers, metrics=metrics, before=feed_all)
        timers.after(POOLED_BUFFERS_UNUSED_MS, self._trim_buffers)

    # Listeners

    def add_listener(
        self,
        listener: ListeningSocket,
        name: str,
        *,
        handshakes: Handshakes | None = None,
        new_session: Callable[[], SaslSession] | None = None,
    ) -> None:
        """Accept clients; with `handshakes` they have to speak TLS, with `new_session` to authenticate by SASL."""
        self._handshakes = handshakes or self._handshakes

        def admit(connection: Connection) -> bool:
            if new_session is not None:
                connection.sasl = new_session()
            return self.clients.admit(connection)

        self._client_acceptor.add(listener, name, admit, handshakes)

    def add_peer_listener(self, listener: ListeningSocket, name: str, admission: PeerAdmission) -> None:
        """Accept other nodes. Their connections are outside the limits of clients, and are served until the end."""
        self._admission = admission
        self._peer_acceptor.add(listener, name, self._admit_peer)

    def close_listeners(self) -> None:
        """Accept no more clients."""
        self._client_acceptor.close()

    def attach(
        self, token: Token, handle: Callable[[int], None], interest: int = READABLE, *, first: bool = False
    ) -> None:
        """Watch a descriptor that is no client's; `handle` gets its events, with `first` before those of clients."""
        self._other_handlers[token] = handle
        if first:
            self._first[token] = None
        self._network.watch(token, interest)

    def watch(self, token: Token, interest: int) -> None:
        """Change the events that the handler of an attached file descriptor gets."""
        self._network.watch(token, interest)

    def detach(self, token: Token) -> None:
        self._first.pop(token, None)
        if self._other_handlers.pop(token, None) is not None:
            self._network.forget(token)

    # The turn

    def turn(self, wait_ms_max: float) -> None:
        """Wait for events, at most that long (negative: without a limit), and process them completely."""
        wait_ms = self._timers.wait_ms(self._now_ms)
        if self.dirty or self._unread or self._ready or self._buffered:
            wait_ms = 0.0
        elif wait_ms < 0 or 0 <= wait_ms_max < wait_ms:
            wait_ms = wait_ms_max
        events = self._network.poll(wait_ms)
        began_ms = self._now_ms = self.receiver.now_ms = self._clock.monotonic_ms()
        self._begin_turn()
        if self._buffered:
            events = self._buffered.with_events(events)
        if len(events) <= EVENTS_BETWEEN_LOOKS and not self._ready:
            self._handle(events)
        else:
            self._handle_many(events)
        if self._unread:
            self._read_again()
        self._unread += self.receiver.take_put_off()
        self._guarded(self._spawner.run_completions)
        self._guarded(lambda: self._timers.run_due(began_ms, began_ms + TURN_WORK_MS_MAX))
        self._end_turn()
        self._send_responses()
        self.receiver.end_turn()
        self._feed_starved()
        self._metrics.loop_turn(self._clock.monotonic_ms() - began_ms)

    def _handle(self, events: Sequence[Event]) -> None:
        """HOT."""
        connections, receive = self.connections.by_token, self._receive
        bytes_in = 0
        for token, event in events:
            connection = connections.get(token)
            if connection is None:
                handle = self._other_handlers.get(token)
                if handle is not None:  # otherwise it was closed earlier in this turn
                    self._guarded(partial(handle, event))
                continue
            if event & BROKEN and not event & READABLE:
                self.close(connection)
                continue
            if event & WRITABLE:
                self._writable.append(connection)
            if not event & READABLE or connection.closed:
                continue
            try:
                received = receive(connection)
            except Exception as error:
                self._receiving_failed(connection, error)
                continue
            if received < 0:
                self.close(connection)
                continue
            connection.last_active_ms = self._now_ms
            connection.bytes_in += received
            bytes_in += received
            if connection.closing:
                connection.mark_dirty()  # closed at the end of the turn, when earlier requests have their responses
            elif connection.rest is not None or connection.frame is not None:
                self._await_more(connection)
        self._metrics.bytes_in += bytes_in

    def _handle_many(self, events: Sequence[Event]) -> None:
        if self._ready:
            events = self._ready.with_waiting(events, self._is_wanted)
        if self._first:
            self._handle([event for event in events if event[0] in self._first])
            events = [event for event in events if event[0] not in self._first]
        until_ms = self._now_ms + TURN_WORK_MS_MAX
        for done in range(EVENTS_BETWEEN_LOOKS, len(events) + EVENTS_BETWEEN_LOOKS, EVENTS_BETWEEN_LOOKS):
            self._handle(events[done - EVENTS_BETWEEN_LOOKS : done])
            if done < len(events) and self._clock.monotonic_ms() >= until_ms:
                self._ready.put_off(events[done:])
                return

    def _is_wanted(self, event: Event) -> bool:
        """Return whether the loop still wants the events for which a connection was ready a turn ago."""
        connection = self.connections.by_token.get(event[0])
        return bool(connection.interest & event[1]) if connection is not None else event[0] in self._other_handlers

    def _guarded(self, call: Callable[[], object]) -> None:
        """Run a call that belongs to no connection. An internal error is logged and does not end the node."""
        try:
            call()
        except Exception as error:
            if self.strict:
                raise
            self._metrics.handler_failures += 1
            self._logger.error("an event failed inside the broker", cause=error)

    def _receiving_failed(self, connection: Connection, error: Exception) -> None:
        if isinstance(error, BlockingIOError):
            return
        if isinstance(error, ProtocolError):
            self._reject(connection, error)
        elif isinstance(error, OSError):
            self.close(connection)
        else:
            self._fail(connection, error)

    def _await_more(self, connection: Connection) -> None:
        """Wait for more: the bytes received do not end with a frame, or hold frames that may not be handled yet."""
        if connection.partial_since_ms == NO_PARTIAL_FRAME:
            connection.partial_since_ms = self._now_ms
        self._choose_interest(connection)

    def _read_again(self) -> None:
        """Handle frames that were received before their connection was paused, or before a turn took too long."""
        waiting, self._unread = self._unread, []
        until_ms = self._now_ms + TURN_WORK_MS_MAX
        for index, connection in enumerate(waiting):
            if index and self._clock.monotonic_ms() >= until_ms:
                self._unread[:0] = waiting[index:]
                return
            if connection.closed or connection.interest != READABLE:
                continue  # `_choose_interest` adds it again
            try:
                if not self._resume(connection):
                    self._unread.append(connection)
                    continue
            except ProtocolError as error:
                self._reject(connection, error)
                continue
            except Exception as error:
                self._fail(connection, error)
                continue
            if connection.closing:
                connection.mark_dirty()
            elif connection.rest is not None or connection.frame is not None:
                self._await_more(connection)

    def _send_responses(self) -> None:
        small = 0
        for connection in self.dirty:
            connection.dirty = False
            if connection.closed or connection.unsent:
                continue
            try:
                sent = self._send_ready(connection)
            except OSError:
                self.close(connection)
                continue
            connection.bytes_out += sent
            small += sent
            if connection.unsent:
                connection.unsent_since_ms = self._now_ms
                self._writable.append(connection)
            elif connection.closing:
                self.close(connection)
            elif connection.interest != READABLE:
                self._choose_interest(connection)  # it may have been full
        self.dirty.clear()
        self._metrics.bytes_out += small
        if small:
            self._others_until_ms = self._now_ms + BESIDE_OTHERS_MS
        if self._writable:
            self._send_large()

    def _send_large(self) -> None:
        """Send large responses and what peers could not take before, in pieces if other clients are served."""
        bytes_max = SENT_ALONE_BYTES_MAX
        if self._now_ms < self._others_until_ms:
            bytes_max = max(SENT_BESIDE_OTHERS_BYTES_MAX // len(self._writable), SENT_ONCE_BYTES_MIN)
        for connection in self._writable:
            if connection.closed:
                continue
            try:
                in_pieces = connection.peer is None and not connection.closing  # acknowledgements wait for peers
                sent = self._send_more(connection, bytes_max if in_pieces else SENT_ALONE_BYTES_MAX)
            except OSError:
                self.close(connection)
                continue
            self._metrics.bytes_out += sent
            connection.bytes_out += sent
            if sent:
                connection.unsent_since_ms = connection.last_active_ms = self._now_ms
            if connection.closing:
                self.close(connection)
            else:
                self._choose_interest(connection)
        self._writable.clear()

    def _choose_interest(self, connection: Connection) -> None:
        """Stop reading from a peer that does not take its responses or is throttled, and when the broker stops."""
        if connection.unsent:
            interest = WRITABLE
        elif connection.muted or connection.starved:
            interest = 0
        elif connection.is_full(self._held_bytes_max):
            interest = HANGUP  # a client that has disconnected takes no responses, so none need be produced for it
        else:
            interest = READABLE
            if connection.interest != READABLE:
                if connection.rest is not None:
                    self._unread.append(connection)
                    connection.partial_since_ms = self._now_ms  # while it was not read, it was not slow
                if connection.tls is not None:
                    self.read_again(connection)
        if interest != connection.interest:
            connection.interest = interest
            self._network.watch(connection.token, interest)

    def _feed_starved(self, *, at_once: bool = False) -> None:
        """Let some of the large frames that wait for a buffer try again."""
        for connection in self.receiver.take_starved(at_once=at_once):
            connection.starved = False
            self._choose_interest(connection)

    def _evict(self, connection: Connection) -> None:
        self._metrics.connections_timed_out += 1
        self._logger.info(
            "connection closed: its large request did not arrive while others needed the memory "
            "(headrace.total.inflight.bytes.max)",
            peer=connection.transport.peer_address,
            declared_bytes=connection.frame_size,
            received_bytes=connection.frame_received,
        )
        self.close(connection)

    # Connections

    def join(self, connection: Connection) -> None:
        """Serve an accepted connection."""
        self.connections.by_token[connection.token] = connection
        if connection.peer is None:
            self.throttle.joined(connection)
        self._metrics.connections_opened += 1
        self._network.watch(connection.token, READABLE)
        if connection.tls is not None:
            self.read_again(connection)

    def read_again(self, connection: Connection) -> None:
        """Receive from a connection in the next turn, if its transport holds received bytes then."""
        self._buffered.add(connection)

    def give_up(self, connection: Connection) -> None:
        """Close a connection that did not join."""
        connection.closed = True
        connection.transport.close()
        self.clients.remove(connection)

    @property
    def turn_began_ms(self) -> float:
        return self._now_ms

    def _admit_peer(self, connection: Connection) -> bool:
        assert self._admission is not None
        if not self._admission.admit(connection):
            return False
        self._first[connection.token] = None
        return True

    def _time_clients(self, quotas: "ClientQuotas | None") -> None:
        """Have the time charged that receiving, handling and sending take, or with None no more."""
        receiver, sender = self.receiver, self._sender
        self._receive = receiver.receive if quotas is None else quotas.timed(receiver.receive)
        self._resume = receiver.resume if quotas is None else quotas.timed(receiver.resume)
        self._send_ready = sender.send_ready if quotas is None else quotas.timed(sender.send_ready)
        self._send_more = sender.send_more if quotas is None else quotas.timed(sender.send_more)

    def _reject(self, connection: Connection, error: ProtocolError) -> None:
        """Count and log malformed input of the peer, or the end of its session, and close the connection."""
        is_over = isinstance(error, SessionExpired)
        self._metrics.sessions_expired += is_over
        self._metrics.protocol_errors += not is_over
        peer, what = connection.transport.peer_address, "at the end of its session" if is_over else "for bad input"
        self._logger.info(f"connection closed {what}", peer=peer, reason=str(error))
        self.close(connection)

    def _fail(self, connection: Connection, error: Exception) -> None:
        """Log an internal error and close the connection; other clients are not affected."""
        self._metrics.handler_failures += 1
        self._logger.error("a request failed inside the broker", peer=connection.transport.peer_address, cause=error)
        self.close(connection)

    def close(self, connection: Connection) -> None:
        if connection.closed:
            return
        connection.closed = True
        if connection.mute_timer is not None:
            self._timers.cancel(connection.mute_timer)
        self.receiver.discard(connection)
        self._network.forget(connection.token)
        connection.transport.close()
        connection.responses.clear()
        connection.unsent.clear()
        for parked in tuple(connection.parked):
            parked.abandon()
        connection.parked.clear()
        del self.connections.by_token[connection.token]
        if connection.peer is not None:
            del self._first[connection.token]
            if self._admission is not None:
                self._admission.closed(connection)
        else:
            self.clients.remove(connection)
        self._metrics.connections_closed += 1

    def begin_stop(self) -> None:
        """Accept no clients and no requests of clients; those that wait get the results so far."""
        self.close_listeners()
        if self._handshakes is not None:
            self._handshakes.close(self)
        for connection in self.connections.of_clients():
            connection.muted = True
            self._choose_interest(connection)
            for parked in tuple(connection.parked):
                parked.answer_now()

    def close_senders(self, cut: Mapping[FileHandle, int]) -> None:
        """Close the connections with unsent ranges that reach beyond these positions of these files.

        A log is about to be truncated there: they would send other bytes than those that the response was made of.
        """
        for connection in self.connections.sending_beyond(cut):
            self._logger.info(
                "connection closed, because what it was being sent is truncated",
                peer=connection.transport.peer_address,
            )
            self.close(connection)

    def close_connections(self) -> None:
        """Close all connections, those of other nodes too."""
        self._peer_acceptor.close()
        if self._handshakes is not None:
            self._handshakes.close(self)
        for connection in self.connections.all():
            self.close(connection)

    def _trim_buffers(self) -> None:
        self._timers.after(POOLED_BUFFERS_UNUSED_MS, self._trim_buffers)
        self.receiver.trim()
