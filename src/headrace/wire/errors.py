"""Errors for bytes that violate the protocol."""


class ProtocolError(Exception):
    """The peer's bytes cannot be decoded: truncated, too long, or malformed."""


class CorruptBatch(ProtocolError):
    """A record batch whose length, checksum or contents contradict its header."""


class InflationLimit(ProtocolError):
    """Compressed records that decompress to more bytes than allowed."""
