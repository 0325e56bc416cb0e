"""A Kafka client for tests: it asks, and steps the world until the answer is here."""

from typing import Any

from headrace.sim.node import HOST, PORT
from headrace.sim.workloads import requests
from headrace.sim.workloads.connection import KafkaConnection
from headrace.wire.apis import ApiKey
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.reader import batches, check_batch, records


class KafkaClient(KafkaConnection):
    def __init__(self, world, host=HOST, port=PORT):
        super().__init__(world, host, port)
        self._world = world

    def ask(self, api_key, version, message):
        """Send one request and step the world until its answer is here."""
        assert not self.unanswered, "other answers are still to come"
        self.send(api_key, version, message)
        (answer,) = self.await_answers(1)
        return answer

    def await_answers(self, count):
        """Return this number of answers, or fewer if the node closes the connection before the first."""
        answers: list[Any] = []

        def arrived():
            answers.extend(message for _, message in self.poll())
            return len(answers) >= count or self.is_closed()

        self._world.run_until(arrived)
        assert answers, "the node closed the connection"
        return answers

    def create_topic(self, name, *, partitions=1, configs=()):
        request = requests.new_topic(name, partitions, configs)
        return self.ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request).topics[0]

    def send_produce(self, topic, partition, values, *, acks=-1, timestamp):
        content = build_batch([NewRecord(timestamp, None, value) for value in values])
        request = requests.produced(topic, partition, bytes(content), acks=acks)
        return self.send(ApiKey.PRODUCE, requests.PRODUCE_BY_NAME, request)

    def topic_metadata(self, name):
        return self.ask(ApiKey.METADATA, requests.METADATA, requests.topic_names(name)).topics[0]

    def fetch(self, topic, partition, offset, *, wait_ms=0):
        wanted = requests.wanted_topic(topic, [(partition, offset)])
        response = self.ask(ApiKey.FETCH, requests.FETCH_BY_NAME, requests.fetched([wanted], wait_ms=wait_ms))
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def read_all(self, topic, partition):
        """Every record below the high watermark as (offset, value), checked batch by batch."""
        found: list[Any] = []
        offset = 0
        while True:
            answer = self.fetch(topic, partition, offset)
            assert answer.error_code == 0, answer.error_code
            if not answer.records:
                assert offset >= answer.high_watermark, "nothing came though the high watermark is above"
                return found
            fetched = [(record.offset, bytes(record.value)) for record in records_of(answer.records)]
            found += [record for record in fetched if record[0] >= offset]
            offset = found[-1][0] + 1


def records_of(content):
    for batch in batches(content, allow_truncated_end=True):
        check_batch(batch)
        yield from records(batch)
