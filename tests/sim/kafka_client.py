"""A Kafka client on a virtual connection: requests out, answers in as the world is stepped."""

from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import create_topics, fetch, init_producer_id, metadata, produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.reader import batches, check_batch, records

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CREATE_TOPICS_VERSION = 7
INIT_PRODUCER_ID_VERSION = 4
METADATA_VERSION = 12
NO_TIMEOUT_MS = 30_000
HIGH_WATERMARK_ATTEMPTS_MAX = 50
FETCH_BYTES_MAX = 1 << 20


class KafkaClient:
    """Pipelines as many requests as the test likes; answers come in `poll`, in the order of the requests."""

    def __init__(self, world, host, port):
        self._world = world
        self._connection = world.connect(host, port)
        self._asked = []
        self._next_correlation = 0

    @property
    def connection(self):
        return self._connection

    def is_closed(self):
        return self._connection.is_closed()

    def send(self, api_key, version, message):
        """Send a request without waiting; the number its answer will carry."""
        correlation = self._next_correlation
        self._next_correlation += 1
        body = codec(api_key).encode_request(message, version)
        self._connection.send(frames.request_frame(api_key, version, correlation, "sim", body))
        self._asked.append((correlation, api_key, version))
        return correlation

    def poll(self):
        """The answers that have arrived whole since the last call: (correlation, message)."""
        received = self._connection.receive()
        answers = []
        while len(received) >= frames.SIZE_BYTES:
            end = frames.SIZE_BYTES + int.from_bytes(received[: frames.SIZE_BYTES], "big")
            if len(received) < end:
                break
            frame = bytes(received[frames.SIZE_BYTES : end])
            del received[:end]
            correlation, api_key, version = self._asked.pop(0)
            answered, position = frames.read_response_header(frame, 0, len(frame), api_key=api_key, api_version=version)
            assert answered == correlation, "answers come in the order of the requests"
            answers.append((correlation, codec(api_key).decode_response(frame, position, len(frame), version)))
        return answers

    def ask(self, api_key, version, message):
        """Send one request and step the world until its answer is here."""
        assert not self._asked, "other answers are still to come"
        self.send(api_key, version, message)
        answers = []
        self._world.run_until(lambda: bool(answers.extend(self.poll()) or answers) or self.is_closed())
        assert answers, "the node closed the connection"
        return answers[0][1]

    # Messages

    def create_topic(self, name, *, partitions=1, configs=()):
        return self.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, topic_request(name, partitions, configs)).topics[0]

    def send_produce(self, topic, partition, values, *, acks=-1, timestamp, **batch):
        return self.send(
            ApiKey.PRODUCE, PRODUCE_VERSION, produce_request(topic, partition, values, acks, timestamp, **batch)
        )

    def send_init_producer_id(self):
        request = init_producer_id.InitProducerIdRequest(transactional_id=None)
        return self.send(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION, request)

    def send_fetch(self, topic, partition, offset, *, wait_ms):
        return self.send(ApiKey.FETCH, FETCH_VERSION, fetch_request(topic, partition, offset, wait_ms))

    def topic_metadata(self, name):
        request = metadata.MetadataRequest(
            topics=(metadata.MetadataRequestTopic(name=name),), allow_auto_topic_creation=False
        )
        return self.ask(ApiKey.METADATA, METADATA_VERSION, request).topics[0]

    def fetch(self, topic, partition, offset, *, wait_ms=0):
        response = self.ask(ApiKey.FETCH, FETCH_VERSION, fetch_request(topic, partition, offset, wait_ms))
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def await_high_watermark(self, topic, partition, offset):
        """After a start it may come back later than the listener: it rises when what was recovered is synced."""
        for _ in range(HIGH_WATERMARK_ATTEMPTS_MAX):
            answer = self.fetch(topic, partition, 0)
            assert answer.error_code == 0, f"{topic}-{partition}: error {answer.error_code}"
            if answer.high_watermark >= offset:
                return
        raise AssertionError(f"{topic}-{partition} has its high watermark at {answer.high_watermark}, not at {offset}")

    def read_all(self, topic, partition):
        """Every record below the high watermark as (offset, value), checked batch by batch."""
        found, offset = [], 0
        while True:
            answer = self.fetch(topic, partition, offset)
            assert answer.error_code == 0, answer.error_code
            if not answer.records:
                assert offset >= answer.high_watermark, "nothing came though the high watermark is above"
                return found
            fetched = [(record.offset, bytes(record.value)) for record in records_of(answer.records)]
            found += [record for record in fetched if record[0] >= offset]
            offset = found[-1][0] + 1


def topic_request(name, partitions, configs=()):
    topic = create_topics.CreateTopicsRequestTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(create_topics.CreateTopicsRequestConfig(name=key, value=value) for key, value in configs),
    )
    return create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=NO_TIMEOUT_MS)


def produce_request(topic, partition, values, acks, timestamp, **batch):
    content = build_batch([NewRecord(timestamp, None, value) for value in values], **batch)
    part = produce.ProduceRequestPartition(index=partition, records=bytes(content))
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=NO_TIMEOUT_MS,
        topic_data=(produce.ProduceRequestTopic(name=topic, partition_data=(part,)),),
    )


def fetch_request(topic, partition, offset, wait_ms):
    part = fetch.FetchRequestPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        topics=(fetch.FetchRequestTopic(topic=topic, partitions=(part,)),),
    )


def records_of(content):
    for batch in batches(content, allow_truncated_end=True):
        check_batch(batch)
        yield from records(batch)
