"""Clients that are connected to the brokers."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from headrace.manager.connection_rates import ConnectionRates
from headrace.manager.parts import Parts
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1/connections", tags=["cluster"])
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionView:
    broker: int
    listener: str
    address: str
    client_id: str
    library: str
    """Empty if the client does not tell."""
    version: str
    principal: str
    topics_written: list[str]
    """Of the last requests, at most 20."""
    topics_read: list[str]
    connected_ms: int
    idle_ms: int
    bytes_in: int
    bytes_out: int
    bytes_in_per_second: float
    bytes_out_per_second: float
    errors: int
    """Requests that were answered with an error."""


@router.get("", response_model=list[ConnectionView], summary="List the clients that are connected to the brokers")
async def list_connections(
    request: Request,
    parts: Parts,
    broker: Annotated[int | None, Query(ge=0, le=INT32_MAX, description="Those of this broker.")] = None,
    client_id: Annotated[str | None, Query(max_length=255, description="Those with this client id.")] = None,
    topic: Annotated[str | None, Query(max_length=249, description="Those that write or read this topic.")] = None,
) -> Response:
    """The rates are those of about the last second. The clients of this manager are in the list too."""
    found = await parts.clients.rates()
    shown = [
        _view(each)
        for each in found
        if broker in (None, each.connection.node_id)
        and client_id in (None, each.connection.client_id)
        and (topic is None or topic in each.connection.topics_written or topic in each.connection.topics_read)
    ]
    return respond(request, shown)


def _view(found: ConnectionRates) -> ConnectionView:
    each = found.connection
    return ConnectionView(
        each.node_id,
        each.listener,
        each.address,
        each.client_id,
        each.software_name,
        each.software_version,
        each.principal,
        list(each.topics_written),
        list(each.topics_read),
        each.connected_ms,
        each.idle_ms,
        each.bytes_in,
        each.bytes_out,
        round(found.bytes_in_per_second, 1),
        round(found.bytes_out_per_second, 1),
        each.errors,
    )
