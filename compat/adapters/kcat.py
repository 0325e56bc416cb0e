"""kcat, the command: each call is a process, a reader is one that stays."""

import itertools
import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from compat.client import (
    FETCH_BYTES_MAX,
    LINGER_MS,
    LONG_POLL_MS,
    NO_OFFSET,
    READ_TIMEOUT_S,
    REQUEST_BYTES_MAX,
    REQUEST_TIMEOUT_S,
    UNKNOWN_TOPIC_MS,
    Client,
    ClusterDescription,
    Failed,
    Feature,
    FoundOffset,
    Message,
    Reader,
    Received,
    Sending,
    Start,
    TopicDescription,
)
from headrace.model.errors import ErrorCode

INSTALL = "kcat is not installed: apt-get install kcat"
MESSAGE_END = b"\x1e\x1f\x1e"
KEY_END = b"\x1d\x1f\x1d"
FORMAT = r"%p %o %T %K %S %h\n%k%s\n"
READ_ONCE_BYTES = 1 << 16
ERROR_TEXTS = {
    "Unknown topic or partition": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "Offset out of range": ErrorCode.OFFSET_OUT_OF_RANGE,
    "Message size too large": ErrorCode.MESSAGE_TOO_LARGE,
    "Broker failed to validate record": ErrorCode.INVALID_RECORD,
}


FEATURES = frozenset(
    {
        Feature.CLUSTER,
        Feature.PRODUCE_ERRORS,
        Feature.INVALID_RECORD,
        Feature.KEYS,
        Feature.HEADERS,
        Feature.NULL_HEADERS,
        Feature.NULLS,
        Feature.BINARY,
        Feature.IDEMPOTENCE,
        Feature.ISOLATION,
        Feature.FETCH_ERRORS,
        Feature.OFFSETS_BY_TIME,
        Feature.ZSTD,
    }
)


def features() -> frozenset[Feature]:
    return FEATURES


def connect(bootstrap_servers: str) -> Client:
    return Kcat(bootstrap_servers)


def installed() -> bool:
    return shutil.which("kcat") is not None


def _version() -> str:
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, timeout=REQUEST_TIMEOUT_S).stdout
    found = re.search(r"Version (\S+) .*librdkafka (\S+)", said)
    assert found is not None, said
    return f"{found[1]} (librdkafka {found[2]})"


def _said_once(message: Message) -> tuple[int, tuple[tuple[str, bytes | None], ...], bool, bool]:
    return message.partition, message.headers, message.key is not None, message.value is None


def _told(name: str, value: bytes | None) -> str:
    return name if value is None else f"{name}={value.decode()}"


def _escaped(text: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text)


class Kcat(Client):
    name = "kcat"

    def __init__(self, bootstrap_servers: str) -> None:
        assert installed(), INSTALL
        self.version = _version()
        self.features = FEATURES
        self._command = ("kcat", "-b", bootstrap_servers)

    def close(self) -> None:
        """Nothing stays behind a call."""

    def _run(self, *arguments: str, text: bytes = b"") -> bytes:
        done = subprocess.run(
            [*self._command, *arguments], input=text, capture_output=True, timeout=REQUEST_TIMEOUT_S, check=False
        )
        said = done.stderr.decode(errors="replace")
        if done.returncode or "failed" in said:
            raise _failure(said)
        return done.stdout

    # Topics

    def _metadata(self, *arguments: str) -> Any:
        return json.loads(self._run("-L", "-J", *arguments))

    def topics(self) -> set[str]:
        return {topic["topic"] for topic in self._metadata()["topics"]}

    def describe_topic(self, topic: str) -> TopicDescription:
        (found,) = self._metadata("-t", topic)["topics"]
        if "error" in found:
            raise _failure(found["error"])
        return TopicDescription(partitions=len(found["partitions"]), topic_id=None)

    # Records

    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        """Send records; settings that kcat takes once per call (partition, headers, whether empty is null) need
        separate calls.
        """
        ordered = sorted(messages, key=lambda message: message.partition)
        for (partition, headers, keyed, is_null), group in itertools.groupby(ordered, key=_said_once):
            nulls = ("-Z",) if is_null else ()
            self._send_batch(topic, partition, headers, keyed, list(group), sending, nulls)
        return [NO_OFFSET] * len(messages)

    def _send_batch(
        self,
        topic: str,
        partition: int,
        headers: tuple[tuple[str, bytes | None], ...],
        keyed: bool,
        messages: list[Message],
        sending: Sending,
        more: tuple[str, ...],
    ) -> None:
        lines = []
        for message in messages:
            line = message.value or b""
            if keyed:
                line = (message.key or b"") + KEY_END + line
            assert MESSAGE_END not in line
            lines.append(line)
        if not keyed and b"" in lines:
            raise AssertionError("kcat leaves out empty messages without a key")
        told = [
            word for name, value in headers for word in ("-H", name if value is None else f"{name}={value.decode()}")
        ]
        settings = {
            "acks": sending.acks,
            "enable.idempotence": str(sending.idempotent).lower(),
            "linger.ms": LINGER_MS,
            "message.max.bytes": REQUEST_BYTES_MAX,
            "topic.metadata.propagation.max.ms": UNKNOWN_TOPIC_MS,
        }
        self._run(
            *("-P", "-t", topic, "-p", str(partition), "-z", sending.compression, "-D", _escaped(MESSAGE_END)),
            *(("-K", _escaped(KEY_END)) if keyed else ()),
            *told,
            *more,
            *(word for name, value in settings.items() for word in ("-X", f"{name}={value}")),
            text=MESSAGE_END.join(lines),
        )

    def reader(
        self,
        topic: str,
        start: Start | int,
        *,
        partitions: Sequence[int] = (0,),
        committed_only: bool = False,
        partition_bytes_max: int = FETCH_BYTES_MAX,
    ) -> Reader:
        """One partition, or all of them."""
        offset = {Start.EARLIEST: "beginning", Start.LATEST: "end"}[start] if isinstance(start, Start) else str(start)
        if start is Start.LATEST:
            (partition,) = partitions
            offset = str(self.bounds(topic, partition)[1])  # else it is unknown when the process has found the end
        settings = {
            "auto.offset.reset": "error",
            "check.crcs": "true",
            "fetch.wait.max.ms": LONG_POLL_MS,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "max.partition.fetch.bytes": partition_bytes_max,
        }
        return _Reader(
            [
                *self._command,
                *("-C", "-t", topic, "-o", offset, "-q", "-u", "-f", FORMAT),
                *(("-p", str(partitions[0])) if len(partitions) == 1 else ()),
                *(word for name, value in settings.items() for word in ("-X", f"{name}={value}")),
            ]
        )

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return self._offset(topic, partition, -2), self._offset(topic, partition, -1)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        return FoundOffset(offset=self._offset(topic, partition, timestamp_ms), timestamp_ms=-1)

    def _offset(self, topic: str, partition: int, timestamp_ms: int) -> int:
        said = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}").decode()
        found = re.search(r"offset (-?\d+)", said)
        assert found is not None, said
        return int(found[1])

    # The cluster

    def describe_cluster(self) -> ClusterDescription:
        metadata = self._metadata()
        brokers = []
        for broker in metadata["brokers"]:
            host, _, port = broker["name"].rpartition(":")
            brokers.append((broker["id"], host, int(port)))
        return ClusterDescription(cluster_id=None, controller_id=metadata["controllerid"], brokers=tuple(brokers))


def _failure(said: str) -> Exception:
    for text, code in ERROR_TEXTS.items():
        if text in said:
            return Failed(code, said)
    return RuntimeError(said)


class _Reader(Reader):
    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        self._unread = b""

    def _readable(self, timeout_s: float) -> bool:
        """By poll, which has no limit on the number of a descriptor as select has."""
        waiting = select.poll()
        waiting.register(self._pipe, select.POLLIN)
        return bool(waiting.poll(timeout_s * 1000))

    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + timeout_s
        while len(received) < count:
            record = self._next()
            if record is not None:
                received.append(record)
                continue
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0 or not self._readable(remaining_s):
                break
            more = os.read(self._pipe, READ_ONCE_BYTES)
            if not more:
                assert self._process.stderr is not None
                raise _failure(self._process.stderr.read().decode(errors="replace"))
            self._unread += more
        return received

    def _next(self) -> Received | None:
        line, newline, rest = self._unread.partition(b"\n")
        if not newline:
            return None
        partition, offset, timestamp, key_size, value_size, *headers = line.decode().split(" ", 5)
        key_length, value_length = max(int(key_size), 0), max(int(value_size), 0)
        end = key_length + value_length
        if len(rest) <= end:
            return None
        self._unread = rest[end + 1 :]
        return Received(
            partition=int(partition),
            offset=int(offset),
            timestamp_ms=int(timestamp),
            key=rest[:key_length] if int(key_size) >= 0 else None,
            value=rest[key_length:end] if int(value_size) >= 0 else None,
            headers=tuple(_header(text) for text in headers[0].split(",") if text) if headers else (),
        )

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _header(text: str) -> tuple[str, bytes | None]:
    name, _, value = text.partition("=")
    return name, None if value == "NULL" else value.encode()
