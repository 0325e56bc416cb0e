"""Members of the new protocol, as good clients behave."""

from headrace.core.groups.commands import ConsumerHeartbeat
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import Ticket
from tests.groups.harness import GROUP, Harness


class Consumer:
    def __init__(self, name):
        self.name = name
        self.member_id = name
        self.epoch = 0
        self.owned = ()
        self.instance_id = None
        self.topics = ("t",)
        self.regex = None
        self.assignor = None


class ConsumerHarness(Harness):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.consumers = {}

    def consumer(self, name):
        return self.consumers.setdefault(name, Consumer(name))

    def beat(self, name, *, epoch=None, keep=False, full=False, tells_owned=True, **known):
        """One heartbeat. `keep` holds on to partitions that are to be let go of."""
        consumer = self.consumer(name)
        for key, value in known.items():
            setattr(consumer, key, value)
        epoch = consumer.epoch if epoch is None else epoch
        joins = epoch == 0
        if joins:
            consumer.owned = ()
        says_all = joins or full or bool(known)
        command = ConsumerHeartbeat(
            group=GROUP,
            member_id=consumer.member_id,
            epoch=epoch,
            instance_id=consumer.instance_id,
            rack_id=None,
            rebalance_timeout_ms=60_000 if says_all else -1,
            topics=consumer.topics if says_all else None,
            regex=(consumer.regex or "") if says_all else None,
            assignor=consumer.assignor,
            owned=consumer.owned if tells_owned else None,
            client_id=name,
            client_host="/127.0.0.1",
        )
        decision = self.run(lambda machine, now: machine.consumer_heartbeat(command, Ticket(name, "beat"), now))
        result = decision.responses[-1].response
        if result.error is ErrorCode.NONE:
            consumer.epoch = result.epoch
            if result.assignment is not None and not keep:
                consumer.owned = result.assignment
        elif result.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            consumer.epoch, consumer.owned = 0, ()
        return result

    def settle(self, *names, rounds=6):
        for _ in range(rounds):
            for name in names:
                self.beat(name)

    def shares(self):
        return {name: sorted(part for _, part in consumer.owned) for name, consumer in self.consumers.items()}

    @property
    def consumer_group(self):
        return self.machine.tables.consumer_groups.get(GROUP)
