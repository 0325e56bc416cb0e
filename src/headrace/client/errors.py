"""What the client raises. Every message says what happened and what to do next."""

from typing import TYPE_CHECKING

from headrace.model.errors import RETRIABLE, ErrorCode, error_name

if TYPE_CHECKING:
    from headrace.client.types import ConsumerRecord
    from headrace.model.ids import TopicPartition

_HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it with `headrace topics create`, or check the spelling",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or change the topic with `headrace topics alter`",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "names have at most 249 letters, digits, dots, dashes and underscores",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for the right to it, or come as somebody who has it",
    ErrorCode.LEADER_NOT_AVAILABLE: "bring the brokers that hold it back, or try again when they have chosen a leader",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller records or raise max.message.bytes of the topic",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to an offset that exists or set auto_offset_reset",
    ErrorCode.INVALID_REPLICATION_FACTOR: "ask for at most as many replicas as there are brokers",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for; bring brokers back",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "choose another compression or a newer broker",
    ErrorCode.INVALID_RECORD: "if the topic is compacted, give every record a key",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker cannot write; look at its disk and its log",
}


class ClientError(Exception):
    """Anything the client raises."""


class BrokerUnreachable(ClientError):
    """No connection to a broker could be made, or it broke before the answer came."""


class BadAnswer(ClientError):
    """A broker's bytes cannot be read as the answer to what was asked."""


class AuthenticationFailed(ClientError):
    """The broker does not accept who we say we are, or its certificate is not one to trust."""


class UnsupportedByBroker(ClientError):
    """The broker does not serve the API, or no version of it that has what is needed."""


class DeadlineExceeded(ClientError, TimeoutError):
    """The answer did not come in the time allowed for it."""


class InvalidArgument(ClientError, ValueError):
    """A value that cannot be sent; nothing was."""


class BufferFull(ClientError):
    """The producer holds as many bytes as it may, and no room came up in time."""


class ClientClosed(ClientError):
    """The producer, consumer or admin was closed."""


class BrokerError(ClientError):
    """A broker answered with one of Kafka's error codes."""

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
    """A partition has no such offset (any more)."""

    def __init__(self, partition: "TopicPartition", offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} cannot be read at offset {offset}")


class TopicRecreated(ClientError):
    """A topic was deleted, and the one that has its name now is another."""

    def __init__(self, partition: "TopicPartition", offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(
            f'{partition} cannot be read from offset {offset} on, as "{partition.topic}" was deleted and created again'
        )


class LogTruncated(ClientError):
    """A partition lost records that were read already, when a leader without them took over.

    `diverged_at` is the first offset that is not what was read, if that is known.
    """

    def __init__(self, partition: "TopicPartition", offset: int, diverged_at: int | None) -> None:
        self.partition = partition
        self.offset = offset
        self.diverged_at = diverged_at
        where = f"from offset {diverged_at} on" if diverged_at is not None else "from an unknown offset on"
        super().__init__(
            f"{partition} lost records {where} that were read up to {offset}, as a leader without them took over: "
            "undo what they led to and seek there, or set auto_offset_reset"
        )


class TransactionFailed(ClientError):
    """Something in a transaction failed, so that it can only be aborted; leaving its `with` block by this does so."""


class ProducerFenced(ClientError):
    """Another producer with the same transactional id has taken over; this one can do nothing more."""


class BatchFenced(ClientError):
    """A newer run of the same owner has taken over; this run can write and commit nothing more."""


class SerializationError(ClientError, ValueError):
    """A key or value that its serializer cannot make into bytes; nothing was sent."""


class DeserializationError(ClientError, ValueError):
    """Bytes that a deserializer cannot read. `record` has them as they came; reading goes on behind it."""

    def __init__(self, text: str, record: "ConsumerRecord") -> None:
        super().__init__(text)
        self.record = record


def unreachable(address: str, reason: object) -> BrokerUnreachable:
    """The message for a connection that cannot be made."""
    return BrokerUnreachable(
        f"cannot reach {address} ({reason}): is a broker running there? start one with `headrace broker`"
    )
