"""The handshake between nodes: only two holders of one key, in their own roles and in this exchange, authenticate."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.peers.handshake import (
    NONCE_BYTES,
    Acceptor,
    HandshakeRefused,
    HandshakeState,
    Initiator,
    PeerIdentity,
)
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.authenticate_peer import AuthenticatePeerRequest, AuthenticatePeerRequestHello

KEY = bytes(range(32))
ONE = PeerIdentity(node_id=NodeId(1), directory_id=b"1" * 16, cluster_id="water", host="10.0.0.1", port=9093)
TWO = PeerIdentity(node_id=NodeId(2), directory_id=b"2" * 16, cluster_id="water", host="10.0.0.2", port=9093)
INTRODUCED = [field.name for field in fields(AuthenticatePeerRequestHello)]


def initiator(identity=ONE, *, key=KEY, nonce=b"i" * NONCE_BYTES, expected=None):
    return Initiator(identity, key, nonce, expected_node_id=expected)


def acceptor(identity=TWO, *, key=KEY, nonce=b"a" * NONCE_BYTES):
    return Acceptor(identity, key, nonce)


def altered(value, how):
    """Another value of the same type: `how` is a number that chooses the change."""
    if isinstance(value, bytes):
        place = how % len(value)
        return value[:place] + bytes([value[place] ^ (1 + how % 255)]) + value[place + 1 :]
    if isinstance(value, str):
        return value + "x"
    return value + 1 + how % 7


def exchange(one, two, *, hello=lambda m: m, challenge=lambda m: m, proof=lambda m: m, answer=lambda m: m):
    """Carry the four messages, each through its own change; return what the initiator has at the end."""
    challenged = two.receive(hello(one.hello()))
    result = one.receive(challenge(challenged))
    if isinstance(result, HandshakeRefused):
        return result
    return one.receive(answer(two.receive(proof(result))))


def test_two_nodes_of_one_cluster_authenticate():
    one, two = initiator(), acceptor()
    assert exchange(one, two) == TWO
    assert two.peer == ONE
    assert one.state is two.state is HandshakeState.AUTHENTICATED


@given(how=st.integers(0, 10_000), name=st.sampled_from(INTRODUCED), direction=st.sampled_from(["hello", "challenge"]))
def test_a_change_of_any_introduced_field_is_noticed(how, name, direction):
    def change(message):
        said = getattr(message, direction)
        if said is None:  # refused already
            return message
        return replace(message, **{direction: replace(said, **{name: altered(getattr(said, name), how)})})

    one, two = initiator(), acceptor()
    result = exchange(one, two, **{direction: change})
    assert isinstance(result, HandshakeRefused)
    assert two.peer is None


@given(how=st.integers(0, 10_000))
def test_a_changed_proof_is_refused(how):
    one, two = initiator(), acceptor()
    result = exchange(one, two, proof=lambda m: replace(m, proof=altered(m.proof, how)))
    assert isinstance(result, HandshakeRefused)
    assert two.peer is None
    assert two.refusal.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    one, two = initiator(), acceptor()
    result = exchange(one, two, answer=lambda m: replace(m, proof=altered(m.proof, how)))
    assert isinstance(result, HandshakeRefused)
    assert one.state is HandshakeState.REFUSED


@given(st.binary(max_size=64))
def test_a_guessed_proof_is_refused(guess):
    two = acceptor()
    two.receive(initiator().hello())
    two.receive(AuthenticatePeerRequest(proof=guess))
    assert two.peer is None
    assert two.refusal is not None


def test_another_key_is_refused_by_both_sides():
    one, two = initiator(), acceptor(key=b"other" * 7)
    result = exchange(one, two)
    assert isinstance(result, HandshakeRefused)
    assert "cluster.key" in result.message
    assert two.peer is None

    # An impostor that accepts whatever the initiator proves cannot prove itself.
    one, impostor = initiator(), acceptor(key=b"other" * 7)
    proof = one.receive(impostor.receive(one.hello()))
    assert one.receive(replace(impostor.receive(proof), error_code=0)) != TWO
    assert one.state is HandshakeState.REFUSED


def test_a_reflected_challenge_is_refused():
    """The impostor has no key: it opens a connection back to the node and lets it answer its own challenge."""
    one = initiator()
    hello = one.hello().hello
    mirrored = replace(acceptor().receive(one.hello()), challenge=hello)
    assert isinstance(one.receive(mirrored), HandshakeRefused)

    one, back = initiator(), acceptor(ONE)
    pretended = replace(one.hello(), hello=replace(one.hello().hello, node_id=9, directory_id=b"9" * 16))
    challenge = back.receive(pretended)
    shown = replace(challenge, challenge=replace(challenge.challenge, node_id=9, directory_id=b"9" * 16))
    back.receive(one.receive(shown))
    assert back.peer is None


def test_a_proof_cannot_be_sent_back_to_its_author():
    one, two = initiator(), acceptor()
    proof = one.receive(two.receive(one.hello()))
    answer = two.receive(proof)
    assert answer.proof != proof.proof
    assert isinstance(one.receive(replace(answer, proof=proof.proof)), HandshakeRefused)


def test_a_recorded_exchange_cannot_be_replayed():
    one, two = initiator(), acceptor()
    hello = one.hello()
    proof = one.receive(two.receive(hello))
    answer = two.receive(proof)

    later = acceptor(nonce=b"b" * NONCE_BYTES)
    later.receive(hello)
    later.receive(proof)
    assert later.peer is None

    again = initiator(nonce=b"j" * NONCE_BYTES)
    assert isinstance(again.receive(acceptor().receive(hello)), AuthenticatePeerRequest)
    assert isinstance(again.receive(answer), HandshakeRefused)


@pytest.mark.parametrize(
    ("other", "code", "advice"),
    [
        (replace(TWO, cluster_id="fire"), ErrorCode.INCONSISTENT_CLUSTER_ID, "controller.quorum.bootstrap.servers"),
        (replace(TWO, node_id=ONE.node_id), ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another node.id"),
        (replace(TWO, min_version=7, max_version=9), ErrorCode.UNSUPPORTED_VERSION, "upgrade the older"),
        (replace(TWO, min_version=0, max_version=0), ErrorCode.UNSUPPORTED_VERSION, "upgrade the older"),
        (replace(TWO, port=70_000), ErrorCode.INVALID_REQUEST, "same release"),
    ],
)
def test_a_node_that_cannot_be_a_peer_learns_why(other, code, advice):
    two = acceptor(ONE)
    response = two.receive(initiator(other).hello())
    assert response.error_code == code
    assert advice in response.error_message
    assert two.receive(AuthenticatePeerRequest(proof=b"")).error_code

    result = initiator().receive(acceptor(other).receive(initiator(replace(other, node_id=NodeId(5))).hello()))
    assert isinstance(result, HandshakeRefused)
    assert result.code is code


def test_a_node_recognises_itself():
    two = acceptor(ONE)
    two.receive(initiator(ONE).hello())
    assert two.refusal.is_self


def test_the_node_at_an_address_must_be_the_expected_one():
    result = exchange(initiator(expected=NodeId(3)), acceptor())
    assert isinstance(result, HandshakeRefused)
    assert "node 2 answers where node 3 was expected" in result.message
    assert exchange(initiator(expected=TWO.node_id), acceptor()) == TWO


def test_messages_out_of_order_are_refused():
    two = acceptor()
    assert two.receive(AuthenticatePeerRequest(proof=b"p" * 32)).error_code == ErrorCode.ILLEGAL_SASL_STATE
    one, two = initiator(), acceptor()
    assert exchange(one, two) == TWO
    assert two.receive(one.hello()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert two.peer is None
    two = acceptor()
    two.receive(initiator().hello())
    assert two.receive(initiator().hello()).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
