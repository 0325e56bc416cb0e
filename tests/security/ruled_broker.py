"""A node on virtual ports with an authorizer, whose clients differ by their addresses: rules name those."""

from headrace.core.access.acls import PatternType, Permission
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_acls, delete_acls
from tests.broker.virtual import VirtualBroker

ADMIN, STRANGER = "127.0.0.1", "10.9.8.7"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.coordinator.rebalance.protocols": "classic,consumer",
}
"""Until there is a rule, the first client may create rules."""

RESOURCES = {
    AclResourceType.TOPIC: "*",
    AclResourceType.GROUP: "*",
    AclResourceType.TRANSACTIONAL_ID: "*",
    AclResourceType.CLUSTER: CLUSTER_NAME,
    AclResourceType.DELEGATION_TOKEN: "*",
    AclResourceType.USER: "*",
}
EVERYTHING = tuple((each, Operation.ALL) for each in RESOURCES)


def ruled_broker(**options):
    """A broker on which the administrator may do everything, and others nothing."""
    broker = VirtualBroker(settings=SETTINGS, **options)
    allow(broker, ADMIN, *EVERYTHING)
    return broker


def allow(broker, host, *operations, permission=Permission.ALLOW):
    """`operations` are (type of resource, operation), on all resources of the type."""
    create(broker, [rule(resource_type, host, operation, permission) for resource_type, operation in operations])


def rule(resource_type, host, operation, permission=Permission.ALLOW):
    return create_acls.CreateAclsRequestCreation(
        resource_type=resource_type,
        resource_name=RESOURCES[resource_type],
        resource_pattern_type=PatternType.LITERAL,
        principal="User:*",
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create(broker, rules):
    admin = broker.client()
    answer = admin.ask(ApiKey.CREATE_ACLS, 3, create_acls.CreateAclsRequest(creations=tuple(rules)))
    assert not any(result.error_code for result in answer.results)
    admin.close()


def forbid(broker, host):
    """Delete the rules for this host."""
    wanted = delete_acls.DeleteAclsRequestFilter(
        resource_type_filter=AclResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=host,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    admin = broker.client()
    (result,) = admin.ask(ApiKey.DELETE_ACLS, 3, delete_acls.DeleteAclsRequest(filters=(wanted,))).filter_results
    assert result.matching_acls
    admin.close()
