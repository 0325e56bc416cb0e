"""One campaign against one target: a number of inputs, limits on time and memory, and every surprise kept."""

import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from tools.fuzz import corpus
from tools.fuzz.mutation import Mutator
from tools.fuzz.target import Finding, Target

CHUNK_INPUTS = 256
"""Inputs between two looks at the clock."""

CHUNK_S_MAX = 10.0
"""An input that has taken so much CPU is one that would be read for ever; a busy machine does not count."""

RESIDENT_GROWTH_MAX = 64 << 20
ADDRESS_SPACE_ROOM = 1 << 30
FINDINGS_KEPT_MAX = 5


@dataclass(slots=True, kw_only=True)
class Outcome:
    target: str
    decodes: int = 0
    accepted: int = 0
    elapsed_s: float = 0.0
    resident_growth: int = 0
    findings: list[tuple[bytes, str]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def note(self, data: bytes, error: BaseException) -> None:
        kind = f"{type(error).__name__}: {error}"[:80]
        if kind not in self.kinds and len(self.findings) < FINDINGS_KEPT_MAX:
            self.kinds.add(kind)
            self.findings.append((data, kind))


def pool_of(target: Target) -> list[bytes]:
    """Everything a mutation may begin with."""
    return [
        *target.seeds(),
        *corpus.load(corpus.CORPUS, target.name),
        *corpus.load(corpus.FINDINGS, target.name),
    ]


def attack(
    target: Target,
    *,
    decodes: int,
    seed: int,
    until: float = float("inf"),
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Read mutated inputs until their number is reached or the monotonic clock shows `until`."""
    outcome = Outcome(target=target.name)
    pool = pool_of(target)
    mutator = Mutator(f"{seed} {target.name}", pool)
    read = target.read
    with _alarm():
        signal.setitimer(signal.ITIMER_PROF, CHUNK_S_MAX)
        with suppress(Exception):
            read(pool[0])  # the modules that it loads are not memory that an input took
        began, resident = time.monotonic(), _resident_bytes()
        while outcome.decodes < decodes and time.monotonic() < until:
            signal.setitimer(signal.ITIMER_PROF, CHUNK_S_MAX)
            for _ in range(min(CHUNK_INPUTS, decodes - outcome.decodes)):
                data = mutator.next()
                try:
                    outcome.accepted += read(data)
                except (Exception, MemoryError) as error:
                    outcome.note(data, error)
                outcome.decodes += 1
            outcome.elapsed_s = time.monotonic() - began
            outcome.resident_growth = _resident_bytes() - resident
            progress(outcome)
    if outcome.resident_growth > RESIDENT_GROWTH_MAX:
        outcome.note(b"", Finding(f"memory grew by {outcome.resident_growth} bytes"))
    return outcome


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise Finding(f"reading takes more than {CHUNK_S_MAX:.0f} s")

    before = signal.signal(signal.SIGPROF, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def bounded_address_space() -> Iterator[None]:
    """A length that is believed shows as a MemoryError, not as a machine that swaps."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE_ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
