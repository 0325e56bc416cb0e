"""Headrace: a distributed message log that speaks the Kafka wire protocol."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client import Admin, Consumer, Producer

__version__ = "0.1.0"
__all__ = ["Admin", "Consumer", "Producer", "__version__"]


def __getattr__(name: str) -> Any:
    """The client's classes, imported when first asked for: a broker starts without them."""
    if name in ("Admin", "Consumer", "Producer"):
        return getattr(import_module("headrace.client"), name)
    if name == "aio":
        return import_module("headrace.aio")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
