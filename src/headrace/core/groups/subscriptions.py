"""The topics in what a consumer says when it joins: the start of Kafka's consumer protocol, all the broker looks at."""

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT16
from headrace.wire.primitives.reading import MALFORMED, read_array, read_number, read_string

CONSUMER_PROTOCOL_TYPE = "consumer"
_TOPIC_BYTES_MIN = 2


def subscribed_topics(subscription: bytes) -> tuple[str, ...] | None:
    """The names in a consumer's subscription, or None if it is no such thing."""
    try:
        version, position = read_number(subscription, 0, INT16)
        if version < 0:
            return None
        return read_array(subscription, position, _TOPIC_BYTES_MIN, read_string)[0]
    except (ProtocolError, *MALFORMED):
        return None
