"""The outcome of each test, kept in outcomes.json and compared with the allow-list and FINDINGS.md."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compat.librdkafka.runner import PASSED

FOLDER = Path(__file__).parent
OUTCOMES = FOLDER / "outcomes.json"
ALLOW_LIST = FOLDER / "allow-list"
FINDINGS = FOLDER / "FINDINGS.md"
UNTOUCHED = "untouched"
"""It passed without a single request to the broker: that says nothing of the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    result: str
    detail: str = ""
    tries: int = 1
    apis: Sequence[str] = ()
    """Of which the broker got requests; Apache Kafka is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    headrace: Outcome | None = None
    kafka: Outcome | None = None


def stored() -> dict[str, Pair]:
    if not OUTCOMES.is_file():
        return {}
    return {
        key: Pair(**{broker: Outcome(**fields) for broker, fields in pair.items() if fields})
        for key, pair in json.loads(OUTCOMES.read_text()).items()
    }


def store(pairs: Mapping[str, Pair]) -> None:
    OUTCOMES.write_text(json.dumps({key: asdict(pairs[key]) for key in sorted(pairs)}, indent=1) + "\n")


def allowed() -> list[str]:
    """Keys of the tests that must pass."""
    return [line for line in ALLOW_LIST.read_text().splitlines() if line and not line.startswith("#")]


def explained() -> list[str]:
    """Keys of the tests that have a heading in FINDINGS.md."""
    return re.findall(r"^### (.+)$", FINDINGS.read_text(), re.MULTILINE)


def complaints(pairs: Mapping[str, Pair]) -> Iterator[str]:
    """Yield why a run is not good: a test left the allow-list, or a failing one has no documented reason."""
    must_pass, reasons = set(allowed()), set(explained())
    for key, pair in pairs.items():
        if pair.headrace is None:
            continue
        if key in must_pass and pair.headrace.result != PASSED:
            yield f"{key} is in the allow-list and {pair.headrace.result}: {pair.headrace.detail}"
        elif key not in must_pass and pair.headrace.result == PASSED:
            yield f"{key} passed and is not in the allow-list: add it"
        elif key not in must_pass and key not in reasons:
            yield f"{key} {pair.headrace.result} and FINDINGS.md does not say why: {pair.headrace.detail}"
