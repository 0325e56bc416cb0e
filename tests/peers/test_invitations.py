"""Invitations: a token brings the cluster key to one other node, once and in time."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client import Admin
from headrace.core.peers.invitation import (
    JOIN_NONCE_BYTES,
    BadToken,
    Invitation,
    SharedSecret,
    join_proof,
    read_token,
    token_of,
)
from headrace.core.peers.seals import BadSeal, seal, unseal
from headrace.log.cluster_key import read_cluster_key
from headrace.model.errors import ErrorCode
from headrace.model.limits import INVITATION_MS_MAX, INVITATIONS_MAX
from headrace.operations.cluster_membership import join_cluster
from headrace.operations.errors import OperationError
from headrace.ports.real.disk import RealDisk
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.messages.create_invitation import CreateInvitationRequest
from headrace.wire.messages.join_cluster import JoinClusterRequest
from tests.reserved_ports import reserved_port

from .nodes import CLIENT_PORT, KEY, PeerWorld
from .test_listener import Caller

MINUTE_MS = 60_000
NONCE = b"n" * JOIN_NONCE_BYTES


@pytest.fixture
def world():
    return PeerWorld()


@pytest.fixture
def node(world):
    node = world.node(1)
    world.run_until(lambda: node.node.ready)
    return node


def invited(world, node, *, lifetime_ms=MINUTE_MS, from_host="127.0.0.1"):
    client = Caller(world, node, port=CLIENT_PORT, from_host=from_host)
    return client.ask(ApiKey.CREATE_INVITATION, 0, CreateInvitationRequest(lifetime_ms=lifetime_ms))


def joined(world, node, token, **changes):
    invitation = read_token(token)
    fields = {
        "invitation_id": invitation.invitation_id,
        "nonce": NONCE,
        "proof": join_proof(invitation.one_time_key, invitation.invitation_id, NONCE),
        **changes,
    }
    return Caller(world, node).ask(ApiKey.JOIN_CLUSTER, 0, JoinClusterRequest(**fields))


def test_a_token_brings_the_key_to_its_holder(world, node):
    invitation = read_token(invited(world, node).token)
    assert (invitation.host, invitation.port) == ("host1", 9093)
    response = joined(world, node, token_of(invitation))
    shared = unseal(invitation.one_time_key, response.sealed, invitation_id=invitation.invitation_id, join_nonce=NONCE)
    assert (shared.cluster_id, shared.secret) == (KEY.cluster_id, KEY.secret)
    assert KEY.secret not in response.sealed
    assert node.said("has used an invitation")
    assert not any(KEY.secret.hex() in line or token_of(invitation) in line for line in node.log_lines)


def test_a_token_works_once(world, node):
    token = invited(world, node).token
    assert joined(world, node, token).error_code == 0
    again = joined(world, node, token)
    assert again.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert "headrace cluster invite" in again.error_message


def test_a_token_expires_by_the_wall_clock(world, node):
    response = invited(world, node, lifetime_ms=1_000)
    assert response.expiry_ms == node.machine.clock.wall_ms() + 1_000 - 0 or response.expiry_ms > 0
    world.pass_time(1_500)
    assert joined(world, node, response.token).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_wrong_proof_neither_opens_nor_spends_an_invitation(world, node):
    token = invited(world, node).token
    for wrong in (
        {"proof": bytes(32)},
        {"nonce": b""},
        {"nonce": b"m" * JOIN_NONCE_BYTES},
        {"invitation_id": bytes(16)},
    ):
        assert joined(world, node, token, **wrong).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert joined(world, node, token).error_code == 0


def test_invitations_end_with_the_process_that_gave_them(world, node):
    token = invited(world, node).token
    node.machine.kill()
    node.boot()
    world.run_until(lambda: node.node.ready)
    assert joined(world, node, token).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_only_a_client_on_the_same_machine_gets_a_token(world, node):
    response = invited(world, node, from_host="10.1.2.3")
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.token == ""


def test_limits_of_invitations(world, node):
    for lifetime_ms in (0, -5, INVITATION_MS_MAX + 1):
        assert invited(world, node, lifetime_ms=lifetime_ms).error_code == ErrorCode.INVALID_REQUEST
    client = Caller(world, node, port=CLIENT_PORT, from_host="127.0.0.1")
    request = CreateInvitationRequest(lifetime_ms=2_000)
    for _ in range(INVITATIONS_MAX):
        assert client.ask(ApiKey.CREATE_INVITATION, 0, request).error_code == 0
    assert "wait until they expire" in client.ask(ApiKey.CREATE_INVITATION, 0, request).error_message
    world.pass_time(2_500)
    assert client.ask(ApiKey.CREATE_INVITATION, 0, request).error_code == 0


def test_a_node_without_a_cluster_listener_gives_no_invitations():
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(Exception, match="--cluster-listen"):
            admin.invite(lifetime_ms=MINUTE_MS)


INVITATION = Invitation("10.0.0.1", 9093, b"i" * 16, b"k" * 32, 1_800_000_000_000)


@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda each: f"headrace-join-{each.hex()}"))
def test_any_other_text_is_no_token(text):
    with pytest.raises(BadToken, match="copy the whole line"):
        read_token(text)


@given(st.integers(1, 200))
def test_a_token_that_is_cut_is_refused(length):
    token = token_of(INVITATION)
    assert read_token(f"  {token}\n") == INVITATION
    with pytest.raises(BadToken):
        read_token(token[: min(length, len(token) - 2)])


def test_secrets_are_not_printed():
    assert "kkk" not in repr(INVITATION)
    assert "sss" not in repr(SharedSecret("water", b"s" * 32))


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_seal_does_not_open(place, difference):
    sealed = bytearray(
        seal(b"k" * 32, SharedSecret("water", b"s" * 32), invitation_id=b"i" * 16, join_nonce=NONCE, nonce=b"0" * 12)
    )
    sealed[place % len(sealed)] ^= difference
    with pytest.raises(BadSeal):
        unseal(b"k" * 32, bytes(sealed), invitation_id=b"i" * 16, join_nonce=NONCE)


@pytest.mark.process
def test_a_folder_joins_by_a_token_of_a_running_broker(tmp_path):
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{reserved_port()}",
    }
    with EmbeddedBroker(config=settings) as broker, Admin(broker.bootstrap_servers) as admin:
        token = admin.invite(lifetime_ms=MINUTE_MS).token
        home = str(tmp_path / "new")
        assert join_cluster(token, home) == admin.cluster().cluster_id
        assert read_cluster_key(RealDisk(), home).cluster_id == admin.cluster().cluster_id
        assert stat.S_IMODE(os.stat(f"{home}/cluster.key").st_mode) == 0o600
        assert join_cluster(token, home) == admin.cluster().cluster_id, "a restart may repeat the token"
        with pytest.raises(OperationError, match="does not accept the token"):
            join_cluster(token, str(tmp_path / "another"))
    with pytest.raises(OperationError, match="cannot be used"):
        join_cluster(token, str(tmp_path / "late"))
