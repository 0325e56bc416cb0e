"""Facts about a scenario that reports need: its name, its measure of progress, and the faults it can meet."""

from typing import ClassVar


class ScenarioFacts:
    name: ClassVar[str]
    options: ClassVar[str] = ""
    """The options of `headrace sim` that choose the scenario."""
    common_faults: ClassVar[tuple[str, ...]]
    """Faults of the nemesis that the scenario has."""
    met: ClassVar[tuple[str, ...]] = ()
    """Faults that only this scenario meets."""
    unmet: ClassVar[tuple[str, ...]] = ()
    """Faults of its nemesis that are not expected here."""
    brokers: ClassVar[int] = 1
    """The number of brokers, unless a run has another."""
    minutes: ClassVar[float] = 1.0
    """Virtual minutes under faults, unless a run has another duration."""
    progress_unit: ClassVar[str] = "batches stored"
    progress_min: ClassVar[int] = 1_000
    """Per minute; a seed with less proves nothing."""
