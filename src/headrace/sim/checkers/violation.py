"""A broken promise."""


class Violation(AssertionError):
    """`invariant` is the promise in a few words, `detail` what was observed instead."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


def require(holds: bool, invariant: str, detail: str) -> None:
    if not holds:
        raise Violation(invariant, detail)
