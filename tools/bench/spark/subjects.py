"""Measured formats: our format in all its modes, and Spark's connector, on one Headrace broker."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.bench.brokers import HEADRACE

CONNECTOR = "connector"
FILES = "headrace, files"
FILES_NUMPY = "headrace, files, numpy"
EXACTLY_ONCE = "headrace, exactly once"


class Format(NamedTuple):
    """A Spark format with its options for reading and writing."""

    name: str
    read: Mapping[str, str] = {}
    write: Mapping[str, str] = {}


FORMATS: Mapping[str, Format] = {
    HEADRACE: Format("headrace", read={"scan": "broker"}, write={"delivery": "at-least-once"}),
    FILES: Format("headrace", read={"scan": "direct"}),
    FILES_NUMPY: Format("headrace", read={"scan": "direct"}),
    EXACTLY_ONCE: Format("headrace", read={"scan": "broker"}, write={"delivery": "exactly-once"}),
    CONNECTOR: Format("kafka"),
}


def read_options(subject: str, bootstrap: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **FORMATS[subject].read}


def write_options(subject: str, bootstrap: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "topic": topic, **FORMATS[subject].write}
