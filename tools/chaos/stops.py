"""The signals that end a run, and how a worker takes them: a worker that is started again finds it by its module."""

import signal

STOPS = (signal.SIGINT, signal.SIGTERM)


def take() -> None:
    """A worker begins with them held back, and so would the brokers that it starts."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
