"""Errors of measurements."""


class BenchError(Exception):
    """A benchmark failed; the message says what went wrong and what to do."""


class RunRejected(BenchError):
    """A round has no figure because of an error, a missing record or a wrong checksum."""


class CannotBeMeasured(BenchError):
    """This machine or the given broker lacks something that a load needs."""


class ToolMissing(CannotBeMeasured):
    """An optional tool is not installed on this machine."""
