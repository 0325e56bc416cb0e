"""UpdateFeatures, UnregisterBroker and DescribeCluster on a broker, as clients see them."""

import pytest

from headrace.core.controller.records import SCAN_VERSION, TRANSACTION_VERSION
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest
from headrace.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesRequestFeatureUpdate
from tests.broker.virtual import VirtualBroker
from tests.core.controllers import new_broker


@pytest.fixture
def broker():
    return VirtualBroker()


def update(client, version, feature, level, *, validate_only=False, **fields):
    change = UpdateFeaturesRequestFeatureUpdate(feature=feature, max_version_level=level, **fields)
    request = UpdateFeaturesRequest(feature_updates=(change,), validate_only=validate_only)
    return client.ask(ApiKey.UPDATE_FEATURES, version, request)


@pytest.mark.parametrize(
    ("version", "downgrade"), [(0, {"allow_downgrade": True}), (1, {"upgrade_type": 2}), (2, {"upgrade_type": 2})]
)
def test_a_feature_is_lowered_and_raised_again(broker, version, downgrade):
    client = broker.client()
    assert update(client, version, TRANSACTION_VERSION, 1, **downgrade).error_code == ErrorCode.NONE
    assert broker.node.broker.image.features[TRANSACTION_VERSION] == 1
    answer = update(client, version, TRANSACTION_VERSION, 2)
    assert answer.error_code == ErrorCode.NONE
    assert broker.node.broker.image.features[TRANSACTION_VERSION] == 2
    assert [result.feature for result in answer.results] == ([TRANSACTION_VERSION] if version < 2 else [])


def test_a_refused_feature_names_the_reason(broker):
    client = broker.client()
    refused = update(client, 2, SCAN_VERSION, 7)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message == "the controller supports headrace.scan.version 0 to 1, not 7"
    assert update(client, 1, TRANSACTION_VERSION, 1).results[0].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_validation_changes_nothing(broker):
    client = broker.client()
    assert update(client, 2, SCAN_VERSION, 0, validate_only=True, upgrade_type=2).error_code == ErrorCode.NONE
    assert broker.node.broker.image.features[SCAN_VERSION] == 1


def test_features_survive_a_restart_of_a_newer_release(broker):
    assert update(broker.client(), 2, SCAN_VERSION, 0, upgrade_type=2).error_code == ErrorCode.NONE
    broker.restart()
    assert SCAN_VERSION not in broker.node.broker.image.features


def register(broker, node_id):
    proposal = broker.node.broker.membership.register(new_broker(node_id, cluster_id=broker.node.cluster_id))
    broker.run_until(lambda: proposal.outcome is not None)
    assert not proposal.outcome.error


def unregister(client, node_id):
    return client.ask(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(broker_id=node_id))


def test_a_broker_that_is_gone_is_unregistered(broker):
    client = broker.client()
    register(broker, 2)
    assert unregister(client, 2).error_code == ErrorCode.NONE
    assert list(broker.node.broker.image.brokers) == [1]
    unknown = unregister(client, 2)
    assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "headrace cluster brokers" in unknown.error_message
    running = unregister(client, 1)
    assert (running.error_code, running.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "broker 1 is running and would register again: stop it first",
    )


@pytest.mark.parametrize(
    "send", [lambda client: unregister(client, 2), lambda client: update(client, 2, SCAN_VERSION, 0)]
)
def test_a_client_on_another_machine_is_refused_without_an_authorizer(broker, send):
    refused = send(broker.client(from_host="10.0.0.9"))
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert "connect to a listener on 127.0.0.1" in refused.error_message


def test_fenced_brokers_are_described_on_request(broker):
    client = broker.client()
    register(broker, 2)
    hidden = client.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest())
    assert [each.broker_id for each in hidden.brokers] == [1]
    shown = client.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(each.broker_id, each.is_fenced) for each in shown.brokers] == [(1, False), (2, True)]
