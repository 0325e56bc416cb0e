"""Peers that send what no client sends: noise, wrong lengths, damaged batches, and endless requests."""

from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.connections import VirtualClient
from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.node import HOST, PORT
from headrace.sim.workloads import requests
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.records.builder import NewRecord, build_batch

CLIENT_ID = "hostile"
NOISE_BYTES_MAX = 2_000
FLIPS_MAX = 6
PIPELINE_REQUESTS_MAX = 60
PARKED_MS = 60_000
PEERS_MAX = 6
STAY_STEPS_MAX = 200


class HostilePeers:
    """From time to time another peer connects, attacks, and leaves."""

    def __init__(self, context: RunContext, entropy: SeededEntropy) -> None:
        self._context = context
        self._entropy = entropy
        self._peers: list[tuple[VirtualClient, int]] = []

    def attack(self) -> None:
        if len(self._peers) >= PEERS_MAX:
            return
        try:
            peer = self._context.world.connect(HOST, PORT)
        except ConnectionRefusedError:
            return
        kinds = (_noise, _lie_about_the_length, _flipped_request, _damaged_batch, _endless_pipeline, _half_a_frame)
        peer.send(kinds[self._entropy.below(len(kinds))](self._entropy, self._context))
        if self._entropy.one_in(3):
            peer.stall(receiving=True)
        self._context.world.trace.count_fault("hostile frame")
        self._peers.append((peer, self._context.world.steps + self._entropy.below(STAY_STEPS_MAX)))

    def step(self) -> None:
        staying = []
        for peer, leaves_at_step in self._peers:
            peer.receive().clear()
            if peer.is_closed():
                continue
            if self._context.world.steps < leaves_at_step:
                staying.append((peer, leaves_at_step))
            elif self._entropy.below(2):
                peer.reset()
            else:
                peer.close()
        self._peers = staying


def _frame(api_key: ApiKey, version: int, request: object) -> bytes:
    return frames.request_frame(api_key, version, 0, CLIENT_ID, codec(api_key).encode_request(request, version))


def _noise(entropy: SeededEntropy, context: RunContext) -> bytes:
    return entropy.random_bytes(1 + entropy.below(NOISE_BYTES_MAX))


def _lie_about_the_length(entropy: SeededEntropy, context: RunContext) -> bytes:
    lengths = (-1, 0, 3, 1 << 30, (1 << 31) - 1, -(1 << 31))
    declared = lengths[entropy.below(len(lengths))].to_bytes(4, "big", signed=True)
    return declared + entropy.random_bytes(entropy.below(NOISE_BYTES_MAX))


def _flipped_request(entropy: SeededEntropy, context: RunContext) -> bytes:
    """Return a request with some bytes changed after its size. None of them changes anything if it is valid by
    chance.
    """
    target = _target(entropy, context)
    name, index = (target.topic.name, target.index) if target is not None else ("none", 0)
    wanted = requests.wanted_topic(name, [(index, entropy.below(1_000))])
    kinds = (
        (ApiKey.FETCH, requests.FETCH_BY_NAME, requests.fetched([wanted], wait_ms=PARKED_MS)),
        (ApiKey.METADATA, requests.METADATA, requests.topic_names(name)),
        (ApiKey.LIST_OFFSETS, requests.LIST_OFFSETS, requests.offset_at(name, index, entropy.below(1 << 40))),
        (ApiKey.API_VERSIONS, 3, ApiVersionsRequest()),
        (ApiKey.PRODUCE, requests.PRODUCE_BY_NAME, requests.produced(name, index, _bad_batch(entropy))),
    )
    content = bytearray(_frame(*kinds[entropy.below(len(kinds))]))
    for _ in range(1 + entropy.below(FLIPS_MAX)):
        content[frames.SIZE_BYTES + entropy.below(len(content) - frames.SIZE_BYTES)] = entropy.below(256)
    return bytes(content)


def _damaged_batch(entropy: SeededEntropy, context: RunContext) -> bytes:
    target = _target(entropy, context)
    if target is None:
        return _noise(entropy, context)
    request = requests.produced(target.topic.name, target.index, _bad_batch(entropy), acks=entropy.below(3) - 1)
    return _frame(ApiKey.PRODUCE, requests.PRODUCE_BY_NAME, request)


def _bad_batch(entropy: SeededEntropy) -> bytes:
    """Return a well-formed batch with one byte of its records changed: only the checksum reveals it."""
    content = build_batch([NewRecord(0, None, entropy.random_bytes(1 + entropy.below(500)))])
    content[-2] ^= 1 + entropy.below(255)
    return bytes(content)


def _endless_pipeline(entropy: SeededEntropy, context: RunContext) -> bytes:
    names = requests.topic_names(*(plan.name for plan in context.plans))
    return _frame(ApiKey.METADATA, requests.METADATA, names) * (1 + entropy.below(PIPELINE_REQUESTS_MAX))


def _half_a_frame(entropy: SeededEntropy, context: RunContext) -> bytes:
    whole = _frame(ApiKey.PRODUCE, requests.PRODUCE_BY_NAME, requests.produced("none", 0, _bad_batch(entropy)))
    return whole[: 1 + entropy.below(len(whole) - 1)]


def _target(entropy: SeededEntropy, context: RunContext) -> PartitionHistory | None:
    targets = context.targets
    return targets[entropy.below(len(targets))] if targets else None
