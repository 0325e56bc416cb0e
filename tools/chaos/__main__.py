"""Run the campaigns as far as they are not done, show how far they are, and write docs/reliability.md.

make chaos                                   # everything that is left; may be cut short and continues where it was
make chaos ARGS="simulator 'random kills'"   # only these
make chaos ARGS="'known faults' fuzz"         # all whose names begin so
make chaos ARGS="--minutes 30 --jobs 1"      # for so long, one at a time
make chaos ARGS="--from-scratch simulator"   # from the beginning
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import NamedTuple

from headrace.cli.termination import held_back
from headrace.sim.report import MET_PERCENT_MIN
from tools.chaos import page, stops
from tools.chaos.campaigns import Campaign, campaigns, run_slice
from tools.chaos.record import FileRange, Outcome, Record, code_now

BAR_CELLS = 30


class Ran(NamedTuple):
    campaign: Campaign
    part: FileRange
    seconds: float
    outcome: Outcome


class Bar:
    """One line a campaign: overwritten on a terminal, now and then a new one in a file."""

    SHOWN_EVERY_S = 60.0

    def __init__(self) -> None:
        self._overwrites = sys.stdout.isatty()
        self._shown_s = -self.SHOWN_EVERY_S
        self._name = ""

    def show(self, campaign: Campaign, done: int, failed: int) -> None:
        now_s = time.monotonic()
        changed = campaign.name != self._name or done >= campaign.goal
        if not self._overwrites and not changed and now_s - self._shown_s < self.SHOWN_EVERY_S:
            return
        if self._overwrites and campaign.name != self._name and self._name:
            print()
        self._shown_s, self._name = now_s, campaign.name
        filled = BAR_CELLS * min(done, campaign.goal) // campaign.goal
        cells = "#" * filled + "-" * (BAR_CELLS - filled)
        line = f"[{cells}] {campaign.name}: {done:,} of {campaign.goal:,} {campaign.unit}, {failed} failed"
        print(f"\r{line}" if self._overwrites else line, end="" if self._overwrites else "\n", flush=True)


def slices(chosen: Sequence[tuple[int, Campaign]], record: Record) -> Iterator[tuple[int, Campaign, FileRange]]:
    """Yield the remaining slices in order: first those that were begun or failed before."""
    for number, campaign in chosen:
        progress = record.of(campaign.name)
        for part in tuple(progress.open):
            yield number, campaign, part
        while taken := progress.take(campaign.slice, campaign.goal):
            yield number, campaign, taken


def run_all(chosen: Sequence[tuple[int, Campaign]], record: Record, *, jobs: int, until_s: float) -> Iterator[Ran]:
    left = slices(chosen, record)
    running: dict[Future[tuple[float, Outcome]], tuple[Campaign, FileRange]] = {}
    # A pool that forks would copy the state of a worker's campaign into the next one.
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(max_workers=jobs, mp_context=context, initializer=stops.take) as pool,
        _workers_that_end_with_it(),
    ):
        while True:
            while len(running) < jobs and time.monotonic() < until_s and (taken := next(left, None)):
                number, campaign, part = taken
                with held_back(stops.STOPS):
                    running[pool.submit(run_slice, number, part)] = (campaign, part)
            if not running:
                return
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                campaign, part = running.pop(future)
                yield Ran(campaign, part, *future.result())


@contextmanager
def _workers_that_end_with_it() -> Iterator[None]:
    """By Ctrl-C or SIGTERM too: what they were at is begun again another time."""
    before = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def named(asked: str, known: Collection[str]) -> list[str]:
    """The campaign of that name, or all whose names begin with these words."""
    return [asked] if asked in known else [name for name in known if name.startswith((f"{asked} ", f"{asked}:"))]


def main(arguments: Sequence[str]) -> int:
    known = {campaign.name: (number, campaign) for number, campaign in enumerate(campaigns())}
    parser = argparse.ArgumentParser(
        prog="make chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaigns", nargs="*", help="which of them (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="slices at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--from-scratch", action="store_true", help="forget what the chosen campaigns have reached")
    parser.add_argument("--list", action="store_true", help="only show how far each is")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.campaigns if not named(name, known)]
    if unknown:
        parser.error(f"no such campaign: {', '.join(unknown)}; `make chaos ARGS=--list` shows them all")
    record, bar = Record(), Bar()
    chosen = [known[name] for asked in options.campaigns or known for name in named(asked, known)]
    if options.list:
        for _, campaign in chosen:
            print(f"{record.of(campaign.name).done:>12,} of {campaign.goal:>12,} {campaign.unit:8} {campaign.name}")
        return 0
    if options.from_scratch:
        for _, campaign in chosen:
            record.forget(campaign.name)
    for _, campaign in chosen:
        if lacking := campaign.lacks():
            print(f"{campaign.name}: left out, {lacking}", flush=True)
    chosen = [each for each in chosen if not each[1].lacks()]
    code, until_s = code_now(), time.monotonic() + 60 * options.minutes
    for ran in run_all(chosen, record, jobs=options.jobs, until_s=until_s):
        progress = record.of(ran.campaign.name)
        progress.ended(ran.part, ran.seconds, ran.outcome, code)
        record.save()
        for failure in ran.outcome.failures:
            print(f"\n{failure.what}\nagain: {failure.again}", flush=True)
        bar.show(ran.campaign, progress.done, len(progress.failures))
    page.write(record)
    failed = sum(len(record.of(campaign.name).failures) for _, campaign in chosen)
    print(f"\n{failed} slices failed; docs/reliability.md tells what was reached")
    for fault in (rare := page.rare(record)):
        print(f"{fault}: occurred in fewer than {MET_PERCENT_MIN} % of the seeds, so it is hardly tested")
    return 1 if failed or rare else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
