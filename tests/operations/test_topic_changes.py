"""Carrying out the plan of `topics apply`, request by request."""

from headrace.client import Admin
from headrace.model.errors import ErrorCode
from headrace.operations.topic_changes import carry_out, existing_topics
from headrace.operations.topic_plan import Action, WantedTopic, plan
from headrace.testing.embedded import EmbeddedBroker


def test_changes_are_made_in_the_order_of_the_actions() -> None:
    wanted = [WantedTopic(name="new", configs={"retention.ms": "9"}), WantedTopic(name="old", partitions=3)]
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("old", partitions=1)
        broker.create_topic("extra")
        steps = plan(wanted, existing_topics(admin, wanted, prune=True), prune=True)
        done = list(carry_out(admin, steps, validate_only=False))
        assert [each.action for each in done] == [Action.CREATE, Action.ADD_PARTITIONS, Action.DELETE]
        assert [each.stored_configs for each in done] == [{"retention.ms": "9"}, {}, {}]
        assert plan(wanted, existing_topics(admin, wanted, prune=True), prune=True) == []


def test_the_request_with_a_refusal_is_the_last() -> None:
    wanted = [WantedTopic(name="bad", configs={"tiers.hot": "5"}), WantedTopic(name="old", partitions=3)]
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("old", partitions=1)
        steps = plan(wanted, existing_topics(admin, wanted, prune=False), prune=False)
        (refused,) = carry_out(admin, steps, validate_only=False)
        assert refused.outcomes["bad"].error == ErrorCode.INVALID_CONFIG
        assert [len(topic.partitions) for topic in admin.topics()] == [1]
