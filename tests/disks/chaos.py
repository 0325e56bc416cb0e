"""The long runs: `python -m tests.disks.chaos [sweep] [kills] [pauses]`. Prints a line for each; exits 1 on a red one.

`sweep` ends the process at every named point, before, in and after the call; `kills` ends it at random moments of the
load; `pauses` stops it for some seconds with SIGSTOP. After each, nothing acknowledged may be lost or doubled.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.disks.campaign import FINISH_S_MAX, Campaign
from tests.disks.faulty_disk import AFTER, BEFORE, HALF

CENSUS_S = 2.0
POINT_S_MAX = 4.0
PHASES = ("ready", "start")


def plans_of(counts, phase, *, numbers_max):
    """Every point of a census, at its first calls and at some spread over the rest, with all the ways to end there."""
    for name in sorted(counts):
        count = counts[name]
        step = max(count // numbers_max, 1)
        for number in sorted({1, *range(1, count + 1, step)})[:numbers_max]:
            ways = (BEFORE, HALF, AFTER) if name.startswith("write ") else (BEFORE, AFTER)
            for when in ways:
                yield {"point": name, "number": number, "when": when, "phase": phase}


def sweep(
    folder,
    *,
    seed,
    numbers_max,
    check_every,
    only=None,
    part=(0, 1),
    census_s=CENSUS_S,
    point_s_max=POINT_S_MAX,
):
    """Return (points met, ends there, points that the load did not come to, acknowledged).

    `part` (k, n) takes every n-th end from the k-th on, so that n runs make a whole sweep.
    """
    names, ends, missed = set(), 0, []
    with Campaign(folder, seed=seed) as campaign:
        time.sleep(0.5)
        campaign.broker.kill()
        plans = []
        for phase in PHASES:
            counts = campaign.counted(phase, census_s, Path(folder) / "counts.json")
            plans += plans_of(counts, phase, numbers_max=numbers_max)
        if only is not None:
            plans = campaign.source.sample(plans, min(only, len(plans)))
        place, parts = part
        plans = plans[place::parts]
        for place, plan in enumerate(plans):
            reached = campaign.run_until_dead(plan, point_s_max)
            names.add(f"{plan['point']} at {plan['phase']}")
            ends += reached
            if not reached:
                missed.append(f"{plan['point']} {plan['number']} at {plan['phase']}")
            if (place + 1) % check_every == 0:
                campaign.broker.start()
                try:
                    campaign.check()
                except AssertionError as error:
                    raise AssertionError(f"after {plans[max(0, place + 1 - check_every) : place + 1]}") from error
                campaign.broker.kill()
        acked = campaign.finish()
    return names, ends, missed, acked


def random_kills(folder, *, seed, count, check_every, wait_s_max=0.4):
    with Campaign(folder, seed=seed, pace_s=0.0) as campaign:
        for number in range(count):
            campaign.kill_at_random(wait_s_max)
            campaign.broker.start()
            if (number + 1) % check_every == 0:
                campaign.check()
        return campaign.kills, campaign.finish()


def pauses(folder, *, seed, count, seconds):
    """SIGSTOP under load, each time between these two of seconds: the load goes on, and nothing is lost."""
    with Campaign(folder, seed=seed) as campaign:
        for _ in range(count):
            time.sleep(0.5)
            campaign.broker.process.send_signal(signal.SIGSTOP)
            time.sleep(campaign.source.uniform(*seconds))
            before = len(campaign.ledger)
            campaign.broker.process.send_signal(signal.SIGCONT)
            deadline = time.monotonic() + FINISH_S_MAX
            while len(campaign.ledger) < before + 50:
                assert time.monotonic() < deadline, "the load does not go on after a pause"
                time.sleep(0.01)
            campaign.check()
        return count, campaign.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", default=["sweep", "kills", "pauses"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--numbers", type=int, default=5, help="calls of one point to end at")
    parser.add_argument("--points", type=int, help="only this many ends, drawn at random")
    parser.add_argument(
        "--part", type=_part, default=(0, 1), metavar="K/N", help="only every N-th end, from the K-th on"
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--pauses", type=int, default=5)
    parser.add_argument("--pause-s", type=_range, default=(5.0, 10.0), metavar="FROM-TO", help="how long a pause is")
    arguments = parser.parse_args()
    green = True
    for run in arguments.runs:
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="headrace-chaos-") as folder:
                line = _line(run, folder, arguments)
        except Exception:
            traceback.print_exc()
            line, green = f"{run}: FAILED, seed {arguments.seed}", False
        print(f"{line} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0 if green else 1


def _part(text):
    place, _, parts = text.partition("/")
    return int(place), int(parts)


def _range(text):
    shortest, _, longest = text.partition("-")
    return float(shortest), float(longest)


def _line(run, folder, arguments):
    if run == "sweep":
        names, ends, missed, acked = sweep(
            folder,
            seed=arguments.seed,
            numbers_max=arguments.numbers,
            check_every=5,
            only=arguments.points,
            part=arguments.part,
        )
        met = f"{len(names)} points, {ends} ends there, {len(missed)} not met"
        return f"sweep: {met}, {acked} acknowledged, 0 lost, 0 twice"
    if run == "kills":
        kills, acked = random_kills(folder, seed=arguments.seed, count=arguments.kills, check_every=10)
        return f"kills: {kills} at random under load, {acked} acknowledged, 0 lost, 0 twice"
    count, acked = pauses(folder, seed=arguments.seed, count=arguments.pauses, seconds=arguments.pause_s)
    how_long = "{:g} to {:g}".format(*arguments.pause_s)
    return f"pauses: {count} of {how_long} s, {acked} acknowledged, 0 lost, 0 twice"


if __name__ == "__main__":
    sys.exit(main())
