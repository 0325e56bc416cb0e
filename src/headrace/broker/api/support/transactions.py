"""What the handlers of transactional requests share."""

from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode

PLAIN_VERSION = 0
BUMPING_VERSION = 2
"""The levels of transaction.version that a request can go by: its own version says which."""


def id_error(ctx: RequestContext, transactional_id: str) -> ErrorCode:
    """NONE when the producer may write under the id."""
    if not ctx.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE if transactional_id else ErrorCode.INVALID_REQUEST


def told(error: ErrorCode, version: int, *, fenced_from: int) -> ErrorCode:
    """Clients of before `fenced_from` know a fenced producer by an older code (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def error_in(outcome: Any) -> ErrorCode:
    """Of an outcome that is an error code, or a failure."""
    error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
    assert isinstance(error, ErrorCode)
    return error
