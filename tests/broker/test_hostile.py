"""Hostile input at a broker process: a client beside it notices nothing, and the process stays small."""

import pathlib
import socket
import struct
import threading
from random import Random

import pytest

from headrace.broker.api.registry import SERVED
from headrace.testing import EmbeddedBroker
from headrace.wire import frames
from headrace.wire.apis import ApiKey
from tests.broker.sockets import SocketClient, connect, scrape
from tests.broker.virtual import fetch_request, produce_request
from tests.reserved_ports import reserved_address
from tests.wire import samples

pytestmark = pytest.mark.process

SEED = 20_240_601
ATTACKS = 8_000
KEPT_OPEN_MAX = 60
MEMORY_GROWTH_BYTES_MAX = 48 << 20
"""Memory that all attackers together may cost: the arena, 60 begun frames, and the interpreter's own slack."""


class Healthy(threading.Thread):
    """Produces and reads back, again and again, on two connections of its own."""

    def __init__(self, bootstrap_servers):
        super().__init__(daemon=True)
        self._writer, self._reader = SocketClient(bootstrap_servers), SocketClient(bootstrap_servers)
        self._stop_asked = threading.Event()
        self.rounds = 0
        self.trouble = None

    def run(self):
        try:
            while not self._stop_asked.is_set():
                value = b"round %d" % self.rounds
                offset = self._writer.produce("healthy", value)
                assert offset == self.rounds
                assert self._reader.fetch("healthy", offset, wait_ms=5_000) == [value]
                self.rounds += 1
        except BaseException as error:
            self.trouble = error

    def end(self):
        self._stop_asked.set()
        self.join(30)
        self._writer.close()
        self._reader.close()
        if self.trouble is not None:
            raise self.trouble


def resident_bytes(process_id):
    for line in pathlib.Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process is gone")


# Attacks: what is sent, by a drawn choice


def garbage(random):
    return random.randbytes(random.choice((1, 3, 4, 7, 50, 2_000, 100_000)))


def other_protocol(random):
    return random.choice(
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n" * 50)
    )


def wrong_size(random):
    size = random.choice((-1, -(2**31), 0, 1, 7, 2**31 - 1, 104_857_601, 1 << 30))
    return struct.pack(">i", size) + random.randbytes(random.choice((0, 20, 5_000)))


def begun_large_frame(random):
    return struct.pack(">i", random.randrange(1 << 20, 104_857_600)) + random.randbytes(random.randrange(20_000))


def short_frames(random):
    return struct.pack(">ihhi", 8, random.randrange(80), random.randrange(14), 7) * random.randrange(1, 3_000)


def unknown_request(random):
    key, version = random.choice(((99, 0), (-1, 0), (32767, 3), (0, 99), (1, -5), (18, 77), (3, 14), (4, 1), (6, 0)))
    content = struct.pack(">hhih", key, version, 5, -1) + random.randbytes(random.randrange(40))
    return struct.pack(">i", len(content)) + content


def endless_tags(random):
    key, version = random.choice(((0, 9), (1, 12), (3, 9), (2, 6), (19, 5), (18, 3)))
    tags = random.choice(
        (b"\xff" * 40, b"\xff\xff\xff\xff\x0f", b"\x40" + b"\x01\xff\xff\xff\xff\x07", b"\x7f" + bytes(500))
    )
    content = struct.pack(">hhih", key, version, 5, -1) + tags
    return struct.pack(">i", len(content)) + content


def huge_array(random):
    bodies = (
        (ApiKey.METADATA, 1, struct.pack(">i", 2**31 - 1)),
        (ApiKey.PRODUCE, 3, struct.pack(">hhii", -1, 1, 1000, 2**31 - 1)),
        (ApiKey.FETCH, 4, struct.pack(">iiiibi", -1, 0, 1, 1000, 0, 2**31 - 1)),
        (ApiKey.LIST_OFFSETS, 1, struct.pack(">ii", -1, 2**31 - 1)),
        (ApiKey.CREATE_TOPICS, 2, struct.pack(">i", 2**30)),
        (ApiKey.METADATA, 9, b"\xff\xff\xff\xff\x0f"),
        (ApiKey.PRODUCE, 9, b"\x00\x00\x01\x00\x00\x03\xe8\xff\xff\xff\xff\x0f"),
    )
    key, version, body = random.choice(bodies)
    return frames.request_frame(key, version, 5, "x", body)


def cut_request(random):
    whole = senseless_request(random)
    return whole[: random.randrange(len(whole))]


def flipped_request(random):
    whole = bytearray(random.choice((senseless_request, produce, fetch))(random))
    for _ in range(random.randrange(1, 6)):
        whole[random.randrange(4, len(whole))] ^= 1 << random.randrange(8)
    return bytes(whole)


def senseless_request(random):
    api = random.choice([api for api in SERVED if api.key not in CHANGING])
    version = random.randrange(api.min_version, api.max_version + 1)
    table = samples.MESSAGES[TABLES[api.key]]
    body = samples.encode(table, samples.sample(table, version, random), version)
    return frames.request_frame(api.key, version, random.randrange(1 << 31), "x", body)


def produce(random):
    request = produce_request(
        [("victim", [(0, random.randbytes(random.randrange(300)))])], acks=random.choice((0, 1, -1))
    )
    return encoded(ApiKey.PRODUCE, 9, request)


def fetch(random):
    return encoded(
        ApiKey.FETCH, 12, fetch_request([("victim", 0, random.randrange(-5, 5))], wait_ms=random.choice((0, 60_000)))
    )


def encoded(key, version, request):
    return frames.request_frame(key, version, 9, "x", samples.encode(samples.MESSAGES[TABLES[key]], request, version))


CHANGING = {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS}
"""Requests that would legitimately change the broker under test."""

TABLES = {ApiKey(message.api_key): name for name, message in samples.MESSAGES.items() if message.kind == "Request"}
KINDS = (
    garbage,
    other_protocol,
    wrong_size,
    begun_large_frame,
    short_frames,
    unknown_request,
    endless_tags,
    huge_array,
    cut_request,
    flipped_request,
    senseless_request,
    produce,
    fetch,
)


class Attackers:
    """Connects, sends, and leaves in one of several rude ways; some stay and never read."""

    def __init__(self, bootstrap_servers):
        self._address = bootstrap_servers
        self._random = Random(SEED)
        self._kept = []

    def attack(self):
        random = self._random
        # Drawn before anything is sent, so that a seed means the same attacks however soon the broker closes.
        payloads = [random.choice(KINDS)(random) for _ in range(random.choice((1, 1, 2, 5)))]
        end = random.choice(("close", "reset", "half", "keep"))
        attacker = connect(self._address)
        attacker.settimeout(0.2)
        try:
            for payload in payloads:
                attacker.sendall(payload)
        except OSError:
            pass  # the broker has closed it, or does not read it any more: both are right
        if end == "keep" and len(self._kept) < KEPT_OPEN_MAX:
            self._kept.append(attacker)
            return
        try:
            if end == "reset":
                attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif end == "half":
                attacker.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        attacker.close()

    def leave(self):
        for attacker in self._kept:
            attacker.close()


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_a_healthy_client_beside_hostile_ones_notices_nothing():
    metrics = reserved_address()
    config = {"headrace.metrics.listen": metrics, "auto.create.topics.enable": "false", "headrace.log.level": "error"}
    with EmbeddedBroker(process=True, config=config) as broker:
        for topic in ("healthy", "victim"):
            broker.create_topic(topic)
        healthy = Healthy(broker.bootstrap_servers)
        before = resident_bytes(broker.process_id)
        healthy.start()
        attackers = Attackers(broker.bootstrap_servers)
        for _ in range(ATTACKS):
            attackers.attack()
        growth = resident_bytes(broker.process_id) - before
        rounds = healthy.rounds
        healthy.end()
        while (found := scrape(metrics))["headrace_protocol_errors_total"] <= ATTACKS // 4:
            continue  # the last of them are still to be read
        attackers.leave()
        assert rounds > 50
        assert growth < MEMORY_GROWTH_BYTES_MAX
        assert found["headrace_handler_failures_total"] == 0
        last = SocketClient(broker.bootstrap_servers)
        assert last.fetch("healthy", healthy.rounds - 1) == [b"round %d" % (healthy.rounds - 1)]
        last.close()
