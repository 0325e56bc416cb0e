"""Runs a script about one group: commands, `----`, and what the members and the group said to them.

join NAME [id=new] [instance=I] [protocols=x,y] [rejoin=now]    sync NAME [NAME=ASSIGNMENT ...]
beat NAME      leave NAME ...      commit NAME [in=PRODUCER] TOPIC/PARTITION=OFFSET ...      offsets [stable]
wait MILLISECONDS      restart      group      forget NAME      delete      end PRODUCER commit|abort

Of groups that move between the protocols: `come` and `share` are a join and a sync of a consumer that reads topic t,
whose leader deals out its six partitions; `consume` and `quit` are heartbeats of a member of KIP-848.
"""

from typing import Any

from headrace.core.groups.commands import ConsumerHeartbeatResult, JoinResult, SyncResult
from headrace.core.groups.subscriptions import assigned_partitions
from headrace.model.errors import ErrorCode
from tests.groups.mixed import MixedHarness

MARK = "----"


def parts(text):
    """(commands, expected lines) of every block; comments and empty lines before the commands stay with them."""
    commands: list[str] = []
    expected: list[str] | None = None
    found = []
    for line in text.splitlines():
        if line == MARK:
            expected = []
        elif expected is None:
            commands.append(line)
        elif line.strip():
            expected.append(line)
        else:
            found.append((commands, expected))
            commands, expected = [], None
    if commands or expected:
        found.append((commands, expected or []))
    return found


def rewritten(text):
    """The same script with what happens now as the expected lines."""
    runner = Runner()
    blocks = [[*commands, MARK, *runner.run(commands)] for commands, _ in parts(text)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def assigned(assignment):
    """The partitions of a consumer, or what a script gave instead."""
    found = assigned_partitions(assignment)
    return assignment.decode() or "nothing" if found is None else numbers(found)


def numbers(partitions):
    return ",".join(str(partition) for _, partition in partitions) or "nothing"


class Runner:
    def __init__(self):
        self.harness = MixedHarness(initial_rebalance_delay_ms=3_000)

    def run(self, commands):
        lines: list[Any] = []
        for command in commands:
            words = command.partition("#")[0].split()
            if words:
                lines += getattr(self, f"do_{words[0]}")(*words[1:]) or []
                lines += [self.told(*each) for each in self.harness.take_outcomes() if each[0].kind != "fetch"]
        return lines

    def told(self, ticket, response):
        if isinstance(response, JoinResult):
            what = self.joined(response)
        elif isinstance(response, SyncResult):
            what = f"assigned {assigned(response.assignment)}" if not response.error else response.error.name
        elif isinstance(response, ConsumerHeartbeatResult):
            owns = "" if response.assignment is None else f" has {numbers(response.assignment)}"
            what = response.error.name if response.error else f"epoch {response.epoch}{owns}"
        else:
            errors = [response] if isinstance(response, ErrorCode) else response
            what = ", ".join(getattr(error, "error", error).name for error in errors)
        return f"{ticket.name or 'admin'}: {ticket.kind} {what}"

    def joined(self, response):
        if response.error:
            return response.error.name
        text = f"generation {response.generation} {response.protocol}"
        if response.leader == response.member_id:
            text += f" leads {','.join(each.member_id for each in response.members)}"
        return text + (" skips" if response.skip_assignment else "")

    def do_join(self, name, *options):
        given = dict(option.split("=", 1) for option in options)
        known = {}
        if "protocols" in given:
            known["protocols"] = tuple((each, b"") for each in given["protocols"].split(","))
        if "instance" in given:
            known["instance_id"] = given["instance"]
        self.harness.join(name, required=given.get("id") == "new", **known)

    def do_sync(self, name, *assignments):
        self.harness.sync(name, {key: value.encode() for key, value in (each.split("=") for each in assignments)})

    def do_beat(self, name):
        self.harness.heartbeat(name)

    def do_leave(self, *names):
        self.harness.leave(*names)

    def do_come(self, name, *options):
        given = dict(option.split("=", 1) for option in options)
        self.harness.come(name, **({"instance_id": given["instance"]} if "instance" in given else {}))

    def do_share(self, name):
        self.harness.collect(name)

    def do_consume(self, name, *options):
        given = dict(option.split("=", 1) for option in options)
        self.harness.beat(name, **({"instance_id": given["instance"]} if "instance" in given else {}))

    def do_quit(self, name):
        self.harness.beat(name, epoch=-1)

    def do_end(self, producer, outcome):
        self.harness.end_transaction(int(producer), commit=outcome == "commit")

    def do_commit(self, name, *offsets):
        wanted = {}
        producer = next((int(each[3:]) for each in offsets if each.startswith("in=")), None)
        for each in offsets:
            if each.startswith("in="):
                continue
            where, offset = each.split("=")
            topic, partition = where.split("/")
            wanted[topic, int(partition)] = int(offset)
        self.harness.commit("" if name == "admin" else name, wanted, producer=producer)

    def do_offsets(self, *options):
        found = self.harness.fetch(stable="stable" in options)
        return [
            f"{topic}/{partition} {offset.name if isinstance(offset, ErrorCode) else f'at {offset}'}"
            for (topic, partition), offset in found.items()
        ]

    def do_wait(self, duration_ms):
        self.harness.wait(float(duration_ms))

    def do_restart(self):
        self.harness.restart()

    def do_forget(self, name):
        """The client starts again and knows nothing of its earlier life."""
        self.harness.member(name).member_id = ""

    def do_delete(self):
        self.harness.delete_group()

    def do_group(self):
        group, consumers = self.harness.group, self.harness.consumer_group
        if consumers is not None:
            members = [
                f"{member_id} ({'classic, ' if member.subscription.classic else ''}epoch {member.current.epoch})"
                for member_id, member in consumers.members.items()
            ]
            return [f"KIP-848 {consumers.state} epoch {consumers.epoch} members {', '.join(members) or 'none'}"]
        if group is None:
            return ["no group"]
        return [f"{group.state} generation {group.generation} members {','.join(group.members) or 'none'}"]
