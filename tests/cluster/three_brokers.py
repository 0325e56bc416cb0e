"""Three virtual brokers that are all voters, and a client that asks any of them."""

from typing import Any

from headrace.sim.cluster.brokers import CLIENT_PORT, VirtualCluster
from headrace.sim.workloads.connection import KafkaConnection
from headrace.sim.world import World


class Three:
    def __init__(self):
        self.world = World(5)
        self.cluster = VirtualCluster(self.world, 3, {})
        founder, *others = self.cluster.nodes
        founder.boot()
        self.cluster.hand_out_key()
        for virtual in others:
            virtual.start()
        self.world.run_until(lambda: self.cluster.all_serve and all(self.voters(each) == 3 for each in others))

    def voters(self, virtual):
        return len(virtual.running.quorum.voters)

    def send(self, virtual, api_key, version, request):
        connection = KafkaConnection(self.world, virtual.machine.name, CLIENT_PORT)
        connection.send(api_key, version, request)
        return connection

    def answer(self, connection):
        answers: list[Any] = []

        def is_answered():
            answers.extend(connection.poll())
            return bool(answers)

        self.world.run_until(is_answered)
        ((_, response),) = answers
        return response

    def ask(self, virtual, api_key, version, request):
        return self.answer(self.send(virtual, api_key, version, request))

    def isolate(self, virtual):
        name = virtual.machine.name
        for other in self.cluster.nodes:
            if other is not virtual:
                for source, to in ((name, other.machine.name), (other.machine.name, name)):
                    self.world.fabric.links.between(source, to).is_cut = True
