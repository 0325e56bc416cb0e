"""All fuzz targets by name, and how many inputs a full campaign gives each."""

from functools import cache

from tools.fuzz import codecs, columns, coordinators, logins, records, recovery, scrape, small_files
from tools.fuzz.target import Target

FIRST = (
    *("produce-request", "produce-scan", "fetch-request", "fetch-scan", "metadata-request"),
    *("batch-reader", "segment-recovery"),
)
"""Targets that every stranger reaches first and every start depends on: these get the most inputs."""

DECODES_OF_FIRST = 10_000_000
DECODES_OF_OTHERS = 500_000


@cache
def targets() -> dict[str, Target]:
    modules = (codecs, records, columns, coordinators, recovery, small_files, scrape, logins)
    return {target.name: target for module in modules for target in module.targets()}
