"""Errors of the HTTP API as problem+json (RFC 9457): what happened, and what to do next."""

from collections.abc import Mapping

from headrace.client.errors import (
    AuthenticationFailed,
    BadResponse,
    BrokerError,
    BrokerUnreachable,
    BufferFull,
    ClientClosed,
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    UnsupportedByBroker,
)
from headrace.client.types import Outcome
from headrace.manager.catalog.errors import NotInCatalog
from headrace.model.errors import ErrorCode, error_name
from headrace.model.nearest_names import meant
from headrace.operations.errors import OperationError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1

TITLES = {
    400: "The request is not valid",
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    405: "The method is not supported here",
    408: "The request did not arrive in time",
    409: "The change conflicts with the current state",
    413: "The request is too large",
    415: "The media type is not supported",
    421: "The request is for another host",
    422: "The request cannot be carried out",
    429: "Too many requests",
    500: "The manager failed",
    501: "Not supported by this cluster",
    502: "A broker gave a response that is not valid",
    503: "The cluster cannot be used at the moment",
    504: "The cluster did not respond in time",
}

STATUSES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.UNKNOWN_TOPIC_ID: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.BROKER_ID_NOT_REGISTERED: 404,
    ErrorCode.VOTER_NOT_FOUND: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: 409,
    ErrorCode.CONCURRENT_TRANSACTIONS: 409,
    ErrorCode.INVALID_TXN_STATE: 409,
    ErrorCode.DUPLICATE_RESOURCE: 409,
    ErrorCode.UNKNOWN_MEMBER_ID: 409,
    ErrorCode.INVALID_TOPIC_EXCEPTION: 400,
    ErrorCode.INVALID_PARTITIONS: 400,
    ErrorCode.INVALID_REPLICATION_FACTOR: 400,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: 400,
    ErrorCode.INVALID_CONFIG: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_GROUP_ID: 400,
    ErrorCode.INVALID_RECORD: 400,
    ErrorCode.INVALID_TIMESTAMP: 400,
    ErrorCode.INVALID_REQUIRED_ACKS: 400,
    ErrorCode.OFFSET_OUT_OF_RANGE: 400,
    ErrorCode.POLICY_VIOLATION: 400,
    ErrorCode.UNACCEPTABLE_CREDENTIAL: 400,
    ErrorCode.MESSAGE_TOO_LARGE: 413,
    ErrorCode.RECORD_LIST_TOO_LARGE: 413,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.TOPIC_DELETION_DISABLED: 403,
    ErrorCode.UNSUPPORTED_VERSION: 501,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: 501,
    ErrorCode.SECURITY_DISABLED: 501,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: 501,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
    ErrorCode.REQUEST_TIMED_OUT: 504,
}
"""Statuses of Kafka's errors; of all others it is 503, because the request may succeed later."""


class ApiProblem(Exception):
    """A request that fails; `detail` says what happened and what to do next."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        error: str = "",
        extra: Mapping[str, object] | None = None,
        retry_after: int = RETRY_AFTER_SECONDS,
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        """Seconds, in responses with status 429 and 503."""
        self.status = status
        self.detail = detail
        self.error = error
        """Name of the Kafka error behind it, if there is one."""
        self.extra = extra or {}
        """Members beside those of RFC 9457."""

    def body(self, request_id: str) -> dict[str, object]:
        """Return the members of the response."""
        members: dict[str, object] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "The request failed"),
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        if self.error:
            members["error"] = self.error
        return {**members, **self.extra}

    def headers(self) -> dict[str, str]:
        if self.status == 401:
            return {"www-authenticate": "Bearer"}
        return {"retry-after": str(self.retry_after)} if self.status in (429, 503) else {}


def problem_of(error: Exception) -> ApiProblem | None:
    """Return the problem for an expected error; None for an error that is a bug of the manager."""
    match error:
        case ApiProblem():
            return error
        case BrokerError():
            return ApiProblem(status_of(error.code), str(error), error=error_name(error.code))
        case InvalidArgument():
            return ApiProblem(400, str(error))
        case UnsupportedByBroker():
            return ApiProblem(501, str(error))
        case DeadlineExceeded():
            return ApiProblem(504, f"{error}; check that the brokers run, and try again")
        case BadResponse():
            return ApiProblem(502, f"{error}; check that the bootstrap address is that of a broker")
        case BrokerUnreachable() | AuthenticationFailed() | BufferFull() | ClientClosed() | ClientError():
            return ApiProblem(503, str(error))
        case NotInCatalog():
            return ApiProblem(404, str(error))
        case OperationError():
            return ApiProblem(422, str(error))
        case _:
            return None


def unexpected(request_id: str) -> ApiProblem:
    """Return the problem of an error that is a bug of the manager."""
    return ApiProblem(500, f"an error that was not expected: see the manager's log for request {request_id}")


def status_of(code: int) -> int:
    return STATUSES.get(code, 503)  # type: ignore[call-overload, no-any-return]


LISTINGS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "/v1/topics",
    ErrorCode.GROUP_ID_NOT_FOUND: "/v1/groups",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "/v1/transactions",
}


def refusal(doing: str, name: str, outcome: Outcome, known: tuple[str, ...] = ()) -> ApiProblem:
    """Return the problem of a change that the broker refused; `known` are the existing names, to suggest one."""
    listing = LISTINGS.get(outcome.error)
    status, error = status_of(outcome.error), error_name(outcome.error)
    if listing is not None:
        text = f"{doing}: it does not exist{meant(name, known)} (GET {listing} lists all)"
        return ApiProblem(status, text, error=error)
    return ApiProblem(status, str(BrokerError(outcome.error, doing, outcome.message)), error=error)
