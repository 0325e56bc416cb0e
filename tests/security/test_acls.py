"""Decisions by access rules: Kafka's order of denial, wildcard and prefix, and a comparison with a plain model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter, RuleIndex
from headrace.core.controller import access_rules
from headrace.core.controller.records import FeatureLevelRecord
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from tests.core.controllers import one_broker

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def rule(
    operation=READ, permission=ALLOW, name="orders", pattern=LITERAL, principal="User:alice", host="*", kind=TOPIC
):
    return AccessRule(kind, name, pattern, principal, host, operation, permission)


def decide(rules, operation=READ, name="orders", principal="User:alice", host="10.0.0.1", kind=TOPIC, **options):
    index = RuleIndex(**options)
    for each in rules:
        index.add(each)
    return index.decide(principal, host, operation, kind, name)


@pytest.mark.parametrize(
    ("rules", "asked", "allowed"),
    [
        ([], {}, False),
        ([rule()], {}, True),
        ([rule()], {"principal": "User:bob"}, False),
        ([rule()], {"name": "orders2"}, False),
        ([rule()], {"kind": GROUP}, False),
        ([rule()], {"operation": WRITE}, False),
        ([rule(ALL)], {"operation": WRITE}, True),
        ([rule(principal="User:*")], {"principal": "User:bob"}, True),
        ([rule(host="10.0.0.1")], {}, True),
        ([rule(host="10.0.0.2")], {}, False),
        ([rule(host="::ffff:10.0.0.1")], {}, True),
        ([rule(host="0:0:0:0:0:0:0:1")], {"host": "[::1]"}, True),
        ([rule(host="fe80::1")], {"host": "[fe80:0::1%eth0]"}, True),
        ([rule(host="::2")], {"host": "[::1]"}, False),
        ([rule(host="not an address:")], {"host": "[::1]"}, False),
        ([rule(name="*")], {"name": "anything"}, True),
        ([rule(name="ord", pattern=PREFIXED)], {}, True),
        ([rule(name="orders", pattern=PREFIXED)], {}, True),
        ([rule(name="orders-", pattern=PREFIXED)], {}, False),
        ([rule(name="*", pattern=PREFIXED)], {}, False),
        # Denial decides, wherever it is.
        ([rule(), rule(permission=DENY)], {}, False),
        ([rule(), rule(permission=DENY, name="*")], {}, False),
        ([rule(), rule(permission=DENY, name="o", pattern=PREFIXED)], {}, False),
        ([rule(), rule(ALL, DENY, principal="User:*")], {}, False),
        ([rule(), rule(permission=DENY, principal="User:bob")], {}, True),
        ([rule(), rule(permission=DENY, host="10.0.0.2")], {}, True),
        # Describe is implied by others; its denial is not.
        ([rule(READ)], {"operation": DESCRIBE}, True),
        ([rule(WRITE)], {"operation": DESCRIBE}, True),
        ([rule(Operation.DELETE)], {"operation": DESCRIBE}, True),
        ([rule(Operation.ALTER)], {"operation": DESCRIBE}, True),
        ([rule(Operation.CREATE)], {"operation": DESCRIBE}, False),
        ([rule(DESCRIBE)], {"operation": READ}, False),
        ([rule(READ), rule(READ, DENY)], {"operation": DESCRIBE}, True),
        ([rule(READ), rule(DESCRIBE, DENY)], {"operation": READ}, True),
        ([rule(Operation.ALTER_CONFIGS)], {"operation": Operation.DESCRIBE_CONFIGS}, True),
        ([rule(Operation.ALTER_CONFIGS)], {"operation": DESCRIBE}, False),
    ],
)
def test_decisions(rules, asked, allowed):
    assert decide(rules, **asked).allowed is allowed


def test_resources_without_any_rule_may_be_open():
    assert decide([], allows_unruled=True).allowed
    assert decide([rule(principal="User:bob")], name="other", allows_unruled=True).allowed
    assert not decide([rule(principal="User:bob")], allows_unruled=True).allowed
    assert not decide([rule(principal="User:bob", name="o", pattern=PREFIXED)], allows_unruled=True).allowed


def test_the_rule_that_decides_is_named():
    deny = rule(permission=DENY, name="*")
    assert decide([rule()]).rule == rule()
    assert decide([rule(), deny]).rule == deny
    assert decide([]).rule is None


@pytest.mark.parametrize(
    ("rules", "permitted"),
    [
        ([], False),
        ([rule(WRITE)], True),
        ([rule(READ)], False),
        ([rule(ALL, name="*")], True),
        ([rule(WRITE, name="o", pattern=PREFIXED)], True),
        ([rule(WRITE, principal="User:bob")], False),
        ([rule(WRITE, kind=GROUP)], False),
        ([rule(WRITE, host="10.9.9.9")], False),
        ([rule(WRITE), rule(WRITE, DENY)], False),
        ([rule(WRITE), rule(WRITE, DENY, name="other")], True),
        ([rule(WRITE), rule(ALL, DENY, name="*")], False),
        ([rule(WRITE), rule(WRITE, DENY, name="ord", pattern=PREFIXED)], False),
        ([rule(WRITE, name="ord", pattern=PREFIXED), rule(WRITE, DENY)], True),
        ([rule(WRITE, name="*"), rule(WRITE, DENY, name="ord", pattern=PREFIXED)], True),
    ],
)
def test_some_resource_is_permitted(rules, permitted):
    index = RuleIndex()
    for each in rules:
        index.add(each)
    assert index.permits_some("User:alice", "10.0.0.1", WRITE, TOPIC) is permitted


def test_an_unruled_resource_permits_some_operation():
    """As Kafka does, which asks about a name that no rule is likely to have."""
    index = RuleIndex(allows_unruled=True)
    assert index.permits_some("User:alice", "10.0.0.1", WRITE, TOPIC)
    index.add(rule(READ, name="*", principal="User:bob"))
    assert not index.permits_some("User:alice", "10.0.0.1", WRITE, TOPIC)


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
principals = st.sampled_from(["User:x", "User:y", "User:*"])
hosts = st.sampled_from(["*", "h1", "h2"])
rules_drawn = st.builds(
    AccessRule,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    principals,
    hosts,
    st.sampled_from([READ, WRITE, DESCRIBE, ALL, Operation.ALTER]),
    st.sampled_from([ALLOW, DENY]),
)


def plain_decision(rules, principal, host, operation, kind, name):
    """The rules of the page on Kafka's authorization, one by one."""

    def is_for_resource(each):
        if each.resource_type != kind:
            return False
        if each.pattern_type == PREFIXED:
            return name.startswith(each.resource_name)
        return each.resource_name in (name, "*")

    matching = [
        each
        for each in rules
        if is_for_resource(each) and each.principal in (principal, "User:*") and each.host in (host, "*")
    ]
    if any(each.permission == DENY and each.operation in (operation, ALL) for each in matching):
        return False
    implying = {operation, ALL}
    if operation == DESCRIBE:
        implying |= {READ, WRITE, Operation.ALTER, Operation.DELETE}
    return any(each.permission == ALLOW and each.operation in implying for each in matching)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(rules_drawn, max_size=12, unique=True),
    st.sets(st.integers(0, 11)),
    st.sampled_from(["User:x", "User:y"]),
    st.sampled_from(["h1", "h2"]),
    st.sampled_from([READ, WRITE, DESCRIBE]),
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(["a", "ab", "abcd", "b", "c"]),
)
def test_the_index_agrees_with_a_plain_model_while_rules_come_and_go(
    rules, gone, principal, host, operation, kind, name
):
    index = RuleIndex()
    for each in rules:
        index.add(each)
    left = [each for at, each in enumerate(rules) if at not in gone]
    for each in rules:
        if each not in left:
            index.remove(each)
    expected = plain_decision(left, principal, host, operation, kind, name)
    assert index.decide(principal, host, operation, kind, name).allowed is expected
    for each in left:
        index.remove(each)
    assert not index._literal
    assert not index._prefixed
    assert not index._prefix_lengths


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ((AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY), {"a", "b", "c"}),
        ((TOPIC, None, PatternType.ANY, "User:alice", None, Operation.ANY, Permission.ANY), {"a", "b", "c"}),
        ((GROUP, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY), set()),
        ((TOPIC, "orders", LITERAL, None, None, Operation.ANY, Permission.ANY), {"a"}),
        ((TOPIC, "orders", PREFIXED, None, None, Operation.ANY, Permission.ANY), set()),
        ((TOPIC, "orders", PatternType.ANY, None, None, Operation.ANY, Permission.ANY), {"a"}),
        ((TOPIC, "orders", PatternType.MATCH, None, None, Operation.ANY, Permission.ANY), {"a", "b", "c"}),
        ((TOPIC, "other", PatternType.MATCH, None, None, Operation.ANY, Permission.ANY), {"b"}),
        ((TOPIC, "ord", PREFIXED, None, None, Operation.ANY, Permission.ANY), {"c"}),
        ((TOPIC, None, PatternType.ANY, None, "10.0.0.1", Operation.ANY, Permission.ANY), set()),
        ((TOPIC, None, PatternType.ANY, None, None, WRITE, Permission.ANY), set()),
        ((TOPIC, None, PatternType.ANY, None, None, READ, DENY), set()),
    ],
)
def test_filters(wanted, matches):
    known = {"a": rule(), "b": rule(name="*"), "c": rule(name="ord", pattern=PREFIXED)}
    assert {key for key, each in known.items() if RuleFilter(*wanted).matches(each)} == matches


# Decisions of the controller


def create(controller, *rules):
    ids = [bytes([number]) * 16 for number in range(len(controller.image.access_rules), 200)][: len(rules)]
    return controller.carry_out(controller.create_rules(rules, ids))


ANYTHING = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


def test_rules_are_created_once_and_deleted_by_filters():
    controller = one_broker()
    assert not any(result.error for result in create(controller, rule(), rule(), rule(WRITE)))
    assert not create(controller, rule())[0].error
    assert list(controller.image.access_rules.values()) == [rule(), rule(WRITE)]
    (deleted,) = controller.carry_out(controller.delete_rules([ANYTHING._replace(operation=READ)]))
    assert deleted.rules == (rule(),)
    one, other = controller.carry_out(controller.delete_rules([ANYTHING, ANYTHING]))
    assert one.rules == other.rules == (rule(WRITE),)
    assert not controller.image.access_rules


@pytest.mark.parametrize(
    "wrong",
    [
        rule(kind=AclResourceType.ANY),
        rule(kind=99),
        rule(pattern=PatternType.ANY),
        rule(pattern=PatternType.MATCH),
        rule(permission=Permission.ANY),
        rule(operation=Operation.ANY),
        rule(operation=Operation.CLUSTER_ACTION),
        rule(operation=77),
        rule(name=""),
        rule(kind=CLUSTER, name="other", operation=Operation.ALTER),
        rule(principal="alice"),
        rule(principal="User:"),
        rule(principal=":alice"),
        rule(host=""),
        rule(name="x" * 2_000),
    ],
)
def test_rules_that_cannot_be_are_refused(wrong):
    controller = one_broker()
    first, second = create(controller, wrong, rule())
    assert first.error == ErrorCode.INVALID_REQUEST
    assert first.message
    assert not second.error
    assert list(controller.image.access_rules.values()) == [rule()]


def test_the_number_of_rules_is_limited(monkeypatch):
    monkeypatch.setattr(access_rules, "RULES_MAX", 1)
    controller = one_broker()
    assert [bool(result.error) for result in create(controller, rule(), rule(WRITE))] == [False, True]


def test_filters_with_unknown_numbers_are_refused():
    controller = one_broker()
    (deleted,) = controller.carry_out(controller.delete_rules([ANYTHING._replace(operation=99)]))
    assert deleted.error == ErrorCode.INVALID_REQUEST


def test_a_cluster_at_an_older_level_has_no_rules():
    controller = one_broker()
    controller.image.apply(FeatureLevelRecord("metadata.version", 26))
    assert create(controller, rule())[0].error == ErrorCode.UNSUPPORTED_VERSION
