"""Produce loads: connections, requests in flight and batch sizes."""

from dataclasses import dataclass, replace

QUICK_FRACTION = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceLoad:
    connections: int
    depth: int
    """Requests in flight per connection."""

    records: int
    """Records per batch; a request has one batch."""

    record_bytes: int
    partitions: int = 4
    acks: int = 1
    seconds: float = 3.0
    bytes_max: int = 0
    """A round ends early after this many bytes, so that the data fits into memory; 0 means no limit."""

    @property
    def name(self) -> str:
        return f"{self.connections} x {self.depth}, {size_name(self.records * self.record_bytes)}"

    @property
    def message_name(self) -> str:
        """The name of the load for a client that builds its own batches."""
        return f"messages of {size_name(self.record_bytes)}, {self.partitions} partitions"

    def quick(self) -> "ProduceLoad":
        return replace(self, seconds=self.seconds * QUICK_FRACTION, bytes_max=int(self.bytes_max * QUICK_FRACTION))


SINGLE = ProduceLoad(connections=32, depth=1, records=1, record_bytes=100)
PIPELINED = ProduceLoad(connections=8, depth=16, records=1, record_bytes=100)
MEDIUM = ProduceLoad(connections=8, depth=4, records=16, record_bytes=1_000, bytes_max=1_000_000_000)
LARGE = ProduceLoad(connections=4, depth=2, records=1_000, record_bytes=1_000, bytes_max=1_000_000_000)

PRODUCE_LOADS = (SINGLE, PIPELINED, MEDIUM, LARGE)

ACKS = {"all": -1, "1": 1, "0": 0}


def size_name(count: int) -> str:
    """Return a size in decimal units: `100 B`, `16 KB`, `1 MB`."""
    for unit, size in (("MB", 1_000_000), ("KB", 1_000)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
