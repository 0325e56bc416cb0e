"""Every transactional API over the wire: what it answers, and what it answers to calls that come in the wrong order."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import add_partitions_to_txn, init_producer_id
from tests.transactions.wire import TransactionClient, known, machine_of, transaction_broker, wait_loaded

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
STATE_TOPIC = "__transaction_state"


@pytest.fixture(scope="module")
def shared():
    """For tests that use transactional ids of their own."""
    return transaction_broker()


@pytest.fixture
def broker():
    return transaction_broker()


@pytest.fixture
def client(broker):
    client = TransactionClient(broker)
    assert client.init() is NONE
    return client


def finished(broker, transactional_id="id"):
    broker.run_until(lambda: known(broker, transactional_id).state.startswith("Complete"))
    return known(broker, transactional_id)


@pytest.mark.parametrize("version", range(7))
def test_the_first_question_makes_the_topic(version):
    broker = transaction_broker()
    image = broker.node.broker.image
    assert len(image.topics[STATE_TOPIC].partitions) == 3
    config = broker.partition(STATE_TOPIC).config
    assert config.cleanup_compact
    assert not config.cleanup_delete
    answer = TransactionClient(broker).find("id", version=version) if version else None
    if answer is not None:
        found = answer.coordinators[0] if version >= 4 else answer
        assert (found.error_code, found.node_id) == (NONE, 1)


def test_members_of_one_owner_have_one_coordinator(shared):
    for slot in range(20):
        client = TransactionClient(shared, f"owner#{slot}")
        assert client.init() is NONE
        assert f"owner#{slot}" in machine_of(shared, "owner").tables.transactions


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init(shared, version):
    first = TransactionClient(shared, f"init-{version}")
    assert first.init(version=version) is NONE
    second = TransactionClient(shared, f"init-{version}")
    assert second.init(version=version) is NONE
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    if version >= 3:
        assert second.init(version=version, resume=True) is NONE
        assert second.producer_epoch == 2
        fenced = FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert first.init(version=version, resume=True) is fenced


def test_an_idempotent_producer_still_gets_an_id(shared):
    client = TransactionClient(shared)
    client.transactional_id = None
    given = set()
    for _ in range(3):
        assert client.init(timeout_ms=0) is NONE
        given.add(client.producer_id)
        assert client.producer_epoch == 0
    assert len(given) == 3


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_an_init_that_makes_no_sense(shared, fields, error):
    request = init_producer_id.InitProducerIdRequest(
        **{"transactional_id": "bad", "transaction_timeout_ms": 1_000, **fields}
    )
    answer = TransactionClient(shared).ask(ApiKey.INIT_PRODUCER_ID, 5, request)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_and_the_transaction_ends(shared, version):
    client = TransactionClient(shared, f"add-{version}")
    assert client.init() is NONE
    assert client.add(0, 2, version=version) == [NONE, NONE]
    assert client.add(0, version=version) == [NONE]
    before = [shared.partition("t", index).log.end_offset for index in range(3)]
    assert client.commit(version=version) is NONE
    assert client.producer_epoch == 0
    finished(shared, client.transactional_id)
    assert [shared.partition("t", index).log.end_offset for index in range(3)] == [
        before[0] + 1,
        before[1],
        before[2] + 1,
    ]


def test_a_commit_from_version_5_on_gives_the_next_epoch(broker, client):
    assert client.add_many((client, False, (0, 1))) == {"id": [NONE, NONE]}
    assert client.commit() is NONE
    assert client.producer_epoch == 1
    assert finished(broker).producer_epoch == 1
    assert client.markers() == ["COMMIT"]
    # The answer was lost, and it is asked again; another outcome is not to be had any more.
    assert client.commit(epoch=0) is NONE
    assert client.producer_epoch == 1
    assert client.abort(epoch=0) is ErrorCode.INVALID_TXN_STATE
    assert client.markers() == ["COMMIT"]


def test_an_abort_with_nothing_written_is_allowed_from_version_5_on(broker, client):
    assert client.commit(version=4) is ErrorCode.INVALID_TXN_STATE
    assert client.abort(version=4) is ErrorCode.INVALID_TXN_STATE
    assert client.commit() is ErrorCode.INVALID_TXN_STATE
    assert client.abort() is NONE
    assert client.producer_epoch == 1
    finished(broker)
    assert client.abort() is NONE
    assert client.producer_epoch == 2


def test_calls_of_a_producer_that_was_never_known(shared):
    client = TransactionClient(shared, "stranger")
    client.producer_id, client.producer_epoch = 77, 0
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.add(0) == [mapping]
    assert client.add_offsets() is mapping
    assert client.commit() is mapping
    assert client.abort(version=4) is mapping
    assert client.add_many((client, True, (0,)), (client, False, (1,))) == {"stranger": [mapping]}


@pytest.mark.parametrize(
    ("version", "error"),
    [(0, ErrorCode.INVALID_PRODUCER_EPOCH), (1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, FENCED), (3, FENCED)],
)
def test_a_fenced_producer_learns_that_it_is_fenced(shared, version, error):
    zombie = TransactionClient(shared, f"zombie-{version}")
    assert zombie.init() is NONE
    assert zombie.add(0) == [NONE]
    TransactionClient(shared, zombie.transactional_id).initialized()
    assert zombie.add(0, version=version) == [error]
    assert zombie.add_offsets(version=version) is error
    assert zombie.commit(version=version) is error
    assert zombie.abort(version=version) is error
    assert zombie.init(resume=True) is FENCED


def test_a_successor_waits_for_the_abort(broker, client):
    assert client.add_many((client, False, (0,))) == {"id": [NONE]}
    other = TransactionClient(broker)
    assert other.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    other.initialized()
    assert (other.producer_id, other.producer_epoch) == (client.producer_id, 2)
    assert other.markers() == ["ABORT"]
    assert client.commit() is FENCED


def test_wrong_partitions_refuse_the_whole_request(shared):
    client = TransactionClient(shared, "wrong-partitions")
    assert client.init() is NONE
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert client.add(0, 9) == [not_tried, unknown]
    assert client.add(0, topic="nowhere") == [unknown]
    assert known(shared, client.transactional_id).state == "Empty"


def test_partitions_are_verified(shared):
    client, other = TransactionClient(shared, "verified"), TransactionClient(shared, "another")
    assert client.init() is NONE
    assert other.init() is NONE
    abortable = ErrorCode.TRANSACTION_ABORTABLE
    assert client.add_many((client, False, (0,)), (other, True, (0, 1))) == {
        "verified": [NONE],
        "another": [abortable, abortable],
    }
    assert client.add_many((client, True, (0, 1))) == {"verified": [NONE, abortable]}
    client.producer_epoch += 1
    assert client.add_many((client, True, (0,))) == {"verified": [FENCED]}


def test_an_empty_transactional_id_is_no_id(shared):
    client = TransactionClient(shared, "")
    client.producer_id = client.producer_epoch = 0
    assert client.add(0) == [ErrorCode.INVALID_REQUEST]
    assert client.add_offsets() is ErrorCode.INVALID_REQUEST
    assert client.commit() is ErrorCode.INVALID_REQUEST
    assert client.describe("")[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_batch_of_nothing_is_answered(shared):
    answer = TransactionClient(shared).ask(
        ApiKey.ADD_PARTITIONS_TO_TXN, 5, add_partitions_to_txn.AddPartitionsToTxnRequest()
    )
    assert answer.results_by_transaction == ()


def test_offsets_of_a_group_become_part_of_it(broker, client):
    """Also the first time, when no client has asked for a group yet."""
    assert "__consumer_offsets" not in broker.node.broker.image.topics
    assert client.add_offsets("g") is NONE
    partition = broker.node.broker.groups.topic.partition_of("g")
    assert known(broker).partitions == {("__consumer_offsets", partition)}
    assert client.add_offsets("") is ErrorCode.INVALID_GROUP_ID
    assert client.commit() is NONE
    finished(broker)
    assert broker.partition("__consumer_offsets", partition).log.end_offset == 1


def test_ids_are_described(shared):
    client = TransactionClient(shared, "described")
    assert client.init(timeout_ms=5_000) is NONE
    assert client.add(2, 0) == [NONE, NONE]
    (found, missing) = client.describe("described", "unknown")
    assert (found.error_code, found.transaction_state, found.transaction_timeout_ms) == (NONE, "Ongoing", 5_000)
    assert (found.producer_id, found.producer_epoch) == (client.producer_id, 0)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", (0, 2))]
    assert found.transaction_start_time_ms == known(shared, "described").started_at_ms
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def listed(answer):
    assert answer.error_code == NONE
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}


def test_ids_are_listed(broker):
    clients = {name: TransactionClient(broker, name) for name in ("idle", "open", "done", "odd id/7#é")}
    for client in clients.values():
        assert client.init() is NONE
    assert clients["open"].add(0) == [NONE]
    assert clients["done"].add(0) == [NONE]
    assert clients["done"].commit() is NONE
    finished(broker, "done")
    client = clients["idle"]
    everything = {"idle": "Empty", "open": "Ongoing", "done": "CompleteCommit", "odd id/7#é": "Empty"}
    for version in range(3):
        assert listed(client.transactions(version=version)) == everything
    assert set(listed(client.transactions(states=("Ongoing", "CompleteCommit")))) == {"open", "done"}
    assert set(listed(client.transactions(producer_ids=(clients["open"].producer_id,)))) == {"open"}
    assert set(listed(client.transactions(pattern="o.*"))) == {"open", "odd id/7#é"}
    assert set(listed(client.transactions(pattern=r"odd\sid/\d#[^a-z]"))) == {"odd id/7#é"}
    broker.pass_time(5_000)
    recent = TransactionClient(broker, "recent")
    assert recent.init() is NONE
    assert recent.add(1) == [NONE]
    assert set(listed(client.transactions(states=("Ongoing",), duration_ms=4_000))) == {"open"}


def test_a_wrong_filter_is_reported(broker):
    client = TransactionClient(broker)
    assert client.init() is NONE
    answer = client.transactions(states=("Ongoing", "Sleeping"))
    assert answer.unknown_state_filters == ("Sleeping",)
    answer = client.transactions(states=("Sleeping",))
    assert answer.transaction_states == ()
    assert client.transactions(pattern="(").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_transaction_whose_time_is_up_is_aborted(broker, client):
    slow = TransactionClient(broker, "slow")
    assert slow.init(timeout_ms=20_000) is NONE
    assert slow.add_many((slow, False, (0,))) == {"slow": [NONE]}
    broker.pass_time(15_000)
    assert known(broker, "slow").state == "Ongoing"
    broker.pass_time(20_000)
    assert finished(broker, "slow").state == "CompleteAbort"
    assert slow.markers() == ["ABORT"]
    assert slow.commit() is ErrorCode.INVALID_TXN_STATE
    assert broker.node.broker.transactions.timed_out == 1


def test_no_coordinator_is_asked_before_the_topic_exists():
    from tests.broker.virtual import VirtualBroker

    broker = VirtualBroker()
    broker.with_topic("t")
    client = TransactionClient(broker)
    assert client.init() is ErrorCode.NOT_COORDINATOR
    assert client.commit() is ErrorCode.NOT_COORDINATOR
    assert client.describe("id")[0].error_code == ErrorCode.NOT_COORDINATOR
    assert listed(client.transactions()) == {}


def test_open_transactions_are_counted(broker, client):
    assert client.add(0) == [NONE]
    broker.pass_time(3_000)
    families = {family.name: dict(family.samples) for family in broker.node.broker.transactions.families()}
    assert families["headrace_transactional_ids"][(("state", "Ongoing"),)] == 1
    assert 3 <= families["headrace_transaction_oldest_seconds"][()] < 4
    assert families["headrace_transactions_timed_out_total"][()] == 0
    assert families["headrace_transaction_markers_unwritten"][()] == 0


def test_what_is_not_loaded_yet_says_so(broker, client):
    assert client.add(0) == [NONE]
    broker.machine.kill()
    broker.boot()
    again = TransactionClient(broker)
    answers = {again.init()}
    wait_loaded(broker)
    answers.add(again.init())
    assert answers <= {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}
