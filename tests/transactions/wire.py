"""Transactional requests over the wire, to a node on virtual ports."""

from headrace.core.transactions.names import owner_of
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_transactions,
)
from headrace.wire.records.reader import batches, control_type, is_control, records
from tests.broker.virtual import Client, VirtualBroker, produce_request

SETTINGS = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}
TRANSACTION_KEY = 1
READ_COMMITTED = 1


def transaction_broker(**options):
    settings = {**SETTINGS, **options.pop("settings", {})}
    broker = VirtualBroker(settings=settings, **options)
    broker.with_topic("t", partitions=3)
    TransactionClient(broker).find("id")
    wait_loaded(broker)
    return broker


def wait_loaded(broker):
    topic = broker.node.broker.transactions.topic
    broker.run_until(lambda: list(topic) and all(host.machine is not None for host in topic))


def machine_of(broker, transactional_id="id"):
    topic = broker.node.broker.transactions.topic
    number = topic.partition_of(owner_of(transactional_id))
    return next(host.machine for host in topic if host.partition.index == number)


def known(broker, transactional_id="id"):
    return machine_of(broker, transactional_id).tables.transactions.get(transactional_id)


class TransactionClient(Client):
    """A producer, with its identity as the last answer said."""

    def __init__(self, broker, transactional_id="id", **options):
        super().__init__(broker, **options)
        self.transactional_id = transactional_id
        self.producer_id = self.producer_epoch = -1
        self.sequence = 0

    def find(self, *keys, version=4):
        request = find_coordinator.FindCoordinatorRequest(key=keys[0], coordinator_keys=keys, key_type=TRANSACTION_KEY)
        return self.ask(ApiKey.FIND_COORDINATOR, version, request)

    def init(self, *, timeout_ms=60_000, resume=False, version=5, expected=None):
        """The error; a success is remembered."""
        producer_id, epoch = expected or ((self.producer_id, self.producer_epoch) if resume else (-1, -1))
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self.ask(ApiKey.INIT_PRODUCER_ID, version, request)
        if not answer.error_code:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return ErrorCode(answer.error_code)

    def initialized(self, **options):
        """Ask until the transaction of the producer before is over."""
        self._broker.run_until(lambda: self.init(**options) is not ErrorCode.CONCURRENT_TRANSACTIONS)
        return self

    def identity(self):
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    def add(self, *partitions, version=3, topic="t"):
        """One error for each partition; to version 3."""
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=(
                add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name=topic, partitions=partitions),
            ),
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        return [
            ErrorCode(each.partition_error_code)
            for each in answer.results_by_topic_v3_and_below[0].results_by_partition
        ]

    def add_many(self, *asked, version=5):
        """`asked` are (client, verify only, partitions of t); the errors of each."""
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=tuple(
                add_partitions_to_txn.AddPartitionsToTxnRequestTransaction(
                    **client.identity(),
                    verify_only=verify_only,
                    topics=(add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name="t", partitions=partitions),),
                )
                for client, verify_only, partitions in asked
            )
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        assert not answer.error_code
        return {
            each.transactional_id: [
                ErrorCode(found.partition_error_code) for found in each.topic_results[0].results_by_partition
            ]
            for each in answer.results_by_transaction
        }

    def add_offsets(self, group="g", version=4):
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(**self.identity(), group_id=group)
        return ErrorCode(self.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request).error_code)

    def send_end(self, *, commit=True, version=5, epoch=None):
        identity = self.identity()
        if epoch is not None:
            identity["producer_epoch"] = epoch
        return self.send(ApiKey.END_TXN, version, end_txn.EndTxnRequest(**identity, committed=commit))

    def end(self, **options):
        answer = self.wait(self.send_end(**options))
        if not answer.error_code and answer.producer_id >= 0:
            if (self.producer_id, self.producer_epoch) != (answer.producer_id, answer.producer_epoch):
                self.sequence = 0
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code)

    def commit(self, **options):
        return self.end(commit=True, **options)

    def abort(self, **options):
        return self.end(commit=False, **options)

    def send_write(self, *values, partition=0, topic="t", version=12):
        content = self.batch(
            *values,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        request = produce_request(
            [(topic, [(partition, content)])], version=version, transactional_id=self.transactional_id
        )
        return self.send(ApiKey.PRODUCE, version, request)

    def write(self, *values, partition=0, topic="t", version=12):
        """The error. One sequence for all partitions: use one."""
        answer = self.wait(self.send_write(*values, partition=partition, topic=topic, version=version))
        error = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if error is ErrorCode.NONE:
            self.sequence += len(values)
        return error

    def describe(self, *transactional_ids):
        request = describe_transactions.DescribeTransactionsRequest(transactional_ids=transactional_ids)
        return self.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states

    def transactions(self, *, states=(), producer_ids=(), duration_ms=-1, pattern=None, version=2):
        request = list_transactions.ListTransactionsRequest(
            state_filters=states,
            producer_id_filters=producer_ids,
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
        )
        return self.ask(ApiKey.LIST_TRANSACTIONS, version, request)

    def markers(self, partition=0, topic="t"):
        """Return what the partition's markers say, in order."""
        found = [batch for batch in batches(self.fetch(topic, partition).records or b"") if is_control(batch)]
        return [control_type(record).name for batch in found for record in records(batch)]
