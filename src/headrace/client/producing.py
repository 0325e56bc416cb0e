"""What the producers of all fronts have in common around the core: settings from the config."""

from headrace.client.config import ProducerConfig
from headrace.client.core.producer import ACKS_ALL, ProducerSettings
from headrace.client.errors import InvalidArgument
from headrace.wire.records.compression import Compression


def producer_settings(config: ProducerConfig) -> ProducerSettings:
    acks = ACKS_ALL if config.acks == "all" else int(config.acks)
    return ProducerSettings(
        acks=acks,
        idempotent=acks == ACKS_ALL if config.idempotent is None else config.idempotent,
        compression=_compression(config.compression),
        linger_ms=config.linger_ms,
        batch_bytes_max=config.batch_size,
        request_bytes_max=config.max_request_size,
        buffer_bytes_max=config.buffer_memory,
        requests_in_flight_max=config.max_in_flight_requests_per_connection,
        request_timeout_ms=config.request_timeout_ms,
        delivery_timeout_ms=config.delivery_timeout_ms,
        retry_pause_ms=config.retry_backoff_ms,
    )


def _compression(name: str) -> Compression:
    try:
        return Compression[name.upper()]
    except (KeyError, AttributeError):
        known = ", ".join(codec.name.lower() for codec in Compression)
        raise InvalidArgument(f"there is no compression {name!r}; known are {known}") from None
