from headrace.client.errors import BrokerError, ClientError, DeadlineExceeded, InvalidArgument
from headrace.model.errors import ErrorCode


def test_a_brokers_error_says_what_happened_and_what_to_do() -> None:
    error = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic 't' cannot be read", "no such topic")
    assert str(error) == (
        "topic 't' cannot be read: UNKNOWN_TOPIC_OR_PARTITION, no such topic "
        "(create it with `headrace topics create`, or check the spelling)"
    )
    assert error.is_retriable
    assert not BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "x").is_retriable


def test_an_error_code_of_a_newer_broker() -> None:
    assert str(BrokerError(9999, "it failed")) == "it failed: ERROR_9999"


def test_errors_are_what_python_programmers_catch() -> None:
    assert issubclass(DeadlineExceeded, TimeoutError)
    assert issubclass(InvalidArgument, ValueError)
    assert all(issubclass(kind, ClientError) for kind in (BrokerError, DeadlineExceeded, InvalidArgument))
