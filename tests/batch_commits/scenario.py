"""Runs a script about one owner: commands, `----`, and what tasks, runs and coordinator said to them.

begin NAME RUN BATCH ATTEMPT [timeout=MS]      write NAME TOPIC/PARTITION ...      end NAME commit|abort (by itself)
commit-batch RUN BATCH NAME ... [write=ID]      abort-batch RUN BATCH      markers-written [COUNT]      wait MS
restart      pool      owner
"""

from headrace.core.transactions.batch_commands import BatchResult
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import OWNER, BatchHarness
from tests.groups.scenario import MARK, parts
from tests.transactions.scenario import Runner, partition


def rewritten(text):
    """The same script with what happens now as the expected lines."""
    runner = BatchRunner()
    blocks = [[*commands, MARK, *runner.run(commands)] for commands, _ in parts(text)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


class BatchRunner(Runner):
    def __init__(self):
        self.harness = BatchHarness()

    def told(self, ticket, response):
        if not isinstance(response, BatchResult):
            return super().told(ticket, response)
        if response.error is not ErrorCode.NONE:
            what = response.error.name
        elif response.already_committed:
            what = "already committed"
        elif response.transactional_id:
            what = f"{response.transactional_id} as {'/'.join(map(str, response.producer))}"
        else:
            what = f"done, {response.aborted} aborted" if ticket.kind == "abort" else "done"
        return f"{ticket.name}: {ticket.kind} {what}"

    def ending(self, ending):
        return f"{ending.transactional_id} {super().ending(ending)}"

    def do_begin(self, name, run, batch, attempt, *options):
        given = dict(option.partition("=")[::2] for option in options)
        timeout_ms = int(given.get("timeout", 0))
        self.harness.begin(name, run=run, batch=int(batch), attempt=int(attempt), timeout_ms=timeout_ms)

    def do_write(self, name, *partitions):
        self.harness.write(name, *map(partition, partitions))

    def do_end(self, name, what):
        self.harness.finish(name, commit=what == "commit")

    def do_commit_batch(self, run, batch, *words):
        ids = [word.removeprefix("write=") for word in words if word.startswith("write=")]
        names = [word for word in words if not word.startswith("write=")]
        self.harness.commit_batch(*names, run=run, batch=int(batch), write_id="".join(ids))

    def do_abort_batch(self, run, batch):
        self.harness.abort_batch(run=run, batch=int(batch))

    def do_markers_written(self, count=None):
        self.harness.complete(None if count is None else int(count))

    def do_pool(self):
        machine = self.harness.machine
        for slot in sorted(self.harness.pool.slots):
            found = machine.tables.transactions[f"{OWNER}#{slot}"]
            writer = found.writer
            who = f"batch {writer.batch_id} of run {writer.run}" if writer.run else "in the pool"
            yield f"{OWNER}#{slot} {found.producer_id}/{found.producer_epoch} {found.state}, {who}"

    def do_owner(self):
        found = self.harness.owner
        if found is None:
            return ["no such owner"]
        writers = ",".join(f"#{each.slot}" for each in found.committed_writers) or "none"
        older = ",".join(found.older_runs) or "none"
        return [f"run {found.run} after {older}; batch {found.committed_batch_id} by {writers}"]
