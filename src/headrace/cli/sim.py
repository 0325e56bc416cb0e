"""`headrace sim`: run brokers in a simulated environment with faults and check their guarantees."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial

import click

from headrace.cli.console import print_json, print_table, progress
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.options import json_option
from headrace.cli.termination import TERMINATION_SIGNALS, end_in_order, held_back
from headrace.operations.amounts import count_text
from headrace.sim.report import MET_PERCENT_MIN, SeedsReport, failure_text
from headrace.sim.results import SeedResult
from headrace.sim.run import NODE_SCENARIOS, run_seed

SEEDS_PER_TASK = 4
RANGE_SIGN = ".."
TOO_EASY = "too few events occurred for it to count"
NODES, MACHINES = "nodes", "machines"
SINGLE, CLUSTER = "log", "cluster"
BROKERS_MAX = 9


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise click.BadParameter(f'"{text}" is not a number, such as 7 or 0x5eed') from None


def _seed(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    return None if value is None else _number(value)


def _seeds(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Sequence[int] | None:
    if value is None:
        return None
    first, sign, last = value.partition(RANGE_SIGN)
    if not sign or _number(last) < _number(first):
        raise click.BadParameter(f'"{value}" is not a range, such as 0{RANGE_SIGN}299')
    return range(_number(first), _number(last) + 1)


@click.command("sim")
@click.option("--seed", callback=_seed, metavar="N", help="Seed of the run. [default: 0]")
@click.option("--seeds", callback=_seeds, metavar=f"A{RANGE_SIGN}B", help="Run all seeds from A to B.")
@click.option(
    "--scenario",
    type=click.Choice([scenario.name for scenario in NODE_SCENARIOS]),
    help=f"Scenario: the actions of the clients and the checks. [default: {SINGLE}; {CLUSTER} with several brokers]",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, BROKERS_MAX),
    help="Number of brokers. [default: 1; 3 in a cluster and at the level of machines]",
)
@click.option(
    "--level",
    type=click.Choice((NODES, MACHINES)),
    default=NODES,
    show_default=True,
    help="Whole brokers, or only their state machines: thousands of seeds per minute.",
)
@click.option("--minutes", type=click.FloatRange(min=0.01), help="Virtual minutes. [default: 1; 0.07 for machines]")
@click.option("--trace", is_flag=True, help="Print every event.")
@click.option("--jobs", type=click.IntRange(min=1), help="Parallel runs with --seeds. [default: the number of CPUs]")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    seed: int | None,
    seeds: Sequence[int] | None,
    scenario: str | None,
    brokers: int | None,
    level: str,
    minutes: float | None,
    trace: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Simulate one broker or several with faults and check their guarantees.

    The seed determines everything: configs, clients and faults. The same seed gives the same trace, so every failure
    can be reproduced. Exits with 1 if a guarantee is violated.
    """
    end_in_order(ctx)
    if seed is not None and seeds is not None:
        raise click.UsageError("give --seed or --seeds, not both")
    run = partial(run_seed, scenario=_chosen(scenario, brokers, level), brokers=brokers, minutes=minutes)
    if seeds is None:
        result = run(seed or 0, show=click.echo if trace else None)
        _show_one(result, as_json=as_json)
        if not result.ok:
            ctx.exit(EXIT_FAILED)
        return
    if trace:
        raise click.UsageError("--trace shows one seed: use it with --seed")
    results = []
    running = _run_all(run, seeds, jobs=jobs or os.cpu_count() or 1)
    with closing(running), progress("seeds", total=len(seeds)) as advance:
        for result in running:
            results.append(result)
            advance(1)
    report = SeedsReport(results)
    _show_many(report, as_json=as_json)
    if not report.ok:
        ctx.exit(EXIT_FAILED)


def _chosen(scenario: str | None, brokers: int | None, level: str) -> str:
    """Return the scenario of the run, which the other options may imply."""
    if level == MACHINES:
        if scenario is not None:
            raise click.UsageError("--scenario chooses a scenario of whole brokers: leave it out with --level machines")
        return MACHINES
    is_cluster = brokers is not None and brokers > 1
    if is_cluster and scenario not in (None, CLUSTER):
        raise click.UsageError(f"the scenario {scenario} has one broker: leave out --scenario or --brokers")
    return scenario or (CLUSTER if is_cluster else SINGLE)


def _run_all(run: Callable[[int], SeedResult], seeds: Sequence[int], *, jobs: int) -> Generator[SeedResult, None, None]:
    pool = ProcessPoolExecutor(max_workers=jobs, initializer=_end_when_told)
    try:
        # Ctrl-C reaches all processes of a terminal: workers ignore it from the start and leave it to the parent.
        with held_back((signal.SIGINT, *TERMINATION_SIGNALS)):
            results = pool.map(run, seeds, chunksize=SEEDS_PER_TASK)
        yield from results
    except BaseException:
        for worker in multiprocessing.active_children():  # their results are no longer needed
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_when_told() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION_SIGNALS)


def _show_one(result: SeedResult, *, as_json: bool) -> None:
    if as_json:
        print_json(_fields(result))
        return
    if not result.ok:
        click.echo(failure_text(result))
    else:
        click.echo(
            f"{result.steps} turns, {result.events} events, {count_text(result.restarts, 'start')}, "
            f"{result.progress} {result.scenario.progress_unit}"
        )
        if result.met:
            click.echo("met: " + ", ".join(f"{fault} {times}" for fault, times in sorted(result.met.items())))
        if not result.counts:
            click.echo(TOO_EASY)
    click.echo(result.last_line)


def _show_many(report: SeedsReport, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"seeds": [_fields(result) for result in report.results], "met": report.met(), "rare": report.rare()}
        )
        return
    total = len(report.results)
    rows = [(fault, met, f"{100 * met / total:.0f} %", report.times(fault)) for fault, met in report.met().items()]
    print_table(("fault", "seeds", "share", "times"), rows, right=("seeds", "share", "times"))
    for result in report.failed:
        click.echo(failure_text(result))
    for result in report.uncounted:
        click.echo(f"{result.last_line}, but {TOO_EASY}")
    for fault in report.rare():
        click.echo(f"{fault}: occurred in fewer than {MET_PERCENT_MIN} % of the seeds, so it is hardly tested")
    for result in report.failed:
        click.echo(result.last_line)
    click.echo(
        f"{count_text(total, 'seed')}, {len(report.failed)} failed, {len(report.uncounted)} too easy to count: "
        f"{report.minutes:g} virtual minutes, {count_text(report.restarts, 'start')}, {_deeds_text(report)}"
    )


def _deeds_text(report: SeedsReport) -> str:
    return f"{report.progress} {report.results[0].scenario.progress_unit}"


def _fields(result: SeedResult) -> dict[str, object]:
    return {
        "seed": result.seed,
        "minutes": result.minutes,
        "ok": result.ok,
        "counts": result.counts,
        "trace": result.trace_hash,
        "invariant": result.violation or None,
        "turns": result.steps,
        "events": result.events,
        "starts": result.restarts,
        "scenario": result.scenario.name,
        "brokers": result.brokers,
        "progress": result.progress,
        "met": dict(sorted(result.met.items())),
        "tail": list(result.tail),
        "again": result.command,
    }
