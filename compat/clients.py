"""The clients, and their releases, that are run against the broker."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compat.adapters import kcat
from compat.environments import BRIDGE, Missing, java_classpath, python_with

LIBRARIES = ("lz4", "python-snappy", "zstandard")
"""Libraries that kafka-python needs to compress; it loads them if they are installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    client: str
    version: str
    python: Callable[[], Path]
    """The interpreter to run it with; raises Missing where this machine cannot have it."""
    classpath: Callable[[], str] = lambda: ""
    note: str = ""
    """A note on its known failures."""
    fails: tuple[str, ...] = ()
    """Cases that it fails, or may fail, with Apache Kafka as well; any other failure is Headrace's."""

    @property
    def title(self) -> str:
        return f"{self.client} {self.version}"


def _from_index(client: str, version: str, *more: str, note: str = "", fails: tuple[str, ...] = ()) -> Release:
    return Release(
        client=client,
        version=version,
        note=note,
        fails=fails,
        python=lambda: python_with(f"{client}-{version}", f"{client}=={version}", *more),
    )


def _java(version: str) -> Release:
    return Release(
        client="java",
        version=version,
        python=lambda: python_with("java", BRIDGE),
        classpath=lambda: java_classpath(version),
    )


def _kcat_python() -> Path:
    if not kcat.installed():
        raise Missing(kcat.INSTALL)
    return python_with("kcat")


RELEASES = (
    _from_index("confluent-kafka", "2.16.1"),
    _from_index(
        "confluent-kafka",
        "2.4.0",
        note="its process may die after a topic was deleted and made again; it does so with Apache Kafka 4.3.1 too",
        fails=("a topic made again is empty",),
    ),
    _from_index("confluent-kafka", "2.0.2"),
    _java("4.3.0"),
    _java("3.9.1"),
    _java("2.8.2"),
    _from_index("kafka-python", "3.0.12", *LIBRARIES),
    _from_index(
        "kafka-python",
        "2.3.3",
        *LIBRARIES,
        note="with acks=0 it sends nothing at all, to Apache Kafka 4.3.1 neither",
        fails=("acks 0",),
    ),
    _from_index("kafka-python", "2.0.2", *LIBRARIES),
    _from_index("aiokafka", "0.14.0", "cramjam"),
    _from_index("aiokafka", "0.12.0", "cramjam"),
    _from_index("aiokafka", "0.10.0", "cramjam", "lz4"),
    Release(client="kcat", version="as installed", python=_kcat_python),
)
