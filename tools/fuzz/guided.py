"""Coverage-guided fuzzing by atheris, where it is installed (requirements/fuzz.txt), or by seeded mutation without it.

    python -m tools.fuzz.guided produce-request --seconds 60
    python -m tools.fuzz.guided segment-recovery --mutations 20000

What takes new steps is added to the target's corpus; what breaks something is written to its findings.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.fuzz import corpus
from tools.fuzz.mutation import Mutator
from tools.fuzz.target import INPUT_BYTES_MAX

CRASH_PREFIX = "crash-"
MEMORY_MB_MAX = 1024
INPUT_S_MAX = 10


def fuzz_here(name: str, folder: Path, options: Sequence[str]) -> None:
    """Does not return: libFuzzer ends the process."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["headrace"]):
        from tools.fuzz.catalog import targets

        target = targets()[name]
        for seed in target.seeds()[:1]:
            target.read(seed)  # modules that are imported at their first use must be instrumented, too
    atheris.Setup([sys.argv[0], str(folder), f"-max_len={INPUT_BYTES_MAX}", *options], target.read)
    atheris.Fuzz()


def explore(name: str, *, seconds: int) -> tuple[list[bytes], list[bytes], str]:
    """(inputs that reach something new, inputs that break something, what libFuzzer said at its end)."""
    from tools.fuzz.campaign import pool_of
    from tools.fuzz.catalog import targets

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "corpus"
        folder.mkdir()
        for number, data in enumerate(pool_of(targets()[name])):
            (folder / f"seed{number}").write_bytes(data)
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "tools.fuzz.guided", name, "--here", str(folder), "--"),
                *(f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MB_MAX}", f"-timeout={INPUT_S_MAX}"),
                f"-artifact_prefix={scratch}/{CRASH_PREFIX}",
            ],
            capture_output=True,
            text=True,
        )
        found = [path.read_bytes() for path in folder.iterdir()]
        broken = [path.read_bytes() for path in Path(scratch).glob(f"{CRASH_PREFIX}*")]
        return found, broken, ended.stderr


def mutate(name: str, *, mutations: int) -> tuple[list[bytes], list[bytes], str]:
    """As `explore`, by the mutations of the seeded campaigns."""
    from tools.fuzz.campaign import pool_of
    from tools.fuzz.catalog import targets

    target, broken = targets()[name], []
    mutator = Mutator(f"corpus {name}", pool := pool_of(target))
    found = [mutator.next() for _ in range(mutations)]
    for data in found:
        try:
            target.read(data)
        except Exception:
            broken.append(data)
    return [*pool, *found], broken, f"Done {mutations} mutations"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="names, or `all`")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--mutations", type=int, default=0, help="run this many seeded mutations instead of atheris")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if options.here is not None:
        fuzz_here(options.targets[0], options.here, arguments[arguments.index("--") + 1 :])
    from tools.fuzz.catalog import targets
    from tools.fuzz.coverage_lines import smallest_set

    broken_targets = 0
    for name in targets() if options.targets == ["all"] else options.targets:
        if options.mutations:
            found, broken, said = mutate(name, mutations=options.mutations)
        else:
            found, broken, said = explore(name, seconds=options.seconds)
        kept = smallest_set(targets()[name], found)
        corpus.save(corpus.CORPUS, name, kept)
        if broken:
            corpus.append(corpus.FINDINGS, name, broken)
        runs = next((line for line in reversed(said.splitlines()) if line.startswith(("Done", "#"))), said[-200:])
        print(f"{name}: {runs.strip()}; {len(kept)} inputs kept, {len(broken)} break something", flush=True)
        broken_targets += bool(broken)
    return 1 if broken_targets else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
