"""The start offset of each leader epoch in the log, and its file (`leader-epoch-checkpoint`).

The file's format is Kafka's. Its last entry is a checksum: an epoch that no leader has, starting after any log's end,
so that Kafka drops it. Files without a checksum are accepted.
"""

from bisect import bisect_left, bisect_right

from headrace.ports.disk import Disk
from headrace.wire.checksum import crc32c

from . import names
from .errors import CorruptFile
from .files import read_whole

UNDEFINED = (-1, -1)
EPOCHS_FILE_BYTES_MAX = 16 << 20

_VERSION = "0"
_CHECKSUM_EPOCH = (1 << 31) - 1
_CHECKSUM_START = 1 << 62


class LeaderEpochs:
    """Ascending pairs of epoch and start offset."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.starts: list[int] = []
        self.latest = -1
        self.changed = False
        """True if the file needs to be written."""

    def of_last_batch(self, end_offset: int) -> int:
        """Return the epoch of the batch before this log end; -1 if none is known."""
        at = bisect_left(self.starts, end_offset)
        return self.epochs[at - 1] if at else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Assign `epoch` to batches from `start_offset` on; older or equal epochs change nothing."""
        if epoch <= self.latest or epoch < 0:
            return False
        while self.starts and self.starts[-1] >= start_offset:
            del self.epochs[-1], self.starts[-1]  # the previous epoch wrote nothing
        self.epochs.append(epoch)
        self.starts.append(start_offset)
        self.latest = epoch
        self.changed = True
        return True

    def replay(self, epoch: int, base_offset: int) -> None:
        """Note the epoch of a batch in the log. The batches are right: stored epochs that they contradict are of an
        earlier history, which was dropped while a crash kept the file.
        """
        if 0 <= epoch < self.latest:
            place = bisect_right(self.starts, base_offset) - 1
            while place >= 0 and self.epochs[place] > epoch:
                del self.epochs[place], self.starts[place]
                self.changed = True
                place -= 1
            self.latest = self.epochs[-1] if self.epochs else -1
        self.assign(epoch, base_offset)

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the largest known epoch not above the requested one and its end offset (KIP-279)."""
        if epoch < 0 or not self.epochs or epoch > self.latest:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        after = bisect_right(self.epochs, epoch)
        if after == 0:
            return epoch, self.starts[0]
        return self.epochs[after - 1], self.starts[after]

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the batch at that offset."""
        place = bisect_right(self.starts, offset) - 1
        return self.epochs[place] if place >= 0 else -1

    def truncate_from(self, end_offset: int) -> None:
        """Remove everything from `end_offset` on."""
        while self.starts and self.starts[-1] >= end_offset:
            del self.epochs[-1], self.starts[-1]
            self.changed = True
        self.latest = self.epochs[-1] if self.epochs else -1

    def truncate_before(self, start_offset: int) -> None:
        """Remove everything below `start_offset`; the epoch that contains it now begins there."""
        keep = bisect_right(self.starts, start_offset) - 1
        if keep < 0 or (self.starts[keep] == start_offset and keep == 0):
            return
        del self.epochs[:keep], self.starts[:keep]
        self.starts[0] = start_offset
        self.changed = True

    def forget_above(self, epoch: int) -> None:
        """Remove epochs that no leader has had yet: a batch's checksum does not cover its epoch, so it may be
        damaged.
        """
        while self.epochs and self.epochs[-1] > epoch:
            del self.epochs[-1], self.starts[-1]
            self.changed = True
        self.latest = self.epochs[-1] if self.epochs else -1

    def encode(self) -> bytes:
        pairs = zip(self.epochs, self.starts, strict=True)
        lines = [_VERSION, str(len(self.epochs) + 1), *(f"{epoch} {start}" for epoch, start in pairs), ""]
        text = "\n".join(lines).encode()
        return text + f"{_CHECKSUM_EPOCH} {_CHECKSUM_START + crc32c(text)}\n".encode()

    @classmethod
    def decode(cls, content: bytes) -> "LeaderEpochs":
        epochs = cls()
        try:
            lines = content.decode("ascii").split("\n")
            pairs = [(int(epoch), int(start)) for epoch, start in (line.split() for line in lines[2:] if line)]
            if lines[0] != _VERSION or int(lines[1]) != len(pairs):
                raise CorruptFile("the leader epoch checkpoint's version or entry count does not match its contents")
        except (ValueError, IndexError) as error:
            raise CorruptFile("the leader epoch checkpoint cannot be parsed") from error
        if pairs and pairs[-1][0] == _CHECKSUM_EPOCH:
            text = content[: content.rindex(str(_CHECKSUM_EPOCH).encode())]
            if pairs.pop()[1] != _CHECKSUM_START + crc32c(text):
                raise CorruptFile("the leader epoch checkpoint has a wrong checksum")
        epochs.epochs = [epoch for epoch, _ in pairs]
        epochs.starts = [start for _, start in pairs]
        if sorted(set(epochs.epochs)) != epochs.epochs or sorted(set(epochs.starts)) != epochs.starts:
            raise CorruptFile("the epochs in the leader epoch checkpoint do not ascend")
        epochs.latest = epochs.epochs[-1] if epochs.epochs else -1
        return epochs


def read_epochs(disk: Disk, folder: str) -> LeaderEpochs | None:
    """Read the leader epochs of a partition's folder; None if the file is missing or cannot be read."""
    try:
        return LeaderEpochs.decode(read_whole(disk, f"{folder}/{names.LEADER_EPOCHS}", EPOCHS_FILE_BYTES_MAX))
    except (CorruptFile, FileNotFoundError):
        return None
