"""Tasks and drivers of batch jobs over the wire, to a node on virtual ports."""

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import abort_epoch, begin_epoch_member, commit_epoch, describe_epochs
from tests.transactions.wire import TransactionClient

OWNER = "q"


class EpochClient(TransactionClient):
    """One attempt of a task; a driver is one that begins nothing."""

    def begin(self, *, run="1", batch=0, attempt=0, owner=OWNER, timeout_ms=0):
        request = begin_epoch_member.BeginEpochMemberRequest(
            owner=owner, run=run, batch_id=batch, task_attempt_id=attempt, timeout_ms=timeout_ms
        )
        answer = self.ask(ApiKey.BEGIN_EPOCH_MEMBER, 0, request)
        if not answer.error_code and not answer.already_committed:
            self.transactional_id = answer.transactional_id
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return answer

    def begun(self, **options):
        assert not self.begin(**options).error_code
        return self

    def send_commit(self, *tasks, run="1", batch=0, owner=OWNER, write_id=""):
        request = commit_epoch.CommitEpochRequest(
            owner=owner,
            run=run,
            batch_id=batch,
            members=tuple(commit_epoch.CommitEpochRequestMember(**task.identity()) for task in tasks),
            write_id=write_id,
        )
        return self.send(ApiKey.COMMIT_EPOCH, 1 if write_id else 0, request)

    def commit_epoch(self, *tasks, **options):
        answer = self.wait(self.send_commit(*tasks, **options))
        return ErrorCode(answer.error_code), answer.already_committed

    def abort_epoch(self, *, run="1", batch=0, owner=OWNER):
        request = abort_epoch.AbortEpochRequest(owner=owner, run=run, batch_id=batch)
        answer = self.ask(ApiKey.ABORT_EPOCH, 0, request)
        return ErrorCode(answer.error_code), answer.already_committed, answer.aborted_members

    def describe_epochs(self, owner=OWNER):
        return self.ask(ApiKey.DESCRIBE_EPOCHS, 0, describe_epochs.DescribeEpochsRequest(owner=owner))
