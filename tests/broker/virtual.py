"""A booted node on virtual ports, and a Kafka client that speaks every API of it in any version."""

from typing import Any

from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports
from headrace.sim.world import World
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import create_topics, delete_topics, fetch, incremental_alter_configs, metadata, produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.reader import batches, check_batch, records

HOST, PORT = "node", 9092
PRODUCE_VERSION, FETCH_VERSION = 9, 12
LONG_MS = 30_000
MANY_BYTES = 1 << 20
QUIET_STEPS = 60
"""Enough turns for anything that was going to happen."""

FLUSH_NAMES = ("_sync.<locals>.run", "DataSync")
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET = 0


class VirtualBroker:
    """One node in a world of its own; `settings` are Kafka's property names."""

    def __init__(self, *, seed=1, settings=None, boot=True):
        self.world = World(seed)
        self.machine = self.world.machine()
        self.settings = {
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{PORT}",
            "log.dirs": "data",
            "auto.create.topics.enable": "false",
            "headrace.log.format": "json",
            **(settings or {}),
        }
        self.log_lines = []
        for path in self.settings["log.dirs"].split(","):
            self.machine.disk.make_directory(path)
        self.machine.disk.sync_directory("")
        if boot:
            self.boot()

    # Life

    def boot(self):
        self.machine.boot(self._start)
        self.world.run_until(lambda: self.node.ready)

    def _start(self, machine):
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        node = Node(BrokerConfig.from_texts(self.settings), ports, write_log=self.log_lines.append)
        node.loop.strict = True
        return node

    @property
    def node(self):
        return self.machine.node

    @property
    def metrics(self):
        return self.node.metrics

    def stop(self):
        node = self.node
        node.begin_stop()
        self.world.run_until(lambda: node.drained)
        node.close()
        self.machine.stopped()

    def restart(self):
        self.stop()
        self.boot()

    # Time

    def steps(self, count=QUIET_STEPS):
        for _ in range(count):
            self.world.step()

    def pass_time(self, duration_ms):
        """Let the clock go on by so much, and give the node the turns to notice."""
        self.world.time.advance(duration_ms)
        self.steps()

    def run_until(self, reached):
        self.world.run_until(reached)

    # Inside

    def hold_syncs(self):
        """Flushes of partitions do not end until `release_syncs`; metadata and everything else goes on."""
        for name in FLUSH_NAMES:
            self.machine.spawner.hold(name_contains=name)

    def release_syncs(self):
        self.machine.spawner.release()

    def client(self, **options):
        return Client(self, **options)

    def partition(self, topic, index=0):
        return self.node.broker.partitions.by_name[topic.encode()].replicas.get(index)

    def with_topic(self, name="t", *, partitions=1, **configs):
        """The broker itself, once the topic is there; config names with "_" for "."."""
        client = self.client()
        texts = {key.replace("_", "."): str(value) for key, value in configs.items()}
        assert client.create_topic(name, partitions=partitions, configs=texts).error_code == 0
        client.close()
        return self


class Client:
    def __init__(self, broker, *, from_host="127.0.0.1"):
        self._broker = broker
        self.connection = broker.world.connect(HOST, PORT, from_host=from_host)
        self._asked = []
        self._answered = {}
        self._next_correlation = 0

    # Frames

    def send_bytes(self, payload):
        self.connection.send(payload)

    def send(self, api_key, version, message):
        correlation = self._next_correlation
        self._next_correlation += 1
        body = codec(api_key).encode_request(message, version)
        self.connection.send(frames.request_frame(api_key, version, correlation, "test", body))
        self._asked.append((correlation, api_key, version))
        return correlation

    def poll(self):
        """(correlation, response) of what has arrived whole since the last call; the order is checked."""
        received = self.connection.receive()
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

    def wait(self, correlation):
        """Step the world until this answer is here; answers to earlier requests are kept."""
        self._collect()
        self._broker.run_until(lambda: bool(self._collect() or correlation in self._answered) or self.is_closed())
        self._collect()
        assert correlation in self._answered, "the node closed the connection"
        return self._answered.pop(correlation)

    def has_answer(self, correlation):
        self._collect()
        return correlation in self._answered

    def _collect(self):
        self._answered.update(self.poll())

    def ask(self, api_key, version, message):
        return self.wait(self.send(api_key, version, message))

    def is_closed(self):
        return self.connection.is_closed()

    def wait_closed(self):
        self._broker.run_until(lambda: self.connection.receive() is not None and self.is_closed())

    def close(self):
        self.connection.close()

    # Topics

    def create_topic(self, name, *, partitions=1, configs=None):
        request = create_topics.CreateTopicsRequest(topics=(new_topic(name, partitions, configs),), timeout_ms=LONG_MS)
        return self.ask(ApiKey.CREATE_TOPICS, 7, request).topics[0]

    def delete_topic(self, name):
        topic = delete_topics.DeleteTopicsRequestTopic(name=name)
        request = delete_topics.DeleteTopicsRequest(topics=(topic,), timeout_ms=LONG_MS)
        return self.ask(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code

    def alter_configs(self, kind, name, configs):
        changes = tuple(
            incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
                name=key, config_operation=SET, value=str(value)
            )
            for key, value in configs.items()
        )
        resource = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
            resource_type=kind, resource_name=name, configs=changes
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,))
        return self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code

    def metadata(self, *names, version=12, allow_creation=False):
        topics = tuple(metadata.MetadataRequestTopic(name=name) for name in names)
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=allow_creation)
        return self.ask(ApiKey.METADATA, version, request)

    def topic_id(self, name):
        return self.metadata(name).topics[0].topic_id

    # Records

    def now(self):
        return self._broker.machine.clock.wall_ms()

    def batch(self, *values, key=None, timestamp=None, **fields):
        timestamp = self.now() if timestamp is None else timestamp
        return bytes(build_batch([NewRecord(timestamp, key, value) for value in values or (b"v",)], **fields))

    def send_produce(self, topic, partition=0, content=None, *, acks=-1, version=PRODUCE_VERSION, timeout_ms=LONG_MS):
        content = self.batch() if content is None else content
        request = produce_request([(topic, [(partition, content)])], acks=acks, timeout_ms=timeout_ms, version=version)
        return self.send(ApiKey.PRODUCE, version, request)

    def produce(self, topic, partition=0, content=None, **options):
        return self.wait(self.send_produce(topic, partition, content, **options)).responses[0].partition_responses[0]

    def produce_error(self, topic, partition=0, content=None, **options):
        return self.produce(topic, partition, content, **options).error_code

    def send_fetch(self, *wanted, version=FETCH_VERSION, **options):
        return self.send(ApiKey.FETCH, version, fetch_request(wanted, **options))

    def fetch(self, topic, partition=0, offset=0, *, version=FETCH_VERSION, **options):
        response = self.wait(self.send_fetch((topic, partition, offset), version=version, **options))
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def values(self, topic, partition=0, offset=0, **options):
        return values_of(self.fetch(topic, partition, offset, **options).records, offset)

    def read_all(self, topic, partition=0, offset=0):
        found: list[Any] = []
        while True:
            values = values_of(self.fetch(topic, partition, offset).records, offset)
            if not values:
                return found
            found += values
            offset += len(values)


def new_topic(name, partitions=1, configs=None):
    return create_topics.CreateTopicsRequestTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(
            create_topics.CreateTopicsRequestConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
    )


def produce_request(topics, *, acks=-1, timeout_ms=LONG_MS, version=PRODUCE_VERSION, transactional_id=None):
    """`topics` are (name, or id from version 13, [(partition, content)])."""
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            produce.ProduceRequestTopic(
                **({"topic_id": topic} if version >= 13 else {"name": topic}),
                partition_data=tuple(
                    produce.ProduceRequestPartition(index=index, records=content) for index, content in partitions
                ),
            )
            for topic, partitions in topics
        ),
    )


def produce_frame(request, version=PRODUCE_VERSION):
    """A request whose answer no client looks for."""
    body = codec(ApiKey.PRODUCE).encode_request(request, version)
    return frames.request_frame(ApiKey.PRODUCE, version, 77, "test", body)


def sequenced(client, sequence, *values, epoch=0, producer=9):
    """A batch of an idempotent producer."""
    values = values or (b"s%d" % sequence,)
    return client.batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def fetch_request(
    wanted,
    *,
    wait_ms=0,
    bytes_min=1,
    bytes_max=MANY_BYTES,
    partition_bytes=MANY_BYTES,
    isolation=0,
    session_id=0,
    session_epoch=-1,
    leader_epoch=-1,
    replica_id=-1,
    forget=(),
    by_id=False,
):
    """`wanted` are (topic name or id, partition, offset); `forget` are (topic, partition)."""
    key = "topic_id" if by_id else "topic"
    topics: dict[Any, Any] = {}
    for topic, partition, offset in wanted:
        topics.setdefault(topic, []).append(
            fetch.FetchRequestPartition(
                partition=partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=partition_bytes,
            )
        )
    return fetch.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        max_bytes=bytes_max,
        isolation_level=isolation,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=tuple(
            fetch.FetchRequestTopic(**{key: topic}, partitions=tuple(parts)) for topic, parts in topics.items()
        ),
        forgotten_topics_data=tuple(
            fetch.FetchRequestForgottenTopic(**{key: topic}, partitions=(partition,)) for topic, partition in forget
        ),
    )


def values_of(content, offset=0):
    """The values from `offset` on; batches are whole and their checksums right."""
    found = []
    for batch in batches(content or b""):
        check_batch(batch)
        found += [bytes(record.value) for record in records(batch) if record.offset >= offset]
    return found
