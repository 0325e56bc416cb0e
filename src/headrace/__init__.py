"""Headrace: a distributed message log that speaks the Kafka wire protocol."""

__version__ = "0.1.0"
