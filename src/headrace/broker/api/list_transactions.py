"""ListTransactions (66): the transactional ids that this broker coordinates, filtered; some of them per turn."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.topic_patterns import PatternRefused
from headrace.core.transactions.commands import TransactionListing
from headrace.core.transactions.states import TransactionState
from headrace.core.transactions.transaction_filter import TransactionFilter
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)

_STATES = {state.value: state for state in TransactionState}


def handle(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse | Parked:
    unknown = tuple(name for name in request.state_filters if name not in _STATES)
    error, wanted = _filter(request)
    if ctx.transactions.is_loading:
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if wanted is None or error is not ErrorCode.NONE:
        return ListTransactionsResponse(
            throttle_time_ms=ctx.throttle_time_ms, error_code=error, unknown_state_filters=unknown
        )
    listing = _Listing(ctx, wanted, unknown)
    listing.step()
    return listing.parked


def _filter(request: ListTransactionsRequest) -> tuple[ErrorCode, TransactionFilter | None]:
    states = frozenset(_STATES[name] for name in request.state_filters if name in _STATES)
    try:
        return ErrorCode.NONE, TransactionFilter(
            # Unknown state names filter all the same: a request with unknown states alone lists nothing.
            states=states if request.state_filters else None,
            producer_ids=frozenset(request.producer_id_filters) or None,
            duration_ms=request.duration_filter if request.duration_filter >= 0 else None,
            pattern=request.transactional_id_pattern or None,
        )
    except PatternRefused:
        return ErrorCode.INVALID_REGULAR_EXPRESSION, None


class _Listing:
    """Queries one slice of ids after another."""

    def __init__(self, ctx: RequestContext, wanted: TransactionFilter, unknown: tuple[str, ...]) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._unknown = unknown
        self._slices = iter(list(ctx.transactions.slices()))
        self._found: list[ListTransactionsResponseTransactionState] = []
        self.parked = ctx.park()

    def step(self) -> None:
        if self.parked.abandoned():
            return
        for part in self._slices:
            self._ctx.transactions.list_transactions(part).then(self._listed)
            return
        self._end(ErrorCode.NONE)

    def _listed(self, outcome: list[TransactionListing] | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._end(outcome.code)
            return
        try:
            wanted = self._wanted.of(outcome, self._ctx.clock.wall_ms())
        except PatternRefused:
            self._end(ErrorCode.INVALID_REGULAR_EXPRESSION)
            return
        self._found.extend(
            ListTransactionsResponseTransactionState(
                transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state
            )
            for each in wanted
            if self._ctx.authorized(Operation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, each.transactional_id)
        )
        self._ctx.next_turn(self.step)

    def _end(self, error: ErrorCode) -> None:
        self.parked.complete(
            ListTransactionsResponse(
                throttle_time_ms=self._ctx.throttle_time_ms,
                error_code=error,
                unknown_state_filters=self._unknown,
                transaction_states=tuple(self._found) if error is ErrorCode.NONE else (),
            )
        )
