"""Registered producers and consumers. They are in the catalog, and the positions of consumers are group offsets."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from headrace.client.errors import ClientError
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.tables import clients
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import (
    CLIENT_COMMIT_SECONDS,
    CLIENT_SEEN_SECONDS,
    CLIENT_SILENCE_SECONDS_MAX,
    CLIENT_SWEEP_SECONDS,
    CLIENT_TURN_SECONDS,
    CLIENTS_PER_USER_MAX,
)
from headrace.manager.problems import ApiProblem
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.ports.real.entropy import RealEntropy

ID_PREFIX = "headrace-client-"
ID_BYTES = 8
TURN_BYTES = 8
PRODUCER, CONSUMER = "producer", "consumer"
AT_MOST_ONCE, EXACTLY_ONCE = "at-most-once", "exactly-once"
SEEN_KEPT_MAX = 10_000
logger = logging.getLogger("headrace.manager")
_shown = [clients.c[name] for name in ("id", "owner", "kind", "name", "topic", "partition", "delivery", "created_ms",
                                       "seen_ms")]  # fmt: skip


class RegisteredClient(NamedTuple):
    id: str
    """Made by the manager; it is also the group of a consumer."""
    owner: str
    kind: str
    name: str
    topic: str
    partition: int | None
    """None for the whole topic."""
    delivery: str
    created_ms: int
    seen_ms: int


def add_client(connection: Connection, client: RegisteredClient) -> RegisteredClient:
    held = select(func.count()).select_from(clients).where(clients.c.owner == client.owner)
    if connection.execute(held).scalar_one() >= CLIENTS_PER_USER_MAX:
        raise ApiProblem(409, f"a user has at most {CLIENTS_PER_USER_MAX} clients: delete those that are not used")
    now = now_ms(connection)
    added = client._replace(created_ms=now, seen_ms=now)
    connection.execute(insert(clients).values(**added._asdict()))
    return added


def listed_clients(connection: Connection, owner: str) -> list[RegisteredClient]:
    oldest = now_ms(connection) - CLIENT_SILENCE_SECONDS_MAX * 1_000
    wanted = select(*_shown).where(clients.c.owner == owner, clients.c.seen_ms >= oldest)
    return [RegisteredClient(*row) for row in connection.execute(wanted.order_by(clients.c.created_ms, clients.c.id))]


def found_client(connection: Connection, id: str, owner: str) -> RegisteredClient | None:
    """Return a client of this user that is not expired; None for any other id."""
    oldest = now_ms(connection) - CLIENT_SILENCE_SECONDS_MAX * 1_000
    wanted = select(*_shown).where(clients.c.id == id, clients.c.owner == owner, clients.c.seen_ms >= oldest)
    row = connection.execute(wanted).one_or_none()
    return None if row is None else RegisteredClient(*row)


def take_turn(connection: Connection, id: str, turn: str) -> bool:
    now = now_ms(connection)
    is_free = or_(clients.c.turn.is_(None), clients.c.turn_ends_ms < now)
    changed = update(clients).where(clients.c.id == id, is_free)
    return connection.execute(changed.values(turn=turn, turn_ends_ms=now + CLIENT_TURN_SECONDS * 1_000)).rowcount == 1


def end_turn(connection: Connection, id: str, turn: str) -> bool:
    """Return whether the turn was still that of this request."""
    changed = update(clients).where(clients.c.id == id, clients.c.turn == turn)
    return connection.execute(changed.values(turn=None, turn_ends_ms=None)).rowcount == 1


class Turn:
    """The right of one request to read for a consumer; without it, two requests would get the same records."""

    def __init__(self) -> None:
        self.id = RealEntropy().random_bytes(TURN_BYTES).hex()
        self._taken_at_s = time.monotonic()

    def check(self) -> None:
        """Raise a problem if the turn is about to end, before a position is committed in it."""
        if time.monotonic() - self._taken_at_s > CLIENT_COMMIT_SECONDS:
            raise ApiProblem(503, "reading took too long, and no position was committed: send the request again")


class Registrations:
    def __init__(self, catalog: Catalog, cluster: ClusterCalls) -> None:
        self._catalog = catalog
        self._cluster = cluster
        self._seen: dict[str, float] = {}
        """When this manager last recorded a request of a client."""
        self._sweeps: asyncio.Task[None] | None = None

    async def add(self, client: RegisteredClient, positions: Mapping[TopicPartition, int]) -> RegisteredClient:
        """Add a client; a consumer starts at these positions."""
        named = client._replace(id=ID_PREFIX + RealEntropy().random_bytes(ID_BYTES).hex())
        if positions:
            await self.commit(named, positions)
        return await self._catalog.change(lambda connection: add_client(connection, named))

    async def find(self, id: str, owner: str, kind: str | None = None) -> RegisteredClient:
        """Return a client of this user, and record that it is alive."""
        found = await self._catalog.read(lambda connection: found_client(connection, id, owner))
        if found is None:
            raise ApiProblem(
                404, f'there is no client "{id}", or it was silent for {CLIENT_SILENCE_SECONDS_MAX} s: register it by '
                "POST /v1/clients"
            )  # fmt: skip
        if kind is not None and found.kind != kind:
            raise ApiProblem(409, f'client "{id}" is a {found.kind}, and this request is for a {kind}')
        return found

    async def seen(self, client: RegisteredClient) -> None:
        now_s = time.monotonic()
        if now_s - self._seen.get(client.id, -CLIENT_SEEN_SECONDS) < CLIENT_SEEN_SECONDS:
            return
        await self._catalog.write(
            lambda connection: connection.execute(
                update(clients).where(clients.c.id == client.id).values(seen_ms=now_ms(connection))
            )
        )
        if len(self._seen) >= SEEN_KEPT_MAX:
            self._seen.clear()
        self._seen[client.id] = now_s

    async def listed(self, owner: str) -> list[RegisteredClient]:
        return await self._catalog.read(lambda connection: listed_clients(connection, owner))

    async def positions(self, client: RegisteredClient) -> dict[int, int]:
        """Return the committed position of each partition."""
        found = await self._cluster.run(lambda admin: admin.group_offsets(client.id))
        own = ((part.partition, at.offset) for part, at in found.items() if part.topic == client.topic)
        return {partition: offset for partition, offset in own if offset >= 0}

    async def commit(self, client: RegisteredClient, positions: Mapping[TopicPartition, int]) -> None:
        outcomes = await self._cluster.run(lambda admin: admin.commit_group_offsets(client.id, positions))
        for place, outcome in outcomes.items():
            outcome.check(f"the position of {place} cannot be committed")

    @asynccontextmanager
    async def turn(self, client: RegisteredClient) -> AsyncIterator[Turn]:
        """Read for a consumer alone. Leaving it raises a problem if another request has taken the turn over."""
        turn = Turn()
        if not await self._catalog.write(lambda connection: take_turn(connection, client.id, turn.id)):
            raise ApiProblem(409, f'another request reads for client "{client.id}": wait for its response')
        try:
            yield turn
        except BaseException:
            await asyncio.shield(self._catalog.write(lambda connection: end_turn(connection, client.id, turn.id)))
            raise
        if not await self._catalog.write(lambda connection: end_turn(connection, client.id, turn.id)):
            raise ApiProblem(503, "reading took too long, and another request reads for this client")

    async def remove(self, client: RegisteredClient) -> None:
        await self._catalog.change(
            lambda connection: connection.execute(delete(clients).where(clients.c.id == client.id))
        )
        await self._forget_positions([client.id])

    async def _forget_positions(self, groups: list[str]) -> None:
        outcomes = await self._cluster.run(lambda admin: admin.delete_groups(groups))
        for group, outcome in outcomes.items():
            if outcome.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                outcome.check(f"the positions of client {group} cannot be deleted")

    # Silent clients

    def start(self) -> None:
        self._sweeps = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(CLIENT_SWEEP_SECONDS)
            if self._catalog.standing.epoch is not None:
                try:
                    await self.remove_silent()
                except (ApiProblem, ClientError) as error:
                    logger.warning("silent clients cannot be removed: %s", error)

    async def remove_silent(self) -> list[str]:
        """Remove the clients that are silent for too long, with their positions; return their ids."""

        def silent(connection: Connection) -> list[tuple[str, str]]:
            is_silent = clients.c.seen_ms < now_ms(connection) - CLIENT_SILENCE_SECONDS_MAX * 1_000
            wanted = select(clients.c.id, clients.c.kind).where(is_silent)
            found = [(row.id, row.kind) for row in connection.execute(wanted)]
            connection.execute(delete(clients).where(clients.c.id.in_([id for id, _ in found]), is_silent))
            return found

        removed = await self._catalog.change(silent)
        consumers = [id for id, kind in removed if kind == CONSUMER]
        if consumers:
            await self._forget_positions(consumers)
        return [id for id, _ in removed]

    async def close(self) -> None:
        if self._sweeps is not None:
            self._sweeps.cancel()
            await asyncio.gather(self._sweeps, return_exceptions=True)
