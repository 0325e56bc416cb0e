"""Log the changes of a group once each: joined, rebalanced, assigned, revoked, lost, left, commit failed."""

from collections.abc import Callable, Sequence
from logging import INFO, WARNING

from headrace.client.core.groups.membership import MemberIdentity, Notice, NoticeKind
from headrace.client.errors import ClientError
from headrace.model.ids import TopicPartition

PARTITIONS_NAMED_MAX = 10
"""Above this number, partitions are counted instead of named."""

Tell = Callable[[int, str], object]
"""(level, text), as for `logging.Logger.log`."""


class GroupEventLogger:
    def __init__(self, group_id: str, tell: Tell | None) -> None:
        self._group = f'group "{group_id}"'
        self._tell = tell
        self._told = MemberIdentity()
        self._commit_trouble: str | None = None

    def changed(self, notice: Notice, identity: MemberIdentity) -> None:
        """Log a change that is about to be announced to the application."""
        if notice.kind == NoticeKind.LOST:
            self._say(
                WARNING,
                f"lost partitions in {self._group}: {named(notice.partitions)}; other members may read them already",
            )
        elif notice.kind == NoticeKind.REVOKED:
            self._say(INFO, f"revoked in {self._group}: {named(notice.partitions)}")
        else:
            self._settled(identity)
            self._say(INFO, f"assigned in {self._group}: {named(notice.partitions)}")

    def _settled(self, identity: MemberIdentity) -> None:
        before, self._told = self._told, identity
        if identity.member_id != before.member_id:
            self._say(INFO, f"joined {self._group} as {identity.member_id}, generation {identity.generation}")
        elif identity.generation != before.generation:
            self._say(INFO, f"{self._group} has rebalanced, generation {identity.generation}")

    def retired(self, limit_ms: float) -> None:
        text = f"the application did not poll for {limit_ms:g} ms: poll more often, or raise max_poll_interval_ms"
        self._say(WARNING, f"left {self._group}, as {text}")

    def left(self) -> None:
        if self._told.member_id:
            self._told = MemberIdentity()
            self._say(INFO, f"left {self._group}")

    def not_committed(self, trouble: ClientError) -> None:
        """Log a failed auto-commit; repeated only when the reason changes."""
        if str(trouble) != self._commit_trouble:
            self._commit_trouble = str(trouble)
            self._say(WARNING, f"auto-commit failed in {self._group}: {trouble}; retrying")

    def committed(self) -> None:
        if self._commit_trouble is not None:
            self._commit_trouble = None
            self._say(INFO, f"auto-commit works again in {self._group}")

    def _say(self, level: int, text: str) -> None:
        if self._tell is not None:
            self._tell(level, text)


def named(partitions: Sequence[TopicPartition]) -> str:
    names = ", ".join(str(partition) for partition in partitions[:PARTITIONS_NAMED_MAX])
    more = len(partitions) - PARTITIONS_NAMED_MAX
    return (names + (f" and {more} more" if more > 0 else "")) or "no partitions"
