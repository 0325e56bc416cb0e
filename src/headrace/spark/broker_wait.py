"""Wait for brokers that cannot be reached: log it within seconds, and fail when the time limit of the option is
over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from headrace.client.errors import BrokerError, BrokerUnreachable, DeadlineExceeded
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.spark.log_once import log_line

RETRY_PAUSE_S = 0.25
PASSING = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""Errors of a broker that has just been started; a topic that does not exist is reported at once."""

T = TypeVar("T")


class BrokersAway(RuntimeError):
    """No broker responded within the time that a query may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerWait:
    """The brokers to wait for, the time limit, and the option that sets it."""

    servers: str
    option: str
    limit_ms: float

    def ask(self, question: Callable[[], T]) -> T:
        """Call `question` until it succeeds, because unreachable brokers may return.

        The clients themselves stop retrying within some ten seconds when no broker can be reached.
        """
        deadline_s = monotonic() + self.limit_ms / 1_000
        is_said = False
        while True:
            try:
                return question()
            except (BrokerUnreachable, DeadlineExceeded, BrokerError) as error:
                if isinstance(error, BrokerError) and error.code not in PASSING:
                    raise
                if monotonic() >= deadline_s:
                    raise BrokersAway(
                        f'the brokers of option "kafka.bootstrap.servers" ({self.servers}) did not respond '
                        f'within option "{self.option}" ({self.limit_ms:g} ms): {error}'
                    ) from error
                if not is_said:
                    self._say(str(error))
                    is_said = True
                sleep(RETRY_PAUSE_S)

    def _say(self, why: str) -> None:
        log_line(
            f'waiting for the brokers of option "kafka.bootstrap.servers" ({self.servers}), at most '
            f'{self.limit_ms:g} ms (option "{self.option}"): {why}'
        )
