"""Access rules in number and with names that nothing else has: they are kept as they are, and harm no decision."""

import pytest

from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter, RuleIndex
from headrace.core.controller.access_rules import RULES_PER_REQUEST_MAX
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_acls, delete_acls, describe_acls
from tests.broker.virtual import Client
from tests.security.ruled_broker import STRANGER, ruled_broker

TOPIC = AclResourceType.TOPIC
ODD_NAMES = [
    " ", "a b", "\0", "a\nb", "../../etc", ".", "..", "a/b", "größe", "トピック", "\U0001f600", "%s%n", "User:*",
    "x" * 999, "**", "*a", "a*", "(a+)+$", "'; --", "\ufeff", "\u202e",
]  # fmt: skip


def creation(name, *, principal="User:*", host="*", pattern=PatternType.LITERAL, operation=Operation.READ):
    return create_acls.CreateAclsRequestCreation(
        resource_type=TOPIC,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=Permission.ALLOW,
    )


def create(broker, rules):
    """The errors of the rules."""
    admin = broker.client()
    answer = admin.ask(ApiKey.CREATE_ACLS, 3, create_acls.CreateAclsRequest(creations=tuple(rules)))
    admin.close()
    return [result.error_code for result in answer.results]


def names_of(broker):
    """The names of all resources of topics that have rules."""
    request = describe_acls.DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    return {each.resource_name for each in broker.client().ask(ApiKey.DESCRIBE_ACLS, 3, request).resources}


def test_rules_with_odd_names_are_kept_and_permit_nothing_else():
    broker = ruled_broker().with_topic("t")
    patterns = (PatternType.LITERAL, PatternType.PREFIXED)
    assert set(create(broker, [creation(name, pattern=each) for name in ODD_NAMES for each in patterns])) == {0}
    assert names_of(broker) == {*ODD_NAMES, "*"}
    stranger = Client(broker, from_host=STRANGER)
    answer = stranger.wait(stranger.send_fetch(("t", 0, 0)))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.restart()
    assert names_of(broker) == {*ODD_NAMES, "*"}


@pytest.mark.parametrize("principal", ["", "User", ":", "User:", ":x", "x" * 1_001])
def test_rules_of_principals_that_cannot_be_are_refused(principal):
    broker = ruled_broker()
    assert create(broker, [creation("t", principal=principal), creation("t")]) == [ErrorCode.INVALID_REQUEST, 0]


def test_ten_thousand_rules_in_one_request():
    """A client that no rule names is refused as before, one of the last is let through, and all can be deleted."""
    broker = ruled_broker().with_topic("t9999")
    rules = [
        creation(f"t{number}", host=f"10.{number >> 8}.{number & 255}.1") for number in range(RULES_PER_REQUEST_MAX)
    ]
    assert set(create(broker, rules)) == {0}
    assert len(names_of(broker)) == RULES_PER_REQUEST_MAX + 1
    named, stranger = (Client(broker, from_host=host) for host in ("10.39.15.1", STRANGER))
    for client, error in ((named, 0), (stranger, ErrorCode.TOPIC_AUTHORIZATION_FAILED)):
        answer = client.wait(client.send_fetch(("t9999", 0, 0)))
        assert answer.responses[0].partitions[0].error_code == error
    assert set(create(broker, [*rules, creation("more")])) == {ErrorCode.POLICY_VIOLATION}
    wanted = delete_acls.DeleteAclsRequestFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter="User:*",
        host_filter=None,
        operation=Operation.READ,
        permission_type=Permission.ANY,
    )
    answer = broker.client().ask(ApiKey.DELETE_ACLS, 3, delete_acls.DeleteAclsRequest(filters=(wanted,)))
    assert len(answer.filter_results[0].matching_acls) == RULES_PER_REQUEST_MAX
    answer = named.wait(named.send_fetch(("t9999", 0, 0)))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


class CountedRule(AccessRule):
    """Counts how often its operation is looked at."""

    looks = 0

    @property
    def operation(self):
        CountedRule.looks += 1
        return self[5]


def test_a_decision_looks_at_the_rules_of_one_principal():
    index = RuleIndex()
    for number in range(10_000):
        index.add(CountedRule(TOPIC, "*", PatternType.LITERAL, f"User:{number}", "*", Operation.READ, Permission.ALLOW))
    assert index.decide("User:9999", "10.0.0.1", Operation.READ, TOPIC, "t").allowed
    assert not index.decide("User:stranger", "10.0.0.1", Operation.READ, TOPIC, "t").allowed
    assert not index.permits_some("User:stranger", "10.0.0.1", Operation.READ, TOPIC)
    assert CountedRule.looks < 10


def test_a_filter_is_no_pattern():
    rule = AccessRule(TOPIC, "a.*", PatternType.LITERAL, "User:x", "*", Operation.READ, Permission.ALLOW)
    asked = RuleFilter(TOPIC, "a.b", PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
    assert not asked.matches(rule)
    assert not asked._replace(pattern_type=PatternType.MATCH).matches(rule)
