"""Byte equality for versions that Kafka 4 no longer has but older clients still send."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.apis import PRIVATE_FROM
from headrace.wire.messages import describe_log_dirs, write_txn_markers
from headrace.wire.schemas.notation import Message
from tests.wire import kio_oracle, old_oracles, samples

SHARED = [
    pytest.param(message, client, id=f"{name}-{client.replace(' ', '')}")
    for name, message in samples.MESSAGES.items()
    for client in old_oracles.CLIENTS
    if old_oracles.shared_versions(message, client)
]


@pytest.mark.parametrize(("message", "client"), SHARED)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_bytes_are_those_of_older_clients(message: Message, client: str, seed: int) -> None:
    for version in old_oracles.shared_versions(message, client):
        value = samples.sample(message, version, Random(seed))
        theirs = old_oracles.encode(message, value, version, client)
        assert samples.encode(message, value, version) == theirs
        assert samples.decode(message, theirs, version) == value


@pytest.mark.parametrize(
    ("name", "version", "value", "body"),
    [
        pytest.param(
            "DescribeLogDirsRequest",
            0,
            describe_log_dirs.DescribeLogDirsRequest(
                topics=(describe_log_dirs.DescribeLogDirsRequestTopic(topic="t", partitions=(7, 8)),)
            ),
            "00000001 0001 74 00000002 00000007 00000008",
            id="log directories of two partitions",
        ),
        pytest.param(
            "DescribeLogDirsRequest",
            0,
            describe_log_dirs.DescribeLogDirsRequest(topics=None),
            "ffffffff",
            id="log directories of everything",
        ),
        pytest.param(
            "WriteTxnMarkersRequest",
            0,
            write_txn_markers.WriteTxnMarkersRequest(
                markers=(
                    write_txn_markers.WriteTxnMarkersRequestMarker(
                        producer_id=5,
                        producer_epoch=2,
                        transaction_result=True,
                        topics=(write_txn_markers.WriteTxnMarkersRequestTopic(name="t", partition_indexes=(3,)),),
                        coordinator_epoch=9,
                    ),
                )
            ),
            "00000001 0000000000000005 0002 01 00000001 0001 74 00000001 00000003 00000009",
            id="a commit marker",
        ),
        pytest.param(
            "WriteTxnMarkersResponse",
            0,
            write_txn_markers.WriteTxnMarkersResponse(
                markers=(
                    write_txn_markers.WriteTxnMarkersResponseMarker(
                        producer_id=5,
                        topics=(
                            write_txn_markers.WriteTxnMarkersResponseTopic(
                                name="t",
                                partitions=(
                                    write_txn_markers.WriteTxnMarkersResponsePartition(partition_index=3, error_code=6),
                                ),
                            ),
                        ),
                    ),
                )
            ),
            "00000001 0000000000000005 00000001 0001 74 00000001 00000003 0006",
            id="a refused marker",
        ),
    ],
)
def test_bytes_worked_out_by_hand(name: str, version: int, value: object, body: str) -> None:
    """The dropped versions that no other client knows, or knows rightly."""
    message = samples.MESSAGES[name]
    assert samples.encode(message, value, version).hex() == body.replace(" ", "")
    assert samples.decode(message, bytes.fromhex(body), version) == value


def test_every_dropped_version_has_a_witness() -> None:
    worked_out = {("DescribeLogDirsRequest", 0), ("WriteTxnMarkersRequest", 0), ("WriteTxnMarkersResponse", 0)}
    witnessed = {
        (name, version)
        for name, message in samples.MESSAGES.items()
        for client in old_oracles.CLIENTS
        for version in old_oracles.shared_versions(message, client)
    }
    dropped = {
        (name, version)
        for name, message in samples.MESSAGES.items()
        for version in samples.versions_of(message)
        if version not in kio_oracle.versions_of(message) and message.api_key < PRIVATE_FROM
    }
    assert dropped - witnessed == worked_out
