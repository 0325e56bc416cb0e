"""Quotas: the most specific one holds, changes of an entity are made together, and what cannot be is refused."""

import pytest

from headrace.core.controller import client_quotas
from headrace.core.controller.client_quotas import QuotaAlteration, QuotaChange
from headrace.core.controller.records import ClientQuotaRecord, FeatureLevelRecord, RecordError
from headrace.core.quotas.entities import (
    CONNECTION_RATE,
    FETCH_RATE,
    MUTATION_RATE,
    PRODUCE_RATE,
    REQUEST_PERCENTAGE,
    ChosenQuota,
    entity_of,
    quota_of_address,
    quota_of_client,
)
from headrace.core.quotas.filters import DEFAULT, EXACT, SPECIFIED, EntityFilter, FilterPart, FilterRefused
from headrace.model.errors import ErrorCode
from tests.core.controllers import one_broker

A, B = "alice", "app"

SPECIFICITY = (
    ({"user": A, "client-id": B}, (A, B)),
    ({"user": A, "client-id": None}, (A, B)),
    ({"user": A}, (A, None)),
    ({"user": None, "client-id": B}, (A, B)),
    ({"user": None, "client-id": None}, (A, B)),
    ({"user": None}, (A, None)),
    ({"client-id": B}, (None, B)),
    ({"client-id": None}, (None, B)),
)
"""Entities in Kafka's order, and the user and client id that share their quota."""


@pytest.mark.parametrize("first", range(len(SPECIFICITY)))
def test_the_most_specific_quota_holds(first):
    table = {
        entity_of(names): {PRODUCE_RATE: float(number)}
        for number, (names, _) in enumerate(SPECIFICITY)
        if number >= first
    }
    user, client_id = SPECIFICITY[first][1]
    assert quota_of_client(table, PRODUCE_RATE, A, B) == ChosenQuota(float(first), user, client_id)
    assert quota_of_client(table, FETCH_RATE, A, B) is None


def test_each_kind_of_quota_is_looked_up_by_itself():
    table = {
        entity_of({"user": A}): {PRODUCE_RATE: 1.0},
        entity_of({"client-id": None}): {PRODUCE_RATE: 2.0, FETCH_RATE: 3.0},
    }
    assert quota_of_client(table, PRODUCE_RATE, A, B) == ChosenQuota(1.0, A, None)
    assert quota_of_client(table, FETCH_RATE, A, B) == ChosenQuota(3.0, None, B)
    assert quota_of_client(table, PRODUCE_RATE, "bob", B) == ChosenQuota(2.0, None, B)


def test_addresses_have_a_default_too():
    table = {entity_of({"ip": "10.0.0.1"}): {CONNECTION_RATE: 5.0}, entity_of({"ip": None}): {CONNECTION_RATE: 9.0}}
    assert quota_of_address(table, "10.0.0.1") == 5.0
    assert quota_of_address(table, "10.0.0.2") == 9.0
    assert quota_of_address({}, "10.0.0.2") is None


# Decisions of the controller


def alter(controller, entity, *, validate_only=False, **limits):
    parts = tuple(entity.items()) if isinstance(entity, dict) else entity
    changes = tuple(QuotaChange(key, value) for key, value in limits.items())
    (result,) = controller.carry_out(
        controller.alter_quotas([QuotaAlteration(parts, changes)], validate_only=validate_only)
    )
    return result


def test_quotas_are_set_changed_and_removed():
    controller = one_broker()
    both = {"user": A, "client-id": B}
    assert not alter(controller, both, producer_byte_rate=1_000.0, consumer_byte_rate=2_000.0).error
    assert not alter(controller, both, producer_byte_rate=3_000.0).error
    assert controller.image.client_quotas == {
        (("client-id", B), ("user", A)): {PRODUCE_RATE: 3_000.0, FETCH_RATE: 2_000.0}
    }
    logged = len(controller.log)
    assert not alter(controller, both, producer_byte_rate=3_000.0, request_percentage=None).error
    assert len(controller.log) == logged, "nothing has changed"
    assert not alter(controller, both, producer_byte_rate=None, consumer_byte_rate=None).error
    assert controller.image.client_quotas == {}


def test_a_quota_of_a_default_entity_is_another_one():
    controller = one_broker()
    alter(controller, {"user": None}, producer_byte_rate=1.0)
    alter(controller, {"user": A}, producer_byte_rate=2.0)
    assert list(controller.image.client_quotas) == [(("user", None),), (("user", A),)]


def test_validation_alone_changes_nothing():
    controller = one_broker()
    assert not alter(controller, {"user": A}, validate_only=True, producer_byte_rate=1.0).error
    assert alter(controller, {"user": A}, validate_only=True, producer_byte_rate=0.0).error
    assert controller.image.client_quotas == {}


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({}, {PRODUCE_RATE: 1.0}),
        ({"topic": A}, {PRODUCE_RATE: 1.0}),
        ({"user": ""}, {PRODUCE_RATE: 1.0}),
        ({"user": "x" * 2_000}, {PRODUCE_RATE: 1.0}),
        ({"client-id": "é" * 128}, {PRODUCE_RATE: 1.0}),
        ({"user": A, "ip": "10.0.0.1"}, {PRODUCE_RATE: 1.0}),
        ({"client-id": A, "ip": "10.0.0.1"}, {CONNECTION_RATE: 1.0}),
        ({"ip": "no address"}, {CONNECTION_RATE: 1.0}),
        ({"ip": "10.0.0.1"}, {PRODUCE_RATE: 1.0}),
        ({"user": A}, {CONNECTION_RATE: 1.0}),
        ({"user": A}, {"producer_rate": 1.0}),
        ({"user": A}, {PRODUCE_RATE: 0.0}),
        ({"user": A}, {PRODUCE_RATE: -1.0}),
        ({"user": A}, {PRODUCE_RATE: 1.5}),
        ({"user": A}, {PRODUCE_RATE: 1e30}),
        ({"user": A}, {PRODUCE_RATE: float("nan")}),
        ({"user": A}, {REQUEST_PERCENTAGE: float("inf")}),
        ({"user": A}, {REQUEST_PERCENTAGE: 0.0}),
        ({"ip": "10.0.0.1"}, {CONNECTION_RATE: 3e9}),
        ((("user", A), ("user", B)), {PRODUCE_RATE: 1.0}),
    ],
)
def test_quotas_that_cannot_be_are_refused(entity, limits):
    controller = one_broker()
    result = alter(controller, entity, **limits)
    assert result.error == ErrorCode.INVALID_REQUEST
    assert result.message
    assert not controller.image.client_quotas


def test_what_may_be_a_fraction():
    controller = one_broker()
    assert not alter(controller, {"user": A}, request_percentage=0.5, controller_mutation_rate=0.1).error
    assert controller.image.client_quotas[(("user", A),)] == {REQUEST_PERCENTAGE: 0.5, MUTATION_RATE: 0.1}
    assert not alter(controller, {"ip": "2001:DB8::0:1"}, connection_creation_rate=1.0).error
    assert (("ip", "2001:db8::1"),) in controller.image.client_quotas


def test_an_entity_with_an_error_keeps_its_quotas_and_others_get_theirs():
    controller = one_broker()
    alter(controller, {"user": A}, producer_byte_rate=1.0)

    def change(name, *limits):
        return QuotaAlteration((("user", name),), tuple(QuotaChange(*each) for each in limits))

    results = controller.carry_out(
        controller.alter_quotas(
            [
                change(A, (PRODUCE_RATE, 2.0), (FETCH_RATE, 0.0)),
                change(B, (PRODUCE_RATE, 2.0)),
                change("c", (PRODUCE_RATE, 2.0), (PRODUCE_RATE, 3.0)),
                change("d", (PRODUCE_RATE, 2.0)),
                change("d", (FETCH_RATE, 2.0)),
            ]
        )
    )
    assert [bool(result.error) for result in results] == [True, False, True, True, True]
    assert controller.image.client_quotas == {
        (("user", A),): {PRODUCE_RATE: 1.0},
        (("user", B),): {PRODUCE_RATE: 2.0},
    }


def test_the_numbers_of_entities_are_limited(monkeypatch):
    monkeypatch.setattr(client_quotas, "ENTITIES_MAX", 1)
    controller = one_broker()
    assert not alter(controller, {"user": A}, producer_byte_rate=1.0).error
    assert alter(controller, {"user": B}, producer_byte_rate=1.0).error == ErrorCode.POLICY_VIOLATION
    monkeypatch.setattr(client_quotas, "ENTITIES_PER_REQUEST_MAX", 0)
    assert alter(controller, {"user": A}, producer_byte_rate=None).error == ErrorCode.POLICY_VIOLATION


def test_a_full_table_can_be_emptied(monkeypatch):
    controller = one_broker()
    alter(controller, {"user": A}, producer_byte_rate=1.0)
    monkeypatch.setattr(client_quotas, "ENTITIES_MAX", 1)
    assert not alter(controller, {"user": A}, producer_byte_rate=2.0).error
    assert not alter(controller, {"user": A}, producer_byte_rate=None).error


def test_a_cluster_at_an_older_level_has_no_quotas():
    controller = one_broker()
    controller.image.apply(FeatureLevelRecord("metadata.version", 26))
    assert alter(controller, {"user": A}, producer_byte_rate=1.0).error == ErrorCode.UNSUPPORTED_VERSION


def test_a_record_that_removes_nothing_is_damage():
    with pytest.raises(RecordError):
        one_broker().image.apply(ClientQuotaRecord((("user", A),), PRODUCE_RATE, None))


# Filters


ENTITIES = {
    "a": entity_of({"user": A}),
    "ab": entity_of({"user": A, "client-id": B}),
    "u": entity_of({"user": None}),
    "b": entity_of({"client-id": B}),
    "ip": entity_of({"ip": "10.0.0.1"}),
}


@pytest.mark.parametrize(
    ("parts", "strict", "matching"),
    [
        ([], False, {"a", "ab", "u", "b", "ip"}),
        ([], True, set()),
        ([("user", EXACT, A)], False, {"a", "ab"}),
        ([("user", EXACT, A)], True, {"a"}),
        ([("user", SPECIFIED, None)], False, {"a", "ab", "u"}),
        ([("user", SPECIFIED, None)], True, {"a", "u"}),
        ([("user", DEFAULT, None)], False, {"u"}),
        ([("user", SPECIFIED, None), ("client-id", EXACT, B)], True, {"ab"}),
        ([("ip", SPECIFIED, None)], True, {"ip"}),
    ],
)
def test_filters(parts, strict, matching):
    wanted = EntityFilter.checked([FilterPart(*part) for part in parts], is_strict=strict)
    assert {key for key, entity in ENTITIES.items() if wanted.matches(entity)} == matching


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([("", EXACT, A)], ErrorCode.INVALID_REQUEST),
        ([("topic", EXACT, A)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, A)], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, A)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, A), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, A), ("ip", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_cannot_be_are_refused(parts, code):
    with pytest.raises(FilterRefused) as raised:
        EntityFilter.checked([FilterPart(*part) for part in parts], is_strict=False)
    assert raised.value.code == code
