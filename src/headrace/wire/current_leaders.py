"""Tagged fields of Produce and Fetch responses that send a client to the leader of a partition (KIP-951)."""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from headrace.wire.scan import varint_bytes

NO_TAGGED_FIELDS = b"\x00"
_ENDPOINTS_TAG = 0
_LEADER = Struct(">BBBiiB")
_LEADER_BYTES = 9
_INT32 = Struct(">i")


class CurrentLeader(NamedTuple):
    leader_id: int
    leader_epoch: int


class LeaderEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def leader_fields(tag: int, leader: CurrentLeader) -> bytes:
    """Encode the tagged fields of a partition: its leader under this tag, and no others."""
    return _LEADER.pack(1, tag, _LEADER_BYTES, *leader, 0)


def endpoint_fields(endpoints: Sequence[LeaderEndpoint]) -> bytes:
    """Encode the tagged fields of a response: the addresses of the leaders, and no others."""
    content = varint_bytes(len(endpoints) + 1) + b"".join(map(_endpoint, endpoints))
    return bytes((1, _ENDPOINTS_TAG)) + varint_bytes(len(content)) + content


def _endpoint(endpoint: LeaderEndpoint) -> bytes:
    rack = b"\x00" if endpoint.rack is None else _text(endpoint.rack)
    return _INT32.pack(endpoint.node_id) + _text(endpoint.host) + _INT32.pack(endpoint.port) + rack + NO_TAGGED_FIELDS


def _text(text: str) -> bytes:
    encoded = text.encode()
    return varint_bytes(len(encoded) + 1) + encoded
