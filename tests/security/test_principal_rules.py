"""The rules that make a principal of a certificate's name: Kafka's examples, and texts that are refused."""

import pytest

from headrace.model.principal_rules import PrincipalRules, rules_error


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=alice,OU=dev,O=Corp", "CN=alice,OU=dev,O=Corp"),
        ("", "CN=alice", "CN=alice"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=etl,OU=ServiceUsers,O=Corp", "etl"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=Etl,OU=Dev,O=Corp", "etl@dev"),
        (r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "OU=x,CN=alice", "ALICE"),
        (r"RULE:^CN=(a\/b)$/$1\/c/,DEFAULT", "CN=a/b", "a/b/c"),
        (r"RULE:^CN=(.*?)$/$1/L , DEFAULT", "O=Corp", "O=Corp"),
        (r"RULE:^CN=(x)?y$/<$1>/", "CN=y", "<>"),
        (r"RULE:^CN=x$/a\$1/", "CN=x", "a$1"),
    ],
)
def test_the_first_rule_that_matches_decides(rules, subject, name):
    assert PrincipalRules(rules).name_of(subject) == name


def test_a_name_without_a_matching_rule_is_no_principal():
    assert PrincipalRules(r"RULE:^CN=(.*?),OU=Users$/$1/").name_of("CN=alice,OU=Other") is None
    assert PrincipalRules(r"RULE:^CN=.*$//").name_of("CN=alice") is None, "an empty name is none"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("RULE", "must look like"),
        ("RULE:^CN=(.*)$", "must look like"),
        ("RULE:(/x/", "not a regular expression"),
        ("RULE:^CN=(.*)$/$2/", "group"),
        ("DEFAULT;DEFAULT", "separate rules by commas"),
        ("x" * 20_000, "at most"),
    ],
)
def test_invalid_rules_are_refused_with_a_reason(rules, reason):
    assert reason in (rules_error(rules) or "")
