"""A broker without an authorizer: requests that act on the whole cluster are accepted from its own machine alone."""

import pytest

from headrace.model.addresses import is_loopback
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import add_partitions_to_txn, alter_configs, incremental_alter_configs, write_txn_markers
from tests.broker.virtual import BROKER_RESOURCE, SET, TOPIC_RESOURCE, VirtualBroker
from tests.transactions.wire import TransactionClient, transaction_broker

STRANGER = "203.0.113.7"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "::ffff:127.0.0.1", "[::FFFF:127.0.0.1]"]
)
def test_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "10.0.0.1", "127.example.org", "127.0.0.1.example.org", "fd00::1"]
)
def test_other_addresses(host):
    assert not is_loopback(host)


def incremental(kind, name, key, value):
    change = incremental_alter_configs.IncrementalAlterConfigsRequestConfig(name=key, config_operation=SET, value=value)
    resource = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
        resource_type=kind, resource_name=name, configs=(change,)
    )
    return ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=(resource,)
    )


def replacing(kind, name, key, value):
    resource = alter_configs.AlterConfigsRequestResource(
        resource_type=kind,
        resource_name=name,
        configs=(alter_configs.AlterConfigsRequestConfig(name=key, value=value),),
    )
    return ApiKey.ALTER_CONFIGS, alter_configs.AlterConfigsRequest(resources=(resource,))


@pytest.mark.parametrize("altering", [incremental, replacing])
@pytest.mark.parametrize("name", ["1", ""])
def test_configs_of_brokers_are_changed_from_the_same_machine_only(altering, name):
    broker = VirtualBroker()
    key, request = altering(BROKER_RESOURCE, name, "max.connections", "1")
    (refused,) = broker.client(from_host=STRANGER).ask(key, 1, request).responses
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert STRANGER in refused.error_message
    assert "no authorizer" in refused.error_message
    assert "127.0.0.1" in refused.error_message
    assert any(STRANGER in line and "configs of brokers" in line for line in broker.log_lines)
    key, request = altering(BROKER_RESOURCE, name, "max.connections", "50")
    for host in ("127.0.0.3", "[::1]"):
        (taken,) = broker.client(from_host=host).ask(key, 1, request).responses
        assert (taken.error_code, taken.error_message) == (ErrorCode.NONE, None)
    assert broker.node.broker.config.connections.count_max == 50


@pytest.mark.parametrize("altering", [incremental, replacing])
def test_configs_of_topics_are_changed_from_everywhere(altering):
    broker = VirtualBroker().with_topic("t")
    key, request = altering(TOPIC_RESOURCE, "t", "retention.ms", "5")
    (taken,) = broker.client(from_host=STRANGER).ask(key, 1, request).responses
    assert taken.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_markers_of_transactions_are_written_from_the_same_machine_only(version):
    broker = transaction_broker()
    victim = TransactionClient(broker).initialized()
    assert victim.write(b"not committed") == ErrorCode.NONE
    markers = write_txn_markers.WriteTxnMarkersRequest(
        markers=(
            write_txn_markers.WriteTxnMarkersRequestMarker(
                producer_id=victim.producer_id,
                producer_epoch=victim.producer_epoch,
                transaction_result=True,
                topics=(write_txn_markers.WriteTxnMarkersRequestTopic(name="t", partition_indexes=(0,)),),
            ),
        )
    )
    answer = broker.client(from_host=STRANGER).ask(ApiKey.WRITE_TXN_MARKERS, version, markers)
    (partition,) = answer.markers[0].topics[0].partitions
    assert partition.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.client().fetch("t", isolation=1).last_stable_offset == 0, "the transaction is still open"
    assert any(STRANGER in line and "markers of transactions" in line for line in broker.log_lines)
    answer = broker.client().ask(ApiKey.WRITE_TXN_MARKERS, version, markers)
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE


def test_partitions_are_added_for_other_producers_from_the_same_machine_only():
    broker = transaction_broker()
    victim = TransactionClient(broker).initialized()
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=(
            add_partitions_to_txn.AddPartitionsToTxnRequestTransaction(
                transactional_id=victim.transactional_id,
                producer_id=victim.producer_id,
                producer_epoch=victim.producer_epoch,
                verify_only=False,
                topics=(add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name="t", partitions=(1,)),),
            ),
        )
    )
    answer = broker.client(from_host=STRANGER).ask(ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    assert (answer.error_code, answer.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    answer = broker.client().ask(ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    assert answer.error_code == ErrorCode.NONE
    own = TransactionClient(broker, "own", from_host=STRANGER).initialized()
    assert own.add(1) == [ErrorCode.NONE], "producers add partitions to their own transactions from everywhere"
