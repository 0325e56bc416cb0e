"""Waiting for brokers that are away: said within seconds, and given up when the option that says how long is over."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from headrace.client.errors import BrokerError, BrokerUnreachable, DeadlineExceeded
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.spark.log_once import say

RETRY_PAUSE_S = 0.25
PASSING = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""What a broker says that has just been started; a topic that does not exist is told at once."""

T = TypeVar("T")


class BrokersAway(RuntimeError):
    """No broker answered for as long as a query may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Which brokers are waited for, for how long, and the option that says so."""

    servers: str
    option: str
    limit_ms: float

    def ask(self, question: Callable[[], T]) -> T:
        """An answer, however often it takes: brokers that are away may come back.

        The clients themselves give a question up within some ten seconds when no broker can be reached.
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
                        f'the brokers of option "kafka.bootstrap.servers" ({self.servers}) did not answer within '
                        f'option "{self.option}" ({self.limit_ms:g} ms): {error}'
                    ) from error
                if not is_said:
                    self._say(str(error))
                    is_said = True
                sleep(RETRY_PAUSE_S)

    def _say(self, why: str) -> None:
        say(
            f'waiting for the brokers of option "kafka.bootstrap.servers" ({self.servers}), at most '
            f'{self.limit_ms:g} ms (option "{self.option}"): {why}'
        )
