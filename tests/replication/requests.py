"""Requests of clients to single brokers of a trio."""

from headrace.sim.workloads.connection import KafkaConnection
from tests.peers.nodes import CLIENT_PORT


def send(trio, number, api_key, version, request):
    connection = KafkaConnection(trio.peers.world, f"host{number}", CLIENT_PORT)
    connection.send(api_key, version, request)
    return connection


def wait(trio, connection):
    """Return the response to the request of a connection."""
    answers = []

    def is_answered():
        answers.extend(connection.poll())
        return bool(answers)

    trio.run_until(is_answered)
    ((_, response),) = answers
    return response
