"""Tasks and drivers of batch jobs over the wire, to a node on virtual ports."""

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import abort_batch, begin_batch_writer, commit_batch, describe_batches
from tests.transactions.wire import TransactionClient

OWNER = "q"


class BatchClient(TransactionClient):
    """One attempt of a task; a driver is one that begins nothing."""

    def begin(self, *, run="1", batch=0, attempt=0, owner=OWNER, timeout_ms=0):
        request = begin_batch_writer.BeginBatchWriterRequest(
            owner=owner, run=run, batch_id=batch, task_attempt_id=attempt, timeout_ms=timeout_ms
        )
        answer = self.ask(ApiKey.BEGIN_BATCH_WRITER, 0, request)
        if not answer.error_code and not answer.already_committed:
            self.transactional_id = answer.transactional_id
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return answer

    def begun(self, **options):
        assert not self.begin(**options).error_code
        return self

    def send_commit(self, *tasks, run="1", batch=0, owner=OWNER, write_id=""):
        request = commit_batch.CommitBatchRequest(
            owner=owner,
            run=run,
            batch_id=batch,
            writers=tuple(commit_batch.CommitBatchRequestWriter(**task.identity()) for task in tasks),
            write_id=write_id,
        )
        return self.send(ApiKey.COMMIT_BATCH, 1 if write_id else 0, request)

    def commit_batch(self, *tasks, **options):
        answer = self.wait(self.send_commit(*tasks, **options))
        return ErrorCode(answer.error_code), answer.already_committed

    def abort_batch(self, *, run="1", batch=0, owner=OWNER):
        request = abort_batch.AbortBatchRequest(owner=owner, run=run, batch_id=batch)
        answer = self.ask(ApiKey.ABORT_BATCH, 0, request)
        return ErrorCode(answer.error_code), answer.already_committed, answer.aborted_writers

    def describe_batches(self, owner=OWNER):
        return self.ask(ApiKey.DESCRIBE_BATCHES, 0, describe_batches.DescribeBatchesRequest(owner=owner))
