"""The inputs that are kept: one text file a target, one input a line in hexadecimal, what `#` begins is for readers."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "tests" / "fuzz"
CORPUS = ROOT / "corpus"
"""Inputs that together reach every line reached so far."""

FINDINGS = ROOT / "findings"
"""Inputs that once broke something."""


def load(folder: Path, target: str) -> list[bytes]:
    path = folder / f"{target}.hex"
    if not path.exists():
        return []
    return [bytes.fromhex(line) for line in path.read_text().splitlines() if line and not line.startswith("#")]


def save(folder: Path, target: str, inputs: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    unique = sorted(set(inputs), key=lambda data: (len(data), data))
    (folder / f"{target}.hex").write_text("".join(f"{data.hex()}\n" for data in unique))


def append(folder: Path, target: str, inputs: Iterable[bytes]) -> None:
    """Behind what is there, so that the words of earlier findings stay."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{target}.hex").open("a") as file:
        file.writelines(f"{data.hex()}\n" for data in inputs)
