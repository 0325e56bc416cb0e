"""DescribeUserScramCredentials (50): the mechanisms and iterations of users, never their secrets."""

from collections import Counter
from collections.abc import Sequence

from headrace.broker.api.context import RequestContext
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseResult,
)


def handle(request: DescribeUserScramCredentialsRequest, ctx: RequestContext) -> DescribeUserScramCredentialsResponse:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeUserScramCredentialsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            error_message="this principal may not describe the cluster",
        )
    known: dict[str, list[DescribeUserScramCredentialsResponseCredentialInfo]] = {}
    for record in ctx.image.scram.values():
        info = DescribeUserScramCredentialsResponseCredentialInfo(
            mechanism=record.mechanism, iterations=record.iterations
        )
        known.setdefault(record.name, []).append(info)
    asked = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        results=tuple(_result(name, asked[name], known.get(name, ())) for name in asked or sorted(known)),
    )


def _result(
    name: str, times_asked: int, infos: Sequence[DescribeUserScramCredentialsResponseCredentialInfo]
) -> DescribeUserScramCredentialsResponseResult:
    if times_asked > 1:
        return DescribeUserScramCredentialsResponseResult(
            user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message="the user is listed more than once"
        )
    if not infos:
        return DescribeUserScramCredentialsResponseResult(
            user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="the user has no SCRAM credentials"
        )
    return DescribeUserScramCredentialsResponseResult(user=name, credential_infos=tuple(infos))
