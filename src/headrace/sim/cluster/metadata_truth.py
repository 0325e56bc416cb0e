"""Metadata as an administrator knows it: acknowledged changes, and changes whose outcome is open."""

from headrace.sim.checkers.violation import require

ACKNOWLEDGED_IS_SEEN = "an acknowledged change of metadata is in every later linearizable read"
NEVER_WRITTEN = "metadata has only values that were requested"


class ConfigRegister:
    """A config of a topic that is set to ever higher versions."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.acknowledged = 0
        self.requested = 0
        self._open: set[int] = set()

    def request(self) -> int:
        """Begin to set the next version."""
        self.requested += 1
        self._open.add(self.requested)
        return self.requested

    def acknowledge(self, version: int) -> None:
        self._open.discard(version)
        self.acknowledged = version

    def check(self, version: int, *, floor: int) -> None:
        """Check a read that must see everything up to `floor`. A change without an answer may come at any time."""
        require(0 <= version <= self.requested, NEVER_WRITTEN, f"{self.topic} shows version {version}")
        require(
            version >= floor or version in self._open,
            ACKNOWLEDGED_IS_SEEN,
            f"{self.topic} shows version {version}, but {floor} was acknowledged before",
        )


class ScratchTopic:
    """A topic that is created and deleted. Its name is given up when an outcome is open."""

    def __init__(self, number: int) -> None:
        self.name = f"scratch-{number}"
        self.exists = False

    def check(self, *, is_shown: bool) -> None:
        require(
            is_shown == self.exists,
            ACKNOWLEDGED_IS_SEEN,
            f"{self.name} {'exists' if self.exists else 'was deleted'}, but is {'' if is_shown else 'not '}shown",
        )
