"""Runs a script about one group: commands, `----`, and what the members and the group said to them.

join NAME [id=new] [instance=I] [protocols=x,y] [rejoin=now]    sync NAME [NAME=ASSIGNMENT ...]
beat NAME      leave NAME ...      commit NAME TOPIC/PARTITION=OFFSET ...      offsets
wait MILLISECONDS      restart      group      forget NAME      delete
"""

from headrace.core.groups.commands import JoinResult, SyncResult
from headrace.model.errors import ErrorCode
from tests.groups.harness import Harness, Ticket

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


class Runner:
    def __init__(self):
        self.harness = Harness(initial_rebalance_delay_ms=3_000)

    def run(self, commands):
        lines = []
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
            what = (
                f"assigned {response.assignment.decode() or 'nothing'}" if not response.error else response.error.name
            )
        else:
            errors = [response] if isinstance(response, ErrorCode) else response
            what = ", ".join(getattr(error, "error", error).name for error in errors)
        return f"{ticket.name or 'nobody'}: {ticket.kind} {what}"

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

    def do_commit(self, name, *offsets):
        wanted = {}
        for each in offsets:
            where, offset = each.split("=")
            topic, partition = where.split("/")
            wanted[topic, int(partition)] = int(offset)
        self.harness.commit("" if name == "nobody" else name, wanted)

    def do_offsets(self):
        return [f"{topic}/{partition} at {offset}" for (topic, partition), offset in self.harness.fetch().items()]

    def do_wait(self, duration_ms):
        self.harness.wait(float(duration_ms))

    def do_restart(self):
        self.harness.restart()

    def do_forget(self, name):
        """The client starts again and knows nothing of its earlier life."""
        self.harness.member(name).member_id = ""

    def do_delete(self):
        self.harness.run(lambda machine, now: machine.delete_group("g", Ticket("", "delete"), now))

    def do_group(self):
        group = self.harness.group
        if group is None:
            return ["no group"]
        return [f"{group.state} generation {group.generation} members {','.join(group.members) or 'none'}"]
