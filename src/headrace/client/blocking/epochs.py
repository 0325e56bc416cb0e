"""Epochs for a thread that waits: what the tasks and the driver of a batch job ask the coordinator."""

from collections.abc import Sequence

from headrace.client.blocking.blocking_client import Asking
from headrace.client.core import epochs
from headrace.client.core.cluster import fetch_metadata
from headrace.client.epochs import FEATURE, EpochMember, EpochOutcome, EpochsDescription


class Epochs(Asking):
    """Nothing is sent before the first call; every call may be repeated and ends by `timeout_ms`."""

    def supported(self) -> bool:
        """Whether the cluster has epochs: others that speak Kafka's protocol have not."""
        self._session.run(fetch_metadata(()), self._timeout_ms)
        return self._session.cluster.feature(FEATURE) > 0

    def begin_epoch_member(
        self, owner: str, *, run: str, batch_id: int, task_attempt_id: int, timeout_ms: int = 0
    ) -> EpochMember | None:
        """An identity to write the batch under; None if the batch is committed.

        Asked again with the same arguments it gives the same member, and renews the time of all members of the run.
        A `timeout_ms` of 0 stands for the broker's usual time.
        """
        operation = epochs.begin_member(
            self._session.cluster,
            owner,
            run=run,
            batch_id=batch_id,
            task_attempt_id=task_attempt_id,
            timeout_ms=timeout_ms,
        )
        return self._session.run(operation, self._timeout_ms)

    def renew(self, member: EpochMember) -> EpochMember | None:
        """To be called now and then by a task that writes for long; None if its batch was committed without it.

        Another member than before means that the one before was given up: what was written under it will not count.
        """
        return self.begin_epoch_member(
            member.owner,
            run=member.run,
            batch_id=member.batch_id,
            task_attempt_id=member.task_attempt_id,
            timeout_ms=member.timeout_ms,
        )

    def commit_epoch(
        self, owner: str, *, run: str, batch_id: int, members: Sequence[EpochMember], write_id: str = ""
    ) -> EpochOutcome:
        """What these members have written counts, all of it or nothing; what others have for the batch never will.

        A run that has several writes in a batch gives each an owner of its own; `write_id` lets the broker refuse those
        that have not, also when the batch is repeated by a later run.
        """
        operation = epochs.commit(
            self._session.cluster, owner, run=run, batch_id=batch_id, members=members, write_id=write_id
        )
        return self._session.run(operation, self._timeout_ms)

    def abort_epoch(self, owner: str, *, run: str, batch_id: int) -> EpochOutcome:
        operation = epochs.abort(self._session.cluster, owner, run=run, batch_id=batch_id)
        return self._session.run(operation, self._timeout_ms)

    def describe(self, owner: str) -> EpochsDescription:
        return self._session.run(epochs.describe(self._session.cluster, owner), self._timeout_ms)
