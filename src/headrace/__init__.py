"""Headrace: a distributed message log that speaks the Kafka wire protocol."""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from headrace import aio
    from headrace.client import Admin, Consumer, Producer
    from headrace.client.errors import (
        AuthenticationFailed,
        BadResponse,
        BatchFenced,
        BrokerError,
        BrokerUnreachable,
        BufferFull,
        ClientClosed,
        ClientError,
        DeadlineExceeded,
        DeserializationError,
        InvalidArgument,
        LogTruncated,
        OffsetOutOfRange,
        ProducerFenced,
        SerializationError,
        TopicRecreated,
        TransactionFailed,
        UnsupportedByBroker,
    )

__version__ = "0.1.0"
__all__ = [
    "Admin",
    "AuthenticationFailed",
    "BadResponse",
    "BatchFenced",
    "BrokerError",
    "BrokerUnreachable",
    "BufferFull",
    "ClientClosed",
    "ClientError",
    "Consumer",
    "DeadlineExceeded",
    "DeserializationError",
    "InvalidArgument",
    "LogTruncated",
    "OffsetOutOfRange",
    "Producer",
    "ProducerFenced",
    "SerializationError",
    "TopicRecreated",
    "TransactionFailed",
    "UnsupportedByBroker",
    "__version__",
    "aio",
]

_MODULES = {"Admin": "headrace.client", "Consumer": "headrace.client", "Producer": "headrace.client"}


def __getattr__(name: str) -> _typing.Any:
    """The clients and their errors, imported when first asked for: a broker starts without them."""
    if name == "aio":
        return _import_module("headrace.aio")
    if name in __all__:
        return getattr(_import_module(_MODULES.get(name, "headrace.client.errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """For completion: what there is to use, imported or not."""
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
