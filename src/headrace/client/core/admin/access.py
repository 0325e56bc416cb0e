"""List, create and delete access rules."""

from collections.abc import Sequence

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation, ask
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BadResponse, BrokerError
from headrace.client.types import Outcome
from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.model.errors import error_code
from headrace.wire.messages import create_acls as create_api
from headrace.wire.messages import delete_acls as delete_api
from headrace.wire.messages import describe_acls as describe_api


def access_rules(wanted: RuleFilter) -> Operation[tuple[AccessRule, ...]]:
    request = describe_api.DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    reply = yield from ask(describe_api, request)
    if reply.error_code:
        raise BrokerError(reply.error_code, "the access rules could not be listed", reply.error_message)
    return tuple(
        AccessRule(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for resource in reply.resources
        for rule in resource.acls
    )


def create_access_rules(cluster: Cluster, rules: Sequence[AccessRule]) -> Operation[dict[AccessRule, Outcome]]:
    request = create_api.CreateAclsRequest(
        creations=tuple(
            create_api.CreateAclsRequestCreation(
                resource_type=rule.resource_type,
                resource_name=rule.resource_name,
                resource_pattern_type=rule.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        )
    )
    reply = yield from ask_controller(
        cluster, create_api, request, codes=lambda result: (each.error_code for each in result.results)
    )
    if len(reply.results) != len(rules):
        raise BadResponse("the broker did not answer for every access rule")
    return {
        rule: Outcome(error_code(result.error_code), result.error_message or None)
        for rule, result in zip(rules, reply.results, strict=True)
    }


def delete_access_rules(cluster: Cluster, wanted: RuleFilter) -> Operation[tuple[AccessRule, ...]]:
    """Delete the rules that the filter matches, and return them."""
    request = delete_api.DeleteAclsRequest(
        filters=(
            delete_api.DeleteAclsRequestFilter(
                resource_type_filter=wanted.resource_type,
                resource_name_filter=wanted.resource_name,
                pattern_type_filter=wanted.pattern_type,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission,
            ),
        )
    )
    reply = yield from ask_controller(
        cluster, delete_api, request, codes=lambda result: (each.error_code for each in result.filter_results)
    )
    (result,) = reply.filter_results or (None,)
    if result is None:
        raise BadResponse("the broker did not answer for the filter")
    if result.error_code:
        raise BrokerError(result.error_code, "the access rules could not be deleted", result.error_message)
    return tuple(
        AccessRule(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in result.matching_acls
    )
