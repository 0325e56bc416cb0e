"""A proposed change: requested now, answered once in a later turn."""

from collections.abc import Callable
from typing import Generic, TypeVar

from headrace.model.errors import ErrorCode

Response = TypeVar("Response")


class ProposalFailed(Exception):
    """The change was not committed; its outcome is unknown to the caller."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Proposal(Generic[Response]):
    __slots__ = ("_callback", "outcome")

    def __init__(self) -> None:
        self._callback: Callable[[Response | ProposalFailed], None] | None = None
        self.outcome: Response | ProposalFailed | None = None
        """None until it is known."""

    def then(self, callback: Callable[[Response | ProposalFailed], None]) -> None:
        """Call back on the loop with the response or the failure; at once if it is known already."""
        assert self._callback is None, "a proposal has one callback"
        self._callback = callback
        if self.outcome is not None:
            callback(self.outcome)

    def complete(self, outcome: Response | ProposalFailed) -> None:
        assert self.outcome is None, "a proposal is completed once"
        self.outcome = outcome
        if self._callback is not None:
            self._callback(outcome)
