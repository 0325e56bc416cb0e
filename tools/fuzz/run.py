"""Run the fuzz campaigns: decodes of every target, then hostile frames at a running broker.

    python -m tools.fuzz.run --decodes 500000 --frames 1000000
    python -m tools.fuzz.run --decodes 10000000 --only produce-request segment-recovery --minutes 30

Needs nothing but the development environment: inputs are mutated by seed, so the same command reads the same inputs.
Ends with status 1 when anything was found; each finding is printed with the input that repeats it.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tools.fuzz.campaign import Outcome, attack, bounded_address_space
from tools.fuzz.catalog import targets

FRAMES_PER_ROUND = 100_000
PROGRESS_S = 10.0


class Record:
    """Write what was reached so far, to the terminal and to a file that is whole even if the run is cut short."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: dict[str, dict[str, object]] = {}
        self._written_s = 0.0

    def note(self, name: str, row: dict[str, object], *, final: bool = False) -> None:
        self._rows[name] = row
        now_s = time.monotonic()
        if self._path is not None and (final or now_s - self._written_s >= PROGRESS_S):
            self._path.write_text(json.dumps(self._rows, indent=1))
            self._written_s = now_s


def decode_all(names: Sequence[str], *, decodes: int, seed: int, until: float, record: Record) -> int:
    """The number of targets in which something was found."""
    broken = 0
    with bounded_address_space():
        for name in names:
            outcome = attack(
                targets()[name],
                decodes=decodes,
                seed=seed,
                until=until,
                progress=lambda outcome: record.note(outcome.target, _row(outcome)),
            )
            record.note(name, _row(outcome), final=True)
            _print_outcome(outcome)
            broken += bool(outcome.findings)
    return broken


def _row(outcome: Outcome) -> dict[str, object]:
    row = asdict(outcome)
    row["findings"] = [kind for _, kind in outcome.findings]
    del row["kinds"]
    return row


def _print_outcome(outcome: Outcome) -> None:
    microseconds = 1e6 * outcome.elapsed_s / max(outcome.decodes, 1)
    share = outcome.accepted / max(outcome.decodes, 1)
    growth = outcome.resident_growth / 1e6
    print(
        f"{outcome.target:40} {outcome.decodes:11,} decodes  {share:4.0%} accepted  {microseconds:7.1f} us each"
        f"  memory +{growth:.1f} MB  {len(outcome.findings)} findings",
        flush=True,
    )
    for data, kind in outcome.findings:
        print(f"  {kind}\n    echo {data.hex()} >> tests/fuzz/findings/{outcome.target}.hex", flush=True)


def send_frames(frames: int, *, seed: int, until: float, record: Record) -> int:
    from tests.hostile.socket_fuzzer import SocketCampaign

    with SocketCampaign(seed=seed) as campaign:
        while campaign.frames < frames and time.monotonic() < until:
            campaign.send(min(FRAMES_PER_ROUND, frames - campaign.frames), until=until)
            report = campaign.report()
            record.note("socket-frames", report, final=True)
            print(json.dumps(report), flush=True)
        complaints = campaign.complaints()
    for complaint in complaints:
        print(f"  {complaint}", flush=True)
    return len(complaints)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decodes", type=int, default=0, help="inputs for each target")
    parser.add_argument("--frames", type=int, default=0, help="hostile frames sent to a running broker")
    parser.add_argument("--only", nargs="+", metavar="TARGET", help="these targets instead of all")
    parser.add_argument("--without", nargs="+", default=[], metavar="TARGET", help="all targets but these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long, however far it is")
    parser.add_argument("--record", type=Path, help="a JSON file to write what was reached to")
    options = parser.parse_args(arguments)
    unknown = {*(options.only or ()), *options.without} - targets().keys()
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    until = time.monotonic() + options.minutes * 60
    record = Record(options.record)
    broken = 0
    if options.decodes:
        names = [name for name in options.only or targets() if name not in options.without]
        broken += decode_all(names, decodes=options.decodes, seed=options.seed, until=until, record=record)
    if options.frames:
        broken += send_frames(options.frames, seed=options.seed, until=until, record=record)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
