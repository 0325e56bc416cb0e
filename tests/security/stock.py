"""Stock clients: each writes records to a topic and reads them, with the security settings of librdkafka's names."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from headrace.client import Consumer, Producer

WAIT_S = 60
WAIT_MS = 1000 * WAIT_S


def librdkafka(bootstrap, topic, records, settings: Mapping[str, str]):
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    for record in records:
        producer.produce(topic, record)
    assert producer.flush(WAIT_S) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"g-{topic}", "auto.offset.reset": "earliest", **settings}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < len(records):
            message = consumer.poll(WAIT_S)
            assert message is not None, "no record within a minute"
            assert message.error() is None, message.error()
            found.append(message.value())
    finally:
        consumer.close()
    return found


def _context(settings):
    context = ssl.create_default_context(cafile=settings["ssl.ca.location"])
    if "ssl.certificate.location" in settings:
        context.load_cert_chain(settings["ssl.certificate.location"], settings["ssl.key.location"])
    return context


def _python_settings(settings):
    """The settings as kafka-python and aiokafka have them."""
    found: dict[str, Any] = {"security_protocol": settings["security.protocol"]}
    if "SSL" in settings["security.protocol"]:
        found["ssl_context"] = _context(settings)
    if "sasl.mechanism" in settings:
        found |= {
            "sasl_mechanism": settings["sasl.mechanism"],
            "sasl_plain_username": settings["sasl.username"],
            "sasl_plain_password": settings["sasl.password"],
        }
    return found


def kafka_python(bootstrap, topic, records, settings):
    common = {"bootstrap_servers": bootstrap, **_python_settings(settings)}
    producer = kafka.KafkaProducer(**common)
    for record in records:
        producer.send(topic, record)
    producer.flush(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=f"g-{topic}", auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS, **common
    )
    found: list[bytes] = []
    try:
        for message in consumer:
            found.append(message.value)
            if len(found) == len(records):
                break
    finally:
        consumer.close()
    return found


def aiokafka_client(bootstrap, topic, records, settings):
    async def run():
        common = {"bootstrap_servers": bootstrap, **_python_settings(settings)}
        async with aiokafka.AIOKafkaProducer(**common) as producer:
            for record in records:
                await producer.send_and_wait(topic, record)
        found: list[bytes] = []
        async with aiokafka.AIOKafkaConsumer(
            topic, group_id=f"g-{topic}", auto_offset_reset="earliest", **common
        ) as consumer:
            while len(found) < len(records):
                found.append((await asyncio.wait_for(consumer.getone(), WAIT_S)).value)
        return found

    return asyncio.run(run())


def own_settings(settings):
    """The settings as Headrace's client has them."""
    names = {
        "security.protocol": "security_protocol",
        "ssl.ca.location": "ssl_ca_location",
        "ssl.certificate.location": "ssl_certificate_location",
        "ssl.key.location": "ssl_key_location",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_username",
        "sasl.password": "sasl_password",
    }
    return {names[name]: text for name, text in settings.items()}


def own(bootstrap, topic, records, settings):
    common = own_settings(settings)
    with Producer(bootstrap_servers=bootstrap, **common) as producer:
        for record in records:
            producer.send(topic, record)
        producer.flush()
    found: list[bytes] = []
    with Consumer(
        topic, bootstrap_servers=bootstrap, group_id=f"g-{topic}", auto_offset_reset="earliest", **common
    ) as consumer:
        while len(found) < len(records):
            found += [record.value for record in consumer.poll(timeout_ms=WAIT_MS)]
    return found


CLIENTS = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka_client, "headrace": own}
