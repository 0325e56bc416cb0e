"""What is raised when bytes are not what the protocol says."""


class ProtocolError(Exception):
    """The peer's bytes cannot be read: truncated, over-long, or not of the declared shape."""


class CorruptBatch(ProtocolError):
    """A record batch whose length, checksum or contents contradict its header."""


class InflationLimit(ProtocolError):
    """Compressed records that grow beyond the bytes allowed for them."""
