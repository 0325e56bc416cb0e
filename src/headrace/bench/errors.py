"""Why a measurement does not count or cannot be made."""


class BenchError(Exception):
    """The message tells the user what went wrong and what to do."""


class RunRejected(BenchError):
    """A round that ended with an error, a missing record or a wrong checksum: it has no figure."""


class CannotBeMeasured(BenchError):
    """This machine, or the broker that was named, lacks what a load needs."""


class ToolMissing(CannotBeMeasured):
    """Something optional is not on this machine."""
