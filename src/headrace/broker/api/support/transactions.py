"""Checks and error codes that the handlers of transactional requests share."""

from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode

PLAIN_VERSION = 0
BUMPING_VERSION = 2
"""Levels of transaction.version; the version of a request tells which one its client uses."""


def id_error(ctx: RequestContext, transactional_id: str) -> ErrorCode:
    """Return NONE when the producer may use the transactional id."""
    if not ctx.authorized(Operation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE if transactional_id else ErrorCode.INVALID_REQUEST


def error_for_version(error: ErrorCode, version: int, *, fenced_from: int) -> ErrorCode:
    """Translate the error for clients before `fenced_from`, which know a fenced producer by an older code (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def error_in(outcome: Any) -> ErrorCode:
    """Return the error code of an outcome that is one, or a failure."""
    error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
    assert isinstance(error, ErrorCode)
    return error
