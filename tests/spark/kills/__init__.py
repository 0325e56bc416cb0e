"""Exactly once under kill -9: of the Python worker, the driver and the broker, each at a named point of a batch."""
