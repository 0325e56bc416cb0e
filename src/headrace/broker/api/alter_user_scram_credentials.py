"""AlterUserScramCredentials (51): adds, changes and removes credentials of users in the metadata log."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.credentials import CredentialResult, CredentialToRemove, NewCredential
from headrace.model.errors import ErrorCode
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseResult,
)

SECRET_BYTES = 32


def handle(
    request: AlterUserScramCredentialsRequest, ctx: RequestContext
) -> AlterUserScramCredentialsResponse | Parked:
    asked = (*(each.name for each in request.deletions), *(each.name for each in request.upsertions))
    names = tuple(dict.fromkeys(asked))

    def failed(code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResponse:
        return _response(ctx, tuple(CredentialResult(name, code, message) for name in names))

    refusal = cluster_refusal(ctx, "users are changed")
    if refusal is not None:
        return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)
    proposal = ctx.controller.alter_credentials(
        [
            NewCredential(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
            for each in request.upsertions
        ],
        [CredentialToRemove(each.name, each.mechanism) for each in request.deletions],
        new_secret=ctx.entropy.random_bytes(SECRET_BYTES),
    )

    def respond(outcome: tuple[CredentialResult, ...] | ProposalFailed) -> AlterUserScramCredentialsResponse:
        if isinstance(outcome, ProposalFailed):
            return failed(outcome.code, outcome.message)
        return _response(ctx, outcome)

    return park_until_committed(ctx, proposal, respond)


def _response(ctx: RequestContext, results: tuple[CredentialResult, ...]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        results=tuple(
            AlterUserScramCredentialsResponseResult(
                user=result.name, error_code=result.error, error_message=result.message
            )
            for result in results
        ),
    )
