"""Errors of the client. Every message says what happened and what to do next."""

from typing import TYPE_CHECKING

from headrace.model.errors import RETRIABLE, ErrorCode, error_name

if TYPE_CHECKING:
    from headrace.client.types import ConsumerRecord
    from headrace.model.ids import TopicPartition

_HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it with `headrace topics create`, or check the spelling",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or change the topic with `headrace topics alter`",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "names have at most 249 letters, digits, dots, dashes and underscores",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "request access to it, or use a user that has access",
    ErrorCode.LEADER_NOT_AVAILABLE: "restart the brokers that hold it, or try again when a leader has been elected",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller records or raise max.message.bytes of the topic",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to an offset that exists, or set auto_offset_reset",
    ErrorCode.INVALID_REPLICATION_FACTOR: "request at most as many replicas as there are brokers",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas requires; restart "
    "the missing brokers",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "use another compression or a newer broker",
    ErrorCode.INVALID_RECORD: "if the topic is compacted, give every record a key",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker cannot write; check its disk and its log",
}


class ClientError(Exception):
    """Anything the client raises."""


class BrokerUnreachable(ClientError):
    """A connection to a broker could not be made, or broke before the response arrived."""


class BadResponse(ClientError):
    """A broker's response cannot be decoded."""


class AuthenticationFailed(ClientError):
    """The broker does not accept the credentials, or its certificate is not trusted."""


class UnsupportedByBroker(ClientError):
    """The broker does not serve the API, or no version of it that is sufficient."""


class DeadlineExceeded(ClientError, TimeoutError):
    """The response did not arrive in the allowed time."""


class InvalidArgument(ClientError, ValueError):
    """A value that cannot be sent; nothing was sent."""


class BufferFull(ClientError):
    """The producer's buffer is full, and no space became free in time."""


class ClientClosed(ClientError):
    """The producer, consumer or admin was closed."""


class BrokerError(ClientError):
    """A broker responded with one of Kafka's error codes."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = code
        hint = _HINTS.get(code)  # type: ignore[call-overload]
        text = f"{what}: {error_name(code)}"
        if message:
            text += f", {message}"
        super().__init__(f"{text} ({hint})" if hint else text)

    @property
    def is_retriable(self) -> bool:
        return self.code in RETRIABLE


class OffsetOutOfRange(BrokerError):
    """The partition does not have this offset (any more)."""

    def __init__(self, partition: "TopicPartition", offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} cannot be read at offset {offset}")


class TopicRecreated(ClientError):
    """A topic was deleted, and another one with the same name was created."""

    def __init__(self, partition: "TopicPartition", offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(
            f'{partition} cannot be read from offset {offset} on, because "{partition.topic}" was deleted and '
            "created again"
        )


class LogTruncated(ClientError):
    """A partition lost records that were already read, when a leader without them took over.

    `diverged_at` is the first offset that differs from what was read, if known.
    """

    def __init__(self, partition: "TopicPartition", offset: int, diverged_at: int | None) -> None:
        self.partition = partition
        self.offset = offset
        self.diverged_at = diverged_at
        where = f"from offset {diverged_at} on" if diverged_at is not None else "from an unknown offset on"
        super().__init__(
            f"{partition} lost records {where} that were read up to {offset}, because a leader without them "
            "took over: undo their effects and seek there, or set auto_offset_reset"
        )


class TransactionFailed(ClientError):
    """A part of the transaction failed, so that it can only be aborted; leaving its `with` block does so."""


class ProducerFenced(ClientError):
    """Another producer with the same transactional id has taken over; this one cannot continue."""


class BatchFenced(ClientError):
    """A newer run of the same owner has taken over; this run can write and commit nothing more."""


class SerializationError(ClientError, ValueError):
    """A serializer cannot convert the key or value to bytes; nothing was sent."""


class DeserializationError(ClientError, ValueError):
    """A deserializer cannot decode the bytes. `record` holds them; reading continues after this record."""

    def __init__(self, text: str, record: "ConsumerRecord") -> None:
        super().__init__(text)
        self.record = record


def unreachable(address: str, reason: object) -> BrokerUnreachable:
    """Return the message for a connection that cannot be made."""
    return BrokerUnreachable(
        f"cannot reach {address} ({reason}); check that a broker is running there, or start one with `headrace broker`"
    )
