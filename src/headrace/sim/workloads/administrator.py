"""The client that changes metadata: it creates, extends and deletes topics, changes configs and deletes records.

It makes one change at a time. The result of an unanswered change is unknown until a later proposal has been committed:
only then does Metadata show it for sure.
"""

from collections.abc import Callable
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId
from headrace.sim.checkers.history import NOT_SYNCED, PartitionHistory
from headrace.sim.checkers.topics import COMMITTED_STAYS
from headrace.sim.checkers.violation import require
from headrace.sim.context import FLUSH_MESSAGES, RunContext, TopicPlan
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.wire.apis import ApiKey

PAUSE_MS_MAX = 1_500
PARTITIONS_MAX = 4
BARRIER = "barrier"
"""A topic that is only ever validated: its response comes after everything proposed before it."""
UNDECIDED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR)
NO_LIMIT = str((1 << 63) - 1)
CHANGES = (
    (FLUSH_MESSAGES, ("1", NO_LIMIT)),
    ("segment.bytes", ("4096", "16384", "65536")),
    ("index.interval.bytes", ("0", "512", "4096")),
)
ALL_RECORDS = -1


class Administrator(Client):
    def __init__(self, context: RunContext, *, pause_ms_max: int = PAUSE_MS_MAX) -> None:
        super().__init__(context, "administrator")
        self._pause_ms_max = pause_ms_max
        self._next_ms = 0.0
        self._waits = False
        self._open: TopicPlan | None = None
        """The name whose last change was not answered."""
        self._cautious = False
        """Deletes nothing any more, so that other clients can complete their work."""
        self._answered = self._answered_before = 0
        self._level = 1

    def hurry(self) -> None:
        self._cautious = True
        self._answered_before = self._answered

    def has_progressed(self) -> bool:
        return self._answered > self._answered_before

    @property
    def settled(self) -> bool:
        return not self._waits and self._open is None

    def lost(self) -> None:
        self._waits = False

    def work(self) -> None:
        if self._waits or self.now_ms < self._next_ms:
            return
        if self._open is not None:
            self._raise_barrier(self._open)
        elif not self.stopped:
            self._change_something()

    def _ask(self, api_key: ApiKey, version: int, request: object, handle: Callable[[Any], None]) -> None:
        self._waits = True

        def answered(response: Any) -> None:
            self._waits = False
            self._answered += 1
            self._next_ms = self.now_ms + self.entropy.below(self._pause_ms_max)
            handle(response)

        self.ask(api_key, version, request, answered)

    def _change_something(self) -> None:
        plans = self.context.plans
        plan = plans[self.entropy.below(len(plans))]
        if plan.mortal and plan.topic is None:
            self._create(plan)
            return
        if plan.mortal and not self._cautious:
            self._delete(plan)
            return
        draw = self.entropy.below(4)
        if draw == 0 and plan.truth.partitions < PARTITIONS_MAX:
            self._grow(plan)
        elif draw == 1 and not plan.keeps_all:
            self._configure(plan)
        elif draw == 2 and not plan.keeps_all:
            self._delete_records(plan.targets[self.entropy.below(len(plan.targets))])
        else:
            self._look(plan, self._check)

    # Changes

    def _create(self, plan: TopicPlan) -> None:
        plan.truth.certain = False
        self._open = plan

        def created(response: Any) -> None:
            topic = response.topics[0]
            if self._decided(plan, topic.error_code):
                self.context.histories.add(plan.created(TopicId(topic.topic_id), plan.partitions))

        request = requests.new_topic(plan.name, plan.partitions, plan.configs)
        self._ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request, created)

    def _delete(self, plan: TopicPlan) -> None:
        assert plan.topic is not None
        plan.truth.certain = plan.topic.certain = False
        self._open = plan

        def deleted(response: Any) -> None:
            if self._decided(plan, response.responses[0].error_code):
                self._end_history(plan)

        self._ask(ApiKey.DELETE_TOPICS, requests.DELETE_TOPICS, requests.topic_deletion(plan.name), deleted)

    def _end_history(self, plan: TopicPlan) -> None:
        gone = plan.deleted()
        if gone is not None:
            gone.certain = False
            del self.context.histories.topics[gone.topic_id]

    def _grow(self, plan: TopicPlan) -> None:
        count = plan.truth.partitions + 1
        plan.truth.certain = False
        self._open = plan

        def grown(response: Any) -> None:
            if self._decided(plan, response.results[0].error_code):
                plan.grown(count)

        request = requests.partition_growth(plan.name, count)
        self._ask(ApiKey.CREATE_PARTITIONS, requests.CREATE_PARTITIONS, request, grown)

    def _configure(self, plan: TopicPlan) -> None:
        """Change a config. It stays open until the next change of the same one is answered: setting it twice is
        idempotent.
        """
        name, values = CHANGES[self.entropy.below(len(CHANGES))]
        value = values[self.entropy.below(len(values))]
        topic = plan.topic
        assert topic is not None
        plan.truth.open_configs.add(name)
        plan.truth.configs[name] = value
        if name == FLUSH_MESSAGES:
            topic.sync_level = NOT_SYNCED

        def configured(response: Any) -> None:
            error = ErrorCode(response.responses[0].error_code)
            if error is not ErrorCode.NONE:
                self._judge(plan.name, error)
                return
            plan.truth.open_configs.discard(name)
            if name == FLUSH_MESSAGES and value == "1":
                self._level += 1
                topic.sync_level = self._level
                for partition in topic.partitions:
                    partition.synced_from = self.context.log_end(partition)

        request = requests.config_change(plan.name, name, value)
        self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, requests.ALTER_CONFIGS, request, configured)

    def _delete_records(self, partition: PartitionHistory) -> None:
        upper = partition.known_end
        offset = (
            ALL_RECORDS
            if self.entropy.one_in(8)
            else partition.start + self.entropy.below(max(1, (upper - partition.start) // 2))
        )

        def deleted(response: Any) -> None:
            part = response.topics[0].partitions[0]
            if part.error_code:
                error = ErrorCode(part.error_code)
                out_of_range = error is ErrorCode.OFFSET_OUT_OF_RANGE
                honest = out_of_range or (error is ErrorCode.KAFKA_STORAGE_ERROR and self.excused)
                require(honest, HONEST_ERRORS, f"{error.name} for a deletion of records of {partition}")
                return
            moved = part.low_watermark >= offset
            require(moved, HONEST_ERRORS, f"{partition} begins at {part.low_watermark}, not at {offset}")
            partition.starts_at(part.low_watermark)

        request = requests.record_deletion(partition.topic.name, partition.index, offset)
        self._ask(ApiKey.DELETE_RECORDS, requests.DELETE_RECORDS, request, deleted)

    # Outcomes

    def _decided(self, plan: TopicPlan, error_code: int) -> bool:
        """Return whether the change was made; an undecided one stays open."""
        error = ErrorCode(error_code)
        if error is ErrorCode.NONE:
            plan.truth.certain = True
            self._open = None
            return True
        self._judge(plan.name, error)
        return False

    def _judge(self, name: str, error: ErrorCode) -> None:
        honest = error is ErrorCode.REQUEST_TIMED_OUT or (error in UNDECIDED and self.excused)
        require(honest, HONEST_ERRORS, f"{error.name} for a change of {name}")

    def _raise_barrier(self, plan: TopicPlan) -> None:
        def raised(response: Any) -> None:
            error = ErrorCode(response.topics[0].error_code)
            if error is ErrorCode.NONE:
                self._look(plan, self._settle)
            else:
                self._judge(BARRIER, error)

        request = requests.new_topic(BARRIER, 1, validate_only=True)
        self._ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request, raised)

    def _look(self, plan: TopicPlan, handle: Callable[[TopicPlan, Any], None]) -> None:
        self._ask(
            ApiKey.METADATA,
            requests.METADATA,
            requests.topic_names(plan.name),
            lambda response: handle(plan, response.topics[0]),
        )

    def _settle(self, plan: TopicPlan, found: Any) -> None:
        self._open = None
        known = plan.topic
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._end_history(plan)
        elif known is not None and found.topic_id == known.topic_id:
            known.certain = plan.truth.certain = True
            plan.grown(len(found.partitions))
        else:
            assert known is None, "only this client creates topics of that name"
            self.context.histories.add(plan.created(TopicId(found.topic_id), len(found.partitions)))

    def _check(self, plan: TopicPlan, found: Any) -> None:
        """Check that Metadata shows what was acknowledged, while no change is in progress."""
        truth = plan.truth
        shown_id = found.topic_id if found.error_code == ErrorCode.NONE else None
        require(
            shown_id == truth.topic_id, COMMITTED_STAYS, f"Metadata shows another {plan.name} than was acknowledged"
        )
        count = len(found.partitions)
        require(
            count == truth.partitions, COMMITTED_STAYS, f"{plan.name} has {count} partitions, not {truth.partitions}"
        )
