"""`python -m tools.bench groups`: offset commits, and rebalances after the death of a member."""

from typing import TYPE_CHECKING

import click

from headrace.cli.bench.loads import seconds_option
from headrace.cli.bench.options import IN_PROCESS, Run, measure, measure_subjects, run_options, setup, show, tell

if TYPE_CHECKING:
    from headrace.bench.brokers import MeasuredBroker
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured
    from tools.bench.rebalance import RebalanceLoad


@click.command()
@click.option(
    "--connections", type=click.IntRange(1), default=32, show_default=True, help="Connections that commit offsets."
)
@click.option("--depth", type=click.IntRange(1), default=1, show_default=True, help="Commits in flight per connection.")
@click.option(
    "--members", type=click.IntRange(2), default=100, show_default=True, help="Members of the group that loses one."
)
@seconds_option
@run_options(rounds=3)
def groups(run: Run, connections: int, depth: int, members: int, seconds: float) -> None:
    """Measure offset commits, and rebalances of a large group after the death of a member, in both protocols.

    Rebalance times count from the end of the dead member's session. A broker given by --bootstrap must have a session
    timeout of 6 s and a heartbeat interval of 1 s for consumer groups.
    """
    from tools.bench.commits import CommitRounds
    from tools.bench.rebalance import CLASSIC, CONSUMER, RebalanceLoad, RebalanceRounds
    from tools.bench.warm_up import warm_up

    found: list[Measurement] = []
    loads = [RebalanceLoad(protocol=protocol, members=members, partitions=members) for protocol in (CLASSIC, CONSUMER)]
    with setup(run, settings=loads[0].settings()) as made:

        def commits(broker: "MeasuredBroker") -> "Measured":
            return CommitRounds(
                broker,
                made.client,
                topic=f"{made.topic_prefix}-commits",
                connections=connections,
                depth=depth,
                seconds=seconds,
            )

        def rebalances(load: "RebalanceLoad") -> "list[Measurement]":
            return measure(
                made,
                run,
                load.name,
                lambda broker: RebalanceRounds(broker, load, topic=made.topic_prefix),
                client=IN_PROCESS,
            )

        name = f"offset commits, {connections} x {depth}"
        subjects = {broker.name: commits(broker) for broker in made.brokers}
        if run.beside:
            for subject, measured in subjects.items():
                warm_up(name, subject, measured, figure="cpu_us_per_request", report=tell)
        found += measure_subjects(run, name, subjects, client=made.client.description)
        for load in loads:
            found += rebalances(load)
    show(found, run)
