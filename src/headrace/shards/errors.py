"""Errors of shards."""


class ShardError(Exception):
    """The shards cannot run as asked; the message says why and what to do."""
