"""The options of the sink of topics, checked before anything is written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from headrace.client.config import AdminConfig, ClientConfig, ProducerConfig
from headrace.spark.kafka_options import checked, client_settings
from headrace.spark.option_names import OWN_SOURCE_NAMES, SINK_NAMES, SOURCE_NAMES, OptionError, refuse_names
from headrace.wire.records.compression import Compression

Delivery = Literal["exactly-once", "at-least-once", "lanes"]
DELIVERIES: tuple[Delivery, ...] = ("exactly-once", "at-least-once")
LANES: Delivery = "lanes"
"""Set by `write_lanes` only, which distributes the rows to the tasks."""

LANES_MAX = 1_000

SINK_NAME_DEFAULT = "sink"
NAME_LENGTH_MAX = 100
BATCH_ID_MAX = 2**62
BATCH_BYTES_DEFAULT = 512 * 1024
"""The default of kafka.batch.size. It is large, since all rows are available and batches need not wait for more."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OWN_BUSINESS = {
    "transactional.id": "the sink chooses its own, see delivery",
    "partitioner.class": "give the rows a column `partition`",
    "enable.idempotence": "the sink always writes idempotently with kafka.acks=all",
    "sasl.oauth.token": "a token cannot be given as text",
}
"""Settings of a producer that the sink refuses, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The parsed options; small and picklable, since every task receives them."""

    topic: str | None = None
    delivery: Delivery | None = None
    """None means exactly once where the brokers support it, else at least once with a warning."""
    sink_name: str = SINK_NAME_DEFAULT
    idempotence_key: str | None = None
    idempotence_batch_id: int | None = None
    """Of the writes under one key, one is made per batch id; batch ids increase. None: the micro-batch, or 0."""
    lanes: int = 0
    """The number of lanes, with delivery by lanes."""
    client: tuple[tuple[str, Any], ...] = ()
    """The settings of the producer, by the names of ProducerConfig."""

    @property
    def is_repeatable(self) -> bool:
        return self.delivery == "at-least-once"

    def producer_config(self, **changes: Any) -> ProducerConfig:
        """Return the producer's config; max.block.ms is kafka.delivery.timeout.ms unless it is set."""
        config = ProducerConfig(**{**dict(self.client), **changes})
        return (
            config if "max_block_ms" in dict(self.client) else replace(config, max_block_ms=config.delivery_timeout_ms)
        )

    def admin_config(self) -> AdminConfig:
        """Return the config of an admin client of the same brokers."""
        usual_ms = AdminConfig().timeout_ms
        return AdminConfig(**self.connection(), timeout_ms=min(usual_ms, int(self.patience_ms)))

    @property
    def patience_ms(self) -> float:
        """The time without a broker after which a write fails: kafka.delivery.timeout.ms."""
        return self.producer_config().delivery_timeout_ms

    def connection(self) -> dict[str, Any]:
        """Return the settings that all kinds of clients share: brokers and security."""
        shared = {field.name for field in fields(ClientConfig)}
        return {name: value for name, value in self.client if name in shared}

    @property
    def compression(self) -> Compression:
        return Compression[self.producer_config().compression.upper()]


def is_sink(options: Mapping[str, str]) -> bool:
    """Return whether there are options of the sink."""
    names = {name.lower() for name in SINK_NAMES}
    return any(name.lower() in names for name in options)


def parse_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options as Spark passes them: in lower case, and with options of Spark itself."""
    refuse_names(options, (*SOURCE_NAMES, *OWN_SOURCE_NAMES), "is for reading: a write does not take it")
    lower = {name.lower(): value for name, value in options.items()}
    topic = lower["topic"].strip() if "topic" in lower else None
    if topic == "":
        raise OptionError(
            'option "topic" is empty: name a topic, or leave the option out and give every row a column `topic`'
        )
    key = lower.get("idempotencekey")
    if key is None and "idempotencebatchid" in lower:
        raise OptionError('option "idempotenceBatchId" numbers the writes of one idempotenceKey: set that too')
    client = _client_settings(options)
    return SinkOptions(
        topic=topic,
        delivery=_delivery(lower, client),
        sink_name=checked_name("sinkName", lower.get("sinkname", SINK_NAME_DEFAULT)),
        idempotence_key=None if key is None else checked_name("idempotenceKey", key),
        idempotence_batch_id=checked_batch_id(lower.get("idempotencebatchid")),
        lanes=_lanes(lower),
        client=tuple(sorted(client.items())),
    )


def _delivery(lower: Mapping[str, str], client: Mapping[str, Any]) -> Delivery | None:
    delivery = lower.get("delivery")
    if delivery not in (None, LANES, *DELIVERIES):
        raise OptionError(f'option "delivery" is one of {", ".join(DELIVERIES)}, not {delivery!r}')
    if delivery == "at-least-once" and "idempotencekey" in lower:
        raise OptionError('option "idempotenceKey" is for delivery=exactly-once: leave one of the two out')
    if delivery == LANES and "topic" not in lower:
        raise OptionError(
            'write_lanes needs the option "topic": it notes its progress with the partitions of the topic'
        )
    if str(client.get("acks", "all")) in ("all", "-1"):
        return delivery
    if delivery in ("exactly-once", LANES) or "idempotencekey" in lower:
        raise OptionError(f"writing exactly once needs kafka.acks=all, not {client['acks']!r}: leave kafka.acks out")
    return "at-least-once"


def _lanes(lower: Mapping[str, str]) -> int:
    text = lower.get("lanes")
    if (text is not None) != (lower.get("delivery") == LANES):
        raise OptionError('lanes are written by headrace.spark.write_lanes(df, lanes=...): leave out option "lanes"')
    if text is not None and not (re.fullmatch(r"\d{1,4}", text) and 1 <= int(text) <= LANES_MAX):
        raise OptionError(f"there are 1 to {LANES_MAX} lanes, not {text!r}")
    return int(text or 0)


def checked_name(option: str, text: str) -> str:
    if not _NAME.fullmatch(text) or len(text) > NAME_LENGTH_MAX:
        raise OptionError(
            f'option "{option}" has 1 to {NAME_LENGTH_MAX} letters, digits, dots, dashes and underscores, not {text!r}'
        )
    return text


def checked_batch_id(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,19}", text) or int(text) > BATCH_ID_MAX:
        raise OptionError(f'option "idempotenceBatchId" is a whole number from 0 to {BATCH_ID_MAX}, not {text!r}')
    return int(text)


def _client_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the producer among the options, checked, by the names of ProducerConfig.

    A setting that the user gave is kept even if it equals the client's default: that of the sink may differ.
    """
    names = {"batch.size": str(BATCH_BYTES_DEFAULT), **client_settings(options)}
    for name in names:
        if name in _OWN_BUSINESS:
            raise OptionError(f'option "kafka.{name}" is not for a sink: {_OWN_BUSINESS[name]}')
    config, defaults = checked(ProducerConfig, names, options), ProducerConfig()
    given = {ProducerConfig.field_name(name) for name in names}
    return {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name in given or getattr(config, field.name) != getattr(defaults, field.name)
    }
