"""Error responses to requests that are too large to be read, in the format of their own API."""

from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from headrace.model.errors import ErrorCode
from headrace.wire.apis import APIS, ApiKey, codec
from headrace.wire.errors import ProtocolError
from headrace.wire.offset_slices import SLICED, OffsetSlices

_DEPTH_MAX = 4


def too_large(key: int, version: int, first: memoryview, message: str) -> bytes | None:
    """Build the body of a response with INVALID_REQUEST, and the message where there is a field for it.

    `first` is the beginning of the request's body. An API that has errors only for single topics or partitions gets one
    of them. Returns None when the version has no field for an error.
    """
    coder = codec(key)
    if key in SLICED:
        response = _offsets_response(key, version, first)
    else:
        response = _with_error(_response_type(key), message, _DEPTH_MAX)
    if response is None:
        return None
    try:
        body = coder.encode_response(response, version)
        return body if body != coder.encode_response(type(response)(), version) else None
    except ProtocolError:
        return None


def _response_type(key: int) -> type[Any]:
    name = "".join(word.capitalize() for word in APIS[key].module.split("_"))
    found: type[Any] = getattr(codec(key), f"{name}Response")
    return found


def _with_error(message_type: type[Any], text: str, depth_max: int) -> Any:
    """Build a message with an error at its top level or in the one element of an array; None if it has no field."""
    hints = get_type_hints(message_type)
    if "error_code" in hints:
        texts = {"error_message": text} if "error_message" in hints else {}
        return message_type(error_code=ErrorCode.INVALID_REQUEST, **texts)
    for field in fields(message_type):
        for part in get_args(hints[field.name]) if depth_max else ():
            if isinstance(part, type) and is_dataclass(part):
                element = _with_error(part, text, depth_max - 1)
                if element is not None:
                    return message_type(**{field.name: (element,)})
    return None


def _offsets_response(key: int, version: int, first: memoryview) -> Any:
    """Add an error for the first partition of a commit: a client takes a response without any for a success."""
    coder: Any = codec(key)
    name = "OffsetCommit" if key == ApiKey.OFFSET_COMMIT else "TxnOffsetCommit"
    try:
        topic, index = OffsetSlices(key, version, first, whole=False).first_partition()
    except ProtocolError:
        return None
    partition = getattr(coder, f"{name}ResponsePartition")(partition_index=index, error_code=ErrorCode.INVALID_REQUEST)
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    return getattr(coder, f"{name}Response")(
        topics=(getattr(coder, f"{name}ResponseTopic")(**named, partitions=(partition,)),)
    )
