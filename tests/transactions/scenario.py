"""Runs a script about one transactional id: commands, `----`, and what producers and coordinator said to them.

version LEVEL      init NAME [timeout=MS] [resume]      add NAME TOPIC/PARTITION ...      check NAME TOPIC/PARTITION ...
write NAME TOPIC/PARTITION ... (adds as a partition's leader does, which waits)
commit NAME        abort NAME        retry NAME commit|abort        markers-written        wait MILLISECONDS
restart            state             use NAME PRODUCER/EPOCH                script-epoch EPOCH
"""

from typing import Any

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import ProducerResult
from headrace.model.errors import ErrorCode
from tests.groups.scenario import MARK, parts
from tests.transactions.harness import Harness


def rewritten(text):
    """The same script with what happens now as the expected lines."""
    runner = Runner()
    blocks = [[*commands, MARK, *runner.run(commands)] for commands, _ in parts(text)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def partition(text):
    topic, number = text.split("/")
    return topic, int(number)


def producer(text):
    return PendingProducer(*map(int, text.split("/")))


class Runner:
    def __init__(self):
        self.harness = Harness()

    def run(self, commands):
        lines: list[Any] = []
        for command in commands:
            words = command.partition("#")[0].split()
            if words:
                lines += getattr(self, f"do_{words[0].replace('-', '_')}")(*words[1:]) or []
                lines += filter(None, (self.told(*each) for each in self.harness.take_outcomes()))
        return lines

    def told(self, ticket, response):
        if ticket.kind == "markers":
            return "markers: " + ", ".join(self.ending(each) for each in response)
        if ticket.kind == "complete":
            return f"coordinator: complete {response.name}"
        if isinstance(response, ProducerResult):
            known = response.producer.producer_id >= 0
            what = "/".join(map(str, response.producer)) if known else response.error.name
        elif isinstance(response, ErrorCode):
            what = response.name
        else:
            what = ", ".join(f"{topic}/{number} {error.name}" for (topic, number), error in response.items())
        return f"{ticket.name}: {ticket.kind} {what}"

    def ending(self, ending):
        where = ",".join(f"{topic}/{number}" for topic, number in sorted(ending.partitions)) or "nowhere"
        what = "commit" if ending.commit else "abort"
        return f"{what} {'/'.join(map(str, ending.producer))} to {where}" + (" timed out" if ending.timed_out else "")

    def do_version(self, level):
        self.harness = Harness(version=int(level))

    def do_init(self, name, *options):
        given = dict(option.partition("=")[::2] for option in options)
        self.harness.init(name, timeout_ms=int(given.get("timeout", 60_000)), resume="resume" in given)

    def do_add(self, name, *partitions):
        self.harness.add(name, *map(partition, partitions))

    def do_write(self, name, *partitions):
        self.harness.add(name, *map(partition, partitions), waits=True)

    def do_check(self, name, *partitions):
        self.harness.check(name, *map(partition, partitions))

    def do_commit(self, name):
        self.harness.end(name, commit=True)

    def do_abort(self, name):
        self.harness.end(name, commit=False)

    def do_retry(self, name, what):
        """The answer to its last request was lost."""
        self.harness.end(name, commit=what == "commit", producer=self.harness.producer(name).before)

    def do_use(self, name, who):
        self.harness.producer(name).producer = producer(who)

    def do_script_epoch(self, epoch):
        """Act as if this many producers had come and gone; the log records it, and the last of them knows."""
        self.harness.skip_to_epoch(int(epoch))

    def do_markers_written(self):
        self.harness.complete()

    def do_wait(self, duration_ms):
        self.harness.wait(float(duration_ms))

    def do_restart(self):
        self.harness.restart()

    def do_state(self):
        found = self.harness.transaction
        if found is None:
            return ["no such id"]
        where = ",".join(f"{topic}/{number}" for topic, number in sorted(found.partitions)) or "nothing"
        return [f"{found.state} {found.producer_id}/{found.producer_epoch} with {where}"]
