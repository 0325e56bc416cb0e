"""Registrations and heartbeats on the wire: messages of BrokerRegistration and BrokerHeartbeat to and from commands."""

from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.peers.requests import PeerFailure
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, BrokerState, NewBroker
from headrace.core.controller.health import HealthReport
from headrace.core.controller.records import Endpoint, FeatureRange
from headrace.model.configs.listeners import SECURITY_PROTOCOLS
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from headrace.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
    BrokerRegistrationResponse,
)

NO_DIRECTORY = bytes(16)

BOOT_ID_LENGTH_MAX = 100
"""Characters of a boot id that are kept; Linux has 36."""


def registration_request(new: NewBroker) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=new.node_id,
        cluster_id=new.cluster_id,
        incarnation_id=new.incarnation,
        listeners=tuple(
            BrokerRegistrationRequestListener(
                name=endpoint.listener,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
            )
            for endpoint in new.endpoints
        ),
        features=tuple(
            BrokerRegistrationRequestFeature(
                name=feature.name,
                min_supported_version=feature.level_min,
                max_supported_version=feature.level_max,
            )
            for feature in new.features
        ),
        rack=new.rack,
        log_dirs=tuple(new.directories),
        previous_broker_epoch=new.previous_epoch,
        host=new.host,
        is_controller=new.is_controller,
        metadata_directory_id=new.metadata_directory or NO_DIRECTORY,
        boot_id=new.boot_id,
        closed_cleanly=new.closed_cleanly,
    )


def new_broker(request: BrokerRegistrationRequest) -> NewBroker:
    """Return the command of a request; raise ValueError if it names a security protocol that does not exist."""
    return NewBroker(
        node_id=NodeId(request.broker_id),
        cluster_id=request.cluster_id,
        incarnation=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener.name, listener.host, listener.port, _security_protocol(listener.security_protocol))
            for listener in request.listeners
        ),
        rack=request.rack,
        host=request.host,
        features=tuple(
            FeatureRange(feature.name, max(0, feature.min_supported_version), max(0, feature.max_supported_version))
            for feature in request.features
        ),
        directories=tuple(request.log_dirs),
        is_controller=request.is_controller,
        metadata_directory=request.metadata_directory_id,
        previous_epoch=request.previous_broker_epoch,
        boot_id=request.boot_id[:BOOT_ID_LENGTH_MAX],
        closed_cleanly=request.closed_cleanly,
    )


def _security_protocol(number: int) -> str:
    if not 0 <= number < len(SECURITY_PROTOCOLS):
        raise ValueError(f"security protocol {number} is unknown")
    return SECURITY_PROTOCOLS[number]


def registration_result(response: object) -> BrokerRegistration | ProposalFailed:
    if isinstance(response, PeerFailure):
        return ProposalFailed(response.code, response.message)
    assert isinstance(response, BrokerRegistrationResponse)
    error = ErrorCode(response.error_code)
    if error == ErrorCode.NOT_CONTROLLER:
        return ProposalFailed(error, response.error_message or "")
    return BrokerRegistration(response.broker_epoch, error, response.error_message)


def heartbeat_request(beat: BrokerHeartbeat) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=beat.node_id,
        broker_epoch=beat.broker_epoch,
        current_metadata_offset=beat.metadata_offset,
        want_fence=beat.wants_fence,
        want_shut_down=beat.wants_shut_down,
        turn_ms=beat.health.turn_ms,
        append_ms=beat.health.append_ms,
        is_full=beat.health.is_full,
        sync_ms=beat.health.sync_ms,
    )


def heartbeat(request: BrokerHeartbeatRequest) -> BrokerHeartbeat:
    return BrokerHeartbeat(
        node_id=NodeId(request.broker_id),
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        wants_fence=request.want_fence,
        wants_shut_down=request.want_shut_down,
        health=HealthReport(request.turn_ms, request.append_ms, request.is_full, request.sync_ms),
    )


def state_result(response: object) -> BrokerState | ProposalFailed:
    if isinstance(response, PeerFailure):
        return ProposalFailed(response.code, response.message)
    assert isinstance(response, BrokerHeartbeatResponse)
    error = ErrorCode(response.error_code)
    if error == ErrorCode.NOT_CONTROLLER:
        return ProposalFailed(error, "the node is not the active controller")
    return BrokerState(
        error=error,
        is_caught_up=response.is_caught_up,
        is_fenced=response.is_fenced,
        should_shut_down=response.should_shut_down,
    )
