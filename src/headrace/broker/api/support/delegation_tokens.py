"""Checks and times that the requests about delegation tokens share."""

from headrace.broker.api.context import RequestContext
from headrace.model.access import ANONYMOUS
from headrace.model.errors import ErrorCode

NO_TIME = -1
"""The times of a response with an error."""


def token_refusal(ctx: RequestContext) -> ErrorCode:
    """Return why the client may not ask about tokens at all; NONE if it may.

    A token must not lead to another one that lives longer, so that clients need to have logged in by other means.
    """
    if ctx.connection.by_token or ctx.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if not ctx.delegation_tokens.are_served:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.NONE
