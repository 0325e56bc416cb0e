"""Decisions on SCRAM credentials: what is stored, and what is refused as in Kafka."""

import pytest

from headrace.core.access.scram import credential_of
from headrace.core.controller import credentials
from headrace.core.controller.credentials import CredentialToRemove, NewCredential
from headrace.core.controller.records import FeatureLevelRecord, LoginSecretRecord, ScramCredentialRecord
from headrace.model.access import ScramMechanism
from headrace.model.errors import ErrorCode

from .controllers import one_broker

SALT, SALTED = b"some salt", bytes(range(32))
SHA_256 = ScramMechanism.SCRAM_SHA_256


def new(name="alice", **changed):
    fields = {"mechanism": 1, "iterations": 4_096, "salt": SALT, "salted_password": SALTED, **changed}
    return NewCredential(name, **fields)


def alter(controller, added=(), removed=()):
    return controller.carry_out(controller.alter_credentials(added, removed, new_secret=b"secret"))


def test_keys_are_stored_and_neither_password_nor_what_logs_in():
    controller = one_broker()
    decision = controller.alter_credentials([new()], [], new_secret=b"secret")
    secret, record = decision.records
    assert secret == LoginSecretRecord(b"secret")
    made = credential_of(SHA_256, SALT, SALTED, 4_096)
    assert record == ScramCredentialRecord("alice", 1, SALT, made.stored_key, made.server_key, 4_096)
    assert SALTED not in (made.stored_key, made.server_key)
    assert "key" not in repr(record)
    assert "secret" not in repr(secret)
    assert SALTED.hex() not in repr(new())
    assert "salt" not in repr(new())


def test_the_login_secret_is_written_once():
    controller = one_broker()
    alter(controller, [new()])
    decision = controller.alter_credentials([new("bob")], [], new_secret=b"another")
    assert [type(record) for record in decision.records] == [ScramCredentialRecord]
    assert controller.image.login_secret == b"secret"


def test_a_new_password_replaces_the_old_one_and_a_removed_one_is_gone():
    controller = one_broker()
    alter(controller, [new(), new(mechanism=2, salted_password=bytes(64))])
    alter(controller, [new(salted_password=bytes(32))])
    assert controller.image.scram["alice", 1].stored_key == credential_of(SHA_256, SALT, bytes(32), 4_096).stored_key
    assert not alter(controller, removed=[CredentialToRemove("alice", 1)])[0].error
    assert list(controller.image.scram) == [("alice", 2)]


@pytest.mark.parametrize(
    ("added", "removed", "error"),
    [
        ([new("")], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new("x" * 256)], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new("a\nb")], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new(iterations=4_095)], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new(iterations=16_385)], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new(salt=b"")], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new(salted_password=b"short")], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([new(mechanism=0)], [], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([new(mechanism=3)], [], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([new(), new()], [], ErrorCode.DUPLICATE_RESOURCE),
        ([new()], [CredentialToRemove("alice", 1)], ErrorCode.DUPLICATE_RESOURCE),
        ([], [CredentialToRemove("alice", 1)], ErrorCode.RESOURCE_NOT_FOUND),
        ([], [CredentialToRemove("alice", 9)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(added, removed, error):
    controller = one_broker()
    (result,) = alter(controller, added, removed)
    assert result.error == error
    assert result.message
    assert not controller.image.scram
    assert not controller.image.login_secret


def test_one_wrong_change_of_a_user_refuses_all_of_that_user_and_none_of_others():
    controller = one_broker()
    results = alter(controller, [new(), new(mechanism=2), new("bob")])
    assert [(result.name, bool(result.error)) for result in results] == [("alice", True), ("bob", False)]
    assert list(controller.image.scram) == [("bob", 1)]


def test_the_number_of_credentials_is_limited(monkeypatch):
    monkeypatch.setattr(credentials, "CREDENTIALS_MAX", 1)
    monkeypatch.setattr(credentials, "CREDENTIALS_PER_REQUEST_MAX", 2)
    controller = one_broker()
    assert not alter(controller, [new()])[0].error
    assert alter(controller, [new("bob")])[0].error == ErrorCode.POLICY_VIOLATION
    three = [new(name) for name in "abc"]
    assert {result.error for result in alter(controller, three)} == {ErrorCode.POLICY_VIOLATION}


def test_a_cluster_at_an_older_level_has_no_users():
    controller = one_broker()
    controller.image.apply(FeatureLevelRecord("metadata.version", 26))
    (result,) = alter(controller, [new()])
    assert result.error == ErrorCode.UNSUPPORTED_VERSION
    assert "metadata.version 27" in result.message
