"""Brokers that are away: waited for, said early with the option that says how long, and told when the time is over."""

from collections.abc import Callable

import pytest

from headrace.client.errors import BrokerError, BrokerUnreachable, DeadlineExceeded
from headrace.model.errors import ErrorCode
from headrace.spark import broker_wait
from headrace.spark.broker_wait import BrokersAway, BrokerWait

PATIENCE = BrokerWait(servers="a:1,b:2", option="kafka.delivery.timeout.ms", limit_ms=60_000)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_wait, "RETRY_PAUSE_S", 0)


def broker_error(code: ErrorCode) -> BrokerError:
    return BrokerError(code, "the question")


def failing(*errors: Exception) -> Callable[[], str]:
    """Answers after these."""
    left = list(errors)

    def question() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return question


def test_brokers_that_come_back_are_waited_for_and_each_wait_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    away = [BrokerUnreachable("gone"), DeadlineExceeded("slow"), broker_error(ErrorCode.NOT_COORDINATOR)]
    assert PATIENCE.ask(failing()) == "answer"
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert PATIENCE.ask(failing(*away)) == "answer"
        assert capsys.readouterr().err == (
            'headrace: waiting for the brokers of option "kafka.bootstrap.servers" (a:1,b:2), at most 60000 ms (option '
            '"kafka.delivery.timeout.ms"): gone\n'
        )


def test_the_end_of_patience_names_the_option_and_the_last_reason() -> None:
    wanted = r'\(a:1,b:2\) did not respond within option "kafka\.delivery\.timeout\.ms" \(0 ms\): gone'
    with pytest.raises(BrokersAway, match=wanted):
        BrokerWait(servers="a:1,b:2", option="kafka.delivery.timeout.ms", limit_ms=0).ask(
            failing(BrokerUnreachable("gone"))
        )


def test_an_answer_that_does_not_pass_is_raised_at_once() -> None:
    for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        with pytest.raises(BrokerError):
            PATIENCE.ask(failing(broker_error(code)))
