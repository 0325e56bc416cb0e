"""Errors of the client of the manager."""

from collections.abc import Mapping
from typing import Any


class ManagerError(Exception):
    """A manager has refused a request; `problem` is its response, and `detail` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.detail = str(problem.get("detail", ""))
        super().__init__(f"{status}: {self.detail}")


class ManagersUnreachable(Exception):
    """No manager has answered. `may_have_been_done` is True if one of them may have got the request."""

    def __init__(self, tried: Mapping[str, str], *, may_have_been_done: bool) -> None:
        self.may_have_been_done = may_have_been_done
        places = ", ".join(f"{url} ({why})" for url, why in tried.items())
        advice = (
            "the request may have been carried out all the same: give it an Idempotency-Key, and repeat it"
            if may_have_been_done
            else "check that a manager is running there"
        )
        super().__init__(f"no manager answers: {places}; {advice}")
