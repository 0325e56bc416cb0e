"""Targets of the protocol: every decoder of every API, the tuned scanners, the headers of frames.

An input is a byte that chooses the version, then the body. What a decoder accepts it must be able to write, and read
again as the same; what the clear form of a tuned scanner accepts, the scanner must read as the same.
"""

from functools import partial
from random import Random
from types import ModuleType
from typing import Any

from headrace.wire import fetch, frames, produce
from headrace.wire.apis import APIS, ApiKey, codec
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch as fetch_messages
from headrace.wire.messages import produce as produce_messages
from tests.wire import samples
from tools.fuzz.target import Target, require

SAMPLES_PER_VERSION = 3
FETCH_VERSION_MIN = 4
"""Versions that a broker serves: older fetches carry batches of formats that are not stored."""

KINDS = ("request", "response")


def targets() -> list[Target]:
    return [
        *(_codec_target(key, kind) for key in APIS for kind in KINDS),
        Target(
            name="produce-scan",
            read=read_produce,
            seeds=partial(_samples, ApiKey.PRODUCE, "request"),
            sources=("wire/produce.py", "wire/scan.py"),
        ),
        Target(
            name="fetch-scan",
            read=read_fetch,
            seeds=partial(_samples, ApiKey.FETCH, "request"),
            sources=("wire/fetch.py", "wire/scan.py"),
        ),
        Target(name="frame-headers", read=read_headers, seeds=_header_seeds, sources=("wire/frames.py",)),
    ]


def _codec_target(key: int, kind: str) -> Target:
    module = APIS[key].module
    return Target(
        name=f"{module.replace('_', '-')}-{kind}",
        read=_CodecReader(key, kind),
        seeds=partial(_samples, key, kind),
        sources=(f"wire/messages/{module}.py",),
    )


def _samples(key: int, kind: str) -> list[bytes]:
    api = samples.MESSAGES[_message_name(key, kind)]
    return [
        bytes((version,)) + samples.encode(api, samples.sample(api, version, Random(f"{key} {kind} {seed}")), version)
        for version in samples.versions_of(api)
        for seed in range(SAMPLES_PER_VERSION)
    ]


def _message_name(key: int, kind: str) -> str:
    module = APIS[key].module
    return next(name for name, table in samples.MODULES.items() if table == module and name.lower().endswith(kind))


class _CodecReader:
    """Imports its codec at the first input, as the broker does."""

    def __init__(self, key: int, kind: str) -> None:
        self._key = key
        self._kind = kind
        self._module: Any = None

    def __call__(self, data: bytes) -> bool:
        if self._module is None:
            self._module = codec(self._key)
            self._decode = getattr(self._module, f"decode_{self._kind}")
            self._encode = getattr(self._module, f"encode_{self._kind}")
        if not data:
            return False
        version = data[0] % (self._module.MAX_VERSION + 1)
        try:
            message = self._decode(data, 1, len(data), version)
        except ProtocolError:
            return False
        written = self._encode(message, version)
        again = self._decode(written, 0, len(written), version)
        require(self._encode(again, version) == written, "what was read can be written and read again")
        return True


def read_produce(data: bytes) -> bool:
    if not data:
        return False
    view = memoryview(data)
    version = data[0] % (produce_messages.MAX_VERSION + 1)
    clear = _clear_form(produce_messages, data, version)
    try:
        transactional_id, acks, timeout_ms, topics = produce.scan_request(view, 1, len(data), version)
    except ProtocolError:
        require(clear is None, "the scanner refuses what the codec reads")
        return False
    for _topic, spans in topics:
        for _partition, start, end in spans:
            require(start == -1 or 1 <= start <= end <= len(data), "a record set lies inside the frame")
    if clear is None:
        return True  # the scanner does not look at text, so bad UTF-8 is found out when the topic is looked up
    require((acks, timeout_ms) == (clear.acks, clear.timeout_ms), "acks and timeout")
    name = None if transactional_id is None else transactional_id.decode()
    require(name == clear.transactional_id, "the transactional id")
    found = [
        (key, [(index, None if start < 0 else bytes(view[start:end])) for index, start, end in spans])
        for key, spans in topics
    ]
    expected = [
        (
            topic.topic_id if version >= produce.TOPIC_IDS_FROM else topic.name.encode(),
            [(part.index, None if part.records is None else bytes(part.records)) for part in topic.partition_data],
        )
        for topic in clear.topic_data
    ]
    require(found == expected, "topics and record sets")
    return True


def read_fetch(data: bytes) -> bool:
    if not data:
        return False
    versions = fetch_messages.MAX_VERSION + 1 - FETCH_VERSION_MIN
    version = FETCH_VERSION_MIN + (data[0] - FETCH_VERSION_MIN) % versions
    clear = _clear_form(fetch_messages, data, version)
    try:
        scanned = fetch.scan_request(memoryview(data), 1, len(data), version)
    except ProtocolError:
        require(clear is None, "the scanner refuses what the codec reads")
        return False
    if clear is None:
        return True
    by_id = version >= fetch.TOPIC_IDS_FROM
    require(
        (scanned.wait_ms_max, scanned.bytes_min, scanned.bytes_max, scanned.isolation_level)
        == (clear.max_wait_ms, clear.min_bytes, clear.max_bytes, clear.isolation_level),
        "how long and how much",
    )
    require((scanned.session_id, scanned.session_epoch) == (clear.session_id, clear.session_epoch), "the session")
    expected = [
        (
            topic.topic_id if by_id else topic.topic.encode(),
            [(p.partition, p.fetch_offset, p.current_leader_epoch, p.partition_max_bytes) for p in topic.partitions],
        )
        for topic in clear.topics
    ]
    require(scanned.topics == expected, "topics and offsets")
    forgotten = [
        (topic.topic_id if by_id else topic.topic.encode(), list(topic.partitions))
        for topic in clear.forgotten_topics_data
    ]
    require(scanned.forgotten == forgotten, "what the session forgets")
    return True


def _clear_form(messages: ModuleType, data: bytes, version: int) -> Any:
    try:
        return messages.decode_request(data, 1, len(data), version)
    except ProtocolError:
        return None


def read_headers(data: bytes) -> bool:
    """The input is a request without its size; its first bytes also serve as a response of the same API."""
    try:
        header = frames.read_request_header(data, 0, len(data))
    except ProtocolError:
        return False
    require(10 <= header.body_position <= len(data), "the body begins inside the frame")
    try:
        _, position = frames.read_response_header(
            data, 4, len(data), api_key=header.api_key, api_version=header.api_version
        )
        require(8 <= position <= len(data), "the body begins inside the frame")
    except ProtocolError:
        pass
    return True


def _header_seeds() -> list[bytes]:
    size = frames.SIZE_BYTES
    return [
        frames.request_frame(key, version, 7, client_id, b"body")[size:]
        for key, version in ((0, 3), (0, 9), (1, 11), (3, 12), (18, 3), (18, 0), (999, 0))
        for client_id in (None, "", "client")
    ]
