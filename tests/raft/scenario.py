"""Runs a script about a Raft cluster: commands, `----`, and what the replicas said to them.

cluster voters=N [observers=N] [batch=N]      elect NODE        tick NODE
wait MILLISECONDS      skip MILLISECONDS (without anything happening)
propose NODE TEXT ...      read NODE       add NODE VOTER       remove NODE VOTER       transfer NODE [VOTER]
deliver [COUNT]    quiet (deliver without showing messages)    drop (lose all messages on their way)
cut NODE ... | NODE ...    heal      crash NODE ...    start NODE ...    wipe NODE DIRECTORY    snapshot NODE
hold-syncs NODE    sync NODE    state [NODE ...]    log [NODE ...]
"""

from typing import Any

from headrace.core.raft.events import AddVoter, Propose, Read, RemoveVoter, TransferLeadership
from headrace.sim.machines.text import message_text, outcome_text, voters_text
from tests.groups.scenario import MARK, parts
from tests.raft.harness import Harness, key


def rewritten(text):
    """The same script with what happens now as the expected lines."""
    runner = Runner()
    blocks = [[*commands, MARK, *runner.run(commands)] for commands, _ in parts(text)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


class Runner:
    def __init__(self):
        self.harness = Harness()

    def run(self, commands):
        lines: list[Any] = []
        for command in commands:
            words = command.partition("#")[0].split()
            if words:
                lines += getattr(self, f"do_{words[0].replace('-', '_')}")(*words[1:]) or []
                lines += map(outcome_text, self.harness.take_outcomes())
        return lines

    def nodes(self, words):
        return [int(word) for word in words] or list(self.harness.replicas)

    def do_cluster(self, *options):
        given = dict(option.split("=") for option in options)
        self.harness = Harness(
            voters=int(given["voters"]),
            observers=int(given.get("observers", 0)),
            append_entries_max=int(given.get("batch", 1_000)),
        )

    def do_elect(self, node):
        self.harness.elect(int(node))

    def do_tick(self, node):
        self.harness.tick(int(node))

    def do_wait(self, duration_ms):
        self.harness.wait(float(duration_ms))

    def do_skip(self, duration_ms):
        self.harness.now_ms += float(duration_ms)

    def do_propose(self, node, *texts):
        for text in texts:
            self.harness.step(int(node), Propose(ticket=text, payloads=(text.encode(),)))

    def do_read(self, node):
        self.harness.step(int(node), Read(ticket="read"))

    def do_add(self, node, voter):
        self.harness.step(int(node), AddVoter(ticket=f"add {voter}", voter=key(voter)))

    def do_remove(self, node, voter):
        self.harness.step(int(node), RemoveVoter(ticket=f"remove {voter}", voter=key(voter)))

    def do_transfer(self, node, voter=None):
        to = None if voter is None else key(voter)
        self.harness.step(int(node), TransferLeadership(ticket="transfer", to=to))

    def do_deliver(self, count=None):
        lines = []
        left = int(count) if count else 1_000
        while self.harness.messages and left:
            left -= 1
            message = self.harness.messages[0]
            lost = (message.source.node_id, message.to.node_id) in self.harness.cuts
            lines.append(message_text(message) + (" (lost)" if lost else ""))
            self.harness.deliver_one()
        return lines

    def do_quiet(self):
        self.harness.deliver()

    def do_drop(self):
        self.harness.messages.clear()

    def do_cut(self, *words):
        border = words.index("|")
        self.harness.cut(self.nodes(words[:border]), self.nodes(words[border + 1 :]))

    def do_heal(self):
        self.harness.heal()

    def do_crash(self, *nodes):
        for node in nodes:
            self.harness.crash(int(node))

    def do_start(self, *nodes):
        for node in nodes:
            self.harness.start(int(node))

    def do_wipe(self, node, directory):
        self.harness.wipe(int(node), directory)

    def do_snapshot(self, node):
        self.harness.snapshot(int(node))

    def do_hold_syncs(self, node):
        self.harness[int(node)].holds_syncs = True

    def do_sync(self, node):
        self.harness[int(node)].holds_syncs = False
        self.harness.sync(int(node))

    def do_state(self, *nodes):
        return [self.state_line(node) for node in self.nodes(nodes)]

    def state_line(self, node):
        replica = self.harness[node]
        if replica.machine is None:
            return f"{replica.key}: down"
        state = replica.state
        leader = "none" if state.leader is None else state.leader
        return f"{replica.key}: {state.role} term {state.term} leader {leader} commit {state.commit_index}"

    def do_log(self, *nodes):
        lines = []
        for node in self.nodes(nodes):
            replica = self.harness[node]
            log = replica.state.log
            terms = " ".join(
                f"{index}@{log.term_at(index)}" for index in range(log.snapshot.index + 1, log.last_index + 1)
            )
            start = f"snapshot {log.snapshot.index}@{log.snapshot.term} " if log.snapshot.index else ""
            applied = " ".join(replica.applied) or "nothing"
            lines.append(f"{replica.key}: {start}{terms}; voters {voters_text(log.voters)}; applied {applied}")
        return lines
