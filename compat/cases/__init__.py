"""Behaviour that must hold for every client: one function per behaviour, each with its own topic."""

from compat.cases.case import Case
from compat.cases.cluster import CASES as CLUSTER
from compat.cases.configs import CASES as CONFIGS
from compat.cases.errors import CASES as ERRORS
from compat.cases.fetch import CASES as FETCH
from compat.cases.offsets import CASES as OFFSETS
from compat.cases.produce import CASES as PRODUCE
from compat.cases.topics import CASES as TOPICS

CASES: tuple[Case, ...] = (*TOPICS, *PRODUCE, *FETCH, *OFFSETS, *CONFIGS, *CLUSTER, *ERRORS)

assert len({case.name for case in CASES}) == len(CASES), "two cases have one name"

__all__ = ["CASES", "Case"]
