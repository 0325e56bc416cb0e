"""The open connections of a node, by token, and the files of the responses that they are still being sent."""

from collections.abc import Iterator, Mapping
from heapq import nsmallest

from headrace.broker.net.connection import Connection
from headrace.ports.disk import FileHandle


class OpenConnections:
    def __init__(self) -> None:
        self.by_token: dict[int, Connection] = {}

    def __len__(self) -> int:
        return len(self.by_token)

    def all(self) -> tuple[Connection, ...]:
        """Return the present ones, those with other nodes too; the caller may close them."""
        return tuple(self.by_token.values())

    def of_clients(self) -> list[Connection]:
        return [each for each in self.by_token.values() if each.peer is None]

    def clients_after(self, token: int, count_max: int) -> list[Connection]:
        """Return the connections of clients with the lowest tokens above this one, at most `count_max`."""
        found = (each for each in self.by_token.values() if each.token > token and each.peer is None)
        return nsmallest(count_max, found, key=lambda connection: connection.token)

    def owe_responses(self) -> bool:
        """Return whether a client waits for a response."""
        return any(
            connection.peer is None and (connection.responses or connection.unsent)
            for connection in self.by_token.values()
        )

    def files_in_use(self) -> Iterator[FileHandle]:
        """Yield the files of responses that are not sent yet, which must stay open."""
        for connection in self.by_token.values():
            yield from (part.file for part in connection.unsent_ranges())
            for parked in connection.parked:
                yield from parked.files()

    def sending_beyond(self, cut: Mapping[FileHandle, int]) -> Iterator[Connection]:
        """Yield those with unsent ranges that reach beyond these positions of these files."""
        for connection in self.all():
            reaches = any(part.position + part.length > cut[part.file] for part in connection.unsent_ranges(cut))
            if reaches or any(file in cut for parked in connection.parked for file in parked.files()):
                yield connection
