"""A query that writes batches like a streaming sink: several tasks write each batch, and one request commits it.

It crashes at any step and restarts as a new run, with the first batch that is not in its checkpoint. Requests of
the run before arrive late, as those of a zombie. Some tasks have a second attempt, whose records must never be visible
unless the driver names it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.batch_commits import FENCED_RUN, KNOWN_COMMIT, CommittedBatch
from headrace.sim.checkers.history import PartitionHistory, SendingProducer, SentBatch
from headrace.sim.checkers.transactions import TransactionHistory
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext
from headrace.sim.workloads import batch_requests
from headrace.sim.workloads import transaction_requests as requests
from headrace.sim.workloads.batches import BatchMaker
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.sim.workloads.step_client import Step, SteppingClient
from headrace.sim.workloads.transactional import FENCED, PRODUCE_TIMEOUT_MS, RETRIED_ERRORS
from headrace.wire.apis import ApiKey

TASKS_MAX, WRITES_MAX = 3, 2
PAUSE_MS_MAX, RETRY_MS_MAX = 300, 300
SPECULATION_ONE_IN = 3
CRASH_ONE_IN = 10
"""The chance of a crash at each step."""
REPLAY_ONE_IN = 6
"""The chance that the driver dies after its commit and before its checkpoint."""
ABORT_ONE_IN = 8
OTHER_WRITERS_ONE_IN = 6
SLEEP_ONE_IN = 40
ZOMBIE_ONE_IN = 2


class Attempt:
    """One attempt of a task: its writer and its records."""

    def __init__(self, number: int, work: TransactionHistory) -> None:
        self.number = number
        self.work = work
        self.transactional_id = ""
        self.producer: SendingProducer | None = None
        self.sequences: dict[PartitionHistory, int] = {}


class Zombie:
    """The remains of a run that was fenced."""

    def __init__(self, run: str, batch: CommittedBatch, batch_id: int, attempts: list[Attempt]) -> None:
        self.run = run
        self.batch = batch
        self.batch_id = batch_id
        self.attempts = attempts


class Query(SteppingClient):
    def __init__(self, context: RunContext, name: str, targets: Sequence[PartitionHistory]) -> None:
        super().__init__(context, name)
        self._targets = targets
        self._maker = BatchMaker(context, name)
        self._runs = self._attempts_made = 0
        self._batch_id = 0
        self._attempts: list[Attempt] = []
        self._named: list[Attempt] = []
        self._zombie: Zombie | None = None
        self._entered = False
        """True if the coordinator has responded to this run: from then on the previous run is fenced."""
        self.batches: list[CommittedBatch] = []

    def resume(self) -> None:
        if self._zombie is not None and self._entered and self.entropy.one_in(ZOMBIE_ONE_IN):
            self._send_late_requests(self._zombie)
        elif self._steps:
            if not self._hurries and self.entropy.one_in(CRASH_ONE_IN):
                self._restart()
            else:
                self._steps[0]()
        elif not self.stopped and self._targets:
            self._begin_batch()

    # Runs and batches

    @property
    def _run(self) -> str:
        return f"run {self._runs}"

    @property
    def _batch(self) -> CommittedBatch:
        while len(self.batches) <= self._batch_id:
            self.batches.append(CommittedBatch(f"batch {len(self.batches)} of {self.name}"))
        return self.batches[self._batch_id]

    def _restart(self) -> None:
        """Replace the driver by one that continues from the checkpoint."""
        if self._entered:
            self._zombie = Zombie(self._run, self._batch, self._batch_id, self._attempts)
        self._runs += 1
        self._entered = False
        self._steps.clear()
        self._attempts = []
        self._rest(RETRY_MS_MAX)

    def _begin_batch(self) -> None:
        self._attempts, self._named = [], []
        for _ in range(1 + self.entropy.below(TASKS_MAX)):
            tries = [self._new_attempt() for _ in range(2 if self.entropy.one_in(SPECULATION_ONE_IN) else 1)]
            self._named.append(tries[self.entropy.below(len(tries))])
        if not self._hurries and self.entropy.one_in(ABORT_ONE_IN):
            self._steps.append(self._abort)
        else:
            self._steps.append(self._commit)

    def _new_attempt(self) -> Attempt:
        self._attempts_made += 1
        work = TransactionHistory(f"{self._attempts_made} for {self._batch.name}, {self._run}")
        attempt = Attempt(self._attempts_made, work)
        self._batch.attempts.append(work)
        self._attempts.append(attempt)
        self._steps.append(lambda: self._begin(attempt))
        for _ in range(self.entropy.below(WRITES_MAX + 1)):
            target = self._targets[self.entropy.below(len(self._targets))]
            self._steps.append(self._writing(attempt, target))
        return attempt

    def _done(self, error_code: int, what: str) -> bool:
        """Return whether a step is done; a step that must be repeated stays the next one."""
        error = ErrorCode(error_code)
        if error is ErrorCode.NONE:
            self._steps.pop(0)
            if self.entropy.one_in(SLEEP_ONE_IN) and not self._hurries:
                self._rest(2 * batch_requests.TIMEOUT_MS)
            return True
        if error in RETRIED_ERRORS:
            self._rest(RETRY_MS_MAX)
            return False
        require(error in FENCED, HONEST_ERRORS, f"{error.name} for {what}")
        self._restart()
        return False

    # Steps

    def _begin(self, attempt: Attempt) -> None:
        def begun(response: Any) -> None:
            error = ErrorCode(response.error_code)
            require(error is not ErrorCode.PRODUCER_FENCED, FENCED_RUN, f"{self._run} of {self.name} is the newest")
            if not self._done(error, str(attempt.work)):
                return
            self._entered = True
            if response.already_committed:
                self._skip()
                return
            require(not self._batch.committed, KNOWN_COMMIT, f"{attempt.work} was lent {response.transactional_id}")
            attempt.transactional_id = response.transactional_id
            attempt.producer = SendingProducer(response.producer_id, response.producer_epoch)

        self._request(
            ApiKey.BEGIN_BATCH_WRITER,
            batch_requests.VERSION,
            batch_requests.begin(self.name, self._run, self._batch_id, attempt.number),
            begun,
        )

    def _skip(self) -> None:
        """Skip a batch that an earlier run has committed: the commit has no writers."""
        self._batch.committed = True
        self._steps = [self._commit]
        self._named = []

    def _writing(self, attempt: Attempt, partition: PartitionHistory) -> Step:
        """Return the step that writes a record batch, the same one at every repetition."""
        made: list[SentBatch] = []

        def write() -> None:
            assert attempt.producer is not None
            if not made:
                sequence = attempt.sequences.get(partition, 0)
                batch = self._maker.make(
                    partition, producer=attempt.producer, sequence=sequence, transaction=attempt.work
                )
                attempt.sequences[partition] = sequence + batch.count
                made.append(batch)
            self._send(attempt, made[0], written)

        def written(response: Any) -> None:
            partition_response = response.responses[0].partition_responses[0]
            if self._done(partition_response.error_code, str(made[0])):
                self.context.histories.acknowledge(made[0], partition_response.base_offset)
                attempt.work.acknowledged.append(made[0])

        return write

    def _send(self, attempt: Attempt, batch: SentBatch, handle: Callable[[Any], object]) -> None:
        message = requests.produced(
            attempt.transactional_id, batch.partition, batch.content, timeout_ms=PRODUCE_TIMEOUT_MS
        )
        self._request(ApiKey.PRODUCE, requests.PRODUCE[requests.SECOND], message, handle)

    def _writers(self, attempts: list[Attempt]) -> list[tuple[str, SendingProducer]]:
        return [(attempt.transactional_id, attempt.producer) for attempt in attempts if attempt.producer is not None]

    def _commit(self) -> None:
        batch, named = self._batch, self._named
        if named:
            batch.ask(frozenset(attempt.work for attempt in named))

        def committed(response: Any) -> None:
            error = ErrorCode(response.error_code)
            require(error is not ErrorCode.PRODUCER_FENCED, FENCED_RUN, f"{self._run} of {self.name} is the newest")
            if not self._done(error, f"the commit of {batch.name}"):
                return
            self._entered = batch.committed = True
            self.committed += 1
            if named and self.entropy.one_in(OTHER_WRITERS_ONE_IN):
                self._steps.append(self._commit_others)
            else:
                self._checkpoint()

        message = batch_requests.commit(self.name, self._run, self._batch_id, self._writers(named))
        self._request(ApiKey.COMMIT_BATCH, batch_requests.VERSION, message, committed)

    def _commit_others(self) -> None:
        """Commit a second write of the batch under the same owner: the broker must refuse it, not skip it."""

        def responded(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error in RETRIED_ERRORS:
                self._rest(RETRY_MS_MAX)
                return
            detail = f"{error.name} for a second commit of {self._batch.name} by other writers"
            require(error is ErrorCode.INVALID_TXN_STATE, HONEST_ERRORS, detail)
            self._steps.pop(0)
            self._checkpoint()

        message = batch_requests.commit(
            self.name, self._run, self._batch_id, [(f"{self.name}#99", SendingProducer(1, 1))]
        )
        self._request(ApiKey.COMMIT_BATCH, batch_requests.VERSION, message, responded)

    def _checkpoint(self) -> None:
        if not self._hurries and self.entropy.one_in(REPLAY_ONE_IN):
            self._restart()
        else:
            self._batch_id += 1
            self._rest(PAUSE_MS_MAX)

    def _abort(self) -> None:
        def aborted(response: Any) -> None:
            if self._done(response.error_code, f"the abort of {self._batch.name}"):
                is_committed = response.already_committed
                require(
                    is_committed == self._batch.committed,
                    KNOWN_COMMIT,
                    f"{self._batch.name}: {is_committed} after its abort",
                )

        self._request(
            ApiKey.ABORT_BATCH,
            batch_requests.VERSION,
            batch_requests.abort(self.name, self._run, self._batch_id),
            aborted,
        )

    # Zombies

    def _send_late_requests(self, zombie: Zombie) -> None:
        """Send requests of the older run, which must have no effect after a response to the newer one."""
        self._zombie = None
        alive = [attempt for attempt in zombie.attempts if attempt.sequences]
        if alive and self.entropy.below(2):
            self._write_late(zombie, alive[0])
        else:
            self._commit_late(zombie)

    def _write_late(self, zombie: Zombie, attempt: Attempt) -> None:
        assert attempt.producer is not None
        partition, sequence = next(iter(attempt.sequences.items()))
        work = TransactionHistory(f"late work of {attempt.work}")
        batch = self._maker.make(partition, producer=attempt.producer, sequence=sequence, transaction=work)

        def responded(response: Any) -> None:
            """Check the result. Until the marker is written the batch is accepted; an abort marker then hides it."""
            error = ErrorCode(response.responses[0].partition_responses[0].error_code)
            require(
                error in (ErrorCode.NONE, *FENCED, *RETRIED_ERRORS),
                HONEST_ERRORS,
                f"{error.name} for {batch} of a zombie",
            )
            work.commit_asked = attempt.work.commit_asked

        work.commit_asked = attempt.work.commit_asked
        self._send(attempt, batch, responded)

    def _commit_late(self, zombie: Zombie) -> None:
        writers = self._writers(zombie.attempts)
        zombie.batch.ask(frozenset(attempt.work for attempt in zombie.attempts if attempt.producer is not None))

        def responded(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error is ErrorCode.NONE and not response.already_committed:
                raise Violation(FENCED_RUN, f"{zombie.run} of {self.name} has committed {zombie.batch.name}")
            fenced = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE, *RETRIED_ERRORS, ErrorCode.NONE)
            require(error in fenced, HONEST_ERRORS, f"{error.name} for the late commit of {zombie.batch.name}")

        self._request(
            ApiKey.COMMIT_BATCH,
            batch_requests.VERSION,
            batch_requests.commit(self.name, zombie.run, zombie.batch_id, writers),
            responded,
        )
